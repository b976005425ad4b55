"""How far scores agree with human ratings: coefficients with intervals and with the counts that they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import Coefficient, coefficient_named
from dialeval_plugin.statistics.coefficients.pairwise import TieCalibration

from .bootstrap import Bootstrap, Estimate, Interval, IntervalKind, Resampled
from .checks import Labels, OptionalNumbers
from .levels import AverageBy, Level, LevelValue, Range, Rated, Rows, level_statistic, rows_of

DEFAULT_COEFFICIENTS = ("pearson", "spearman", "kendall_b")
_BOOTSTRAP = Bootstrap()


@dataclass(frozen=True, kw_only=True)
class Correlation(Estimate):
    """One coefficient between scores and ratings.

    `n_total = n_scored + n_unscored + n_unrated + n_out_of_range`: the coefficient rests on the `n_scored` rows that have
    both; `n_unscored` rows are rated but have no score; `n_unrated` rows have no rating, whether or not they have a score.
    Coefficients of different kinds are never averaged or compared: there is one `Correlation` for each.

    Attributes:
        coefficient: its name.
        n_unrated: rows left out because nobody rated them.
        n_out_of_range: rows left out because their rating is not within the range asked for.
        interval: kind of the interval; see `bootstrap.Bootstrap`.
        level: what a row is, or "system"; None where the caller has not said.
        average_by: what the coefficient is averaged over.
        n_groups: groups that it is the mean of, or systems that it compares; None for one coefficient over all rows.
        n_undefined_groups: groups left out of the mean because it is undefined in them.
        epsilon: scores that differ by at most this were tied, for pairwise accuracy; None for all others.
        bins: levels of scores and ratings that the interval was resampled with; None where it is exact.
    """

    coefficient: str
    n_unrated: int
    n_out_of_range: int = 0
    interval: IntervalKind = "percentile"
    level: Level | None = None
    average_by: AverageBy = "none"
    n_groups: int | None = None
    n_undefined_groups: int = 0
    epsilon: float | None = None
    bins: tuple[int, int] | None = None

    @property
    def coverage(self) -> float | None:
        """Share of the rated rows that have a score; None where no row is rated."""
        n_rated = self.n_scored + self.n_unscored
        return self.n_scored / n_rated if n_rated else None

    def __str__(self) -> str:
        n_rated = self.n_scored + self.n_unscored
        return f"{self.coefficient} {self._text()}, {self.n_scored} of {n_rated} rated rows scored, {self.n_clusters} clusters"


def correlate(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    *,
    coefficient: str,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Correlation:
    """Return one coefficient with its interval; `correlations` with a single name.

    Raises:
        InputError: as in `correlations`.

    Example:
        >>> scores = [0.1, 0.4, None, 0.3, 0.9, 0.8, 0.2, 0.7, 0.5, 0.6, 0.4, 0.2, 0.1]
        >>> ratings = [1, 2, 5, 2, 4, 5, None, 3, 1, 4, 3, 2, 2]
        >>> print(correlate(scores, ratings, coefficient="spearman", clusters=list("aabbcdefghijk")))
        spearman 0.744 (rough 95 % interval 0.160 to 0.938), 11 of 12 rated rows scored, 10 clusters
    """
    found = correlations(
        scores,
        ratings,
        coefficients=(coefficient,),
        clusters=clusters,
        rounds=rounds,
        confidence=confidence,
        seed=seed,
    )
    return found[coefficient]


def correlations(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    *,
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Correlation]:
    """Return several coefficients between the same scores and ratings, with intervals from the same resamples.

    Formulas, ranges and ties: see `coefficients`. Interval and seed: see `bootstrap.Bootstrap`.
    Missing values: a row whose score or rating is None is left out and counted; NaN is refused.
    Undefined: the value is None and `reason` says why; nothing is raised, and no NaN is returned.
    Cost: 1000 rows, 1000 rounds and all three coefficients take less than half a second; the time grows with the number of
    distinct pairs of score and rating, for Kendall's tau with its square (see `kendall.concordance_of_samples`), up to
    `levels.MAX_CELLS` of them; above, see `level_correlations`.

    Args:
        scores: one a row; None where the row is unscored.
        ratings: one a row, after aggregating the raters; None where nobody rated the row.
        coefficients: names out of `coefficients.COEFFICIENTS`.
        clusters: label of the context, dialogue or other unit that a row belongs to; rows of one unit are resampled
            together. Without it each row stands alone, which is right only where no two rows share a context.
        rounds: number of resamples; 0 for no interval.
        confidence: of the interval.
        seed: of the resamples.

    Raises:
        InputError: lengths differ, a value is neither None nor a finite number, a label names no cluster, a coefficient is
            unknown, or an argument is out of its range.

    Example:
        >>> found = correlations([1, 2, 3, 4], [5, 5, 5, 5], coefficients=["pearson"])
        >>> found["pearson"].value, found["pearson"].reason
        (None, 'pearson: all 4 ratings are 5.0. Give ratings that differ.')
    """
    rated = Rated(scores=scores, ratings=ratings, clusters=clusters)
    return _correlations("correlate", rated, coefficients, _Setting(None, "none"), None, Bootstrap(rounds, confidence, seed))


def level_correlations(
    rated: Rated,
    *,
    level: Level,
    average_by: AverageBy = "none",
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    within_range: Range | None = None,
    bootstrap: Bootstrap = _BOOTSTRAP,
) -> dict[str, Correlation]:
    r"""Return several coefficients at a level, with intervals from the same resamples.

    - `average_by="none"`: one coefficient over all rows.
    - `average_by="system"` or `"item"`: one coefficient over the rows of each system, or of each context that several
      systems answer, and the mean of these. Groups in which it is undefined (fewer than 3 rows, no differences) are left
      out and counted, never taken as 0. For pairwise accuracy, all groups have the same epsilon, and a group of two rows
      or more counts even if its ratings are all the same, as in Deutsch et al. 2023.
    - `level="system"`: one coefficient over the systems' mean scores and mean ratings.

    Formulas, ranges and ties: see `coefficients`. Missing values: a row whose score or rating is None is left out and
    counted; NaN is refused. Undefined: the value is None and `reason` says why.
    Interval and seed: see `bootstrap.Bootstrap`. Groups that lie within one cluster are drawn whole, so that their values
    stay what they are; others are made anew from the rows that are drawn. The epsilon of pairwise accuracy is that of the
    whole data. Above `levels.MAX_CELLS` distinct rows the interval of a rank coefficient comes from binned values, which
    `bins` says; see `levels.binned`.

    Args:
        rated: scores, ratings and the labels that the level needs.
        level: "turn", "dialogue" or "system"; the first two only name what a row is.
        average_by: see above.
        coefficients: names out of `coefficients.COEFFICIENTS`.
        within_range: lowest and highest rating that count, both included; rows rated outside are left out and counted.
        bootstrap: rounds, seed, kind and confidence of the interval.

    Raises:
        InputError: as in `correlations`; an option is unknown, or the labels that it needs are missing.

    Example:
        >>> rated = Rated(scores=[1, 2, 3, 2, 1, 3, 5, 5], ratings=[1, 2, 3, 2, 1, 5, 4, 4], items=list("aaabbbcc"))
        >>> found = level_correlations(rated, level="turn", average_by="item", coefficients=["spearman"])["spearman"]
        >>> found.value, found.n_groups, found.n_undefined_groups
        (1.0, 2, 1)
    """
    return _correlations("level_correlations", rated, coefficients, _Setting(level, average_by), within_range, bootstrap)


class _Setting(NamedTuple):
    level: Level | None
    average_by: AverageBy


def _correlations(
    where: str,
    rated: Rated,
    coefficients: Sequence[str],
    setting: _Setting,
    within_range: Range | None,
    bootstrap: Bootstrap,
) -> dict[str, Correlation]:
    chosen = [coefficient_named(name) for name in dict.fromkeys(coefficients)]
    level = setting.level or "turn"
    rows = rows_of(where, rated, level, setting.average_by, within_range)
    found: dict[str, _Found] = {}
    undefined: dict[str, str] = {}
    for entry in chosen:
        try:
            found[entry.name] = _value(entry, level, rows)
        except StatisticUndefined as error:
            undefined[entry.name] = str(error)
    intervals = bootstrap.intervals_of({name: one.resampled for name, one in found.items()}) if found else {}
    results = {}
    for entry in chosen:
        one = found.get(entry.name)
        interval = intervals.get(entry.name, Interval(None, None, 0, undefined.get(entry.name)))
        results[entry.name] = Correlation(
            coefficient=entry.name,
            value=one.at_level.value if one else None,
            **bootstrap.fields(interval),
            n_total=rows.n_total,
            n_scored=len(rows.scores),
            n_unscored=rows.n_unscored,
            n_unrated=rows.n_unrated,
            n_out_of_range=rows.n_out_of_range,
            n_clusters=int(rows.clusters.max(initial=-1)) + 1,
            interval=bootstrap.interval,
            level=setting.level,
            average_by=setting.average_by,
            n_groups=one.at_level.n_groups if one else None,
            n_undefined_groups=one.at_level.n_undefined_groups if one else 0,
            epsilon=one.ties.epsilon if one and one.ties else None,
            bins=one.resampled.bins if one else None,
        )
    return results


class _Found(NamedTuple):
    at_level: LevelValue
    resampled: Resampled
    ties: TieCalibration | None


def _value(entry: Coefficient, level: Level, rows: Rows) -> _Found:
    statistic, ties = level_statistic(entry, level, rows, rows.scores, rows.ratings)
    at_level = statistic.value(rows.scores, rows.ratings)
    return _Found(at_level, statistic.resampled(rows.scores, rows.ratings), ties)
