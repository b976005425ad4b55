"""Coefficients between scores and ratings by name: for one sample, and for many weighted samples at once.

Each is a pair of functions: one of raw scores and ratings, checked and computed by scipy, and one of weighted samples for the
bootstrap (see `pearson`), NaN where the first raises `StatisticUndefined`. They agree to 1e-9.
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

from .kendall import auroc, auroc_of_samples, kendall_b, kendall_b_of_samples, kendall_c, kendall_c_of_samples
from .pearson import pearson, pearson_of_samples, point_biserial, point_biserial_of_samples, spearman, spearman_of_samples
from .tie_calibration import accuracy_at, calibrated_epsilon, pairwise_accuracy, pairwise_accuracy_of_samples


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
