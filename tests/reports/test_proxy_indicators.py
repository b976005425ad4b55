"""Chapter 6: the published correlations come out of the published numbers, and the weights are drawn."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.corpora.readers import usr
from dialeval_plugin.methods.proxy_indicators.regression import fit
from dialeval_plugin.methods.proxy_indicators.tasks import FEATURES, SUBSETS
from dialeval_plugin.reports.proxy_indicators import (
    correlation_rows,
    held_out_combinations,
    in_sample_combinations,
    save_figure,
    weight_figure,
)

PUBLISHED = {"single": "single", "context": "pair", "fact": "fact", "all": "all"}
"""Our names of the combinations, and the published file's."""
RANDOM = np.random.default_rng(0)
REGRESSION = fit(FEATURES, RANDOM.uniform(size=(80, len(FEATURES))), RANDOM.uniform(size=80))


def test_scikit_learn_and_scipy_say_the_same(oracles_dir: Path) -> None:
    oracle = json.loads((oracles_dir / "proxy_indicators.json").read_text(encoding="utf-8"))
    columns = dict(zip(oracle["features"], np.array(oracle["X"]).T, strict=True))
    ratings = dict(zip(oracle["criteria"], np.array(oracle["Y"]).T, strict=True))
    contexts = [index // 6 for index in range(len(oracle["X"]))]

    def compare(predictors: Any, expected: Any) -> int:
        rows = correlation_rows(predictors, ratings)
        for row in rows:
            assert [row.pearson, row.spearman] == pytest.approx(expected[row.predictor][row.quality], abs=1e-6)
        return len(rows)

    in_sample = {name: entry["pearson_spearman"] for name, entry in oracle["linreg"].items()}
    assert compare(columns, oracle["per_task_pearson_spearman"]) == 72
    assert compare(in_sample_combinations(columns, ratings["Overall"]), in_sample) == 24
    held_out = held_out_combinations(columns, ratings["Overall"], contexts)
    assert compare(held_out, oracle["held_out_10fold_pearson_spearman"]) == 24


@pytest.mark.real_data
def test_every_published_row_comes_out_to_four_decimals(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(data_dir))
    scored = usr.read_scored("topical_chat_glue")
    ratings = {quality: [mean_rating(example, quality) for example in scored.examples] for quality in usr.SCALES}
    combined = in_sample_combinations(scored.scores, ratings["Overall"])  # type: ignore[arg-type]
    predictors = {**scored.scores, **{f"lin-reg_{PUBLISHED[name]}": values for name, values in combined.items()}}
    found = {f"{row.predictor}-{row.quality}": row[2:] for row in correlation_rows(predictors, ratings)}  # type: ignore[arg-type]
    with (data_dir / "usr" / "topical_scores.csv").open(encoding="utf-8") as file:
        published = {row.pop("eval"): tuple(row.values()) for row in csv.DictReader(file)}
    assert len(published) == 96
    assert {name: tuple(f"{value:.4f}" for value in values) for name, values in found.items()} == {
        # The file has some coefficients as -0.0.
        name: tuple(f"{float(value):.4f}" for value in values)
        for name, values in published.items()
    }


def test_p_values_are_those_of_students_t() -> None:
    (row,) = correlation_rows({"x": [1.0, 2.0, 3.0, 4.0, 5.0]}, {"Overall": [1.0, 3.0, 2.0, 5.0, 4.0]})
    # r = rho = 0.8 of 5 rows: t = 0.8 * sqrt(3 / 0.36) = 2.309 with 3 degrees of freedom.
    assert row[2:] == pytest.approx((0.8, 0.10409, 0.8, 0.10409), abs=1e-5)
    (row,) = correlation_rows({"x": [1.0, 2.0, 3.0]}, {"Overall": [2.0, 4.0, 6.0]})
    assert row[2:] == pytest.approx((1.0, 0.0, 1.0, 0.0), abs=1e-6)


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
    with pytest.raises(InputError) as refused:
        save_figure(weight_figure(single), tmp_path / "c")
    assert str(refused.value) == f"{tmp_path / 'c.png'}: is a folder, expected the name of a file to write."


def test_without_matplotlib_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPrerequisite) as refused:
        weight_figure(REGRESSION)
    assert str(refused.value) == (
        "plots need matplotlib, which cannot be imported (import of matplotlib.figure halted; None in sys.modules). "
        "Run `pip install 'dialeval-plugin[reports]'`."
    )
