"""The plots of the papers: what is drawn is what was given."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.methods.proxy_indicators.regression import fit
from dialeval_plugin.methods.proxy_indicators.tasks import FEATURES, SUBSETS
from dialeval_plugin.reports.plots import (
    BLUE,
    CONTEXT,
    GREEN,
    NEGATIVE,
    ORANGE,
    POSITIVE,
    PURPLE,
    Vectors,
    disentangling_figure,
    distribution_figure,
    threshold_figure,
    training_figure,
    weight_figure,
    write_figure,
)
from dialeval_plugin.training.checkpoints import HistoryRow
from tests.refusals import refusal


def vectors(*, noise: float) -> Vectors:
    """Five contexts with two positive and two adversarial responses each; the latter point away."""
    generator = np.random.default_rng(0)
    values, kinds, contexts = [], [], []
    for number in range(5):
        centre = generator.normal(size=8)
        for kind, sign in ((CONTEXT, 1), (POSITIVE, 1), (POSITIVE, 1), (NEGATIVE, -1), (NEGATIVE, -1)):
            values.append(sign * centre + (noise * generator.normal(size=8) if kind != CONTEXT else 0))
            kinds.append(kind)
            contexts.append(number)
    return Vectors(np.array(values), np.array(kinds), np.array(contexts))


def test_triplet_accuracy_counts_pairs_within_a_context() -> None:
    values = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    kinds = np.array([CONTEXT, POSITIVE, NEGATIVE, CONTEXT, POSITIVE, NEGATIVE])
    assert Vectors(values, kinds, np.array([0, 0, 0, 1, 1, 1])).triplet_accuracy() == 0.5
    # A tie is no hit.
    same = np.array([[1.0, 0.0], [0.5, 0.0], [2.0, 0.0]])
    assert Vectors(same, kinds[:3], np.zeros(3, dtype=int)).triplet_accuracy() == 0
    assert math.isnan(Vectors(same[:2], kinds[:2], np.zeros(2, dtype=int)).triplet_accuracy())


def test_each_panel_shows_one_context_with_its_responses() -> None:
    figure = disentangling_figure(vectors(noise=3.0), vectors(noise=0.01), n_shown=3)
    assert len(figure.axes) == 6
    sizes = [[len(points.get_offsets()) for points in axes.collections] for axes in figure.axes]
    assert sizes == [[1, 2, 2]] * 6
    assert figure.axes[3].get_ylabel() == "Disentangled\ntriplet accuracy 100.0 %"


def test_training_curves_have_a_panel_for_each_stage() -> None:
    joint = [HistoryRow("joint", float(n), n, {"training_loss": 1.0, "loss": loss}) for n, loss in ((1, 0.6), (2, 0.5))]
    measured = [replace(row, figures={**row.figures, "accuracy": 80.0, "auroc": 88.0}) for row in joint]
    unknown = HistoryRow("words", 1.0, 5, {"loss": math.nan, "training_loss": 0.3, "auroc": 70.0})
    figure = training_figure([*measured, unknown, HistoryRow("rank", None, 7, {"training_loss": 1.3})])
    losses, accuracies = figure.axes[:3], figure.axes[3:]
    assert [axes.get_title() for axes in losses] == ["joint", "words", "rank"]
    assert [axes.get_ylabel() for axes in losses] == ["validation loss", "training loss", "training loss"]
    # The third stage has a loss only.
    assert [axes.get_ylabel() for axes in accuracies] == ["accuracy (%)", "auroc (%)", ""]
    assert [text.get_text() for text in accuracies[2].texts] == ["not measured"]
    assert [axes.get_xlabel() for axes in accuracies] == ["epoch", "epoch", "step"]
    loss = losses[0].lines[0]
    assert loss.get_xydata().tolist() == [[1, 0.6], [2, 0.5]]


def test_a_model_without_epochs_has_no_curves() -> None:
    why = "training: the model was fitted in one step, so there are no epochs to draw. Give another model."
    assert refusal(training_figure, []) == why


def test_accuracy_over_thresholds_is_counted() -> None:
    figure = threshold_figure({"slm": ([0.2, 0.6, 1.0], [0.0, 0.4, 0.5])}, {"slm": 0.55})
    (axes,) = figure.axes
    curves = {str(line.get_label()): line.get_xydata() for line in axes.lines}
    at = {name: float(np.interp(0.55, *curve.T)) for name, curve in curves.items() if not name.startswith("threshold")}
    assert at == pytest.approx({"positive": 200 / 3, "adversarial": 100.0, "overall": 250 / 3})
    assert curves["threshold of the model"][:, 0].tolist() == [0.55, 0.55]


def test_each_class_has_a_histogram_and_a_density_that_integrate_to_one() -> None:
    generator = np.random.default_rng(0)
    figure = distribution_figure({"a": generator.normal(size=400), "b": [3.0] * 5}, label="score")
    (axes,) = figure.axes
    assert axes.get_legend_handles_labels()[1] == ["a (n=400)", "b (n=5)"]
    # Constant scores have no density.
    (density,) = axes.lines
    assert np.trapezoid(*density.get_xydata().T[::-1]) == pytest.approx(1, abs=0.02)
    bars = [patch for patch in axes.patches if patch.get_height() > 0]
    assert sum(patch.get_height() * patch.get_width() for patch in bars) == pytest.approx(2)


def test_good_is_never_orange_and_bad_never_green() -> None:
    kinds = {"positive": [1.0, 2.0], "adversarial": [0.0, 1.0], "random": [0.0, 3.0]}
    (axes,) = distribution_figure(kinds, label="score").axes
    assert [to_hex(bars.patches[0].get_facecolor()) for bars in axes.containers] == [GREEN, ORANGE, PURPLE]
    (axes,) = threshold_figure({"slm": ([0.5], [0.2])}, {}).axes
    assert [line.get_color() for line in axes.lines] == [GREEN, ORANGE, BLUE]
    # Levels of a rating go from dark to bright, however many there are.
    (axes,) = distribution_figure({f"overall {level}": [level, level + 1.0] for level in range(9)}, label="score").axes
    brightness = [sum(bars.patches[0].get_facecolor()[:3]) for bars in axes.containers]
    assert brightness == sorted(brightness)
    assert len(set(brightness)) == 9


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_numbers_give_the_same_file(suffix: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_figure(disentangling_figure(vectors(noise=1.0), vectors(noise=0.1)), tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix])


def test_too_few_vectors_and_other_formats_are_refused(tmp_path: Path) -> None:
    few = Vectors(np.ones((4, 2)), np.zeros(4, dtype=int), np.arange(4))
    message = "t-SNE: 4 vectors are too few. Give contexts with at least 12 texts in all."
    assert refusal(disentangling_figure, few, few) == message
    message = f"{tmp_path}/plot.gif: plots are written as PNG, SVG or PDF. End the name in .png, .svg or .pdf."
    assert refusal(write_figure, training_figure([HistoryRow("a", 1.0, 1, {"loss": 1.0})]), tmp_path / "plot.gif") == message


RANDOM = np.random.default_rng(0)
REGRESSION = fit(FEATURES, RANDOM.uniform(size=(80, len(FEATURES))), RANDOM.uniform(size=80))


def test_the_figure_has_a_bar_for_every_weight(tmp_path: Path) -> None:
    figure = weight_figure(REGRESSION, title="Overall")
    axes = figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(REGRESSION.weights)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(FEATURES)
    svg = tmp_path / "weights.svg"
    write_figure(figure, svg)
    drawn = "".join(ElementTree.fromstring(svg.read_text(encoding="utf-8")).itertext())  # noqa: S314 - our own file
    assert all(name in drawn for name in (*FEATURES, "Overall", "facts and response"))


def test_a_figure_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    single = fit(SUBSETS["single"], RANDOM.uniform(size=(9, 2)), RANDOM.uniform(size=9))
    write_figure(weight_figure(single), tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "fitted on 9 responses" in drawn
    assert "facts" not in drawn
    (tmp_path / "c.png").mkdir()
    message = f"{tmp_path / 'c.png'}: is a folder, expected the name of a file to write."
    assert refusal(write_figure, weight_figure(single), tmp_path / "c.png") == message


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert refusal(weight_figure, REGRESSION, error=MissingPrerequisite) == (
        "a plot needs matplotlib, which cannot be imported (import of matplotlib.figure halted; None in sys.modules). "
        "Run `pip install 'dialeval-plugin[reports]'`."
    )
