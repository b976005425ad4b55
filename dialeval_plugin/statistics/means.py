"""Means with intervals: accuracy of a metric or judge, and the difference between two of them on the same rows.

A row that is None is left out and counted; NaN is refused. With no value at all the mean is None and `reason` says so.
InputError: lengths differ, a value is neither None nor a finite number, or a label names no cluster.
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
    rows_by_cell,
    too_few_clusters,
)
from .rows import CheckedColumn, canonical_rows, cluster_codes, distinct_rows, optional_numbers, same_length, symmetric


def mean_interval(
    values: OptionalNumbers, *, clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the mean of `values` with its interval; of 0 and 1 for wrong and right, it is the accuracy.

    Formula: the sum over rows by the number of rows, so that a cluster counts by its size.

    Example:
        >>> print(mean_interval([1, 1, 0, 1, None, 0, 1, 1, 0, 1, 1, 0, 1], clusters=list("aabbccdefghij")))
        mean 0.667 [0.400, 0.917, rough], 12 of 13 rows scored, 10 clusters
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
    """Return the mean of a - b over the rows that have both, with its interval: what an ablation gains on the same rows.

    Both values of a row are resampled together, so what makes a row easy or hard for both does not widen the interval.
    A row in which either is None counts as unscored.
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
    """Return the mean of `values_a` less that of `values_b` with its interval; the two need not have the same rows.

    A cluster that has rows on both sides, such as a conversation that two versions took part in, is drawn with all of them, so
    what makes it easy or hard for both does not widen the interval. Rows without a value are left out and counted. `n_clusters`
    is that of the side with fewer clusters, and with too few there is no interval, however many the other side has.

    In a simulation (1000 sets, one to six rows a cluster) intervals of 95 % held the true difference in 89.2 % of the sets with
    10 clusters that both sides have, 93.2 % with 20, 92.1 % with 40 and 93.1 % with 100; in 91.8, 92.7, 94.3 and 95.0 % where
    the sides have none in common.

    Example:
        >>> sides = {"clusters_a": list("abcdefghijkl"), "clusters_b": list("abcdefghijkl")}
        >>> print(difference_of_means_interval([2, 4, 3, 5] * 3, [1, 2, 3, 4] * 3, **sides))
        difference 1.000 [0.665, 1.417, rough], 24 of 24 rows scored, 12 clusters
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
        # In the order of the values, so that that of the rows moves no digit.
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
    return Resampled(lambda drawn: drawn[:, 0] / drawn[:, 1], np.stack(sums, axis=1))


@np.errstate(invalid="ignore")
def _difference_of_means(drawn: FloatArray) -> FloatArray:
    """Difference from sums and numbers of rows of both sides; NaN (a degenerate resample) where a side has no rows."""
    return drawn[:, 0] / drawn[:, 1] - drawn[:, 2] / drawn[:, 3]


def balanced_mean_interval(
    values: OptionalNumbers, groups: Labels, *, clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the mean of the groups' means with its interval: of right and wrong by class, the balanced accuracy.

    Each group counts the same, however many of its rows have a value. Undefined: a group has no value. Clusters are resampled
    whatever their groups, so a resample without any row of a group is degenerate.
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
    # A difference is a - b or b - a, whoever is called the first.
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
    """The statistic over cells, each the rows of one group that have one value."""
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]

    # A resample may hold no row of a group: 0 / 0 is NaN there, which marks it as degenerate.
    @np.errstate(invalid="ignore")
    def statistic(weights: FloatArray) -> FloatArray:
        means = [(weights[:, of] * values[of]).sum(axis=1) / weights[:, of].sum(axis=1) for of in members]
        return np.asarray(np.mean(means, axis=0))

    return statistic
