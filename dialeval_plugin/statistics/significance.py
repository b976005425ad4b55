r"""Tests of whether one metric agrees better with people than another, on the rows scored by both, and the power of intervals.

Other rows are left out and counted. If a coefficient is undefined, the difference is None and has a `reason`. InputError:
lengths differ, a value is neither None nor finite, or an option is wrong.

The smallest detectable difference, and the number of clusters that a difference needs, are simulated from a pilot. A data set
of n clusters is simulated by drawing whole clusters of the pilot, each with its addend to the statistic: its jackknife value,
shifted so that there is no difference. Each data set gets an interval of the requested kind. A true difference shifts the
interval by as much, so it is detected if it shifts the interval past 0: one simulation gives the power for all differences. In
the normal case the result is $(z_{1 - \alpha/2} + z_{power}) \sigma / \sqrt n$.

The statistic may be a difference of means or of coefficients, or one mean compared with a fixed number; it is treated as a sum
over clusters. In reproduction/coverage/planning.py, the difference planned for 80 % power was detected in 79 to 84 % of data
sets for means, and in 84 to 95 % for two correlations: with few clusters the plan for these is conservative.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import BoolArray, FloatArray, OptionalNumbers
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named

from .bootstrap import (
    DEFAULT_BOOTSTRAP,
    MIN_CLUSTERS,
    Bootstrap,
    Estimate,
    Interval,
    Resampled,
    draw_clusters,
    jackknife_values,
)
from .estimates import number_text
from .levels import AverageBy, LevelOrSystem, LevelStatistic, RatingTable, Rows, rows_of
from .rows import optional_numbers, same_length

EXACT_UNITS = 8
"""Largest number of clusters that are swapped in all 2**8 ways; with more, swaps are random."""

ROUNDING = 1e-12
"""Differences closer than this are equal: a permutation that only renames rows must count as large as the data."""


@dataclass(frozen=True, kw_only=True)
class Paired(RatingTable):
    """Scores of two metrics for the same rated rows, aligned by the caller."""

    scores_a: OptionalNumbers
    scores_b: OptionalNumbers


class Measure(NamedTuple):
    """Coefficient at a level, by which metrics are compared."""

    coefficient: str = "spearman"
    level: LevelOrSystem = "turn"
    average_by: AverageBy = "none"


DEFAULT_MEASURE = Measure()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Test of two metrics; JSON-able, never NaN.

    Attributes:
        value_a: coefficient of metric A on the rows scored by both; None if undefined.
        p_value: probability of at least this difference if A and B were equally good; None if undefined.
        n_both: rows with both scores and a rating, which the test uses.
        n_clusters: number of swapped units: clusters, or rows without clusters.
        n_degenerate: those of the `n_rounds` permutations on which the difference is undefined.
        is_exact: whether all permutations were made.
        reason: why there is no p-value; None if there is one.
    """

    value_a: float | None = None
    value_b: float | None = None
    p_value: float | None = None
    n_total: int
    n_both: int
    n_clusters: int
    n_rounds: int = 0
    n_degenerate: int = 0
    is_exact: bool = False
    reason: str | None = None

    @property
    def difference(self) -> float | None:
        """Value of A minus that of B; None if either is undefined."""
        return None if self.value_a is None or self.value_b is None else self.value_a - self.value_b


def permutation_test(paired: Paired, measure: Measure = DEFAULT_MEASURE, *, rounds: int = 1000, seed: int = 0) -> Comparison:
    r"""Compare two metrics by swapping their scores (PERM-BOTH of Deutsch, Dror and Roth 2021, as in mt-metrics-eval).

    Scores are standardised first, so that swaps do not mix scales. If the metrics were equally good, swapping the two scores of
    a row would change nothing, so the difference of the coefficients is compared with those after random swaps: of single rows,
    or of all rows of a cluster at once. Higher scores are better. p-value: $(c + 1)/(n + 1)$ for n swaps, c of which differ at
    least as much, so it is never 0; with at most `EXACT_UNITS` clusters all $2^u$ swaps are made, including the data, and it is
    $c / 2^u$. A swap with an undefined coefficient counts in c. Pairwise accuracy is calibrated again after each swap. None
    with one cluster only. Cost: two coefficients per round; calibrated pairwise accuracy sorts all score differences each time.

    Example:
        >>> paired = Paired(scores_a=[1, 2, 3, 4, 5, 6], scores_b=[2, 1, 6, 3, 4, 5], ratings=[1, 2, 3, 4, 5, 6])
        >>> found = permutation_test(paired, Measure("pearson"))
        >>> found.p_value, found.n_rounds, found.is_exact
        (0.03125, 64, True)
    """
    where = "permutation_test"
    Bootstrap(rounds, seed=seed)
    rows = _common_rows(where, paired, measure)
    counts = rows.counts
    comparison = Comparison(n_total=counts.n_total, n_both=counts.n_scored, n_clusters=counts.n_clusters)
    if comparison.n_clusters < 2:
        return replace(comparison, reason=f"{where}: {comparison.n_clusters} units to swap. Give more rows.")
    try:
        value_a, value_b = (_value(measure, rows, scores) for scores in rows.scores)
    except StatisticUndefined as error:
        return replace(comparison, reason=str(error))
    comparison = replace(comparison, value_a=value_a, value_b=value_b)
    if not rounds:
        return replace(comparison, reason=f"{where}: rounds is 0, so there is no p-value. Ask for 1000 rounds.")
    # Rounded, so that equal standardised scores of the two metrics are tied after a swap.
    a, b = (np.round(stats.zscore(scores) if np.ptp(scores) else 0 * scores, 12) for scores in rows.scores)
    n_large = n_degenerate = n_rounds = 0
    for swapped in swaps(comparison.n_clusters, n_swaps=rounds, seed=seed):
        is_swapped = swapped[rows.clusters]
        n_rounds += 1
        try:
            of_a, of_b = (_value(measure, rows, np.where(is_swapped, *pair)) for pair in ((b, a), (a, b)))
            n_large += abs(of_a - of_b) >= abs(value_a - value_b) - ROUNDING
        except StatisticUndefined:
            n_degenerate += 1
    n_large += n_degenerate
    is_exact = comparison.n_clusters <= EXACT_UNITS
    p_value = n_large / n_rounds if is_exact else (n_large + 1) / (n_rounds + 1)
    return replace(comparison, p_value=p_value, n_rounds=n_rounds, n_degenerate=n_degenerate, is_exact=is_exact)


def paired_bootstrap(
    paired: Paired, measure: Measure = DEFAULT_MEASURE, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the coefficient of metric A minus that of B, with an interval from resamples of shared clusters.

    There is no p-value. The epsilon of pairwise accuracy is that of each metric on the whole data.
    """
    rows = _common_rows("paired_bootstrap", paired, measure)
    return _differences(["a", "b"], [("a", "b")], rows, measure, bootstrap)["a", "b"]


def difference_intervals(
    scores: Mapping[str, OptionalNumbers],
    rated: RatingTable,
    measure: Measure = DEFAULT_MEASURE,
    *,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> dict[tuple[str, str], Estimate]:
    """Return `paired_bootstrap` for each pair of metrics, at the cost of one metric instead of one pair.

    Pairs with the same common rows share the resamples, on which each metric's coefficient is computed once. The order of
    clusters, and so the draws, depend on all these metrics: intervals differ slightly from those of a single pair.

    Example:
        >>> ratings = [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
        >>> scores = {"a": ratings, "b": [1, 3, 2, 5, 4, 5, 3, 4, 2, 1], "c": [1] * 10}
        >>> found = difference_intervals(scores, RatingTable(ratings=ratings))
        >>> round(found["a", "b"].value, 3), found["a", "b"].ci_low > 0, found["a", "c"].value
        (0.15, True, None)
    """
    where = "difference_intervals"
    present = {name: optional_numbers(where, f"scores[{name!r}]", values).present for name, values in scores.items()}
    same_length(where, **present)
    alike: dict[bytes, list[tuple[str, str]]] = {}
    for a, b in itertools.combinations(scores, 2):
        alike.setdefault((present[a] & present[b]).tobytes(), []).append((a, b))
    intervals: dict[tuple[str, str], Estimate] = {}
    for common, pairs in alike.items():
        is_common = np.frombuffer(common, dtype=np.bool_)
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        of_names = {
            name: [value if used else None for value, used in zip(scores[name], is_common, strict=True)] for name in names
        }
        intervals |= _differences(
            names, pairs, rows_of(where, rated, of_names, measure.level, measure.average_by), measure, bootstrap
        )
    return {pair: intervals[pair] for pair in itertools.combinations(scores, 2)}


def _differences(
    names: Sequence[str], pairs: Sequence[tuple[str, str]], rows: Rows, measure: Measure, bootstrap: Bootstrap
) -> dict[tuple[str, str], Estimate]:
    name = f"difference of {measure.coefficient}"
    values: dict[str, float] = {}
    resampled: dict[str, Resampled] = {}
    undefined: dict[str, str] = {}
    for metric, x in zip(names, rows.scores, strict=True):
        try:
            statistic = _calibrated(measure, rows, x)
            values[metric], resampled[metric] = statistic.value(x).value, statistic.resampled(x)
        except StatisticUndefined as error:
            undefined[metric] = str(error)
    drawn = bootstrap.on_resamples(resampled)
    intervals = {}
    for a, b in pairs:
        if why := undefined.get(a) or undefined.get(b):
            value, interval = None, Interval(reason=why)
        else:
            value = values[a] - values[b]
            interval = bootstrap.interval_on_resamples(name, drawn[a] - drawn[b], resampled[a] - resampled[b])
        intervals[a, b] = bootstrap.estimate(name, value, interval, rows.counts)
    return intervals


def resampled_difference(paired: Paired, measure: Measure = DEFAULT_MEASURE) -> Resampled:
    """Return the difference that `paired_bootstrap` resamples; raises StatisticUndefined if either coefficient is undefined."""
    rows, resampled = _common_rows("resampled_difference", paired, measure), []
    for x in rows.scores:
        statistic = _calibrated(measure, rows, x)
        statistic.value(x)  # raises if undefined
        resampled.append(statistic.resampled(x))
    return resampled[0] - resampled[1]


def swaps(n_units: int, *, n_swaps: int, seed: int) -> Iterator[BoolArray]:
    """Yield which units are swapped: all ways for at most `EXACT_UNITS`, else random ones."""
    if n_units <= EXACT_UNITS:
        yield from (np.array(swapped) for swapped in itertools.product([False, True], repeat=n_units))
        return
    generator = np.random.default_rng(seed)
    for _ in range(n_swaps):
        yield generator.integers(2, size=n_units) == 1


def _common_rows(where: str, paired: Paired, measure: Measure) -> Rows:
    scores = {"scores_a": paired.scores_a, "scores_b": paired.scores_b}
    return rows_of(where, paired, scores, measure.level, measure.average_by)


def _calibrated(measure: Measure, rows: Rows, x: FloatArray) -> LevelStatistic:
    return LevelStatistic.of(coefficient_named(measure.coefficient), rows, x)


def _value(measure: Measure, rows: Rows, x: FloatArray) -> float:
    return _calibrated(measure, rows, x).value(x).value


POWER = 0.8
"""Share of the data sets that detect the difference."""
SIMULATIONS = 1000
LARGEST_SIMULATED = 1000
"""Largest number of clusters simulated; for more, differences shrink with the square root of their number."""


class Detectable(NamedTuple):
    """Difference detected in a share `power` of such data sets, with the standard error of the simulation."""

    n_clusters: int
    difference: float
    error: float
    power: float = POWER

    def __str__(self) -> str:
        return f"a difference of {number_text(self.difference)} would be seen four times in five"


def detectable_difference(
    pilot: Resampled, n_clusters: int | None = None, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Detectable | None:
    """Return the smallest difference that an interval of `n_clusters` clusters, by default the pilot's, would detect.

    None without an interval: fewer than `MIN_CLUSTERS` clusters in the pilot or the plan, no rounds, or no spread.

    Args:
        pilot: a statistic that is 0 for no difference, and its sums over clusters.
        n_clusters: planned number.
        bootstrap: settings of the intervals; 1 - confidence is the level of the test. BCa is simulated as percentile.

    Example:
        >>> sums = np.column_stack([np.linspace(-1, 1, 50), np.ones(50)])
        >>> found = detectable_difference(Resampled(lambda drawn: drawn[:, 0] / drawn[:, 1], sums))
        >>> round(found.difference, 2), round(found.error, 3)
        (0.24, 0.005)
    """
    n_pilot = pilot.sums.shape[0]
    planned = n_pilot if n_clusters is None else n_clusters
    if min(n_pilot, planned) < MIN_CLUSTERS or not bootstrap.rounds:
        return None
    values = _deviations(pilot, bootstrap.seed)
    if not values.any():
        return None
    # A large pilot has groups of clusters, and a large plan draws fewer of them.
    n_units = planned * len(values) / n_pilot
    n_drawn = min(max(round(n_units), MIN_CLUSTERS), LARGEST_SIMULATED)
    needed = np.sort(_differences_seen(values, n_drawn, bootstrap) * math.sqrt(n_drawn / n_units))
    share_error = math.sqrt(POWER * (1 - POWER) / SIMULATIONS)
    low, value, high = np.quantile(needed, [POWER - share_error, POWER, POWER + share_error])
    return Detectable(planned, float(value), float(high - low) / 2)


def clusters_needed(pilot: Resampled, difference: float, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> Detectable | None:
    """Return the `detectable_difference` with the number of clusters that detects `difference`; None if it is undefined."""
    if not 0 < difference < math.inf:
        raise InputError(f"clusters_needed: difference is {difference!r}. Give a number above 0.")
    detectable = detectable_difference(pilot, bootstrap=bootstrap)
    for _ in range(3):
        if detectable is None:
            break
        wanted = math.ceil(detectable.n_clusters * (detectable.difference / difference) ** 2)
        detectable = detectable_difference(pilot, max(MIN_CLUSTERS, wanted), bootstrap=bootstrap)
    return detectable


def _deviations(pilot: Resampled, seed: int) -> FloatArray:
    values = jackknife_values(pilot, seed)
    if len(values) < MIN_CLUSTERS:
        return np.empty(0)
    # Clusters drawn from a pilot vary less than their population. Sorted, so that their order has no effect.
    return np.sort((values.mean() - values) * (len(values) - 1) * math.sqrt(len(values) / (len(values) - 1)))


def _differences_seen(values: FloatArray, n_drawn: int, bootstrap: Bootstrap) -> FloatArray:
    """Return the smallest true difference that each simulated data set's interval would detect, upwards and downwards."""
    generator = np.random.default_rng(bootstrap.seed)
    data = values[generator.integers(len(values), size=(SIMULATIONS, n_drawn))]
    weights = draw_clusters(n_drawn, bootstrap.rounds, generator)
    low, high = np.quantile(data @ weights.T / n_drawn, bootstrap.ends(n_drawn), axis=1)
    return np.concatenate([-low, high])
