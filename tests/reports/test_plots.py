"""The plots of the papers: what is drawn is what was given."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.methods.proxy_indicators.regression import fit
from dialeval_plugin.methods.proxy_indicators.tasks import FEATURES, SUBSETS
from dialeval_plugin.reports.plots import (
    CONTEXT,
    NEGATIVE,
    POSITIVE,
    Vectors,
    disentangling_figure,
    distribution_figure,
    threshold_figure,
    training_figure,
    write_figure,
)
from dialeval_plugin.reports.proxy_indicators import save_figure, weight_figure
from dialeval_plugin.training.history import HistoryRow
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
    # The third stage has a loss only.
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["joint", "words", "rank"]
    assert sorted(axes.get_ylabel() for axes in figure.axes) == [
        *("accuracy (%)", "auroc (%)", "training loss", "training loss", "validation loss")
    ]
    assert [axes.get_xlabel() for axes in figure.axes if axes.get_title()] == ["epoch", "epoch", "step"]
    loss = next(axes for axes in figure.axes if axes.get_title() == "joint").lines[0]
    assert loss.get_xydata().tolist() == [[1, 0.6], [2, 0.5]]


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


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_same_numbers_give_the_same_file(suffix: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_figure(disentangling_figure(vectors(noise=1.0), vectors(noise=0.1)), tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml"}[suffix])


def test_too_few_vectors_and_other_formats_are_refused(tmp_path: Path) -> None:
    few = Vectors(np.ones((4, 2)), np.zeros(4, dtype=int), np.arange(4))
    message = "t-SNE: 4 vectors are too few. Give contexts with at least 12 texts in all."
    assert refusal(disentangling_figure, few, few) == message
    message = f"{tmp_path}/plot.pdf: plots are written as PNG or SVG. End the name in .png or .svg."
    assert refusal(write_figure, training_figure([HistoryRow("a", 1.0, 1, {"loss": 1.0})]), tmp_path / "plot.pdf") == message


RANDOM = np.random.default_rng(0)
REGRESSION = fit(FEATURES, RANDOM.uniform(size=(80, len(FEATURES))), RANDOM.uniform(size=80))


def test_the_figure_has_a_bar_for_every_weight(tmp_path: Path) -> None:
    figure = weight_figure(REGRESSION, title="Overall")
    axes = figure.axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(REGRESSION.weights)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(FEATURES)
    png, svg = save_figure(figure, tmp_path / "weights.png")
    assert (png.name, svg.name) == ("weights.png", "weights.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    drawn = "".join(ElementTree.fromstring(svg.read_text(encoding="utf-8")).itertext())  # noqa: S314 - our own file
    assert all(name in drawn for name in (*FEATURES, "Overall", "facts and response"))


def test_a_figure_is_written_the_same_each_time_and_whole_or_not_at_all(tmp_path: Path) -> None:
    single = fit(SUBSETS["single"], RANDOM.uniform(size=(9, 2)), RANDOM.uniform(size=9))
    first, second = (save_figure(weight_figure(single), tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert "facts" not in first[1].read_text(encoding="utf-8")
    (tmp_path / "c.png").mkdir()
    message = f"{tmp_path / 'c.png'}: is a folder, expected the name of a file to write."
    assert refusal(save_figure, weight_figure(single), tmp_path / "c") == message


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert refusal(weight_figure, REGRESSION, error=MissingPrerequisite) == (
        "plots need matplotlib, which cannot be imported (import of matplotlib.figure halted; None in sys.modules). "
        "Run `pip install 'dialeval-plugin[reports]'`."
    )
