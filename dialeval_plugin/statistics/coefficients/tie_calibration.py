"""Pairwise accuracy with tie calibration (Deutsch, Foster and Freitag 2023, "Ties Matter")."""

from __future__ import annotations

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, Numbers, Statistic
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.rows import cluster_codes, numbers, rows_by_group, same_length

from .kendall import RisingPairs
from .pearson import Ties, checked_pairs, is_undefined

MAX_CANDIDATES = 4_000_000
"""Largest number of score differences tried as epsilon; with more, a sample is tried."""

_MAX_FIELDS = 16_000_000
"""Largest table of scores by ratings (128 MB); above, a sample is tried too."""

_EQUAL = 1e-12
"""Accuracies closer than this are equal, and the smaller epsilon is used."""


def pairwise_accuracy(scores: Numbers, ratings: Numbers, *, epsilon: float | None = None) -> float:
    """Share of the pairs of rows that scores and ratings order, or tie, in the same way.

    Formula (Deutsch et al. 2023, $acc_{eq}$): $(C + T_{xy}) / (n(n-1)/2)$, where two ratings are tied if they are equal, and
    two scores if they differ by at most epsilon, by default the one with the highest accuracy (`calibrated_epsilon`;
    KendallWithTiesOpt in mt-metrics-eval). Range: 0 to 1; a constant score reaches the share of tied ratings. Undefined: fewer
    than 3 pairs, constant scores or constant ratings. Missing values and a negative epsilon are an InputError.

    Example:
        >>> pairwise_accuracy([2, 1, 1.5, 5, 3], [1, 2, 2, 3, 4], epsilon=0)
        0.6
        >>> pairwise_accuracy([2, 1, 1.5, 5, 3], [1, 2, 2, 3, 4])
        0.7
    """
    x, y = checked_pairs("pairwise_accuracy", scores, ratings)
    if epsilon is None:
        epsilon = calibrated_epsilon(x, y)
    if not epsilon >= 0:
        raise InputError(f"pairwise_accuracy: epsilon is {epsilon!r}. Give 0 or more.")
    return accuracy_at(x, y, epsilon)


def accuracy_at(x: FloatArray, y: FloatArray, epsilon: float) -> float:
    """Return the pairwise accuracy of two or more rows at one epsilon, also for constant scores and ratings."""
    return int(AgreeingPairs(x, y, epsilon)(np.ones((1, len(x))))[2][0]) / (len(x) * (len(x) - 1) // 2)


def calibrated_epsilon(scores: Numbers, ratings: Numbers, *, groups: Labels | None = None, seed: int = 0) -> float:
    r"""Return the epsilon with the highest pairwise accuracy on this data; the smallest for ties.

    Candidates are 0 and the differences of scores. An epsilon equal to the difference of two score levels ties their pairs of
    rows; the resulting gains come from a product of the table of levels with its cumulative sums, and one sort of the
    differences gives the accuracy at each: $O(K^2 (L + \log K))$ for K levels of scores and L of ratings. Above
    `MAX_CANDIDATES` differences, or for a large table, random pairs of rows are used.

    With `groups`, labels of the rows, only rows of one group are compared, and groups have equal weight.

    Example:
        >>> calibrated_epsilon([2, 1, 1.5, 5, 3], [1, 2, 2, 3, 4])
        0.5
    """
    where = "calibrated_epsilon"
    same_length(where, scores=scores, ratings=ratings)
    x, y = numbers(where, "scores", scores), numbers(where, "ratings", ratings)
    codes = cluster_codes(where, groups, len(x)) if groups is not None else np.zeros(len(x), dtype=np.int64)
    members = [rows for rows in rows_by_group(codes) if len(rows) > 1]
    n_levels = [(len(np.unique(x[rows])), len(np.unique(y[rows]))) for rows in members]
    total = sum(_n_pairs(n) for n, _ in n_levels)
    if not total:
        return 0.0
    generator = np.random.default_rng(seed)
    tried = []
    for rows, (n_scores, n_ratings) in zip(members, n_levels, strict=True):
        if total > MAX_CANDIDATES or n_scores * n_ratings > _MAX_FIELDS:
            share = max(1, min(MAX_CANDIDATES, total) * _n_pairs(n_scores) // total)
            tried.append(_sampled_gains(x[rows], y[rows], share, generator))
        else:
            tried.append(_all_gains(x[rows], y[rows]))
    differences, gains = (np.concatenate(parts) for parts in zip(*tried, strict=True))
    order = np.argsort(differences, kind="stable")
    differences, summed = differences[order], np.cumsum(gains[order]) / len(members)
    is_last = np.append(differences[1:] != differences[:-1], True)
    candidates = np.append(0.0, differences[is_last])
    accuracies = np.append(0.0, summed[is_last])
    best = int(np.flatnonzero(accuracies >= accuracies.max() - _EQUAL)[0])
    return float(candidates[best])


def pairwise_accuracy_of_samples(x: FloatArray, y: FloatArray, epsilon: float, *, of_group: bool = False) -> Statistic:
    """Pairwise accuracy of weighted samples; with `of_group` constant scores and ratings count, as in `accuracy_at`.

    Copies of a row are tied in both, which raises the accuracy a in a bootstrap of n rows by about $(1 - a)/n$.
    """
    agreeing = AgreeingPairs(x, y, epsilon)

    def statistic(weights: FloatArray) -> FloatArray:
        groups_x, groups_y, counts = agreeing(weights)
        totals = weights.sum(axis=1)
        undefined = totals < 2 if of_group else is_undefined(groups_x, groups_y)
        return np.where(undefined, np.nan, counts / np.where(undefined, 1, totals * (totals - 1) / 2))

    return statistic


class AgreeingPairs:
    """Number of pairs of rows that scores and ratings order, or tie, in the same way, for many weighted samples."""

    def __init__(self, x: FloatArray, y: FloatArray, epsilon: float) -> None:
        self._x, self._y = Ties.of(x), Ties.of(y)
        n_below = _levels_below(np.unique(x), epsilon)
        self._ordered = RisingPairs(self._x.codes, self._y.codes, n_below)
        self._apart = RisingPairs(self._x.codes, self._y.codes, n_below, ties=True)

    def __call__(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how often each level of scores and of ratings occurs in each sample, and the number of pairs."""
        groups_x, groups_y = self._x.totals(weights), self._y.totals(weights)
        # Pairs with equal ratings agree unless their scores differ by more than epsilon.
        equal = ((groups_y**2).sum(axis=1) - weights.sum(axis=1)) / 2
        return groups_x, groups_y, self._ordered(weights) + equal - self._apart(weights)


def _levels_below(levels: FloatArray, epsilon: float) -> IntArray:
    """Return for each ascending level the number of levels lower by more than epsilon, as `a - b > epsilon`."""
    first = np.searchsorted(levels, levels - epsilon)
    while True:
        # A difference of levels and a sum with epsilon round differently: step to where the difference changes sides.
        too_low = levels - levels[np.minimum(first, len(levels) - 1)] > epsilon
        too_high = (first > 0) & (levels - levels[np.maximum(first - 1, 0)] <= epsilon)
        if not (too_low | too_high).any():
            return first
        first = first + too_low - too_high


def _n_pairs(n: int) -> int:
    return n * (n - 1) // 2


def _all_gains(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    levels, codes_x = np.unique(x, return_inverse=True)
    codes_y = Ties.of(y).codes
    table = np.zeros((len(levels), int(codes_y.max()) + 1))
    np.add.at(table, (codes_x.reshape(-1), codes_y), 1)
    below = np.cumsum(table, axis=1) - table
    low, high = np.triu_indices(len(levels), 1)
    gains = (table @ (table - below).T)[high, low]
    return levels[high] - levels[low], gains / _n_pairs(len(x))


def _sampled_gains(
    x: FloatArray, y: FloatArray, n_sampled: int, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    order = np.lexsort((x, y))
    x, y = x[order], y[order]
    i = generator.integers(len(x), size=n_sampled)
    j = (i + generator.integers(1, len(x), size=n_sampled)) % len(x)
    orders_x, orders_y = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
    becomes_tied = orders_x != 0
    gains = (orders_y == 0).astype(np.float64) - (orders_x * orders_y > 0)
    return np.abs(x[i] - x[j])[becomes_tied], gains[becomes_tied] / n_sampled
