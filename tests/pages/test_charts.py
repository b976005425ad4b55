"""The page's charts: what they show is what was given, and text stays text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dialeval_plugin.pages.charts import distribution, forest_axis, forest_row, forest_scale
from dialeval_plugin.statistics.estimates import ValueInterval

SVG = "{http://www.w3.org/2000/svg}"


def parts(picture: str, kind: str) -> list[ElementTree.Element]:
    tree = ElementTree.fromstring(picture)  # noqa: S314 - what the code under test wrote
    return [element for element in tree.iter() if element.get("class") == kind]


def numbers(picture: str) -> list[str]:
    """Return the texts below the boxes."""
    tree = ElementTree.fromstring(picture)  # noqa: S314
    return [text.text or "" for text in tree.iter(f"{SVG}text") if text.get("text-anchor") == "middle"]


def n_boxes(picture: str) -> int:
    (path,) = parts(picture, "box")
    return path.get("d", "").count("M")


def test_each_level_has_a_box() -> None:
    picture = distribution([0.1, 0.2, 0.3, 0.9], [1.0, 1.2, 1.4, 5.0], title="t")
    assert n_boxes(picture) == 2
    assert numbers(picture) == ["1", "5"]


def test_boxes_lie_where_the_quantiles_are() -> None:
    scores = np.linspace(0, 1, 101)
    picture = distribution(scores, np.full(101, 3.0), title="t")
    (whisker,) = (re.findall(r"[-\d.]+", parts(picture, "whisker")[0].get("d", "")),)
    (median,) = (re.findall(r"[-\d.]+", parts(picture, "median")[0].get("d", "")),)
    low, high = float(whisker[1]), float(whisker[2])
    # The median of evenly spaced scores is in the middle of the 5th and the 95th percentile.
    assert float(median[1]) == pytest.approx((low + high) / 2, abs=0.2)
    assert low > high


def test_ratings_between_0_and_1_fall_into_five_parts() -> None:
    assert n_boxes(distribution(np.linspace(0, 1, 50), np.linspace(0, 0.4, 50), title="t")) == 5


def test_the_rows_of_a_forest_plot_share_an_axis_that_holds_all_of_them() -> None:
    means = {"a": ValueInterval(0.5, 0.4, 0.6), "b": ValueInterval(-0.2)}
    scale = forest_scale(means.values(), [0.7, 0.8])
    assert scale.low < -0.2
    assert scale.high > 0.8
    row = forest_row(means["a"], [0.7, 0.8], scale)
    place = {name: float(value) for name, value in re.findall(r'(cx|x1|x2)="([-\d.]+)%" (?:cy|x2|y1)', row)}
    assert place["cx"] == pytest.approx(scale(0.5), abs=0.06)
    (band,) = parts(row, "people")
    assert float(band.get("x", "").rstrip("%")) == pytest.approx(scale(0.7), abs=0.06)
    assert len(parts(row, "interval")) == 1
    assert len(parts(forest_row(means["a"], [], scale, is_rough=True), "interval rough")) == 1
    alone = forest_row(means["b"], [], scale)
    assert (len(parts(alone, "interval")), len(parts(alone, "people")), len(parts(alone, "estimate"))) == (0, 0, 1)
    assert len(parts(alone, "zero")) == 1
    assert ">people<" in forest_axis([0.7, 0.8], scale)
    assert ">people<" not in forest_axis([], scale)


def test_markup_in_a_title_is_text() -> None:
    title = "</title><script>x</script>"
    picture = distribution([1, 2], [1, 2], title=title)
    assert "<script>" not in picture
    assert ElementTree.fromstring(picture).findtext(f"{SVG}title") == title  # noqa: S314
