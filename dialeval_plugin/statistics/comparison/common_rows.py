"""Two metrics on the rows that both have, and what they are compared by."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from dialeval_plugin.statistics.bootstrap import Counts, Resampled
from dialeval_plugin.statistics.checks import BoolArray, FloatArray, Labels, OptionalNumbers, optional_numbers, same_length
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named
from dialeval_plugin.statistics.levels import AverageBy, LevelOrSystem, LevelStatistic, Rated, Rows, level_statistic, rows_of

EXACT_UNITS = 8
"""Up to so many clusters are swapped in all ways, 2**8 of them; more are swapped at random."""


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Scores of two metrics on the same rows, aligned by the caller; the labels are those of `levels.Rated`."""

    scores_a: OptionalNumbers
    scores_b: OptionalNumbers
    ratings: OptionalNumbers
    clusters: Labels | None = None
    systems: Labels | None = None
    items: Labels | None = None


class Measure(NamedTuple):
    """What metrics are compared by: a coefficient at a level."""

    coefficient: str = "spearman"
    level: LevelOrSystem = "turn"
    average_by: AverageBy = "none"


@dataclass(frozen=True, slots=True)
class CommonRows:
    """The rows that have both scores and a rating; make one with `CommonRows.of`."""

    measure: Measure
    rows: Rows
    a: FloatArray
    b: FloatArray

    @classmethod
    def of(cls, where: str, paired: Paired, measure: Measure) -> CommonRows:
        """Return these rows of `paired`; InputError where these do not fit together or the level lacks its labels."""
        same_length(where, scores_a=paired.scores_a, scores_b=paired.scores_b)
        a, b = (optional_numbers(where, name, getattr(paired, name)) for name in ("scores_a", "scores_b"))
        scores = [float(value) if is_there else None for value, is_there in zip(a.values, a.present & b.present, strict=True)]
        labels = {"clusters": paired.clusters, "systems": paired.systems, "items": paired.items}
        rated = Rated(scores=scores, ratings=paired.ratings, **labels)
        rows = rows_of(where, rated, measure.level, measure.average_by, compared=(a.values, b.values))
        return cls(measure, rows, a.values[rows.used], b.values[rows.used])

    @property
    def counts(self) -> Counts:
        """Numbers of rows; `n_unscored` are those that lack a score of either metric."""
        return Counts(self.rows.n_total, len(self.a), self.rows.n_clusters, self.rows.n_unscored, self.rows.n_unrated)

    def calibrated(self, x: FloatArray) -> LevelStatistic:
        """Return the measure, its epsilon chosen on scores x."""
        entry = coefficient_named(self.measure.coefficient)
        return level_statistic(entry, self.measure.level, self.rows, x, self.rows.ratings)[0]

    def value(self, x: FloatArray) -> float:
        """Return the measure of scores x; StatisticUndefined where it has none."""
        return self.calibrated(x).value(x, self.rows.ratings).value


def difference(a: Resampled, b: Resampled) -> Resampled:
    """Return statistic a less statistic b on the same draws of clusters.

    What makes a resample easy or hard for both does not widen the interval. One that does not hold 0 says that they differ, as
    a test would.
    """
    if a.sums is b.sums:
        return Resampled(lambda drawn: a.statistic(drawn) - b.statistic(drawn), a.sums, a.shift - b.shift)
    width = a.sums.shape[1]
    sums = sparse.hstack([sparse.csr_array(a.sums), sparse.csr_array(b.sums)], format="csr")

    def statistic(drawn: FloatArray) -> FloatArray:
        return a.statistic(drawn[:, :width]) - b.statistic(drawn[:, width:])

    return Resampled(statistic, sums, a.shift - b.shift)


def swaps(n_units: int, *, n_swaps: int, seed: int) -> Iterator[BoolArray]:
    """Yield which units are swapped: all ways of `EXACT_UNITS` or fewer, else random ones."""
    if n_units <= EXACT_UNITS:
        yield from (np.array(swapped) for swapped in itertools.product([False, True], repeat=n_units))
        return
    generator = np.random.default_rng(seed)
    for _ in range(n_swaps):
        yield generator.integers(2, size=n_units) == 1
