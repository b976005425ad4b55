"""One rating out of what several raters said of a row."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from dialeval_plugin.core.errors import InputError


def mean(values: Sequence[float]) -> float:
    """Mean of the raters."""
    return math.fsum(values) / len(values)


def median(values: Sequence[float]) -> float:
    """Median of the raters; the mean of the two in the middle where their number is even."""
    return float(statistics.median(values))


def without_furthest(values: Sequence[float]) -> float:
    """Mean without the rater who is furthest from the mean of all; the first of them where several are.

    As Mehri and Eskenazi (2020) clean FED. A single rater stays.

    Example:
        >>> without_furthest([2, 2, 2, 0]), without_furthest([1, 3]), without_furthest([1])
        (2.0, 3.0, 1.0)
    """
    if len(values) == 1:
        return float(values[0])
    centre = mean(values)
    furthest = max(range(len(values)), key=lambda rater: abs(values[rater] - centre))
    return mean([value for rater, value in enumerate(values) if rater != furthest])


AGGREGATIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": mean,
    "median": median,
    "without_furthest": without_furthest,
    "minimum": min,
    "maximum": max,
}
"""Ways to make one rating of several, by name."""


def aggregate(raters: Sequence[Sequence[float]], how: str = "mean") -> list[float | None]:
    """Return one rating a row, None for a row that nobody rated; `how` is one of `AGGREGATIONS`, else InputError.

    Example:
        >>> aggregate([[4, 5], [], [1, 1, 4]], "median")
        [4.5, None, 1.0]
    """
    if how not in AGGREGATIONS:
        raise InputError(f"there is no way {how!r} to make one rating of several. Known are: {', '.join(AGGREGATIONS)}.")
    return [AGGREGATIONS[how](values) if len(values) else None for values in raters]
