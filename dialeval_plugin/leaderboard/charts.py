"""The charts of the leaderboard's page, as SVG text.

Drawn here and not by matplotlib, because a page holds one or two for each cell: these take 2 to 4 kB each instead of 30,
follow the page's light or dark colours through CSS classes, and are the same bytes on every machine. All text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import FloatArray

from .board import Figure

MAX_POINTS = 200
"""Points of a scatter plot; of more, evenly spaced ones in the order of the rows are shown, and their number is stated."""
MAX_LEVELS = 11
"""Rating levels of a distribution."""
CONFIDENCE = 0.95

_WIDTH, _HEIGHT = 420.0, 260.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 12.0, 14.0, 42.0
_MIDDLE = (_LEFT + _WIDTH - _RIGHT) / 2
_ROW = 36.0
_LONGEST_NAME = 52


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps values between two ends to a stretch of the picture."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Three to seven round numbers between the ends."""
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [step * number for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def scatter(scores: Sequence[float], ratings: Sequence[float], *, title: str) -> str:
    """Draw scores against human ratings with the least-squares line and its 95 % band.

    The band is of the regression's mean, by Student's t with n - 2 degrees of freedom, and takes rows for independent. Line
    and band rest on all rows; at most `MAX_POINTS` points are shown. The title is read out in place of the picture.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    horizontal, vertical = _axis(x, _LEFT, _WIDTH - _RIGHT), _axis(y, _HEIGHT - _BOTTOM, _TOP)
    shown = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).round().astype(int))
    parts = [*_grid(vertical), _label_left("human rating"), _text(_MIDDLE, _HEIGHT - 8, "score", "label")]
    parts += [_text(horizontal(tick), _HEIGHT - _BOTTOM + 13, f"{tick:g}", "tick") for tick in horizontal.ticks]
    parts += _regression(x, y, horizontal, vertical)
    points = "".join(f"M{_p(horizontal(x[i]))} {_p(vertical(y[i]))}h0" for i in shown)
    parts.append(f'<path class="points" d="{points}"/>')
    count = f"{len(x)} rows" if len(shown) == len(x) else f"{len(shown)} of {len(x)} rows shown"
    parts.append(_text(_WIDTH - _RIGHT, _TOP - 3, count, "note", "end"))
    return _svg(parts, _HEIGHT, f"{title}. {count}.")


def distribution(scores: Sequence[float], ratings: Sequence[float], *, title: str) -> str:
    """Draw for each level of the human rating how the scores lie: median, quartiles, 5th and 95th percentile.

    A mean rating counts for the nearest whole level; where there are more than `MAX_LEVELS`, for one of five equal parts.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    levels = _levels(y)
    names = np.unique(levels)
    vertical = _axis(x, _HEIGHT - _BOTTOM, _TOP)
    slot = (_WIDTH - _RIGHT - _LEFT) / len(names)
    parts = [*_grid(vertical), _label_left("score"), _text(_MIDDLE, _HEIGHT - 4, "human rating", "label")]
    for place, level in enumerate(names):
        rows = x[levels == level]
        low, lower, median, upper, high = (vertical(value) for value in np.quantile(rows, [0.05, 0.25, 0.5, 0.75, 0.95]))
        middle, half = _LEFT + (place + 0.5) * slot, min(18.0, 0.32 * slot)
        parts.append(f'<path class="whisker" d="M{_p(middle)} {_p(low)}V{_p(high)}"/>')
        parts.append(
            f'<rect class="box" x="{_p(middle - half)}" y="{_p(upper)}" width="{_p(2 * half)}" '
            f'height="{_p(max(lower - upper, 1))}"/>'
        )
        parts.append(f'<path class="median" d="M{_p(middle - half)} {_p(median)}h{_p(2 * half)}"/>')
        parts.append(_text(middle, _HEIGHT - _BOTTOM + 13, f"{level:g}", "tick"))
        parts.append(_text(middle, _HEIGHT - _BOTTOM + 25, f"n={len(rows)}", "note"))
    return _svg(parts, _HEIGHT, f"{title}. Median, quartiles, 5th and 95th percentile of the scores for each level.")


def forest(figures: Mapping[str, Figure], *, title: str, label: str) -> str:
    """Draw one coefficient, named by `label`, of one or more evaluators from top to bottom, each with its interval.

    All have a value; a rough interval is a broken line.
    """
    bottom = _TOP + _ROW * len(figures)
    ends = [end for figure in figures.values() for end in (figure.value, figure.ci_low, figure.ci_high) if end is not None]
    scale = _axis(np.array([0.0, *ends]), 8, _WIDTH - 8)
    parts = []
    for tick in scale.ticks:
        parts.append(f'<path class="grid" d="M{_p(scale(tick))} {_TOP}V{_p(bottom)}"/>')
        parts.append(_text(scale(tick), bottom + 14, f"{tick:g}", "tick"))
    parts.append(f'<path class="zero" d="M{_p(scale(0))} {_TOP}V{_p(bottom)}"/>')
    parts.append(_text(_WIDTH / 2, bottom + 32, label, "label"))
    for place, (name, figure) in enumerate(figures.items()):
        # The name stands above its line: beside it, it would leave a phone no room for the line.
        top = _TOP + place * _ROW
        parts.append(
            _text(8, top + 13, name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…", "name", "start")
        )
        parts.append(_text(_WIDTH - 8, top + 13, f"{figure.value:.3f}", "value", "end"))
        if figure.ci_low is not None and figure.ci_high is not None:
            kind = "interval rough" if figure.is_rough else "interval"
            parts.append(f'<path class="{kind}" d="M{_p(scale(figure.ci_low))} {_p(top + 24)}H{_p(scale(figure.ci_high))}"/>')
        parts.append(f'<circle class="estimate" cx="{_p(scale(figure.value or 0))}" cy="{_p(top + 24)}" r="4"/>')
    return _svg(parts, bottom + _BOTTOM, title)


def _regression(x: FloatArray, y: FloatArray, horizontal: _Scale, vertical: _Scale) -> list[str]:
    """Line and band; nothing where no line is defined, and no band where no spread is."""
    if len(x) < 3 or np.ptp(x) == 0:
        return []
    fit = stats.linregress(x, y)
    grid = np.linspace(x.min(), x.max(), 25)
    line = fit.intercept + fit.slope * grid
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 2) * fit.stderr * np.hypot(x.std(), grid - x.mean())

    def path(values: FloatArray, order: slice) -> str:
        inside = np.clip(values, vertical.low, vertical.high)
        return "L".join(f"{_p(horizontal(a))} {_p(vertical(b))}" for a, b in zip(grid[order], inside[order], strict=True))

    band = f"M{path(line + half, slice(None))}L{path(line - half, slice(None, None, -1))}Z"
    return [f'<path class="band" d="{band}"/>', f'<path class="line" d="M{path(line, slice(None))}"/>']


def _levels(ratings: FloatArray) -> FloatArray:
    rounded = np.floor(ratings + 0.5)
    if np.ptp(rounded) > 0 and len(np.unique(rounded)) <= MAX_LEVELS:
        return rounded
    low, width = ratings.min(), np.ptp(ratings) / 5
    # Ratings between 0 and 1, or on a scale of many levels: the middle of one of five parts.
    return ratings if width == 0 else low + width * (np.minimum(np.floor((ratings - low) / width), 4) + 0.5)


def _axis(values: FloatArray, start: float, end: float) -> _Scale:
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    room = 0.04 * (high - low)
    return _Scale(low - room, high + room, start, end)


def _grid(vertical: _Scale) -> list[str]:
    parts = []
    for tick in vertical.ticks:
        y = _p(vertical(tick))
        parts.append(f'<path class="grid" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 5, vertical(tick) + 3.5, f"{tick:g}", "tick", "end"))
    return parts


def _label_left(text: str) -> str:
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    return f'<text class="label" text-anchor="middle" transform="translate(12 {_p(middle)}) rotate(-90)">{escape(text)}</text>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{_p(x)}" y="{_p(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Sequence[str], height: float, title: str) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:g} {height:g}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _p(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")
