"""Coefficients between scores and ratings by name: for one sample, and for many weighted samples at once.

Each is a pair of functions: one of raw scores and ratings, checked and computed by scipy, and one of weighted samples for the
bootstrap (see `pearson`), NaN where the first raises `StatisticUndefined`. They agree to 1e-9. Pairwise accuracy
has tie calibration (Deutsch, Foster and Freitag 2023, "Ties Matter").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal, NoReturn

import numpy as np
from scipy import sparse, special

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, Numbers, Statistic
from dialeval_plugin.core.errors import InputError, StatisticUndefined, unknown_name
from dialeval_plugin.statistics.bootstrap import Resampled
from dialeval_plugin.statistics.rows import cluster_codes, numbers, rows_by_group, same_length

from .kendall import RisingPairs, auroc, auroc_of_samples, kendall_b, kendall_b_of_samples, kendall_c, kendall_c_of_samples
from .pearson import (
    Ties,
    checked_pairs,
    is_undefined,
    pearson,
    pearson_of_samples,
    point_biserial,
    point_biserial_of_samples,
    spearman,
    spearman_of_samples,
)

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


def soft_pairwise_accuracy(scores: FloatArray, ratings: FloatArray, clusters: IntArray, systems: IntArray) -> Resampled:
    r"""Soft pairwise accuracy (Thompson et al. 2024): 1 minus the mean difference between p-values of scores and of ratings.

    For two systems a and b, p is that of a permutation test of "a is better than b", which swaps the rows of a whole cluster,
    here by its normal limit: $\Phi(-d/s)$ for the difference d of the means and $s^2 = \sum_c ((X_{ac} - N_{ac} m)/N_a -
    (X_{bc} - N_{bc} m)/N_b)^2$ with the sums X and numbers N of rows of cluster c and the mean m of both systems. With one row
    per system in each cluster this is the paired test of mt-metrics-eval, to within 0.001 of its value with 20,000
    permutations; without common clusters the test is unpaired. Two systems with equal scores have p = 0.5. Range: 0 to 1; 0.5
    by chance if people distinguish all systems. Resamples add noise to p-values, which lowers the accuracy of many systems:
    quantile intervals are moved by that. Raises StatisticUndefined for fewer than two systems.
    """
    n_systems, n_clusters = int(systems.max(initial=-1)) + 1, int(clusters.max(initial=-1)) + 1
    if n_systems < 2:
        raise StatisticUndefined(
            f"soft_pairwise_accuracy: {n_systems} systems, 2 are needed. Give responses of several systems."
        )

    def moments(values: FloatArray) -> Any:
        entries = np.concatenate([np.ones(len(values)), values])
        places = np.tile(clusters, 2), np.concatenate([systems, systems + n_systems])
        of_clusters = sparse.coo_array((entries, places), shape=(n_clusters, 2 * n_systems)).tocsc()
        products = [of_clusters.multiply(of_clusters[:, [column]]) for column in range(2 * n_systems)]
        return sparse.hstack([of_clusters, *products], format="csr")

    of_scores, of_ratings = moments(scores), moments(ratings)
    width = of_scores.shape[1]

    def statistic(drawn: FloatArray) -> FloatArray:
        distances = np.abs(_p_values(drawn[:, :width], n_systems) - _p_values(drawn[:, width:], n_systems))
        n_pairs = (~np.isnan(distances)).sum(axis=1)
        with np.errstate(invalid="ignore"):
            return np.asarray(1 - np.nansum(distances, axis=1) / n_pairs)

    return Resampled(statistic, sparse.hstack([of_scores, of_ratings], format="csr"), limit=1.0)


@np.errstate(divide="ignore", invalid="ignore")
def _p_values(drawn: FloatArray, n_systems: int) -> FloatArray:
    """Return p-values of every pair of systems, from counts, sums and products of both; NaN for a system that was not drawn."""
    a, b = np.triu_indices(n_systems, 1)
    n_a, n_b, x_a, x_b = drawn[:, a], drawn[:, b], drawn[:, n_systems + a], drawn[:, n_systems + b]
    difference, mean = x_a / n_a - x_b / n_b, (x_a + x_b) / (n_a + n_b)
    weights = np.stack([1 / n_a, -mean / n_a, -1 / n_b, mean / n_b], axis=2)
    places = np.stack([n_systems + a, a, n_systems + b, b], axis=1)
    products = drawn[:, 2 * n_systems :].reshape(len(drawn), 2 * n_systems, 2 * n_systems)
    variance = np.einsum("rpi,rpij,rpj->rp", weights, products[:, places[:, :, None], places[:, None, :]], weights)
    spread = np.sqrt(np.maximum(variance, 0))
    is_even = np.abs(difference) <= 1e-12 * (1 + np.abs(mean))
    return np.asarray(np.where(is_even, 0.5, special.ndtr(-difference / spread)))


def pairwise_difference_pearson(scores: FloatArray, ratings: FloatArray, clusters: IntArray, items: IntArray) -> Resampled:
    r"""Pearson's correlation of the differences of two responses to one item, in scores and in ratings, over all such pairs.

    Effects of an item on all its responses cancel. Each pair counts in both directions, so that the differences have a mean of
    0 and the order of systems has no effect; then item i with $n_i$ responses adds $n_i$ times its sums of squares and products
    about its means. Range: -1 to 1. Raises StatisticUndefined if no item has two responses that differ in scores, or none that
    differ in ratings.
    """
    n_rows = np.bincount(items)
    cluster_of_item = np.zeros(len(n_rows), dtype=np.int64)
    cluster_of_item[items] = clusters
    if (cluster_of_item[items] != clusters).any():
        raise InputError(
            "pairwise_difference_pearson: responses to one item lie in several clusters. Give clusters of whole items."
        )
    x, y = (values - (np.bincount(items, values) / n_rows)[items] for values in (scores, ratings))
    sums = np.stack([np.bincount(clusters, n_rows[items] * product) for product in (x * y, x * x, y * y)], axis=1)
    if not (sums[:, 1:].sum(axis=0) > 1e-12 * (1 + np.array([scores @ scores, ratings @ ratings]))).all():
        why = "no two responses to one item differ in scores, or none in ratings"
        raise StatisticUndefined(f"pairwise_difference_pearson: {why}. Give several responses an item.")

    @np.errstate(divide="ignore", invalid="ignore")
    def statistic(drawn: FloatArray) -> FloatArray:
        return np.asarray(drawn[:, 0] / np.sqrt(drawn[:, 1] * drawn[:, 2]))

    return Resampled(statistic, sums)


_MAX_REMEMBERED = 256
"""Largest number of rows of a group whose value is remembered, so that all of them take at most 17 MB."""


@lru_cache(maxsize=4096)
def _of_all(of_samples: Callable[..., Statistic], x: bytes, y: bytes) -> float:
    """Return the value of all rows; a permutation test asks for that of a group with one metric's scores or the other's."""
    columns = np.frombuffer(x), np.frombuffer(y)
    return float(of_samples(*columns)(np.ones((1, len(columns[0]))))[0])


@dataclass(frozen=True, slots=True)
class Coefficient:
    """Coefficient by name; an entry in `COEFFICIENTS` adds one."""

    name: str
    of_pairs: Callable[..., float]
    """Function of scores and ratings."""
    of_samples: Callable[..., Statistic]
    """Function of arrays of both; with `has_epsilon` only once it is `calibrated`."""
    has_epsilon: bool = False
    """Whether scores that differ by at most an epsilon, chosen on the data, count as tied."""
    epsilon: float | None = None
    lowest: float = -1.0
    """Value of the reverse order; the highest is 1."""
    of_tied_scores: float = 0.0
    """Value if all scores are equal and ratings differ: such scores order nothing, like a guess on average."""
    of_groups: Callable[..., Resampled] | None = None
    """Function of scores, ratings, clusters and groups that replaces the others, which then raise InputError."""
    groups: Literal["system", "item"] | None = None
    """Kind of group that `of_groups` compares."""

    def of_group(self, x: FloatArray, y: FloatArray) -> float:
        """Return the value for one of many groups, NaN if it is undefined."""
        if len(x) < 2:
            return math.nan
        if self.epsilon is None:
            of_all = _of_all if len(x) <= _MAX_REMEMBERED else _of_all.__wrapped__
            return of_all(self.of_samples, x.tobytes(), y.tobytes())
        # Groups with constant ratings count too.
        return accuracy_at(x, y, self.epsilon)

    def of_group_samples(self, x: FloatArray, y: FloatArray, *, skips_ties: bool) -> Statistic:
        """Return the values for weighted samples of one of many groups: `of_tied_scores` if only the scores are tied."""
        if self.epsilon is not None:
            return self.of_samples(x, y, of_group=True)
        of_samples = self.of_samples(x, y)

        def statistic(weights: FloatArray) -> FloatArray:
            values = of_samples(weights)
            missing = np.isnan(values)
            if missing.any() and not skips_ties:
                # If even ratings with themselves are undefined, no scores can be defined.
                of_ratings = self.of_samples(y, y)(weights[missing])
                values[missing] = np.where(np.isnan(of_ratings), np.nan, self.of_tied_scores)
            return values

        return statistic

    def calibrated(self, scores: Numbers, ratings: Numbers, groups: Labels | None = None) -> Coefficient:
        """Return the coefficient with its epsilon chosen on this data; itself if it has none."""
        if not self.has_epsilon:
            return self
        epsilon = calibrated_epsilon(scores, ratings, groups=groups)
        of_pairs, of_samples = partial(self.of_pairs, epsilon=epsilon), partial(self.of_samples, epsilon=epsilon)
        return replace(self, of_pairs=of_pairs, of_samples=of_samples, epsilon=epsilon)


COEFFICIENTS: dict[str, Coefficient] = {
    entry.name: entry
    for entry in (
        Coefficient("pearson", pearson, pearson_of_samples),
        Coefficient("spearman", spearman, spearman_of_samples),
        Coefficient("kendall_b", kendall_b, kendall_b_of_samples),
        Coefficient("kendall_c", kendall_c, kendall_c_of_samples),
        Coefficient("pairwise_accuracy", pairwise_accuracy, pairwise_accuracy_of_samples, has_epsilon=True, lowest=0.0),
        Coefficient("point_biserial", point_biserial, point_biserial_of_samples),
        Coefficient("auroc", auroc, auroc_of_samples, lowest=0.0, of_tied_scores=0.5),
    )
}


def _comparing(groups: Literal["system", "item"], of_groups: Callable[..., Resampled], needs: str) -> Coefficient:
    name = of_groups.__name__

    def refuse(*_: object) -> NoReturn:
        raise InputError(f"{name}: compares {needs}")

    return Coefficient(name, refuse, refuse, of_groups=of_groups, groups=groups)


_BY_SYSTEM = "systems. Give level='system', which is --by-system."
_BY_ITEM = "responses to one item. Give average_by='item', which is --average-by item."
COEFFICIENTS_OF_GROUPS: dict[str, Coefficient] = {
    "soft_pairwise_accuracy": _comparing("system", soft_pairwise_accuracy, _BY_SYSTEM),
    "pairwise_difference_pearson": _comparing("item", pairwise_difference_pearson, _BY_ITEM),
}
"""Coefficients for comparisons of systems or items only."""


def coefficient_named(name: str) -> Coefficient:
    """Return the coefficient `name`; an InputError lists the known names."""
    known = COEFFICIENTS | COEFFICIENTS_OF_GROUPS
    if name not in known:
        # scipy's kendalltau and pandas' kendall are tau-b.
        nearest = "kendall_b" if name.lower().endswith(("kendall", "tau", "tau_b", "taub")) else name
        raise unknown_name(f"there is no coefficient {name!r}", nearest, sorted(known))
    return known[name]
