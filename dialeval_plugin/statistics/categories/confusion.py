r"""Statistics of a confusion matrix, as functions of its cells: `sums[sample, people's label * K + evaluator's label]`.

Cells may be shares: a row labelled by m people adds 1/m to the cell of each label, so the statistics compare the evaluator with
one random person of each row. With cells $n_{ij}$, their sum n, and the sums $r_i$ of people's label i and $c_j$ of the
evaluator's label j:

- accuracy $\sum_i n_{ii} / n$; recall of a label $n_{ii} / r_i$, precision $n_{ii} / c_i$, F1 $2 n_{ii} / (r_i + c_i)$. With
  two labels the second is positive, and tpr and tnr are the recalls. With more, F1 is the mean over labels that occur.
- balanced accuracy: mean recall of the labels given by people.
- mcc: Matthews' correlation, for more than two labels Gorodkin's (2004):
  $(n \sum n_{ii} - \sum r_i c_i) / \sqrt{(n^2 - \sum r_i^2)(n^2 - \sum c_i^2)}$, -1 to 1.
- kappa (Cohen 1960): $(p_o - p_e) / (1 - p_e)$ with $p_e = \sum r_i c_i / n^2$; -1 to 1, 0 for chance. Between two random
  people it is Fleiss' (1971) if all rows have equally many labels. Weighted (Cohen 1968), for ordered labels:
  disagreements count $|i - j|$ (linear) or $(i - j)^2$ (quadratic).
- ac1 (Gwet 2008): kappa with $p_e = \sum \pi_i (1 - \pi_i) / (K - 1)$, $\pi_i = (r_i + c_i) / 2n$. If nearly all labels are
  equal it stays near the accuracy, and kappa falls to 0.

A value is NaN if a denominator is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, IntArray, Statistic
from dialeval_plugin.labels.table import Scale

_Cells = Callable[[FloatArray], FloatArray]


def label_counts(labels: FloatArray, n_categories: int) -> FloatArray:
    """Return the number of people who gave each label, shape (rows, categories), from `labels[row, rater]`."""
    return np.stack([(labels == place).sum(axis=1) for place in range(n_categories)], axis=1).astype(np.float64)


def evaluator_cells(answers: FloatArray, counts: FloatArray, clusters: IntArray) -> FloatArray:
    """Return the cells of each cluster, shape (clusters, K * K), people's label before the evaluator's.

    Args:
        answers: the evaluator's label of each row, without NaN.
        counts: as returned by `label_counts`; rows without a label add nothing.
        clusters: number of each row's cluster, from 0.
    """
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    rows, people = np.nonzero(shares)
    cells = people * counts.shape[1] + answers.astype(np.int64)[rows]
    shape = int(clusters.max()) + 1, counts.shape[1] ** 2
    return np.asarray(sparse.coo_array((shares[rows, people], (clusters[rows], cells)), shape=shape).toarray())


def people_cells(counts: FloatArray, clusters: IntArray, *, is_weighted: bool = False) -> FloatArray:
    """Return the cells of two random people who labelled a row, summed over each cluster.

    A row adds 1, or with `is_weighted` (for Krippendorff's alpha) its number of labels; with fewer than two labels, nothing.
    """
    n = counts.sum(axis=1)
    weights = np.where(n > 1, 1 / np.maximum(1, n - 1) / (1 if is_weighted else np.maximum(1, n)), 0)
    of_cluster = sparse.csr_array((weights, (clusters, np.arange(len(n)))))
    n_categories = counts.shape[1]
    pairs = (counts * counts[:, [first]] - counts * (np.arange(n_categories) == first) for first in range(n_categories))
    return np.hstack([of_cluster @ cells for cells in pairs])


@np.errstate(divide="ignore", invalid="ignore")
def _on_cells(statistic: _Cells, n_categories: int, sums: FloatArray) -> FloatArray:
    cells = sums.reshape(-1, n_categories, n_categories)
    values = statistic(np.asarray(cells, dtype=np.float64))
    return np.where(np.isfinite(values), values, np.nan)


def label_statistics(scale: Scale) -> dict[str, Statistic]:
    """Return the statistics of labels on a scale of categories by name, each a function of the cells; see the module."""
    n = len(scale.categories)
    named: dict[str, _Cells] = {
        "accuracy": lambda cells: _diagonal(cells).sum(axis=1) / cells.sum(axis=(1, 2)),
        "balanced_accuracy": lambda cells: _mean_where(_diagonal(cells) / cells.sum(axis=2), cells.sum(axis=2) > 0),
    }
    if scale.kind == "binary":
        named |= {
            "tpr": lambda cells: cells[:, 1, 1] / cells[:, 1].sum(axis=1),
            "tnr": lambda cells: cells[:, 0, 0] / cells[:, 0].sum(axis=1),
            "precision": lambda cells: cells[:, 1, 1] / cells[:, :, 1].sum(axis=1),
            "f1": lambda cells: _f1(cells)[:, 1],
        }
    else:
        named["macro_f1"] = lambda cells: _mean_where(_f1(cells), cells.sum(axis=1) + cells.sum(axis=2) > 0)
    named |= {"mcc": _mcc, "kappa": partial(_kappa, 1 - np.eye(n)), "ac1": _ac1}
    if scale.kind == "ordinal":
        apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n))).astype(np.float64)
        named |= {"linear_kappa": partial(_kappa, apart), "quadratic_kappa": partial(_kappa, apart**2)}
    return {name: partial(_on_cells, statistic, n) for name, statistic in named.items()}


def _diagonal(cells: FloatArray) -> FloatArray:
    return np.asarray(np.diagonal(cells, axis1=1, axis2=2))


def _mean_where(values: FloatArray, there: FloatArray) -> FloatArray:
    return np.asarray(np.where(there, values, 0).sum(axis=1) / there.sum(axis=1))


def _f1(cells: FloatArray) -> FloatArray:
    return np.asarray(2 * _diagonal(cells) / (cells.sum(axis=1) + cells.sum(axis=2)))


def _mcc(cells: FloatArray) -> FloatArray:
    n, rows, columns = cells.sum(axis=(1, 2)), cells.sum(axis=2), cells.sum(axis=1)
    spread = (n**2 - (rows**2).sum(axis=1)) * (n**2 - (columns**2).sum(axis=1))
    # Rounding errors of shares remain if there is no spread.
    spread = np.where(spread > 1e-12 * n**4, spread, 0)
    return np.asarray((n * _diagonal(cells).sum(axis=1) - (rows * columns).sum(axis=1)) / np.sqrt(spread))


def _kappa(disagreement: FloatArray, cells: FloatArray) -> FloatArray:
    n, rows, columns = cells.sum(axis=(1, 2)), cells.sum(axis=2), cells.sum(axis=1)
    expected = np.einsum("si,ij,sj->s", rows, disagreement, columns) / n**2
    expected = np.where(expected > 1e-12, expected, 0)
    return np.asarray(1 - (cells * disagreement).sum(axis=(1, 2)) / n / expected)


def _ac1(cells: FloatArray) -> FloatArray:
    n = cells.sum(axis=(1, 2))
    shares = (cells.sum(axis=1) + cells.sum(axis=2)) / (2 * n[:, None])
    expected = (shares * (1 - shares)).sum(axis=1) / (cells.shape[1] - 1)
    return np.asarray((_diagonal(cells).sum(axis=1) / n - expected) / (1 - expected))
