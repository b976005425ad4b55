"""Figures with intervals: the mean of several, and the p-value that one stands for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy import special

from dialeval_plugin.statistics.bootstrap import Estimate


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
