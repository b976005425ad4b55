"""The figure of the thesis' chapter 6: the weights are drawn."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.methods.proxy_indicators.regression import fit
from dialeval_plugin.methods.proxy_indicators.tasks import FEATURES, SUBSETS
from dialeval_plugin.reports.proxy_indicators import save_figure, weight_figure
from tests.refusals import refused

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
    with refused(f"{tmp_path / 'c.png'}: is a folder, expected the name of a file to write."):
        save_figure(weight_figure(single), tmp_path / "c")


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refused(
        "plots need matplotlib, which cannot be imported (import of matplotlib.figure halted; None in sys.modules). "
        "Run `pip install 'dialeval-plugin[reports]'`.",
        MissingPrerequisite,
    ):
        weight_figure(REGRESSION)
