"""Values with intervals: their text, and their mean over data sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol


class HasInterval(Protocol):
    """Value and the ends of its interval; None if missing."""

    @property
    def value(self) -> float | None:
        """Value."""

    @property
    def ci_low(self) -> float | None:
        """Lower end."""

    @property
    def ci_high(self) -> float | None:
        """Upper end."""


class ValueInterval(NamedTuple):
    """Value and the ends of its interval; None if missing."""

    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None


def mean_over_sets(figures: Sequence[HasInterval | None]) -> ValueInterval:
    """Return the mean of one figure over several data sets; no value if a set has none, no interval if a set has none.

    The errors of the sets are taken as independent and normal: half the interval's width is the root of the sum of squared
    widths, over twice the number of sets; a single set keeps its interval.

    Example:
        >>> mean_over_sets([ValueInterval(0.5, 0.375, 0.625), ValueInterval(0.25, 0.125, 0.375)]).value
        0.375
        >>> mean_over_sets([ValueInterval(0.5, 0.25, 0.75), None])
        ValueInterval(value=None, ci_low=None, ci_high=None)
    """
    return _mean(figures, lambda widths: math.hypot(*widths) / (2 * len(widths)))


def mean_within_set(figures: Sequence[HasInterval | None]) -> ValueInterval:
    """Return the mean of one figure over several qualities of one data set; missing values as in `mean_over_sets`.

    Errors on the same responses are dependent, so half the width is the mean of theirs: too wide unless all errors are equal.
    """
    return _mean(figures, lambda widths: math.fsum(widths) / (2 * len(widths)))


def _mean(figures: Sequence[HasInterval | None], half_of: Callable[[Sequence[float]], float]) -> ValueInterval:
    """Return the mean, with half its interval's width from theirs; a single figure keeps its interval."""
    values = [one.value for one in figures if one is not None and one.value is not None]
    if not values or len(values) < len(figures):
        return ValueInterval(None)
    value = math.fsum(values) / len(values)
    ends = [(one.ci_low, one.ci_high) for one in figures if one is not None]
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    if len(known) < len(ends):
        return ValueInterval(value)
    if len(known) == 1:
        return ValueInterval(value, *known[0])
    half = half_of([high - low for low, high in known])
    return ValueInterval(value, value - half, value + half)


def number_text(value: float | None, decimals: int = 3) -> str:
    """Format a number with a fixed number of decimals; empty for None.

    Example:
        >>> number_text(0.12345), number_text(-0.0001), number_text(None)
        ('0.123', '0.000', '')
    """
    # Adding 0 turns the -0.000 of a small negative number into 0.000.
    return "" if value is None else f"{round(float(value), decimals) + 0.0:.{decimals}f}"


def bounds_text(low: float | None, high: float | None, decimals: int = 3, *, is_rough: bool = False) -> str:
    """Format the ends of an interval; empty without an interval."""
    if low is None or high is None:
        return ""
    return f"[{number_text(low, decimals)}, {number_text(high, decimals)}{', rough' if is_rough else ''}]"


def interval_text(
    value: float | None,
    low: float | None,
    high: float | None,
    decimals: int = 3,
    *,
    bound_decimals: int | None = None,
    is_rough: bool = False,
) -> str:
    """Return "value [low, high]"; the value alone without an interval, "undefined" without a value.

    `bound_decimals` is the number of decimals of the ends, if it differs from the value's.

    Example:
        >>> interval_text(0.25, 0.1, 0.35), interval_text(0.25, None, None, 2), interval_text(None, None, None)
        ('0.250 [0.100, 0.350]', '0.25', 'undefined')
    """
    if value is None:
        return "undefined"
    bounds = bounds_text(low, high, decimals if bound_decimals is None else bound_decimals, is_rough=is_rough)
    return f"{number_text(value, decimals)} {bounds}".rstrip()
