"""A figure with its interval: how it is written, the mean of several, and the p-value that it stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from scipy import special

if TYPE_CHECKING:
    from .bootstrap import Estimate


def number_text(value: float | None, decimals: int = 3) -> str:
    """Write a number with a fixed number of decimals; nothing where there is none.

    Example:
        >>> number_text(0.12345), number_text(-0.0001), number_text(None)
        ('0.123', '0.000', '')
    """
    # Adding 0 turns the -0.000 of a small negative number into 0.000.
    return "" if value is None else f"{round(float(value), decimals) + 0.0:.{decimals}f}"


def bounds_text(low: float | None, high: float | None, decimals: int = 3, *, is_rough: bool = False) -> str:
    """Write the ends of an interval; nothing where there is none.

    Example:
        >>> bounds_text(0.1, 0.35), bounds_text(-0.00001, 0.2, 2, is_rough=True), bounds_text(None, None)
        ('[0.100, 0.350]', '[0.00, 0.20, rough]', '')
    """
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
    """Write "value [low, high]"; the value alone where there is no interval, "undefined" where there is no value.

    `bound_decimals` are those of the ends, where they have another number of them than the value.

    Example:
        >>> interval_text(0.25, 0.1, 0.35), interval_text(0.25, None, None, 2), interval_text(None, None, None)
        ('0.250 [0.100, 0.350]', '0.25', 'undefined')
    """
    if value is None:
        return "undefined"
    bounds = bounds_text(low, high, decimals if bound_decimals is None else bound_decimals, is_rough=is_rough)
    return f"{number_text(value, decimals)} {bounds}".rstrip()


class ValueInterval(NamedTuple):
    """A figure and the ends of its interval; None where there is none."""

    value: float | None
    ci_low: float | None
    ci_high: float | None


def mean_over_sets(figures: Sequence[ValueInterval | Estimate | None]) -> ValueInterval:
    """Return the mean of one figure over several data sets with its interval.

    The interval takes the sets' errors for independent and normal, so squared widths add up: half of its width is the root of
    the sum of squared widths, over twice the number of sets. A mean over fewer sets is another figure, so there is no value
    where a set has none (None), and no interval where a set has none.

    Example:
        >>> mean_over_sets([ValueInterval(0.5, 0.375, 0.625), ValueInterval(0.25, 0.125, 0.375)]).value
        0.375
        >>> mean_over_sets([ValueInterval(0.5, 0.25, 0.75), None])
        ValueInterval(value=None, ci_low=None, ci_high=None)
    """
    values = [one.value for one in figures if one is not None and one.value is not None]
    if not values or len(values) < len(figures):
        return ValueInterval(None, None, None)
    value = math.fsum(values) / len(values)
    ends = [(one.ci_low, one.ci_high) for one in figures if one is not None]
    widths = [high - low for low, high in ends if low is not None and high is not None]
    if len(widths) < len(ends):
        return ValueInterval(value, None, None)
    half = math.hypot(*widths) / (2 * len(widths))
    return ValueInterval(value, value - half, value + half)


def normal_p_value(value: float | None, low: float | None, high: float | None, *, confidence: float = 0.95) -> float | None:
    """Return the two-sided p-value of 0 that goes with an interval, under a normal distribution; None without an interval.

    Example:
        >>> round(normal_p_value(1.0, 0.0, 2.0), 3), normal_p_value(1.0, None, None)
        (0.05, None)
    """
    if value is None or low is None or high is None or high <= low:
        return None
    deviation = (high - low) / (2 * special.ndtri((1 + confidence) / 2))
    return float(2 * special.ndtr(-abs(value) / deviation))
