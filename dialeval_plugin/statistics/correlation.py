"""Correlations of scores with human ratings, with intervals and counts.

Formulas, ranges and ties are those of `coefficients`, names those of `by_name.COEFFICIENTS`. A row whose score or rating is
None is left out and counted; NaN is an error. An undefined coefficient has the value None and a `reason`. Intervals are those
of `bootstrap.Bootstrap`; coefficients requested together share the resamples. Above `levels.MAX_CELLS` distinct pairs of score
and rating, the interval of a rank coefficient is computed from binned values.

`clusters` are labels of the dialogue, context or other unit of each row; rows of one unit are resampled together. Without them,
rows are independent, which is right only if no two rows share a context. InputError: lengths differ, a value is neither None
nor finite, a label names no cluster, or an option is unknown or lacks its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialeval_plugin.core.arrays import Labels, OptionalNumbers
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named

from .bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Computed, Estimate
from .levels import AverageBy, LevelOrSystem, LevelStatistic, Range, ScoredRatings, TiedGroups, rows_of

DEFAULT_COEFFICIENTS = ("pearson", "spearman", "kendall_b")


@dataclass(frozen=True, kw_only=True)
class Correlation(Estimate):
    """One coefficient between scores and ratings, by name.

    Attributes:
        n_out_of_range: rows left out because their rating is outside the requested range; part of `n_total`.
        n_groups: number of groups averaged or systems compared; None for one coefficient over all rows.
        n_undefined_groups: groups left out of the mean because no scores could have a value there.
        n_tied_groups: groups in which people differ and all scores are equal, see `level_correlations`.
        epsilon: largest difference of scores that count as tied, for pairwise accuracy; None for other coefficients.
        bins: numbers of score and rating bins behind the interval; None if it is exact.
    """

    n_out_of_range: int
    level: LevelOrSystem
    average_by: AverageBy
    n_groups: int | None = None
    n_undefined_groups: int = 0
    n_tied_groups: int = 0
    epsilon: float | None = None
    bins: tuple[int, int] | None = None


def correlate(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    *,
    coefficient: str,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Correlation:
    """Return one coefficient with its interval; see `correlations`.

    Example:
        >>> scores = [0.1, 0.4, None, 0.3, 0.9, 0.8, 0.2, 0.7, 0.5, 0.6, 0.4, 0.2, 0.1]
        >>> ratings = [1, 2, 5, 2, 4, 5, None, 3, 1, 4, 3, 2, 2]
        >>> print(correlate(scores, ratings, coefficient="spearman", clusters=list("aabbcdefghijk")))
        spearman 0.744 [-0.036, 0.957, rough], 11 of 12 rows scored, 10 clusters
    """
    return correlations(scores, ratings, coefficients=(coefficient,), clusters=clusters, bootstrap=bootstrap)[coefficient]


def correlations(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    *,
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Correlation]:
    """Return several coefficients between scores and ratings, one of each per row; None if missing.

    Example:
        >>> found = correlations([1, 2, 3, 4], [5, 5, 5, 5], coefficients=["pearson"])
        >>> found["pearson"].value, found["pearson"].reason
        (None, 'pearson: all 4 ratings are 5.0. Give ratings that differ.')
    """
    rated = ScoredRatings(scores=scores, ratings=ratings, clusters=clusters)
    return level_correlations(rated, coefficients=coefficients, bootstrap=bootstrap)


def level_correlations(
    rated: ScoredRatings,
    *,
    level: LevelOrSystem = "turn",
    average_by: AverageBy = "none",
    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS,
    within_range: Range | None = None,
    tied_groups: TiedGroups = "zero",
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Correlation]:
    """Return several coefficients at a level.

    - `average_by="none"`: one coefficient over all rows.
    - `average_by="system"` or `"item"`: the mean of one coefficient per system, or per context that several systems answer.
      Groups on which no metric can be judged (fewer than 3 rows, equal ratings) are left out and counted. If ratings differ and
      scores are all equal, `tied_groups="zero"` counts the group as 0, or as 0.5 for auroc (`replace_nans_with_zeros` in
      mt-metrics-eval); `"skip"` leaves it out. For pairwise accuracy, all groups have the same epsilon, and a group of two or
      more rows counts even if its ratings are equal (Deutsch et al. 2023).
    - `level="system"`: one coefficient over the systems' mean scores and mean ratings; "turn" and "dialogue" only name a row.

    Groups within one cluster are resampled whole; others are formed again from the drawn rows. The epsilon of pairwise accuracy
    is that of the whole data. `within_range` is the lowest and the highest rating that count.

    Example:
        >>> rated = ScoredRatings(scores=[1, 2, 3, 2, 1, 3, 5, 5], ratings=[1, 2, 3, 2, 1, 5, 4, 4], items=list("aaabbbcc"))
        >>> found = level_correlations(rated, level="turn", average_by="item", coefficients=["spearman"])["spearman"]
        >>> found.value, found.n_groups, found.n_undefined_groups
        (1.0, 2, 1)
    """
    chosen = [coefficient_named(name) for name in dict.fromkeys(coefficients)]
    rows = rows_of("correlate", rated, {"scores": rated.scores}, level, average_by, within_range, tied_groups)
    (scores,) = rows.scores
    computed: dict[str, Computed] = {}
    details: dict[str, dict[str, Any]] = {}
    for entry in chosen:
        try:
            statistic = LevelStatistic.of(entry, rows, scores)
            level_value = statistic.value(scores)
            resampled = statistic.resampled(scores)
            details[entry.name] = level_value._asdict()
            computed[entry.name] = details[entry.name].pop("value"), resampled
            details[entry.name] |= {"epsilon": statistic.coefficient.epsilon, "bins": resampled.bins}
        except StatisticUndefined as error:
            computed[entry.name] = str(error)
    shared: dict[str, Any] = {"n_out_of_range": rows.n_out_of_range, "level": level, "average_by": average_by}
    estimates = bootstrap.estimates(computed, rows.counts)
    return {name: Correlation(**vars(estimate), **shared, **details.get(name, {})) for name, estimate in estimates.items()}
