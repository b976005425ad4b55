"""Two metrics on the rows that both have, and what comes of comparing them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from dialeval_plugin.statistics.bootstrap import Interval
from dialeval_plugin.statistics.checks import FloatArray, Labels, OptionalNumbers, optional_numbers, same_length
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named
from dialeval_plugin.statistics.levels import AverageBy, Level, LevelStatistic, Rated, Rows, level_statistic, rows_of

Test: TypeAlias = Literal["permutation", "williams", "bootstrap"]
Alternative: TypeAlias = Literal["two-sided", "greater"]
"""Whether A and B differ, or A is better than B."""

_NONE = Interval(None, None, 0, None)


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
    """What is compared: a coefficient at a level; see `correlation.level_correlations`."""

    coefficient: str = "spearman"
    level: Level = "turn"
    average_by: AverageBy = "none"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How two metrics compare; JSON-able, never NaN.

    Attributes:
        test: its name.
        coefficient: what they are compared by.
        level: of the coefficient.
        average_by: what the coefficient is averaged over.
        value_a: of metric A on the rows that both have; None where undefined.
        value_b: of metric B.
        difference: A less B.
        p_value: share of such data that would differ as much if A and B were equally good; None where there is none.
        alternative: "two-sided" or "greater", A better than B.
        ci_low: lower end of the interval of the difference; None where the test makes none.
        ci_high: upper end.
        n_total: rows handed in.
        n_both: rows with both scores and a rating, which all of this rests on.
        n_units: what is swapped or drawn: clusters, or rows where there are none.
        n_rounds: permutations or resamples that were made.
        n_degenerate: those of them on which the difference is undefined.
        is_exact: whether all permutations were tried.
        seed: of the permutations or resamples.
        reason: why there is no p-value or interval; None where there is.
        is_rough: whether the interval rests on few clusters; see `bootstrap.Estimate`.
    """

    test: Test
    coefficient: str
    level: Level
    average_by: AverageBy
    value_a: float | None = None
    value_b: float | None = None
    difference: float | None = None
    p_value: float | None = None
    alternative: Alternative = "two-sided"
    ci_low: float | None = None
    ci_high: float | None = None
    n_total: int
    n_both: int
    n_units: int
    n_rounds: int = 0
    n_degenerate: int = 0
    is_exact: bool = False
    seed: int = 0
    reason: str | None = None
    is_rough: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Both:
    """The rows that have both scores and a rating; make one with `Both.of`."""

    measure: Measure
    rows: Rows
    a: FloatArray
    b: FloatArray

    @classmethod
    def of(cls, where: str, paired: Paired, measure: Measure) -> Both:
        """Return these rows of `paired`.

        Raises:
            InputError: lengths differ, a value is neither None nor a finite number, or the level lacks its labels.
        """
        same_length(where, scores_a=paired.scores_a, scores_b=paired.scores_b)
        a, b = (optional_numbers(where, name, getattr(paired, name)) for name in ("scores_a", "scores_b"))
        scores = [float(value) if given else None for value, given in zip(a.values, a.present & b.present, strict=True)]
        labels = {"clusters": paired.clusters, "systems": paired.systems, "items": paired.items}
        rated = Rated(scores=scores, ratings=paired.ratings, **labels)
        rows = rows_of(where, rated, measure.level, measure.average_by, None, beside=(a.values, b.values))
        return cls(measure, rows, a.values[rows.used], b.values[rows.used])

    @property
    def y(self) -> FloatArray:
        """The ratings."""
        return self.rows.ratings

    @property
    def n_units(self) -> int:
        """Number of clusters, or of rows where there are none."""
        return int(self.rows.clusters.max(initial=-1)) + 1

    def calibrated(self, x: FloatArray) -> LevelStatistic:
        """Return the measure, its epsilon chosen on scores x."""
        entry = coefficient_named(self.measure.coefficient)
        return level_statistic(entry, self.measure.level, self.rows, x, self.y)[0]

    def value(self, x: FloatArray) -> float:
        """Return the measure of scores x.

        Raises:
            StatisticUndefined: it has none.
        """
        return self.calibrated(x).value(x, self.y).value

    def comparison(
        self,
        test: Test,
        alternative: Alternative,
        values: tuple[float, float] | None = None,
        *,
        interval: Interval = _NONE,
        **fields: Any,
    ) -> Comparison:
        """Return a result; `fields` are those of `Comparison` that the test knows."""
        value_a, value_b = values or (None, None)
        return Comparison(
            test=test,
            coefficient=self.measure.coefficient,
            level=self.measure.level,
            average_by=self.measure.average_by,
            value_a=value_a,
            value_b=value_b,
            difference=values[0] - values[1] if values else None,
            alternative=alternative,
            ci_low=interval.low,
            ci_high=interval.high,
            n_total=self.rows.n_total,
            n_both=len(self.a),
            n_units=self.n_units,
            **{"n_degenerate": interval.n_degenerate, "is_rough": interval.is_rough, **fields},
        )
