"""Means with intervals: accuracy of a metric or judge, and the difference between two of them on the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .bootstrap import Bootstrap, Estimate, Interval
from .checks import BoolArray, FloatArray, Labels, OptionalNumbers, cluster_codes, optional_numbers, same_length


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
        >>> print(mean_interval([1, 1, 0, 1, None, 0, 1, 1], clusters=["a", "a", "b", "b", "c", "c", "d", "e"]))
        0.714 (95 % interval 0.400 to 1.000), 7 of 8 rows scored, 5 clusters
    """
    where = "mean_interval"
    column = optional_numbers(where, "values", values)
    if clusters is not None:
        same_length(where, values=values, clusters=clusters)
    return _mean(where, column.values, column.present, clusters, Bootstrap(rounds, confidence, seed))


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
        >>> print(paired_difference_interval([1, 1, 0, 1, 1, 1], [0, 1, 0, 1, 0, None]))
        0.400 (95 % interval 0.000 to 0.800), 5 of 6 rows scored, 5 clusters
    """
    where = "paired_difference_interval"
    same_length(where, values_a=values_a, values_b=values_b)
    if clusters is not None:
        same_length(where, values_a=values_a, clusters=clusters)
    a, b = optional_numbers(where, "values_a", values_a), optional_numbers(where, "values_b", values_b)
    return _mean(where, a.values - b.values, a.present & b.present, clusters, Bootstrap(rounds, confidence, seed))


def _mean(where: str, values: FloatArray, present: BoolArray, clusters: Labels | None, bootstrap: Bootstrap) -> Mean:
    codes = cluster_codes(where, clusters, len(values))[present]
    kept = values[present]
    distinct, cells = np.unique(kept, return_inverse=True)
    renumbered = cluster_codes(where, codes, len(codes))
    if len(kept):
        statistics = {where: lambda weights: (weights * distinct).sum(axis=1) / weights.sum(axis=1)}
        interval = bootstrap.intervals(statistics, cells.reshape(-1), renumbered)[where]
    else:
        interval = Interval(None, None, 0, f"{where}: none of {len(values)} rows has a value. Score some examples.")
    return Mean(
        value=math.fsum(kept) / len(kept) if len(kept) else None,
        ci_low=interval.low,
        ci_high=interval.high,
        n_total=len(values),
        n_scored=len(kept),
        n_unscored=len(values) - len(kept),
        n_clusters=int(renumbered.max(initial=-1)) + 1,
        n_degenerate=interval.n_degenerate,
        confidence=bootstrap.confidence,
        rounds=bootstrap.rounds,
        seed=bootstrap.seed,
        reason=interval.reason,
    )
