"""Whether one metric agrees better with people than another, on the rows that both have.

Rows without both scores and a rating are left out and counted. Where either coefficient is undefined there is no difference,
and `reason` says why. InputError: lengths differ, a value is neither None nor a finite number, or an option is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy import stats

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Counts, Estimate
from dialeval_plugin.statistics.checks import (
    BoolArray,
    FloatArray,
    Labels,
    OptionalNumbers,
    check_choice,
    optional_numbers,
    same_length,
)
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named, pearson
from dialeval_plugin.statistics.levels import AverageBy, LevelOrSystem, LevelStatistic, Rated, Rows, level_statistic, rows_of

Test: TypeAlias = Literal["permutation", "williams"]
Alternative: TypeAlias = Literal["two-sided", "greater"]
"""Whether A and B differ, or A is better than B."""

EXACT_UNITS = 8
"""Up to so many clusters are swapped in all ways, 2**8 of them; more are swapped at random."""

_ROUNDING = 1e-12
"""Differences nearer than this are the same: a permutation that only renames the rows must count as large as the data."""


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


DEFAULT_MEASURE = Measure()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A test of two metrics; JSON-able, never NaN.

    Attributes:
        value_a: of metric A on the rows that both have; None where undefined.
        p_value: share of such data that would differ as much if A and B were equally good; None where there is none.
        alternative: "two-sided" or "greater", A better than B.
        n_both: rows with both scores and a rating, which all of this rests on.
        n_clusters: what is swapped: clusters, or rows where there are none.
        n_degenerate: of `n_rounds` permutations, those on which the difference is undefined.
        is_exact: whether all permutations were tried.
        reason: why there is no p-value; None where there is.
    """

    test: Test
    measure: Measure
    value_a: float | None = None
    value_b: float | None = None
    p_value: float | None = None
    alternative: Alternative = "two-sided"
    n_total: int
    n_both: int
    n_clusters: int
    n_rounds: int = 0
    n_degenerate: int = 0
    is_exact: bool = False
    reason: str | None = None

    @property
    def difference(self) -> float | None:
        """The value of A less that of B; None where either is undefined."""
        return None if self.value_a is None or self.value_b is None else self.value_a - self.value_b

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self)


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


def permutation_test(
    paired: Paired,
    measure: Measure = DEFAULT_MEASURE,
    *,
    alternative: Alternative = "two-sided",
    rounds: int = 1000,
    seed: int = 0,
) -> Comparison:
    r"""Compare two metrics by swapping their scores (PERM-BOTH of Deutsch, Dror and Roth 2021, as in mt-metrics-eval).

    Both metrics' scores are standardised, for else a swap would mix scales. If the metrics were equally good, swapping the
    two scores of a row would change nothing, so the difference of the coefficients is compared with those after random
    swaps: of single rows, or of all rows of a cluster at once. Of both metrics higher scores are better.
    p-value: $(c + 1)/(n + 1)$ of n swaps, c of which differ at least as much, so it is never 0; with `EXACT_UNITS` clusters or
    fewer all $2^u$ swaps are made, the data among them, and it is $c / 2^u$. A swap on which a coefficient is undefined counts
    as differing as much. Pairwise accuracy is calibrated anew after each swap. There is none of one cluster only.
    Cost: two coefficients a round; calibrated pairwise accuracy sorts all differences of scores each time.

    Example:
        >>> paired = Paired(scores_a=[1, 2, 3, 4, 5, 6], scores_b=[2, 1, 6, 3, 4, 5], ratings=[1, 2, 3, 4, 5, 6])
        >>> found = permutation_test(paired, Measure("pearson"))
        >>> found.p_value, found.n_rounds, found.is_exact
        (0.03125, 64, True)
    """
    where = "permutation_test"
    Bootstrap(rounds, seed=seed)
    check_choice(where, "alternative", alternative, get_args(Alternative))
    rows = CommonRows.of(where, paired, measure)
    n_clusters = rows.rows.n_clusters
    if n_clusters < 2:
        return _comparison("permutation", rows, alternative, reason=f"{where}: {n_clusters} units to swap. Give more rows.")
    try:
        value_a, value_b = rows.value(rows.a), rows.value(rows.b)
    except StatisticUndefined as error:
        return _comparison("permutation", rows, alternative, reason=str(error))
    if not rounds:
        reason = f"{where}: rounds is 0, so there is no p-value. Ask for 1000 rounds."
        return _comparison("permutation", rows, alternative, value_a, value_b, reason=reason)
    is_exact = n_clusters <= EXACT_UNITS
    a, b = _standardised(rows.a), _standardised(rows.b)
    n_large = n_degenerate = n_rounds = 0
    for swapped in swaps(n_clusters, n_swaps=rounds, seed=seed):
        is_swapped = swapped[rows.rows.clusters]
        found = _difference(rows, np.where(is_swapped, b, a), np.where(is_swapped, a, b))
        n_rounds += 1
        n_degenerate += found is None
        n_large += found is None or _is_as_large(found, value_a - value_b, alternative)
    return _comparison(
        "permutation",
        rows,
        alternative,
        value_a,
        value_b,
        p_value=n_large / n_rounds if is_exact else (n_large + 1) / (n_rounds + 1),
        n_rounds=n_rounds,
        n_degenerate=n_degenerate,
        is_exact=is_exact,
    )


def williams_test(paired: Paired, *, alternative: Alternative = "two-sided") -> Comparison:
    r"""Compare two metrics' Pearson correlations with the same ratings (Williams 1959; Graham and Baldwin 2014).

    Formula: $t = (r_a - r_b) \sqrt{(n-1)(1 + r_{ab})} / \sqrt{2 K (n-1)/(n-3) + \bar r^2 (1 - r_{ab})^3}$ with
    $K = 1 - r_a^2 - r_b^2 - r_{ab}^2 + 2 r_a r_b r_{ab}$ and $\bar r = (r_a + r_b)/2$, on n - 3 degrees of freedom.
    Assumes rows that are independent and normal: it knows no clusters, and is too sure where several rows share a dialogue.
    Undefined, too: fewer than 4 rows, or metrics that agree with each other fully.

    Example:
        >>> paired = Paired(scores_a=[1.1, 2, 3.1, 4, 5.1], scores_b=[1.5, 2, 3.1, 4, 5.5], ratings=[1, 2, 3, 4, 5])
        >>> round(williams_test(paired, alternative="greater").p_value, 3)
        0.019
    """
    where = "williams_test"
    check_choice(where, "alternative", alternative, get_args(Alternative))
    rows = CommonRows.of(where, paired, Measure("pearson"))
    n = len(rows.a)
    try:
        r_a, r_b = rows.value(rows.a), rows.value(rows.b)
        r_ab = pearson(rows.a, rows.b)
    except StatisticUndefined as error:
        return _comparison("williams", rows, alternative, reason=str(error))
    if n < 4 or 1 - abs(r_ab) < _ROUNDING:
        why = f"{n} rows, at least 4 are needed" if n < 4 else "the two metrics agree with each other fully"
        reason = f"{where}: {why}. Compare other metrics or more rows."
        return _comparison("williams", rows, alternative, r_a, r_b, reason=reason)
    # Rounding may take the determinant of a correlation matrix below 0.
    determinant = max(0.0, 1 - r_a**2 - r_b**2 - r_ab**2 + 2 * r_a * r_b * r_ab)
    spread = 2 * determinant * (n - 1) / (n - 3) + ((r_a + r_b) / 2) ** 2 * (1 - r_ab) ** 3
    t = (r_a - r_b) * np.sqrt((n - 1) * (1 + r_ab)) / np.sqrt(spread)
    p = stats.t.sf(t, n - 3) if alternative == "greater" else 2 * stats.t.sf(abs(t), n - 3)
    return _comparison("williams", rows, alternative, r_a, r_b, p_value=float(p))


def paired_bootstrap(
    paired: Paired, measure: Measure = DEFAULT_MEASURE, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the coefficient of metric A less that of B, with an interval from resamples of clusters that both share.

    There is no p-value. The epsilon of pairwise accuracy is that of each metric on the whole data.

    Example:
        >>> ratings = [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
        >>> scores_b = [1, 3, 2, 5, 4, 5, 3, 4, 2, 1]
        >>> found = paired_bootstrap(Paired(scores_a=ratings, scores_b=scores_b, ratings=ratings))
        >>> round(found.value, 3), found.ci_low > 0
        (0.15, True)
    """
    rows = CommonRows.of("paired_bootstrap", paired, measure)
    name, y, resampled = f"difference of {measure.coefficient}", rows.rows.ratings, {}
    try:
        of_a, of_b = rows.calibrated(rows.a), rows.calibrated(rows.b)
        value: float | str = of_a.value(rows.a, y).value - of_b.value(rows.b, y).value
        resampled = {name: of_a.resampled(rows.a, y) - of_b.resampled(rows.b, y)}
    except StatisticUndefined as error:
        value = str(error)
    return bootstrap.estimates({name: value}, resampled, rows.counts)[name]


def swaps(n_units: int, *, n_swaps: int, seed: int) -> Iterator[BoolArray]:
    """Yield which units are swapped: all ways of `EXACT_UNITS` or fewer, else random ones."""
    if n_units <= EXACT_UNITS:
        yield from (np.array(swapped) for swapped in itertools.product([False, True], repeat=n_units))
        return
    generator = np.random.default_rng(seed)
    for _ in range(n_swaps):
        yield generator.integers(2, size=n_units) == 1


def _comparison(
    test: Test,
    rows: CommonRows,
    alternative: Alternative,
    value_a: float | None = None,
    value_b: float | None = None,
    **fields: Any,
) -> Comparison:
    fields |= {"n_total": rows.rows.n_total, "n_both": len(rows.a), "n_clusters": rows.rows.n_clusters}
    return Comparison(test=test, measure=rows.measure, alternative=alternative, value_a=value_a, value_b=value_b, **fields)


def _standardised(scores: FloatArray) -> FloatArray:
    # Rounded, so that two metrics' scores that stand equally high are tied after a swap.
    rounded: FloatArray = np.round(stats.zscore(scores), 12)
    return rounded


def _difference(rows: CommonRows, a: FloatArray, b: FloatArray) -> float | None:
    try:
        return rows.value(a) - rows.value(b)
    except StatisticUndefined:
        return None


def _is_as_large(found: float, observed: float, alternative: Alternative) -> bool:
    if alternative == "two-sided":
        found, observed = abs(found), abs(observed)
    return found >= observed - _ROUNDING
