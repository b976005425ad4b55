"""Plots of the leaderboard's page and of passports as SVG text.

They are not made by matplotlib, because a page has one plot per cell: these take 1 kB instead of 30 each, follow the page's
light or dark colours through CSS classes, and have equal bytes on every machine. All text is escaped.

In the forest plot, each row of the table has its own picture with coordinates in per cent of the width, so that all rows share
one axis at any width. The page's script moves the parts when the reader chooses other sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.statistics.estimates import HasInterval

MAX_LEVELS = 11
"""Largest number of rating levels in a distribution."""

_WIDTH, _HEIGHT = 240.0, 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 4.0, 8.0, 20.0
_ROOM = 0.04


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear map from an interval of values to an interval of the picture."""

    low: float
    high: float
    start: float = 0.0
    end: float = 100.0

    @classmethod
    def around(cls, values: Iterable[float], start: float = 0.0, end: float = 100.0) -> Scale:
        """Return a scale that contains all values, one or more, with a margin."""
        numbers = list(values)
        low, high = min(numbers), max(numbers)
        if high <= low:
            low, high = low - 0.5, high + 0.5
        room = _ROOM * (high - low)
        return cls(low - room, high + room, start, end)

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Return three to seven round numbers between the ends."""
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [step * number for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def forest_scale(means: Iterable[HasInterval], people: Sequence[float]) -> Scale:
    """Return the axis shared by the rows of a forest plot: it contains 0, all intervals and the agreement among people."""
    ends = [end for one in means for end in (one.value, one.ci_low, one.ci_high) if end is not None]
    return Scale.around([0.0, *ends, *people])


def forest_axis(people: Sequence[float], scale: Scale) -> str:
    """Draw the axis above the rows of a forest plot: its numbers, and "people" above their band."""
    named = [(sum(people) / len(people), "people", 10)] if people else []
    placed = [(scale(value), text, y) for value, text, y in [*named, *((tick, f"{tick:g}", 22) for tick in scale.ticks)]]
    texts = ""
    for x, text, y in placed:
        # Numbers at the ends stay inside the table.
        anchor = "end" if x > 95 else "start" if x < 5 else "middle"
        texts += f'<text x="{_p(x)}%" y="{y}" text-anchor="{anchor}">{text}</text>'
    return f'<svg class="axis" width="100%" height="26" aria-hidden="true">{texts}</svg>'


def forest_row(mean: HasInterval, people: Sequence[float], scale: Scale, *, is_rough: bool = False) -> str:
    """Draw a mean with its interval, dashed if rough, and the agreement among people as a band, without numbers."""
    parts = []
    if people:
        low, high = scale(min(people)), scale(max(people))
        parts.append(f'<rect class="people" x="{_p(low)}%" width="{_p(max(high - low, 0.3))}%" height="100%"/>')
    parts += [
        f'<line class="{"zero" if tick == 0 else "grid"}" x1="{_p(scale(tick))}%" x2="{_p(scale(tick))}%" y2="100%"/>'
        for tick in scale.ticks
    ]
    if mean.value is not None:
        if mean.ci_low is not None and mean.ci_high is not None:
            ends = f'x1="{_p(scale(mean.ci_low))}%" x2="{_p(scale(mean.ci_high))}%"'
            kind = "interval rough" if is_rough else "interval"
            parts.append(f'<line class="{kind}" {ends} y1="50%" y2="50%"/>')
        parts.append(f'<circle class="estimate" cx="{_p(scale(mean.value))}%" cy="50%" r="4"/>')
    return f'<svg class="forest" width="100%" height="100%" aria-hidden="true">{"".join(parts)}</svg>'


def distribution(scores: Sequence[float], ratings: Sequence[float], *, title: str) -> str:
    """Draw the distribution of scores at each rating level: median, quartiles, 5th and 95th percentile.

    Ratings are rounded to whole levels; above `MAX_LEVELS`, to five equal parts. `title` is the alternative text.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    levels = _levels(y)
    names = np.unique(levels)
    vertical = Scale.around(x, _HEIGHT - _BOTTOM, _TOP)
    slot = (_WIDTH - _RIGHT - _LEFT) / len(names)
    half = min(14.0, 0.32 * slot)
    grid, boxes, whiskers, medians = "", "", "", ""
    texts = []
    for tick in vertical.ticks:
        grid += f"M{_p(_LEFT)} {_p(vertical(tick))}H{_p(_WIDTH - _RIGHT)}"
        texts.append(_text(_LEFT - 4, vertical(tick) + 3.5, f"{tick:g}", "end"))
    for place, level in enumerate(names):
        low, lower, median, upper, high = map(vertical, np.quantile(x[levels == level], [0.05, 0.25, 0.5, 0.75, 0.95]))
        middle = _LEFT + (place + 0.5) * slot
        whiskers += f"M{_p(middle)} {_p(low)}V{_p(high)}"
        boxes += f"M{_p(middle - half)} {_p(upper)}h{_p(2 * half)}v{_p(max(lower - upper, 1))}h{_p(-2 * half)}z"
        medians += f"M{_p(middle - half)} {_p(median)}h{_p(2 * half)}"
        texts.append(_text(middle, _HEIGHT - 5, f"{level:g}"))
    paths = {"grid": grid, "whisker": whiskers, "box": boxes, "median": medians}
    drawn = "".join(f'<path class="{name}" d="{path}"/>' for name, path in paths.items())
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{drawn}{''.join(texts)}</svg>"
    )


def _levels(ratings: FloatArray) -> FloatArray:
    rounded = np.floor(ratings + 0.5)
    if np.ptp(rounded) > 0 and len(np.unique(rounded)) <= MAX_LEVELS:
        return rounded
    low, width = ratings.min(), np.ptp(ratings) / 5
    # Ratings in [0, 1], or on a scale with many levels: the middle of one of five parts.
    return ratings if width == 0 else low + width * (np.minimum(np.floor((ratings - low) / width), 4) + 0.5)


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{_p(x)}" y="{_p(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def _p(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
