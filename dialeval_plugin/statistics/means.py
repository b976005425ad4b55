"""Means with intervals: accuracy of a metric or judge, and the difference between two of them on the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .bootstrap import Bootstrap, Estimate, Interval, Statistic
from .canonical import canonical, symmetric
from .checks import (
    Column,
    FloatArray,
    IntArray,
    Labels,
    OptionalNumbers,
    cluster_codes,
    optional_numbers,
    same_length,
    used_codes,
)


@dataclass(frozen=True, kw_only=True)
class Mean(Estimate):
    """A mean, or a difference of means, over the `n_scored` of `n_total` rows that have all values asked for."""

    def __str__(self) -> str:
        return f"{self._text()}, {self.n_scored} of {self.n_total} rows scored, {self.n_clusters} clusters"


def mean_interval(
    values: OptionalNumbers,
    *,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Mean:
    """Return the mean of `values` with its interval; of 0 and 1 for wrong and right, it is the accuracy.

    Formula: the sum over rows by the number of rows, so that a cluster counts by its size.
    Range: that of the values. Missing values: a row that is None is left out and counted; NaN is refused.
    Undefined: no row has a value; then `value` is None and `reason` says so. Interval and seed: see `bootstrap.Bootstrap`.

    Raises:
        InputError: a value is neither None nor a finite number, a label names no cluster, or lengths differ.

    Example:
        >>> print(mean_interval([1, 1, 0, 1, None, 0, 1, 1, 0, 1, 1, 0, 1], clusters=list("aabbccdefghij")))
        0.667 (rough 95 % interval 0.400 to 0.917), 12 of 13 rows scored, 10 clusters
    """
    where = "mean_interval"
    column = optional_numbers(where, "values", values)
    if clusters is not None:
        same_length(where, values=values, clusters=clusters)
    return _mean(where, column, clusters, Bootstrap(rounds, confidence, seed))


def paired_difference_interval(
    values_a: OptionalNumbers,
    values_b: OptionalNumbers,
    *,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Mean:
    """Return the mean of a - b over the rows that have both, with its interval: what an ablation gains on the same rows.

    Both values of a row are resampled together, so what makes a row easy or hard for both does not widen the interval.
    Range: the difference of the values' ranges; above 0 where a is larger. Missing values: a row in which either is None is
    left out and counted as unscored; NaN is refused. Undefined and interval: as in `mean_interval`.

    Raises:
        InputError: as in `mean_interval`.

    Example:
        >>> print(paired_difference_interval([1, 1, 0, 1, 1, 1] * 2, [0, 1, 0, 1, 0, None] * 2))
        0.400 (rough 95 % interval 0.100 to 0.700), 10 of 12 rows scored, 10 clusters
    """
    where = "paired_difference_interval"
    same_length(where, values_a=values_a, values_b=values_b)
    if clusters is not None:
        same_length(where, values_a=values_a, clusters=clusters)
    a, b = optional_numbers(where, "values_a", values_a), optional_numbers(where, "values_b", values_b)
    differences = Column(a.values - b.values, a.present & b.present)
    return _mean(where, differences, clusters, Bootstrap(rounds, confidence, seed), is_difference=True)


def balanced_mean_interval(
    values: OptionalNumbers,
    groups: Labels,
    *,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Mean:
    """Return the mean of the groups' means with its interval: of right and wrong by class, the balanced accuracy.

    Each group counts the same, however many of its rows have a value. Missing values: as in `mean_interval`.
    Undefined: a group has no value; then `value` is None and `reason` names it. Interval: clusters are resampled whatever
    their groups, so a resample without any row of a group is degenerate; see `bootstrap.Bootstrap`.

    Raises:
        InputError: as in `mean_interval`.

    Example:
        >>> kinds = ["fits"] * 4 + ["misleads"] * 2
        >>> print(balanced_mean_interval([1, 1, 1, 0, 1, 0] * 3, kinds * 3, clusters=list("abcdabefghefijklij")))
        0.625 (rough 95 % interval 0.374 to 0.854), 18 of 18 rows scored, 12 clusters
    """
    where = "balanced_mean_interval"
    same_length(where, values=values, groups=groups)
    if clusters is not None:
        same_length(where, values=values, clusters=clusters)
    column = optional_numbers(where, "values", values)
    return _mean(where, column, clusters, Bootstrap(rounds, confidence, seed), groups)


def _mean(
    where: str,
    column: Column,
    clusters: Labels | None,
    bootstrap: Bootstrap,
    groups: Labels | None = None,
    *,
    is_difference: bool = False,
) -> Mean:
    values, present = column
    names: Labels = ["all"] * len(values) if groups is None else groups
    group_of = cluster_codes(where, names, len(values))
    used = np.flatnonzero(present)
    clusters_of = used_codes(where, clusters, used, len(values))
    content = symmetric(([values[used]], [-values[used]]), []) if is_difference else [values[used]]
    order, codes = canonical(content, clusters_of, used_codes(where, names, used, len(values)))
    kept, group_of_kept = values[used][order], group_of[used][order]
    members = [group_of_kept == group for group in range(int(group_of.max(initial=-1)) + 1)]
    value = None
    if not len(kept):
        interval = Interval(None, None, 0, f"{where}: none of {len(values)} rows has a value. Score some examples.")
    elif empty := [names[list(group_of).index(group)] for group, rows in enumerate(members) if not rows.any()]:
        interval = Interval(None, None, 0, f"{where}: no row of group {empty[0]!r} has a value. Score some of its examples.")
    else:
        value = math.fsum(math.fsum(kept[rows]) / int(rows.sum()) for rows in members) / len(members)
        groups = cluster_codes(where, group_of_kept, len(kept))
        cells, cell_of = np.unique(np.stack([groups, kept]), axis=1, return_inverse=True)
        statistic = _mean_of_group_means(cells[0].astype(np.int64), cells[1])
        interval = bootstrap.intervals({where: statistic}, cell_of.reshape(-1), codes)[where]
    return Mean(
        value=value,
        n_total=len(values),
        n_scored=len(kept),
        n_unscored=len(values) - len(kept),
        n_clusters=int(codes.max(initial=-1)) + 1,
        **bootstrap.fields(interval),
    )


def _mean_of_group_means(groups: IntArray, values: FloatArray) -> Statistic:
    """The statistic over cells, each the rows of one group that have one value."""

    def statistic(weights: FloatArray) -> FloatArray:
        means = []
        # A resample may hold no row of a group: 0 / 0 is NaN there, which marks it as degenerate.
        with np.errstate(invalid="ignore"):
            for group in np.unique(groups):
                of = weights[:, groups == group]
                means.append((of * values[groups == group]).sum(axis=1) / of.sum(axis=1))
        return np.asarray(np.mean(means, axis=0))

    return statistic


def half_width_of_mean(widths: Sequence[float]) -> float:
    """Return half of the width of the interval of a mean of independent estimates, from the widths of their intervals.

    Formula: the root of the sum of squared widths, over twice their number; standard errors of independent, normal estimates
    add up so.

    Args:
        widths: one or more, each upper less lower end.

    Example:
        >>> half_width_of_mean([0.3, 0.4])
        0.125
    """
    return math.hypot(*widths) / (2 * len(widths))
