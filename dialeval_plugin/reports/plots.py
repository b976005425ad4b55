"""The plots of the papers: vectors before and after disentangling, training curves, accuracy over thresholds, distributions.

Each function takes numbers and returns a matplotlib figure; `figures.write_figure` writes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import gaussian_kde

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.checks import FloatArray, IntArray

from .figures import BLUE, GREEN, GREY, ORANGE, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONTEXT, POSITIVE, NEGATIVE = 0, 1, 2
PERPLEXITY = 30.0
MAX_TICKS = 10
"""Up to so many epochs each has a tick of its own."""
_KINDS = {CONTEXT: ("context", BLUE, "*"), POSITIVE: ("positive", ORANGE, "o"), NEGATIVE: ("adversarial", GREEN, "^")}
_CLASS_COLOURS = (ORANGE, GREEN, BLUE, "#aa3377", GREY)
_EPOCH = re.compile(r"(?P<stage>[\w][\w .-]*), epoch (?P<epoch>\d+) of \d+: (?P<figures>\w+ [-\d.e+]+(?:, \w+ [-\d.e+]+)*)")
# Terminal codes by which progress bars move about.
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ACCURACIES = ("triplet_accuracy", "accuracy", "auroc")


@dataclass(frozen=True, slots=True)
class Vectors:
    """Representations of contexts and of their responses.

    Attributes:
        values: of shape (n, width).
        kinds: CONTEXT, POSITIVE or NEGATIVE for each; of shape (n,).
        contexts: number of the context that each is or belongs to; of shape (n,).
    """

    values: FloatArray
    kinds: IntArray
    contexts: IntArray

    def triplet_accuracy(self) -> float:
        """Share of (context, positive, adversarial) in which the positive response is nearer by cosine (DRE, section 5)."""
        unit = self.values / np.linalg.norm(self.values, axis=1, keepdims=True)
        hits, total = 0, 0
        for number in np.unique(self.contexts):
            rows = self.contexts == number
            (centre,) = unit[rows & (self.kinds == CONTEXT)]
            near, far = (unit[rows & (self.kinds == kind)] @ centre for kind in (POSITIVE, NEGATIVE))
            hits += int((near[:, None] > far[None, :]).sum())
            total += near.size * far.size
        return hits / total if total else math.nan


class Epoch(NamedTuple):
    """What one line of a training log says."""

    stage: str
    epoch: int
    figures: Mapping[str, float]


def disentangling_figure(normal: Vectors, disentangled: Vectors, *, n_shown: int = 4, seed: int = 0) -> Figure:
    """Draw some contexts with their responses before and after disentangling (SLIDE figure 2, DRE figure 5).

    One t-SNE (van der Maaten and Hinton 2008, cosine distances, PCA as its start) is fitted to all vectors of a row, and
    each panel shows one context of it. Distances in such a picture are not those of the vectors; the triplet accuracy in
    the titles is of the vectors themselves.

    Args:
        normal: of the encoder.
        disentangled: of contexts and robust parts, the same rows.
        n_shown: how many contexts are shown, the first ones.
        seed: of t-SNE.

    Raises:
        InputError: there are too few vectors.
        MissingPrerequisite: matplotlib is not installed.
    """
    if len(normal.values) < 12:
        raise InputError(f"t-SNE: {len(normal.values)} vectors are too few. Give contexts with at least 12 texts in all.")
    shown = list(dict.fromkeys(normal.contexts.tolist()))[:n_shown]
    figure = new_figure(max(2.4 * len(shown), 5.0), 5.4)
    grid = figure.subplots(2, len(shown), squeeze=False)
    for panels, vectors, name in zip(grid, (normal, disentangled), ("Normal", "Disentangled"), strict=True):
        places = _tsne(vectors.values, seed)
        for axes, number in zip(panels, shown, strict=True):
            rows = vectors.contexts == number
            for kind, (label, colour, marker) in _KINDS.items():
                chosen = places[rows & (vectors.kinds == kind)]
                size = 110 if kind == CONTEXT else 34
                above = 3 if kind == CONTEXT else 2
                axes.scatter(
                    *chosen.T, c=colour, marker=marker, s=size, label=label, edgecolors="white", linewidths=0.5, zorder=above
                )
            axes.set_xticks([])
            axes.set_yticks([])
            axes.margins(0.15)
        panels[0].set_ylabel(f"{name}\ntriplet accuracy {100 * vectors.triplet_accuracy():.1f} %", fontsize=9)
    for number, axes in enumerate(grid[0], start=1):
        axes.set_title(f"context {number}", fontsize=9)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def read_epochs(lines: Iterable[str], *, where: str) -> list[Epoch]:
    """Find the lines that training writes after each epoch, as "joint, epoch 1 of 3: loss 0.63, accuracy 87.98".

    Other lines are passed over, as are progress bars. A run that was killed and went on says some epochs again; the last
    line counts.

    Args:
        lines: of a log.
        where: they come from, for messages.

    Raises:
        InputError: there is none.
    """
    found: dict[tuple[str, int], Epoch] = {}
    for line in lines:
        for part in _CONTROL.sub(" ", line).split("\r"):
            if match := _EPOCH.search(part):
                named = (pair.split(" ") for pair in match["figures"].split(", "))
                stage, number = match["stage"].strip(), int(match["epoch"])
                found[stage, number] = Epoch(stage, number, {name: float(value) for name, value in named})
    if not found:
        raise InputError(
            f"{where}: no line of an epoch is in it. Keep what training writes to stderr, "
            "for example with `dialeval train slm ... 2> train.log`."
        )
    return list(found.values())


def training_figure(epochs: Sequence[Epoch]) -> Figure:
    """Draw for each stage the loss on validation data, and its accuracy where it has one (DRE figures 3 and 4).

    The accuracy is the triplet accuracy where the log has it, else the classification accuracy, in per cent.

    Raises:
        MissingPrerequisite: matplotlib is not installed.
    """
    stages = list(dict.fromkeys(epoch.stage for epoch in epochs))
    figure = new_figure(max(3.4 * len(stages), 4.5), 3.4)
    for axes, stage in zip(figure.subplots(1, len(stages), squeeze=False)[0], stages, strict=True):
        rows = sorted((epoch for epoch in epochs if epoch.stage == stage), key=lambda epoch: epoch.epoch)
        axes.set_title(stage, fontsize=10)
        axes.set_xlabel("epoch")
        if len(rows) <= MAX_TICKS:
            axes.set_xticks([row.epoch for row in rows])
        _curve(axes, rows, "loss", BLUE, "validation loss")
        name = next((name for name in _ACCURACIES if any(name in row.figures for row in rows)), None)
        if name is not None:
            _curve(axes.twinx(), rows, name, GREEN, f"{name.replace('_', ' ')} (%)")
    return figure


def threshold_figure(panels: Mapping[str, tuple[Sequence[float], Sequence[float]]], marked: Mapping[str, float]) -> Figure:
    """Draw accuracy over all thresholds: of positive and of negative responses, and the mean of both (DRE figure 6).

    A response counts as positive from the threshold on.

    Args:
        panels: title to scores of positive and of negative responses, higher for positive.
        marked: title to the threshold that the model uses.

    Raises:
        MissingPrerequisite: matplotlib is not installed.
    """
    figure = new_figure(max(3.6 * len(panels), 4.5), 3.4)
    all_axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (title, (positive, negative)) in zip(all_axes, panels.items(), strict=True):
        grid = np.linspace(min(*positive, *negative), max(*positive, *negative), 201)
        right = [100 * (np.asarray(positive) >= cut).mean() for cut in grid]
        rejected = [100 * (np.asarray(negative) < cut).mean() for cut in grid]
        overall = (np.array(right) + rejected) / 2
        axes.plot(grid, right, color=ORANGE, label="positive", linewidth=1.2)
        axes.plot(grid, rejected, color=GREEN, label="adversarial", linewidth=1.2)
        axes.plot(grid, overall, color=BLUE, label="overall", linewidth=2)
        if title in marked:
            axes.axvline(marked[title], color=GREY, linestyle="--", linewidth=1, label="threshold of the model")
        axes.set_title(f"{title}, best {overall.max():.1f} % at {grid[overall.argmax()]:.2f}", fontsize=10)
        axes.set_xlabel("threshold")
        axes.grid(alpha=0.25)
    all_axes[0].set_ylabel("accuracy (%)")
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return figure


def distribution_figure(classes: Mapping[str, Sequence[float]], *, label: str) -> Figure:
    """Draw how the scores of each class lie, as histogram and Gaussian kernel density (thesis figure 7.2).

    The kernel's width is Scott's rule on each class. A class whose scores are all the same has no density.

    Args:
        classes: name to scores; at least one score in each.
        label: of the score.

    Raises:
        MissingPrerequisite: matplotlib is not installed.
    """
    figure = new_figure(6.4, 3.8)
    axes = figure.subplots()
    values = np.concatenate([np.asarray(scores, dtype=np.float64) for scores in classes.values()])
    low, high = float(values.min()), float(values.max())
    edges = np.linspace(low, high if high > low else low + 1, 41)
    grid = np.linspace(edges[0], edges[-1], 401)
    for place, (name, scores) in enumerate(classes.items()):
        colour = _CLASS_COLOURS[place % len(_CLASS_COLOURS)]
        drawn = f"{name} (n={len(scores)})"
        axes.hist(scores, bins=edges.tolist(), density=True, color=colour, alpha=0.25, label=drawn)
        if len(set(scores)) > 2:
            axes.plot(grid, gaussian_kde(scores)(grid), color=colour, linewidth=1.8)
    axes.set_xlabel(label)
    axes.set_ylabel("density")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure


def _tsne(values: FloatArray, seed: int) -> FloatArray:
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(values) - 1) / 3)
    # One job: with several, sums in another order give another picture.
    model = TSNE(2, perplexity=perplexity, metric="cosine", init="pca", random_state=seed, n_jobs=1)
    return np.asarray(model.fit_transform(values.astype(np.float32)), dtype=np.float64)


def _curve(axes: Axes, rows: Sequence[Epoch], name: str, colour: str, label: str) -> None:
    known = [(row.epoch, row.figures[name]) for row in rows if name in row.figures]
    axes.plot(*zip(*known, strict=True), color=colour, marker="o", markersize=3.5, linewidth=1.5)
    axes.set_ylabel(label, color=colour)
    axes.tick_params(axis="y", colors=colour)
