r"""Agreement on labels: confusion matrices, Krippendorff's alpha, and distances from the distribution of people's labels.

The statistics of a confusion matrix are functions of its cells, `sums[sample, people's label * K + evaluator's label]`. Cells
may be shares: a row labelled by m people adds 1/m to the cell of each label, so the statistics compare the evaluator with
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

Krippendorff's alpha (2011) is $1 - D_o / D_e$. Let $o_{ck}$ count how often labels c and k are paired in a row, where each of m
labels of a row is paired with the others with weight 1 / (m - 1), and $n_c = \sum_k o_{ck}$. Then $D_o = \sum o_{ck}
\delta_{ck} / n$ and $D_e = \sum n_c n_k \delta_{ck} / (n(n - 1))$. $\delta$ is 1 for different labels (nominal), their squared
difference (interval), or the squared number of labels given between the two, which count one half themselves (ordinal). Range:
1 for full agreement, 0 for chance. Rows with fewer than two labels are ignored.

Where people differ, the shares of their labels say more than a majority (Uma et al. 2021). An evaluator is a distribution, too:
the chances that it gives each label, 1 for its label if it gives one. Means over rows with `MIN_LABELS` labels or more:

- jsd: Jensen-Shannon divergence (Lin 1991) with logarithms to base 2, 0 to 1, lower is better. Each person of a row is left out
  in turn and the evaluator compared with the shares of the others; a person is compared with the same shares, so that the two
  can be compared. With few labels a row, shares are coarse, and jsd is larger than for many.
- cross_entropy: $-\sum_k p_k \log_2 q_k$ of people's shares p and the evaluator's chances q, in bits per row, lower is better.
  Undefined if the chance of a label that a person gave is 0, as it always is for an evaluator of labels that people dispute.

A value is NaN if a denominator is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse, special

from dialeval_plugin.core.arrays import FloatArray, IntArray, Statistic
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.labels.table import Scale, ScaleKind

from .bootstrap import Resampled, ratio_of_sums

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
    # Rounding errors around 0 would be an interval of an evaluator that always says the same.
    return np.where(np.isfinite(values), np.where(np.abs(values) > 1e-12, values, 0), np.nan)


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


def resampled_alpha(labels: FloatArray, clusters: IntArray, kind: ScaleKind, n_categories: int) -> Resampled:
    """Return alpha between the raters of `labels[row, rater]`, NaN without a label.

    Args:
        labels: indices of categories, or numbers on an interval scale.
        clusters: number of each row's cluster, from 0.
        kind: kind of the scale; binary labels are nominal.
        n_categories: ignored for an interval scale.
    """
    if kind != "interval":
        cells = people_cells(label_counts(labels, n_categories), clusters, is_weighted=True)
        return Resampled(partial(_alpha_of_cells, n_categories, is_ordinal=kind == "ordinal"), cells)
    n = (~np.isnan(labels)).sum(axis=1)
    values = np.where(np.isnan(labels) | (n < 2)[:, None], 0, labels - np.nanmean(labels))
    first, second = values.sum(axis=1), (values**2).sum(axis=1)
    apart = 2 * (n * second - first**2) / np.maximum(1, n - 1)
    moments = np.stack([np.where(n > 1, n, 0), first, second, apart], axis=1)
    of_cluster = sparse.csr_array((np.ones(len(n)), (clusters, np.arange(len(n)))))
    return Resampled(_alpha_of_moments, np.asarray(of_cluster @ moments))


@np.errstate(divide="ignore", invalid="ignore")
def _alpha_of_cells(n_categories: int, sums: FloatArray, *, is_ordinal: bool = False) -> FloatArray:
    """Return alpha of nominal or ordinal labels from the sums of `people_cells(..., is_weighted=True)`."""
    cells = sums.reshape(-1, n_categories, n_categories)
    labels = cells.sum(axis=2)
    n = labels.sum(axis=1)
    middles = labels.cumsum(axis=1) - labels / 2
    apart = (middles[:, :, None] - middles[:, None]) ** 2 if is_ordinal else 1 - np.eye(n_categories)[None]
    expected = (labels[:, :, None] * labels[:, None] * apart).sum(axis=(1, 2)) / (n * (n - 1))
    return np.where(expected > 0, 1 - (cells * apart).sum(axis=(1, 2)) / n / expected, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def _alpha_of_moments(sums: FloatArray) -> FloatArray:
    n, first, second, apart = sums.T
    expected = 2 * (n * second - first**2) / (n * (n - 1))
    return np.where(expected > 1e-12 * second / n, 1 - apart / n / expected, np.nan)


def alpha(counts: FloatArray) -> float:
    """Return Krippendorff's nominal alpha (2011) from `counts[unit, answer]`, the number of raters who gave each answer.

    Range: 1 for full agreement, 0 for chance, below 0 for less. Units with fewer than two answers are left out. Raises
    StatisticUndefined if fewer than two different answers are left.
    """
    pairable = counts[counts.sum(axis=1) > 1]
    if (pairable.sum(axis=0) > 0).sum() < 2:
        raise StatisticUndefined("alpha: the raters gave fewer than two different answers. Compare more responses.")
    return float(alpha_of_samples(pairable)(np.ones((1, len(pairable))))[0])


def alpha_of_samples(counts: FloatArray) -> Statistic:
    r"""Return alpha as a function of weighted samples of units, `weights[sample, unit]`; its cells are sums over units."""
    cells = people_cells(counts, np.arange(len(counts)), is_weighted=True)
    return lambda weights: _alpha_of_cells(counts.shape[1], weights @ cells)


MIN_LABELS = 3
"""Smallest number of labels of a row, so that the others of each person are two or more."""
FEW_LABELS = 5
"""Mean number of labels of a row below which a distribution is coarse."""


def jensen_shannon(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the divergence of distributions p and q, one in each row, in bits."""
    divergences = special.rel_entr(p, (p + q) / 2) + special.rel_entr(q, (p + q) / 2)
    return np.asarray(divergences.sum(axis=1) / (2 * math.log(2)))


def divergence(chances: FloatArray | None, counts: FloatArray, clusters: IntArray) -> Resampled:
    """Return jsd.

    Args:
        chances: the evaluator's distributions, shape (rows, categories); None for the person who is left out.
        counts: number of people who gave each label, at least `MIN_LABELS` in each row.
        clusters: number of each row's cluster, from 0.
    """
    n, values = counts.sum(axis=1), np.zeros(len(counts))
    for place, label in enumerate(np.eye(counts.shape[1])):
        is_given = counts[:, place] > 0
        others = (counts[is_given] - label) / (n[is_given, None] - 1)
        own = np.broadcast_to(label, others.shape) if chances is None else chances[is_given]
        values[is_given] += counts[is_given, place] / n[is_given] * jensen_shannon(own, others)
    return _mean(values, clusters)


def cross_entropy(chances: FloatArray, counts: FloatArray, clusters: IntArray) -> Resampled | str:
    """Return cross_entropy, or why it is undefined; arguments as in `divergence`."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    values = -special.xlogy(shares, chances).sum(axis=1) / math.log(2)
    if n_excluded := int(np.isinf(values).sum()):
        return (
            f"cross_entropy: in {n_excluded} of {len(values)} rows the evaluator gives no chance to a label of a person. "
            "Give it chances between 0 and 1."
        )
    return _mean(values, clusters)


def _mean(values: FloatArray, clusters: IntArray) -> Resampled:
    return ratio_of_sums(np.stack([np.bincount(clusters, values), np.bincount(clusters)], axis=1))
