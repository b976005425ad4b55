"""Forest plots: the coefficient of each evaluator with its interval, one panel per data set, and the agreement among people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json
from dialeval_plugin.corpora.registry import describe_set
from dialeval_plugin.statistics.estimates import ValueInterval

from .plots import BLUE, GREY, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAND = "#ccddee"
_PEOPLE = ("people_leave_one_out", "people_split_half")
_READ = ("dataset", "quality", "level", "statistic", "evaluator", "value", "ci_low", "ci_high", "n_scored", *_PEOPLE)


@dataclass(frozen=True, slots=True)
class Panel:
    """Panel for one data set and quality.

    Attributes:
        title: data set and number of scored rows, as a range if evaluators differ.
        intervals: coefficient by evaluator, without a value if it is undefined or withheld.
        people: known coefficients among people: one rater against the others, and half of the raters against the rest.
    """

    title: str
    intervals: Mapping[str, ValueInterval]
    people: Sequence[float]


def read_panels(paths: Sequence[Path], statistic: str) -> list[Panel]:
    """Read files written by `dialeval meta-eval --format json`; rows of later files are added to those of earlier ones.

    Raises InputError if a file has another format, or the statistic is in none.
    """
    cells: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    known: set[str] = set()
    for path in paths:
        table = read_json(path)
        rows = table.get("rows") if isinstance(table, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() >= set(_READ) for row in rows):
            raise InputError(f"{path}: is no table of agreement. Give what `dialeval meta-eval --format json --output` wrote.")
        for row in rows:
            known.add(row["statistic"])
            if row["statistic"] == statistic:
                cells.setdefault((row["dataset"], row["quality"], row["level"]), {})[row["evaluator"]] = row
    if not cells:
        raise InputError(f"--statistic {statistic}: was not computed. Computed are: {', '.join(sorted(known))}.")
    return [_panel(cell, list(cells), by_evaluator) for cell, by_evaluator in cells.items()]


def _panel(cell: Sequence[str], cells: Sequence[Sequence[str]], rows: Mapping[str, Mapping[str, Any]]) -> Panel:
    # Titles omit what all panels have in common.
    titles = (describe_set(cell[0]).title, *cell[1:])
    first, *others = [title for place, title in enumerate(titles) if len({other[place] for other in cells}) > 1] or titles[:1]
    counts = sorted({row["n_scored"] for row in rows.values() if row["n_scored"]}) or [0]
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    people = sorted(value for name in _PEOPLE if (value := next(iter(rows.values()))[name]) is not None)
    intervals = {name: ValueInterval(row["value"], row["ci_low"], row["ci_high"]) for name, row in rows.items()}
    return Panel(f"{first}\n{', '.join([*others, f'n = {n}'])}", intervals, people)


def forest_figure(panels: Sequence[Panel], *, label: str) -> Figure:
    """Draw one panel per data set; evaluators are sorted by their means over common panels, or omitted if always undefined."""
    names = list(dict.fromkeys(name for panel in panels for name, one in panel.intervals.items() if one.value is not None))
    if not names:
        raise InputError("forest: no coefficient is defined, so there is nothing to draw.")

    def values(name: str, of: Sequence[Panel]) -> list[float]:
        known = (panel.intervals[name].value for panel in of if name in panel.intervals)
        return [value for value in known if value is not None]

    common = [panel for panel in panels if all(values(name, [panel]) for name in names)] or panels

    def mean(name: str) -> float:
        return fmean(values(name, common) or [-math.inf])

    names.sort(key=mean)
    ends = [end for panel in panels for one in panel.intervals.values() for end in one if end is not None]
    ends += [value for panel in panels for value in panel.people]
    low, high = min(0.0, *ends), max(0.0, *ends)
    margin = 0.04 * (high - low or 1.0)
    n_columns = -(-len(panels) // -(-len(panels) // 4))  # at most four, in rows of equal length
    n_rows = -(-len(panels) // n_columns)
    longest = max(map(len, names))
    has_people = any(panel.people for panel in panels)
    width = max(0.075 * longest + 2.3 * n_columns, 4.6 * has_people)  # the note below needs its place
    figure = new_figure(width, n_rows * (0.28 * len(names) + 0.75) + 0.5)
    grid = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw(axes, panel, names)
        axes.set_xlim(low - margin, high + margin)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel(label)
    if has_people:
        note = "band: from one person against the others to half the people against the rest"
        figure.supxlabel(note, fontsize=8, color=GREY)
    return figure


def _draw(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    axes.axvline(0, color=GREY, linewidth=0.8)
    if panel.people:
        axes.axvspan(panel.people[0], panel.people[-1], color=_BAND, linewidth=1.2, zorder=0)
    for place, name in enumerate(names):
        one = panel.intervals.get(name, ValueInterval(None))
        if one.value is None:
            axes.annotate("—", (0, place), xytext=(4, 0), textcoords="offset points", va="center", color=GREY)
            continue
        if one.ci_low is not None and one.ci_high is not None:
            axes.plot([one.ci_low, one.ci_high], [place, place], color=BLUE, linewidth=1.6, solid_capstyle="butt")
        axes.plot([one.value], [place], color=BLUE, marker="o", markersize=5)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_title(panel.title, fontsize=10)
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
