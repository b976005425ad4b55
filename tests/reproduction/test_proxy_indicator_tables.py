"""Chapter 6: the published correlations come out of the published numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reproduction.proxy_indicators.write import correlation_rows, held_out_combinations, in_sample_combinations, thesis_rows


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
    found = {f"{row.predictor}-{row.quality}": row[2:] for row in thesis_rows() if "held out" not in row.predictor}
    # The published file's name of the combination with the context.
    found = {name.replace("lin-reg_context-", "lin-reg_pair-"): values for name, values in found.items()}
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
