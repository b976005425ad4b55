"""Cascades: a small model scores everything, and a large one is called only if the small one is unsure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import Numbers
from dialeval_plugin.core.errors import StatisticUndefined

from .coefficients.by_name import coefficient_named
from .rows import numbers, same_length

UNSURE = 0.5
"""Score at which a small model is least sure: halfway between its worst and its best score."""
STEPS = 20


class CascadePoint(NamedTuple):
    """Cascade that calls the large model if the small one's score is within `half_width` of `UNSURE`."""

    share: float
    """Share of the rows sent to the large model."""
    half_width: float
    value: float
    """Value of the coefficient."""


def cascade_curve(small: Numbers, fused: Numbers, ratings: Numbers) -> list[CascadePoint]:
    """Return Spearman's correlation for shares of calls from 0 to 1, in `STEPS` steps or fewer if scores are tied.

    `small` are scores in [0, 1] without the large model, `fused` with it. Raises InputError if lengths differ or a value is not
    finite, and StatisticUndefined if the coefficient is undefined at some share.

    Example:
        >>> [point.share for point in cascade_curve([0.1, 0.4, 0.6, 0.9], [0.2, 0.1, 0.6, 0.8], [1, 2, 3, 4])]
        [0.0, 0.5, 1.0]
    """
    where = "cascade_curve"
    same_length(where, small=small, fused=fused, ratings=ratings)
    alone, both = numbers(where, "small", small), numbers(where, "fused", fused)
    rated = numbers(where, "ratings", ratings)
    distances = np.abs(alone - UNSURE)
    widths = np.unique(np.quantile(distances, np.linspace(0, 1, STEPS + 1)[1:], method="inverted_cdf"))
    measure = coefficient_named("spearman").of_group
    points = [CascadePoint(0.0, 0.0, measure(alone, rated))]
    for width in widths:
        is_asked = distances <= width
        value = measure(np.where(is_asked, both, alone), rated)
        points.append(CascadePoint(float(is_asked.mean()), float(width), value))
    if not all(np.isfinite(point.value) for point in points):
        raise StatisticUndefined(f"{where}: the coefficient is undefined on some share. Give more rows.")
    return points


def share_that_keeps(curve: Sequence[CascadePoint], part: float) -> CascadePoint:
    """Return the point with the fewest calls from which on every value is at least this `part` of the last one."""
    wanted = part * curve[-1].value
    place = len(curve) - 1
    while place > 0 and curve[place - 1].value >= wanted:
        place -= 1
    return curve[place]
