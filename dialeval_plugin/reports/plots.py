"""Plots of the papers, and forest plots, as matplotlib figures, drawn from numbers and written by `write_figure`.

A forest plot has the coefficient of each evaluator with its interval, one panel per data set, and the agreement among people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import gaussian_kde

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import atomic_path, read_json
from dialeval_plugin.core.resources import optional
from dialeval_plugin.corpora.registry import describe_set
from dialeval_plugin.statistics.estimates import HasInterval, ValueInterval
from dialeval_plugin.training.checkpoints import HistoryRow

if TYPE_CHECKING:
    from datetime import datetime

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dialeval_plugin.methods.proxy_indicators.regression import LinearRegression

FORMATS = ("png", "svg", "pdf")
_MADE_BY = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
"""Metadata of each format that differ between runs or versions."""
DOTS_PER_INCH = 150
BLUE, PURPLE, GREY = "#4477aa", "#aa3377", "#777777"
GREEN, ORANGE = "#228833", "#ee7733"
"""Colours of good and of bad responses only."""
CONTEXT, POSITIVE, NEGATIVE = 0, 1, 2
PERPLEXITY = 30.0
MAX_TICKS = 10
"""Largest number of epochs with a tick each."""
_KINDS = {CONTEXT: ("context", BLUE, "*"), POSITIVE: ("positive", GREEN, "o"), NEGATIVE: ("adversarial", ORANGE, "^")}
_CLASS_COLOURS = {"positive": GREEN, "adversarial": ORANGE, "random": PURPLE}
_LINES = ((BLUE, "-"), (PURPLE, "-."), ("#66aacc", ":"), ("#997700", (0, (5, 1))), (GREY, (0, (3, 1, 1, 1, 1, 1))))
"""Neutral colours, with line styles that differ in black and white too."""
_LOSSES, _ACCURACIES = ("loss", "training_loss"), ("triplet_accuracy", "accuracy", "auroc")
_LABELS = {"loss": "validation loss"}
_WEIGHT_COLOURS = {"response": BLUE, "context and response": PURPLE, "facts and response": GREY}


@dataclass(frozen=True, slots=True)
class Vectors:
    """Representations of contexts and responses, shape (n, width); `contexts` numbers the context of each row."""

    values: FloatArray
    kinds: IntArray
    contexts: IntArray

    def triplet_accuracy(self) -> float:
        """Share of (context, positive, adversarial) triplets whose positive response is nearer by cosine (DRE, section 5)."""
        unit = self.values / np.linalg.norm(self.values, axis=1, keepdims=True)
        hits, total = 0, 0
        for number in np.unique(self.contexts):
            rows = self.contexts == number
            (centre,) = unit[rows & (self.kinds == CONTEXT)]
            near, far = (unit[rows & (self.kinds == kind)] @ centre for kind in (POSITIVE, NEGATIVE))
            hits += int((near[:, None] > far[None, :]).sum())
            total += near.size * far.size
        return hits / total if total else math.nan


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Return an empty figure, with sizes in inches, that opens no window; raises MissingPrerequisite without matplotlib."""
    figure: Figure = optional("matplotlib.figure", "a plot").Figure(figsize=(width, height), layout="constrained")
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _one_plot(width: float, height: float, title: str = "") -> tuple[Figure, Axes]:
    figure = new_figure(width, height, title)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def check_format(path: Path) -> str:
    """Return the format that the suffix of `path` names; raises InputError if it names none."""
    format = path.suffix.removeprefix(".").lower()
    if format not in FORMATS:
        raise InputError(f"{path}: plots are written as PNG, SVG or PDF. End the name in .png, .svg or .pdf.")
    return format


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically in the format that the suffix names; equal figures give equal bytes."""
    from matplotlib import rc_context

    format = check_format(path)
    metadata: dict[str, Any] = {_MADE_BY[format]: None}
    with rc_context({"svg.hashsalt": "dialeval", "svg.fonttype": "none"}), atomic_path(path) as temporary:
        figure.savefig(temporary, format=format, dpi=DOTS_PER_INCH, metadata=metadata)


def disentangling_figure(normal: Vectors, disentangled: Vectors, *, n_shown: int = 4, seed: int = 0, title: str = "") -> Figure:
    """Draw some contexts with their responses before and after disentangling (SLIDE figure 2, DRE figure 5).

    One t-SNE per row of panels (van der Maaten and Hinton 2008; cosine distances, started from a PCA) is fitted to all vectors;
    each panel shows one of the first contexts. Distances in the plot are not distances of the vectors, but the triplet accuracy
    in the titles is computed from the vectors. `normal` has encoder vectors, `disentangled` contexts and robust parts.
    """
    if len(normal.values) < 12:
        raise InputError(f"t-SNE: {len(normal.values)} vectors are too few. Give contexts with at least 12 texts in all.")
    contexts = list(dict.fromkeys(normal.contexts.tolist()))[:n_shown]
    figure = new_figure(max(2.4 * len(contexts), 5.0), 5.6, title)
    grid = figure.subplots(2, len(contexts), squeeze=False)
    for panels, vectors, name in zip(grid, (normal, disentangled), ("Normal", "Disentangled"), strict=True):
        places = _tsne(vectors.values, seed)
        for axes, number in zip(panels, contexts, strict=True):
            rows = vectors.contexts == number
            for kind, (label, colour, marker) in _KINDS.items():
                x, y = places[rows & (vectors.kinds == kind)].T
                size, above = (110, 3) if kind == CONTEXT else (34, 2)
                edges = {"edgecolors": "white", "linewidths": 0.5}
                axes.scatter(x, y, c=colour, marker=marker, s=size, label=label, zorder=above, **edges)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.margins(0.15)
        panels[0].set_ylabel(f"{name}\ntriplet accuracy {100 * vectors.triplet_accuracy():.1f} %", fontsize=9)
    for number, axes in enumerate(grid[0], start=1):
        axes.set_title(f"context {number}", fontsize=9)
    _add_legend(figure, grid[0][0])
    return figure


def training_figure(history: Sequence[HistoryRow], *, title: str = "") -> Figure:
    """Draw the loss of each stage, and below it the accuracy on validation data if available (DRE figures 3 and 4).

    The loss is the validation loss if it was measured, else the training loss; the accuracy is the first available one of
    triplet accuracy, classification accuracy and AUROC, in per cent.
    """
    stages = list(dict.fromkeys(row.stage for row in history))
    if not stages:
        raise InputError("training: the model was fitted in one step, so there are no epochs to draw. Give another model.")
    figure = new_figure(max(3.4 * len(stages), 4.5), 5.0, title)
    grid = figure.subplots(2, len(stages), squeeze=False, sharex="col")
    for (upper, lower), stage in zip(grid.T, stages, strict=True):
        rows = [row for row in history if row.stage == stage]
        places = [row.step if row.epoch is None else row.epoch for row in rows]
        upper.set_title(stage, fontsize=10)
        lower.set_xlabel("step" if rows[0].epoch is None else "epoch")
        if len(rows) <= MAX_TICKS:
            lower.set_xticks(places)
        for axes, names, unit in ((upper, _LOSSES, ""), (lower, _ACCURACIES, " (%)")):
            name = next((name for name in names if any(math.isfinite(row.figures.get(name, math.nan)) for row in rows)), None)
            if name is None:
                axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", va="center", color=GREY)
                axes.set_yticks([])
                continue
            values = [row.figures.get(name, math.nan) for row in rows]
            axes.plot(places, values, color=BLUE, marker="o", markersize=3.5, linewidth=1.5)
            axes.set_ylabel(_LABELS.get(name, name.replace("_", " ")) + unit)
            axes.grid(alpha=0.25)
    return figure


def threshold_figure(
    panels: Mapping[str, tuple[Sequence[float], Sequence[float]]], marked: Mapping[str, float], *, title: str = ""
) -> Figure:
    """Draw accuracy by threshold: of positive responses, of negative responses, and their mean (DRE figure 6).

    A response whose score reaches the threshold counts as positive. `panels` has the scores of positive and of negative
    responses by title, higher for positive; `marked` the thresholds that the model uses.
    """
    figure = new_figure(max(3.6 * len(panels), 4.5), 3.6, title)
    all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (column, (positive, negative)) in zip(all_axes, panels.items(), strict=True):
        grid = np.linspace(min(*positive, *negative), max(*positive, *negative), 201)
        right = [100 * (np.asarray(positive) >= cut).mean() for cut in grid]
        rejected = [100 * (np.asarray(negative) < cut).mean() for cut in grid]
        overall = (np.array(right) + rejected) / 2
        axes.plot(grid, right, color=GREEN, label="positive", linewidth=1.2, linestyle="--")
        axes.plot(grid, rejected, color=ORANGE, label="adversarial", linewidth=1.2, linestyle="-.")
        axes.plot(grid, overall, color=BLUE, label="overall", linewidth=2)
        if column in marked:
            axes.axvline(marked[column], color=GREY, linestyle=":", linewidth=1, label="threshold of the model")
        axes.set_title(f"{column}, best {overall.max():.1f} % at {grid[overall.argmax()]:.2f}", fontsize=10)
        axes.set_xlabel("threshold")
        axes.grid(alpha=0.25)
    all_axes[0].set_ylabel("accuracy (%)")
    _add_legend(figure, all_axes[0])
    return figure


def distribution_figure(classes: Mapping[str, Sequence[float]], *, label: str, title: str = "") -> Figure:
    """Draw the scores of each class as a histogram and a Gaussian kernel density (thesis figure 7.2).

    The bandwidth follows Scott's rule in each class. Every class needs a score; one whose scores are all equal has no density.
    Classes that are not kinds of responses are levels of a rating, from dark to bright.
    """
    figure, axes = _one_plot(6.4, 3.9, title)
    values = np.concatenate([np.asarray(scores, dtype=np.float64) for scores in classes.values()])
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high if high > low else low + 1, 41)
    grid = np.linspace(edges[0], edges[-1], 401)
    for name, colour in _class_colours(list(classes)).items():
        scores = classes[name]
        drawn = f"{name} (n={len(scores)})"
        axes.hist(scores, bins=edges.tolist(), density=True, color=colour, alpha=0.25, label=drawn)
        if len(set(scores)) > 2:
            axes.plot(grid, gaussian_kde(scores)(grid), color=colour, linewidth=1.8)
    axes.set_xlabel(label)
    axes.set_ylabel("density")
    axes.legend(frameon=False, fontsize=9)
    return figure


def cascade_figure(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw Spearman's rho by the share of rows sent to the large model, one line per judge.

    The dots at both ends are the small model alone and the fusion that always calls the large model. Where a curve follows the
    thin line between them, each call gains the same.
    """
    figure, axes = _one_plot(6.4, 4.3)
    for place, (name, points) in enumerate(curves.items()):
        colour, style = _LINES[place % len(_LINES)]
        shares, values = zip(*points, strict=True)
        percent = [100 * share for share in shares]
        axes.plot(percent, values, color=colour, linestyle=style, linewidth=1.8, label=name)
        ends = ([percent[0], percent[-1]], [values[0], values[-1]])
        axes.plot(*ends, color=colour, linewidth=0.7, marker="o", markersize=4)
    axes.set_xlabel("responses about which the large model is asked (%)")
    axes.set_ylabel("Spearman's rho")
    axes.grid(alpha=0.25)
    _add_legend(figure, axes, columns=2)
    return figure


def means_figure(
    means: Mapping[str, HasInterval], *, label: str, whole: float | None = None, times: Sequence[datetime] = ()
) -> Figure:
    """Draw the mean of each group with its interval: over `times` if given, else one line per group, the first on top.

    The thin line is the mean of all rows, `whole`. A group without an interval is a dot.
    """
    figure, axes = _one_plot(6.4, 3.6 if times else 0.9 + 0.3 * len(means))
    drawn = [
        (place, one.value, one)
        for place, one in zip(times or range(len(means)), means.values(), strict=True)
        if one.value is not None
    ]
    for place, value, one in drawn:
        low, high = (value if end is None else end for end in (one.ci_low, one.ci_high))
        ends = ([place, place], [low, high])
        axes.plot(*(ends if times else ends[::-1]), color=BLUE, linewidth=1.6, solid_capstyle="butt")
    places, values = [place for place, _, _ in drawn], [value for _, value, _ in drawn]
    points = (places, values) if times else (values, places)
    axes.plot(*points, color=BLUE, marker="o", markersize=5, linewidth=0.7 if times else 0)
    if whole is not None:
        (axes.axhline if times else axes.axvline)(whole, color=GREY, linewidth=0.8, linestyle=":", label="mean of all")
        _add_legend(figure, axes)
    if times:
        axes.set_ylabel(label)
        figure.autofmt_xdate()
    else:
        axes.set_yticks(range(len(means)), list(means), fontsize=9)
        axes.set_ylim(len(means) - 0.4, -0.6)
        axes.set_xlabel(label)
    axes.grid(axis="y" if times else "x", alpha=0.25)
    return figure


def weight_figure(regression: LinearRegression, *, title: str = "") -> Figure:
    """Draw the weights of a regression, one bar per indicator (figure 6.2).

    Columns and rating are in [0, 1], so weights are comparable; the signs of `qnli` and `rte` depend on the label whose
    probability they give.
    """
    figure, axes = _one_plot(7.0, 1.8 + 0.3 * len(regression.features), title or f"fitted on {regression.n_rows} responses")
    from matplotlib.patches import Patch

    names = regression.names
    kinds = [_indicator_kind(name) for name in names]
    bars = axes.barh(range(len(names)), regression.weights, color=[_WEIGHT_COLOURS[kind] for kind in kinds])
    axes.bar_label(bars, fmt="%+.2f", padding=3, fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    # Room for the numbers next to the longest bars.
    axes.margins(x=0.15)
    axes.set_xlabel("weight, with indicators and rating on [0, 1]")
    figure.legend(
        handles=[Patch(color=colour, label=kind) for kind, colour in _WEIGHT_COLOURS.items() if kind in kinds],
        loc="outside lower center",
        ncols=len(_WEIGHT_COLOURS),
        frameon=False,
        fontsize=8,
    )
    return figure


def _indicator_kind(feature: str) -> str:
    from dialeval_plugin.methods.proxy_indicators.tasks import FACT, task_of

    if not task_of(feature).is_pair:
        return "response"
    return "facts and response" if feature.startswith(FACT) else "context and response"


def _class_colours(names: Sequence[str]) -> dict[str, Any]:
    from matplotlib import colormaps

    if set(names) <= set(_CLASS_COLOURS):
        return {name: _CLASS_COLOURS[name] for name in names}
    return {name: colormaps["cividis"](place) for name, place in zip(names, np.linspace(0, 0.9, len(names)), strict=True)}


def _add_legend(figure: Figure, axes: Axes, *, columns: int | None = None) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns or len(labels), frameon=False, fontsize=9)


def _tsne(values: FloatArray, seed: int) -> FloatArray:
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(values) - 1) / 3)
    # Several jobs sum in another order, which changes the picture.
    model = TSNE(2, perplexity=perplexity, metric="cosine", init="pca", random_state=seed, n_jobs=1)
    return np.asarray(model.fit_transform(values.astype(np.float32)), dtype=np.float64)


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
