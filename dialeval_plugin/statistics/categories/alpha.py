r"""Krippendorff's alpha (2011) as a function of sums, for resampling: $1 - D_o / D_e$.

Let $o_{ck}$ count how often labels c and k are paired in a row, where each of the m labels of a row is paired with the others
with weight 1 / (m - 1), and $n_c = \sum_k o_{ck}$. Then $D_o = \sum o_{ck} \delta_{ck} / n$ and $D_e = \sum n_c n_k \delta_{ck}
/ (n(n - 1))$. $\delta$ is 1 for different labels (nominal), their squared difference (interval), or the squared number of
labels given between the two, which count one half themselves (ordinal). Range: 1 for full agreement, 0 for chance. Rows with
fewer than two labels are ignored. NaN if all labels are equal. The reference is the package `krippendorff`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, IntArray, Statistic
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.labels.table import ScaleKind
from dialeval_plugin.statistics.bootstrap import Resampled

from .confusion import label_counts, people_cells


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
