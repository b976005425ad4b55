"""Whether one metric agrees better with people than another, on the rows that both have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import get_args

import numpy as np
from scipy import sparse, stats

from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.bootstrap import Bootstrap, Resampled
from dialeval_plugin.statistics.checks import BoolArray, FloatArray
from dialeval_plugin.statistics.coefficients.by_name import pearson

from .paired import Alternative, Both, Comparison, Measure, Paired

__all__ = ["Alternative", "Comparison", "Measure", "Paired", "paired_bootstrap", "permutation_test", "williams_test"]

EXACT_UNITS = 8
"""Up to so many units are swapped in all ways, 2**8 of them; more are swapped at random."""

_ROUNDING = 1e-12
"""Differences nearer than this are the same: a permutation that only renames the rows must count as large as the data."""
_BOOTSTRAP = Bootstrap()
_MEASURE = Measure()


def permutation_test(
    paired: Paired,
    measure: Measure = _MEASURE,
    *,
    alternative: Alternative = "two-sided",
    rounds: int = 1000,
    seed: int = 0,
) -> Comparison:
    r"""Compare two metrics by swapping their scores (PERM-BOTH of Deutsch, Dror and Roth 2021, as in mt-metrics-eval).

    Both metrics' scores are standardised, for else a swap would mix scales. If the metrics were equally good, swapping the
    two scores of a row would change nothing, so the difference of the coefficients is compared with those after random
    swaps: of single rows, or of all rows of a cluster at once.
    p-value: $(c + 1)/(n + 1)$ of n swaps, c of which differ at least as much, so it is never 0; with `EXACT_UNITS` units or
    fewer all $2^u$ swaps are made, the data among them, and it is $c / 2^u$. A swap on which a coefficient is undefined counts
    as differing as much. Pairwise accuracy is calibrated anew after each swap.
    Ties: those of the coefficient. Missing values: rows without both scores and a rating are left out, `n_both` says how
    many are left. Undefined: either coefficient is, or there is one unit only; then `reason` says so.
    Cost: two coefficients a round; calibrated pairwise accuracy sorts all differences of scores each time.

    Args:
        paired: the two metrics, on a scale on which higher is better.
        measure: what is compared.
        alternative: "two-sided", or "greater" for A better than B.
        rounds: number of random swaps.
        seed: of the generator that draws them.

    Raises:
        InputError: lengths differ, a value is neither None nor a finite number, or an option is wrong.

    Example:
        >>> paired = Paired(scores_a=[1, 2, 3, 4, 5, 6], scores_b=[2, 1, 6, 3, 4, 5], ratings=[1, 2, 3, 4, 5, 6])
        >>> found = permutation_test(paired, Measure("pearson"))
        >>> found.p_value, found.n_rounds, found.is_exact
        (0.03125, 64, True)
    """
    where = "permutation_test"
    Bootstrap(rounds, seed=seed)
    _check_alternative(where, alternative)
    both = Both.of(where, paired, measure)
    n_units = both.n_units
    if n_units < 2:
        return both.comparison("permutation", alternative, reason=f"{where}: {n_units} units to swap. Give more rows.")
    try:
        value_a, value_b = both.value(both.a), both.value(both.b)
    except StatisticUndefined as error:
        return both.comparison("permutation", alternative, reason=str(error))
    if not rounds:
        reason = f"{where}: rounds is 0, so there is no p-value. Ask for 1000 rounds."
        return both.comparison("permutation", alternative, (value_a, value_b), reason=reason)
    is_exact = n_units <= EXACT_UNITS
    a, b = _standardised(both.a), _standardised(both.b)
    n_large = n_degenerate = n_rounds = 0
    for swapped in _swaps(n_units, rounds, seed):
        is_swapped = swapped[both.rows.clusters]
        found = _difference(both, np.where(is_swapped, b, a), np.where(is_swapped, a, b))
        n_rounds += 1
        n_degenerate += found is None
        n_large += found is None or _is_as_large(found, value_a - value_b, alternative)
    return both.comparison(
        "permutation",
        alternative,
        (value_a, value_b),
        p_value=n_large / n_rounds if is_exact else (n_large + 1) / (n_rounds + 1),
        n_rounds=n_rounds,
        n_degenerate=n_degenerate,
        is_exact=is_exact,
        seed=seed,
    )


def williams_test(paired: Paired, *, alternative: Alternative = "two-sided") -> Comparison:
    r"""Compare two metrics' Pearson correlations with the same ratings (Williams 1959; Graham and Baldwin 2014).

    Formula: $t = (r_a - r_b) \sqrt{(n-1)(1 + r_{ab})} / \sqrt{2 K (n-1)/(n-3) + \bar r^2 (1 - r_{ab})^3}$ with
    $K = 1 - r_a^2 - r_b^2 - r_{ab}^2 + 2 r_a r_b r_{ab}$ and $\bar r = (r_a + r_b)/2$, on n - 3 degrees of freedom.
    Assumes rows that are independent and normal: it knows no clusters, and is too sure where several rows share a dialogue.
    Missing values: as in `permutation_test`. Undefined: fewer than 4 rows, constant scores or ratings, or metrics that agree
    with each other fully.

    Raises:
        InputError: as in `permutation_test`.

    Example:
        >>> paired = Paired(scores_a=[1.1, 2, 3.1, 4, 5.1], scores_b=[1.5, 2, 3.1, 4, 5.5], ratings=[1, 2, 3, 4, 5])
        >>> round(williams_test(paired, alternative="greater").p_value, 3)
        0.019
    """
    where = "williams_test"
    _check_alternative(where, alternative)
    both = Both.of(where, paired, Measure("pearson"))
    n = len(both.a)
    try:
        r_a, r_b = both.value(both.a), both.value(both.b)
        r_ab = pearson(both.a, both.b)
    except StatisticUndefined as error:
        return both.comparison("williams", alternative, reason=str(error))
    if n < 4 or 1 - abs(r_ab) < _ROUNDING:
        why = f"{n} rows, at least 4 are needed" if n < 4 else "the two metrics agree with each other fully"
        reason = f"{where}: {why}. Compare other metrics or more rows."
        return both.comparison("williams", alternative, (r_a, r_b), reason=reason)
    # Rounding may take the determinant of a correlation matrix below 0.
    determinant = max(0.0, 1 - r_a**2 - r_b**2 - r_ab**2 + 2 * r_a * r_b * r_ab)
    spread = 2 * determinant * (n - 1) / (n - 3) + ((r_a + r_b) / 2) ** 2 * (1 - r_ab) ** 3
    t = (r_a - r_b) * np.sqrt((n - 1) * (1 + r_ab)) / np.sqrt(spread)
    p = stats.t.sf(t, n - 3) if alternative == "greater" else 2 * stats.t.sf(abs(t), n - 3)
    return both.comparison("williams", alternative, (r_a, r_b), p_value=float(p))


def paired_bootstrap(paired: Paired, measure: Measure = _MEASURE, *, bootstrap: Bootstrap = _BOOTSTRAP) -> Comparison:
    """Return the difference of two metrics' coefficients with its interval, both from the same resamples of clusters.

    What makes a resample easy or hard for both does not widen the interval. An interval that does not hold 0 says that the
    metrics differ, as a test would; there is no p-value. Interval and seed: see `bootstrap.Bootstrap`; missing values and
    undefined cases: as in `permutation_test`. The epsilon of pairwise accuracy is that of each metric on the whole data.

    Raises:
        InputError: as in `permutation_test`.

    Example:
        >>> ratings = [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
        >>> scores_b = [1, 3, 2, 5, 4, 5, 3, 4, 2, 1]
        >>> found = paired_bootstrap(Paired(scores_a=ratings, scores_b=scores_b, ratings=ratings))
        >>> round(found.difference, 3), found.ci_low > 0
        (0.15, True)
    """
    where = "paired_bootstrap"
    both = Both.of(where, paired, measure)
    try:
        statistics = [both.calibrated(scores) for scores in (both.a, both.b)]
        values = [statistic.value(x, both.y).value for statistic, x in zip(statistics, (both.a, both.b), strict=True)]
    except StatisticUndefined as error:
        return both.comparison("bootstrap", "two-sided", reason=str(error))
    a, b = (statistic.resampled(x, both.y) for statistic, x in zip(statistics, (both.a, both.b), strict=True))
    interval = bootstrap.intervals_of({where: _minus(a, b)})[where]
    return both.comparison(
        "bootstrap",
        "two-sided",
        (values[0], values[1]),
        interval=interval,
        n_rounds=bootstrap.rounds,
        seed=bootstrap.seed,
        reason=interval.reason,
    )


def _check_alternative(where: str, alternative: str) -> None:
    if alternative not in get_args(Alternative):
        choices = ", ".join(get_args(Alternative))
        raise InputError(f"{where}: there is no alternative={alternative!r}. Choose one of {choices}.")


def _standardised(scores: FloatArray) -> FloatArray:
    # Rounded, so that two metrics' scores that stand equally high are tied after a swap.
    rounded: FloatArray = np.round(stats.zscore(scores), 12)
    return rounded


def _swaps(n_units: int, rounds: int, seed: int) -> Iterator[BoolArray]:
    """Which units are swapped, in each round."""
    if n_units <= EXACT_UNITS:
        yield from (np.array(swapped) for swapped in itertools.product([False, True], repeat=n_units))
        return
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        yield generator.integers(2, size=n_units) == 1


def _difference(both: Both, a: FloatArray, b: FloatArray) -> float | None:
    try:
        return both.value(a) - both.value(b)
    except StatisticUndefined:
        return None


def _is_as_large(found: float, observed: float, alternative: Alternative) -> bool:
    if alternative == "two-sided":
        found, observed = abs(found), abs(observed)
    return found >= observed - _ROUNDING


def _minus(a: Resampled, b: Resampled) -> Resampled:
    """The difference of two statistics on the same draws of clusters."""
    width = a.sums.shape[1]
    sums = sparse.hstack([sparse.csr_array(a.sums), sparse.csr_array(b.sums)], format="csr")

    def statistic(drawn: FloatArray) -> FloatArray:
        return a.statistic(drawn[:, :width]) - b.statistic(drawn[:, width:])

    return Resampled(statistic, sums, a.shift - b.shift)
