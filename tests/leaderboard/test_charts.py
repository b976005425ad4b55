"""The page's charts: what they show is what was given, and text stays text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.leaderboard.board import Figure
from dialeval_plugin.leaderboard.charts import MAX_POINTS, distribution, forest, scatter

SVG = "{http://www.w3.org/2000/svg}"


def parts(picture: str, kind: str) -> list[ElementTree.Element]:
    tree = ElementTree.fromstring(picture)  # noqa: S314 - what the code under test wrote
    return [element for element in tree.iter() if element.get("class") == kind]


def texts(picture: str, kind: str) -> list[str | None]:
    return [element.text for element in parts(picture, kind)]


def coordinates(picture: str, kind: str) -> np.ndarray:
    """Of the first path of a kind."""
    found = re.findall(r"[ML]([-\d.]+) ([-\d.]+)", parts(picture, kind)[0].get("d", ""))
    return np.array([[float(a), float(b)] for a, b in found])


def test_the_line_and_its_band_are_those_of_ordinary_least_squares() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=60)
    y = 2 * x + generator.normal(size=60)
    picture = scatter(x, y, title="t")
    pixels = coordinates(picture, "points")
    # Points are where rows are, so rows give the map from values to pixels.
    to_x, to_y = np.polyfit(x, pixels[:, 0], 1), np.polyfit(y, pixels[:, 1], 1)
    fit = stats.linregress(x, y)
    ends = np.array([x.min(), x.max()])
    line = coordinates(picture, "line")
    assert line[[0, -1], 1] == pytest.approx(np.polyval(to_y, fit.intercept + fit.slope * ends), abs=0.2)
    band = coordinates(picture, "band")
    middle = np.abs(line[:, 0] - np.polyval(to_x, x.mean())).argmin()
    half = stats.t.ppf(0.975, 58) * np.sqrt(((y - fit.intercept - fit.slope * x) ** 2).sum() / 58 / 60)
    assert band[middle, 1] - line[middle, 1] == pytest.approx(to_y[0] * half, rel=0.05)


def test_of_many_rows_some_are_shown_and_their_number_is_stated() -> None:
    picture = scatter(range(1000), range(1000), title="t")
    assert len(coordinates(picture, "points")) == MAX_POINTS
    assert texts(picture, "note") == ["200 of 1000 rows shown"]


def test_constant_scores_have_no_line_and_the_same_rows_the_same_picture() -> None:
    assert parts(scatter([1, 1, 1], [1, 2, 3], title="t"), "line") == []
    assert scatter([1, 2, 3], [3, 1, 2], title="t") == scatter([1, 2, 3], [3, 1, 2], title="t")


def test_each_level_has_a_box_with_its_number_of_rows() -> None:
    picture = distribution([0.1, 0.2, 0.3, 0.9], [1.0, 1.2, 1.4, 5.0], title="t")
    assert len(parts(picture, "box")) == 2
    assert texts(picture, "note") == ["n=3", "n=1"]
    assert texts(picture, "tick")[-2:] == ["1", "5"]


def test_ratings_between_0_and_1_fall_into_five_parts() -> None:
    picture = distribution(np.linspace(0, 1, 50), np.linspace(0, 0.4, 50), title="t")
    assert texts(picture, "note") == ["n=10"] * 5


def test_a_forest_plot_has_a_line_for_each_evaluator_and_none_without_an_interval() -> None:
    picture = forest({"a": Figure(value=0.5, ci_low=0.4, ci_high=0.6), "b": Figure(value=-0.2)}, title="t", label="rho")
    assert texts(picture, "value") == ["0.500", "-0.200"]
    assert len(parts(picture, "estimate")) == 2
    assert len(parts(picture, "interval")) == 1


def test_markup_in_a_name_is_text() -> None:
    name = "</text><script>x</script>"
    picture = forest({name: Figure(value=0.5)}, title=name, label=name)
    assert "<script>" not in picture
    assert ElementTree.fromstring(picture).findtext(f"{SVG}title") == name  # noqa: S314
