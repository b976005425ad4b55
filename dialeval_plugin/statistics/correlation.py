"""Correlations of scores with human ratings, also beyond length and for missing scores, with intervals and counts.

Formulas, ranges and ties are those of `coefficients`, names those of `by_name.COEFFICIENTS`. A row whose score or rating is
None is left out and counted; NaN is an error. An undefined coefficient has the value None and a `reason`. Intervals are those
of `bootstrap.Bootstrap`; coefficients requested together share the resamples. Above `levels.MAX_CELLS` distinct pairs of score
and rating, the interval of a rank coefficient is computed from binned values.

`clusters` are labels of the dialogue, context or other unit of each row; rows of one unit are resampled together. Without them,
rows are independent, which is right only if no two rows share a context. InputError: lengths differ, a value is neither None
nor finite, a label names no cluster, or an option is unknown or lacks its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, Labels, OptionalNumbers, Statistic
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import Coefficient, coefficient_named
from dialeval_plugin.statistics.coefficients.pearson import MIN_PAIRS

from .bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Computed, Counts, Estimate, Resampled, defined, rows_by_cell
from .levels import AverageBy, LevelOrSystem, LevelStatistic, Range, ScoredRatings, TiedGroups, rows_of
from .rows import canonical_rows, check_choice, distinct_rows, optional_numbers, same_length

DEFAULT_COEFFICIENTS = ("pearson", "spearman", "kendall_b")
"""Those whose partial correlation has the formula of `partial_correlation`, too."""
_ROUNDING = 1e-12


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
      Means of resamples differ more than the means, so the interval is widened by the value less the resamples' mean.

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


def partial_correlation(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    covariates: Mapping[str, OptionalNumbers],
    *,
    coefficient: str,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    r"""Return the correlation of scores and ratings with the covariates, by name, held fixed.

    Formula, given z: $(r_{xy} - r_{xz} r_{yz}) / \sqrt{(1 - r_{xz}^2)(1 - r_{yz}^2)}$, for Spearman on ranks (Conover 1999,
    section 5.4) and for Kendall as by Kendall (1942); given several columns, the same on the partial correlations given all but
    the last. For Pearson it is the correlation of least-squares residuals. Range: -1 to 1. Undefined: fewer than three rows
    more than covariates, a constant column, or one determined by the covariates. InputError for other coefficients.
    """
    columns = {"scores": scores, "ratings": ratings, **covariates}
    pairs = {coefficient: tuple(columns)}
    return _associations("partial_correlation", columns, pairs, coefficient, clusters, bootstrap)[coefficient]


def covariate_bias(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    covariate: OptionalNumbers,
    *,
    name: str,
    coefficient: str = "spearman",
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[str, Estimate]:
    """Return how scores and ratings correlate with the length of the response, or another covariate, and given it.

    Keys, for `name="length"`: "score_length" and "rating_length" are the preferences of metric and people for long responses;
    "score_length_given_rating" is the metric's bias, its preference among equally rated responses; "score_rating" is its
    agreement with people, and "score_rating_given_length" its agreement beyond length. All intervals are from the same
    resamples.

    Example:
        >>> scores, ratings, lengths = [1, 3, 2, 5, 4, 6], [1, 2, 3, 4, 6, 5], [2, 8, 3, 9, 4, 9]
        >>> found = covariate_bias(scores, ratings, lengths, name="length", bootstrap=Bootstrap(rounds=0))
        >>> round(found["score_length"].value, 3), round(found["score_length_given_rating"].value, 3)
        (0.928, 0.967)
    """
    columns = {"scores": scores, "ratings": ratings, "covariate": covariate}
    pairs = {
        f"score_{name}": ("scores", "covariate"),
        f"rating_{name}": ("ratings", "covariate"),
        "score_rating": ("scores", "ratings"),
        f"score_{name}_given_rating": ("scores", "covariate", "ratings"),
        f"score_rating_given_{name}": ("scores", "ratings", "covariate"),
    }
    return _associations("covariate_bias", columns, pairs, coefficient, clusters, bootstrap)


def _associations(
    where: str,
    columns: Mapping[str, OptionalNumbers],
    pairs: Mapping[str, tuple[str, ...]],
    coefficient: str,
    clusters: Labels | None,
    bootstrap: Bootstrap,
) -> dict[str, Estimate]:
    check_choice(where, "coefficient", coefficient, DEFAULT_COEFFICIENTS)
    same_length(where, **columns, clusters=clusters)
    checked = {name: optional_numbers(where, name, values) for name, values in columns.items()}
    is_rated = checked["ratings"].present
    used = np.flatnonzero(np.logical_and.reduce([column.present for column in checked.values()]))
    rows = canonical_rows(where, [column.values for column in checked.values()], used, clusters)
    cells, distinct = distinct_rows(*(column.values[rows.order] for column in checked.values()))
    by_name = dict(zip(columns, distinct, strict=True))
    sums = rows_by_cell(cells, rows.clusters) if len(used) else np.zeros((0, 0))
    entry = coefficient_named(coefficient)
    why = "there are too few, a column is constant, or what is held fixed says all about another"
    computed: dict[str, Computed] = {}
    for name, chosen in pairs.items():
        computed[name] = reason = f"{name}: undefined on {len(used)} rows: {why}. Score and rate more examples."
        if len(used):
            computed[name] = defined(Resampled(_partial(entry, [by_name[column] for column in chosen]), sums), reason)
    n_unscored = int(is_rated.sum()) - len(used)
    counts = Counts(len(is_rated), len(used), rows.n_clusters, n_unscored, int((~is_rated).sum()))
    return bootstrap.estimates(computed, counts)


def _partial(entry: Coefficient, columns: Sequence[FloatArray]) -> Statistic:
    x, y, *held = columns
    if not held:
        return entry.of_samples(x, y)
    *others, last = held
    of_pairs = [_partial(entry, [*pair, *others]) for pair in ((x, y), (x, last), (y, last))]

    def statistic(weights: FloatArray) -> FloatArray:
        xy, xz, yz = (of(weights) for of in of_pairs)
        left = (1 - xz**2) * (1 - yz**2)
        is_defined = (left > _ROUNDING) & (weights.sum(axis=1) >= MIN_PAIRS + len(held))
        return np.clip(np.where(is_defined, (xy - xz * yz) / np.sqrt(np.maximum(left, _ROUNDING)), np.nan), -1, 1)

    return statistic


def sensitivity_range(
    scores: OptionalNumbers, ratings: OptionalNumbers, *, coefficient: str = "spearman"
) -> tuple[float | None, float | None]:
    """Return a coefficient with unscored rows filled in against the ratings, and in agreement; None if undefined.

    For the upper end, an unscored row gets its rating as score, rescaled to the range of the scores; for the lower end, in
    reverse. Rows without a rating are left out. This is not a bound: in a simulation with 5 to 50 % of the scores missing at
    random, it contained the value of the whole set in 96 to 99 % of 300 sets (Pearson, Spearman, Kendall b). For pairwise
    accuracy it is a bound: no pair with an unscored row agrees, or all do. Raises InputError if lengths differ, or a value is
    neither None nor finite.

    Example:
        >>> [round(end, 3) for end in sensitivity_range([1, 2, 4, None, 5], [1, 2, 3, 4, 5])]
        [0.821, 0.975]
    """
    where = "sensitivity_range"
    same_length(where, scores=scores, ratings=ratings)
    entry = coefficient_named(coefficient)
    scored, rated = optional_numbers(where, "scores", scores), optional_numbers(where, "ratings", ratings)
    x, y, present = scored.values[rated.present], rated.values[rated.present], scored.present[rated.present]
    value = _value(entry, x[present], y[present])
    if value is None or present.all():
        return value, value
    if entry.has_epsilon:
        # Pairs of scored rows are fixed; of all other pairs none agrees, or all do.
        n_known, n_pairs = (n * (n - 1) / 2 for n in (int(present.sum()), len(x)))
        return value * n_known / n_pairs, (value * n_known + n_pairs - n_known) / n_pairs
    lowest, highest = x[present].min(), x[present].max()
    places = (y - y.min()) / (y.max() - y.min()) * (highest - lowest)
    low, high = (_value(entry, np.where(present, x, filled), y) for filled in (highest - places, lowest + places))
    return low, high


def _value(entry: Coefficient, x: FloatArray, y: FloatArray) -> float | None:
    try:
        return entry.of_pairs(x, y)
    except StatisticUndefined:
        return None
