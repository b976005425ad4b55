"""Means with intervals: accuracy of a metric or judge, and the difference between two of them on the same rows.

A row with None is left out and counted; NaN is an error. Without any value the mean is None and has a `reason`. InputError:
lengths differ, a value is neither None nor finite, or a label names no cluster.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, Numbers, OptionalNumbers, Statistic

from .bootstrap import (
    DEFAULT_BOOTSTRAP,
    MIN_CLUSTERS,
    ROUGH_CLUSTERS,
    Bootstrap,
    Computed,
    Counts,
    Estimate,
    Resampled,
    ratio_of_sums,
    rows_by_cell,
    too_few_clusters,
)
from .rows import CheckedColumn, canonical_rows, cluster_codes, distinct_rows, optional_numbers, same_length, symmetric


def mean_interval(
    values: OptionalNumbers, *, clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the mean of `values` with its interval; for 0 (wrong) and 1 (right), it is the accuracy.

    Formula: sum over rows divided by the number of rows, so that a cluster is weighted by its size.

    Example:
        >>> print(mean_interval([1, 1, 0, 1, None, 0, 1, 1, 0, 1, 1, 0, 1], clusters=list("aabbccdefghij")))
        mean 0.667 [0.333, 0.961, rough], 12 of 13 rows scored, 10 clusters
    """
    where = "mean_interval"
    same_length(where, values=values, clusters=clusters)
    column = optional_numbers(where, "values", values)
    return _mean(where, "mean", column, clusters, bootstrap)


def paired_difference_interval(
    values_a: OptionalNumbers,
    values_b: OptionalNumbers,
    *,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return the mean of a - b over the rows that have both, with its interval, such as the gain in an ablation.

    Both values of a row are resampled together, so effects shared by both do not widen the interval. A row in which either is
    None counts as unscored.
    """
    where = "paired_difference_interval"
    same_length(where, values_a=values_a, values_b=values_b, clusters=clusters)
    a, b = optional_numbers(where, "values_a", values_a), optional_numbers(where, "values_b", values_b)
    return _mean(where, "difference", CheckedColumn(a.values - b.values, a.present & b.present), clusters, bootstrap)


def difference_of_means_interval(
    values_a: OptionalNumbers,
    values_b: OptionalNumbers,
    *,
    clusters_a: Labels,
    clusters_b: Labels,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Return the mean of `values_a` minus that of `values_b` with its interval; rows of the two may differ.

    A cluster with rows on both sides, such as a conversation answered by two versions, is drawn with all of them, so effects
    shared by both do not widen the interval. Rows without a value are left out and counted. `n_clusters` is that of the side
    with fewer clusters; with too few there is no interval, however many the other side has.

    In a simulation (1000 sets, one to six rows per cluster), 95 % percentile intervals contained the true difference in 89.2,
    93.2, 92.1 and 93.1 % of the sets with 10, 20, 40 and 100 shared clusters, and in 91.8, 92.7, 94.3 and 95.0 % without shared
    ones. For the default, see `Bootstrap`.

    Example:
        >>> sides = {"clusters_a": list("abcdefghijkl"), "clusters_b": list("abcdefghijkl")}
        >>> print(difference_of_means_interval([2, 4, 3, 5] * 3, [1, 2, 3, 4] * 3, **sides))
        difference 1.000 [0.583, 1.500, rough], 24 of 24 rows scored, 12 clusters
    """
    computed, counts = difference_of_means(values_a, values_b, clusters_a=clusters_a, clusters_b=clusters_b)
    estimate = bootstrap.estimates({"difference": computed}, counts)["difference"]
    if estimate.ci_low is not None and counts.n_clusters < MIN_CLUSTERS:
        why = too_few_clusters("difference", counts.n_clusters)
        return replace(estimate, ci_low=None, ci_high=None, reason=why, is_rough=False)
    return replace(estimate, is_rough=estimate.ci_low is not None and counts.n_clusters < ROUGH_CLUSTERS)


def difference_of_means(
    values_a: OptionalNumbers, values_b: OptionalNumbers, *, clusters_a: Labels, clusters_b: Labels
) -> tuple[Computed, Counts]:
    """Return what `difference_of_means_interval` resamples, and its counts."""
    where = "difference_of_means_interval"
    same_length(where, values_a=values_a, clusters_a=clusters_a)
    same_length(where, values_b=values_b, clusters_b=clusters_b)
    columns = [optional_numbers(where, "values_a", values_a), optional_numbers(where, "values_b", values_b)]
    codes = cluster_codes(where, [*clusters_a, *clusters_b], len(values_a) + len(values_b))
    sums: list[list[FloatArray | IntArray]] = []
    for (values, present), of in zip(columns, np.split(codes, [len(values_a)]), strict=True):
        known, kept_codes = values[present], of[present]
        # Sorted by value, so that the order of the rows has no effect.
        order, n_codes = np.argsort(known, kind="stable"), int(codes.max(initial=-1)) + 1
        total = np.bincount(kept_codes[order], weights=known[order], minlength=n_codes)
        sums.append([total, np.bincount(kept_codes, minlength=n_codes).astype(np.float64)])
    n_total, n_scored = len(codes), sum(int(present.sum()) for _, present in columns)
    n_clusters = min(int((n_rows > 0).sum()) for _, n_rows in sums)
    if not n_clusters:
        computed: Computed = f"{where}: one side has no row with a value. Score some of its examples."
    else:
        order = np.lexsort(symmetric(sums, []))
        of_clusters = np.stack([column[order] for side in sums for column in side], axis=1)
        means = [math.fsum(values[present]) / int(present.sum()) for values, present in columns]
        computed = means[0] - means[1], Resampled(_difference_of_means, of_clusters[of_clusters[:, [1, 3]].any(axis=1)])
    return computed, Counts(n_total, n_scored, n_clusters, n_total - n_scored)


def clustered_mean(values: Numbers, clusters: Labels) -> Resampled:
    """Return the mean of values as a function of sums over their clusters."""
    codes = cluster_codes("clustered_mean", clusters, len(values))
    sums = [np.bincount(codes, weights=weights) for weights in (np.asarray(values, dtype=np.float64), np.ones(len(codes)))]
    return ratio_of_sums(np.stack(sums, axis=1))


@np.errstate(invalid="ignore")
def _difference_of_means(drawn: FloatArray) -> FloatArray:
    """Return the difference from sums and numbers of rows of both sides; NaN (degenerate) if a side has no rows."""
    return drawn[:, 0] / drawn[:, 1] - drawn[:, 2] / drawn[:, 3]


def balanced_mean_interval(
    values: OptionalNumbers, groups: Labels, *, clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the mean of the groups' means with its interval: for right or wrong by class, the balanced accuracy.

    Groups have equal weight, however many of their rows have a value. Undefined if a group has no value. Clusters are resampled
    regardless of groups, so a resample without a row of some group is degenerate.
    """
    where = "balanced_mean_interval"
    same_length(where, values=values, groups=groups, clusters=clusters)
    column = optional_numbers(where, "values", values)
    return _mean(where, "mean", column, clusters, bootstrap, groups)


def _mean(
    where: str, name: str, column: CheckedColumn, clusters: Labels | None, bootstrap: Bootstrap, groups: Labels | None = None
) -> Estimate:
    values, present = column
    labels: Labels = ["all"] * len(values) if groups is None else groups
    used = np.flatnonzero(present)
    # A difference is a - b or b - a, so either order gives the same draws.
    columns, metrics = ([], ([values], [-values])) if name == "difference" else ([values], ())
    rows = canonical_rows(where, columns, used, clusters, metrics=metrics, groups=labels)
    known = values[rows.order]
    group_of = cluster_codes(where, labels, len(values))
    members = [group_of[rows.order] == group for group in range(int(group_of.max(initial=-1)) + 1)]
    if not len(known):
        computed: Computed = f"{where}: none of {len(values)} rows has a value. Score some examples."
    elif empty := [labels[list(group_of).index(group)] for group, of in enumerate(members) if not of.any()]:
        computed = f"{where}: no row of group {empty[0]!r} has a value. Score some of its examples."
    else:
        value = math.fsum(math.fsum(known[of]) / int(of.sum()) for of in members) / len(members)
        cells, (cell_groups, cell_values) = distinct_rows(rows.groups, known)
        statistic = _mean_of_group_means(cell_groups, cell_values)
        computed = value, Resampled(statistic, rows_by_cell(cells, rows.clusters))
    counts = Counts(len(values), len(known), rows.n_clusters, len(values) - len(known))
    return bootstrap.estimates({name: computed}, counts)[name]


def _mean_of_group_means(groups: FloatArray, values: FloatArray) -> Statistic:
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]

    # In a resample without rows of a group, 0 / 0 is NaN, which marks it as degenerate.
    @np.errstate(invalid="ignore")
    def statistic(weights: FloatArray) -> FloatArray:
        means = [(weights[:, of] * values[of]).sum(axis=1) / weights[:, of].sum(axis=1) for of in members]
        return np.asarray(np.mean(means, axis=0))

    return statistic
