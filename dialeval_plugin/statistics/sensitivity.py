"""How far rows without a score could move a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import Coefficient, coefficient_named

from .arrays import OptionalNumbers
from .levels import Range
from .rows import optional_numbers, same_length


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """What a statistic would be with the unscored rows; JSON-able, never NaN.

    Attributes:
        value: on the scored rows; None where undefined.
        is_bound: whether the statistic of all rows cannot lie outside of `low` and `high`. It can where this is False.
        n_total: rows handed in that could count: rated ones, for a coefficient.
        reason: why something is None; None where nothing is.
    """

    statistic: str
    value: float | None
    low: float | None
    high: float | None
    is_bound: bool
    n_total: int
    n_scored: int
    n_unscored: int
    reason: str | None = None


def sensitivity_range(
    scores: OptionalNumbers, ratings: OptionalNumbers, *, coefficient: str = "spearman", scale: Range | None = None
) -> Sensitivity:
    """Return a coefficient with the unscored rows filled in against the ratings, and with them.

    For the upper end, unscored rows get their rating as a score, stretched so that the lowest and the highest rating are the
    ends of the scale; for the lower end, the other way round. This is a sensitivity range and no bound: other scores can give
    values outside. In a simulation with 5 to 50 % of the scores left out at random, the range held the value of the whole
    set in 96 to 99 % of 300 sets (Pearson, Spearman, Kendall b; three strengths of correlation). Filling with the two ends
    alone held it in 24 to 86 %: a score of two values correlates with five ratings less than a good metric does.
    The value on the scored rows need not lie inside.
    For pairwise accuracy the range is a bound: no pair with an unscored row agrees, or all do.
    Range and ties: those of the coefficient. Missing values: rows without a rating are left out; without unscored rows both
    ends are the value. Undefined: the coefficient is, or no row is scored and no `scale` given; then `reason` says so.

    `scale` are the lowest and the highest score that the metric can give; without it, those that it gave.

    Raises:
        InputError: lengths differ, a value is neither None nor a finite number, or is outside the scale.

    Example:
        >>> found = sensitivity_range([1, 2, 4, None, 5], [1, 2, 3, 4, 5])
        >>> round(found.low, 3), round(found.value, 3), round(found.high, 3), found.is_bound
        (0.821, 1.0, 0.975, False)
    """
    where = "sensitivity_range"
    same_length(where, scores=scores, ratings=ratings)
    entry = coefficient_named(coefficient)
    scored, rated = optional_numbers(where, "scores", scores), optional_numbers(where, "ratings", ratings)
    x, y, present = scored.values[rated.present], rated.values[rated.present], scored.present[rated.present]
    low_end, high_end = _scale(x[present], scale)
    value, reason = _value(entry, x[present], y[present])
    low = high = value
    if value is not None and entry.has_epsilon and not present.all():
        # Pairs of scored rows stay as they are; of all others none agrees, or all do.
        n_known, n_pairs = (n * (n - 1) / 2 for n in (int(present.sum()), len(x)))
        low, high = value * n_known / n_pairs, (value * n_known + n_pairs - n_known) / n_pairs
    elif value is not None and not present.all():
        places = (y - y.min()) / (y.max() - y.min()) * (high_end - low_end)
        low, why_low = _value(entry, np.where(present, x, high_end - places), y)
        high, why_high = _value(entry, np.where(present, x, low_end + places), y)
        reason = why_low or why_high
    return Sensitivity(
        statistic=coefficient,
        value=value,
        low=low,
        high=high,
        is_bound=entry.has_epsilon or bool(present.all()),
        n_total=len(x),
        n_scored=int(present.sum()),
        n_unscored=int((~present).sum()),
        reason=reason,
    )


def _scale(known: FloatArray, scale: Range | None) -> Range:
    if scale is None:
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if not scale[0] < scale[1]:
        raise InputError(f"sensitivity_range: scale is {scale!r}. Give the lowest and the highest value, in this order.")
    outside = known[(known < scale[0]) | (known > scale[1])]
    if len(outside):
        raise InputError(f"sensitivity_range: {float(outside[0])!r} is outside the scale {scale!r}. Give the whole scale.")
    return scale


def _value(entry: Coefficient, x: FloatArray, y: FloatArray) -> tuple[float | None, str | None]:
    try:
        return entry.of_pairs(x, y), None
    except StatisticUndefined as error:
        return None, str(error)
