r"""Soft pairwise accuracy, and Pearson's correlation of differences, as functions of sums over clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, special

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.bootstrap import Resampled


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
