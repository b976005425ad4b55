"""Where a score stands among people's: exact on small numbers, monotone, and used for the settings it was made with only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.percentiles import N_QUANTILES, PercentileTable, read_tables, write_table
from dialeval_plugin.core.scores import Orientation
from dialeval_plugin.core.signature import content_hash
from tests.refusals import refused

SOURCES = {"b.jsonl": "2" * 64, "a.jsonl": "1" * 64}


def table(scores: Sequence[float | None], orientation: Orientation = "higher", **settings: str) -> PercentileTable:
    columns = {"value": scores, "knowledge": [None] * len(scores), "length": [3.0, *[5.0] * (len(scores) - 1)]}
    return PercentileTable.of_scores(
        columns, column="value", level="turn", orientation=orientation, settings=settings, sources=SOURCES
    )


def test_a_table_says_what_it_was_made_of() -> None:
    found = table([0.1, 0.2, None, 0.3], method="m")
    assert (found.n, len(found.quantiles)) == (3, N_QUANTILES)
    assert (found.quantiles[0], found.quantiles[500], found.quantiles[-1]) == (0.1, 0.2, 0.3)
    assert found.medians == {"value": 0.2, "length": 5.0}
    assert list(found.sources) == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize(
    ("scores", "value", "percentile"),
    [
        ([1, 2, 3, 4, 5], 2, 30.0),  # one is lower, and itself counts half
        ([1, 2, 3, 4, 5], 3, 50.0),
        ([1, 2, 3, 4, 5], 2.5, 40.0),
        ([1, 2, 3, 4, 5], 0.99, 0.0),
        ([1, 2, 3, 4, 5], 5.01, 100.0),
        ([1, 2, 2, 2, 3], 2, 50.0),
        ([1, 1.5, *[2] * 6, 3, 4], 2, 50.0),
        ([0, 1, *[2] * 2, *[3] * 6], 2, 30.0),
        ([7], 7, 50.0),
        ([7], 8, 100.0),
    ],
)
def test_the_share_of_people_with_a_lower_score_and_half_of_the_equal_ones(
    scores: list[float], value: float, percentile: float
) -> None:
    assert table(scores).of([value]) == (pytest.approx(percentile, abs=0.05),)
    # Where lower is better the same response is as good among the same people.
    assert table([-score for score in scores], "lower").of([-value]) == (pytest.approx(percentile, abs=0.05),)


NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(NUMBERS, min_size=1, max_size=60), st.lists(NUMBERS, min_size=2), st.sampled_from(["higher", "lower"]))
def test_percentiles_keep_the_order_and_know_no_neighbours(
    scores: list[float], values: list[float], orientation: Orientation
) -> None:
    found = table(scores, orientation)
    together = found.of(values)
    assert together == tuple(found.of([value])[0] for value in values)
    assert all(percentile is not None and 0 <= percentile <= 100 for percentile in together)
    ordered = found.of(sorted(values, reverse=orientation == "lower"))
    assert list(ordered) == sorted(ordered)  # type: ignore[type-var]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=400), st.integers(0, 30))
def test_percentiles_are_those_of_a_count(scores: list[int], value: int) -> None:
    (percentile,) = table(scores).of([value])
    # Below the lowest and above the highest nobody counts half; between two people's scores a line is drawn.
    if value in scores and min(scores) < value < max(scores):
        array = np.array(scores)
        counted = 100 * ((array < value).mean() + (array == value).mean() / 2)
        assert percentile == pytest.approx(counted, abs=0.11)


def test_a_folder_holds_a_table_for_each_settings_and_its_model_stays_the_same(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    before = content_hash(tmp_path)
    first, second, again = table([1.0, 2.0], method="a"), table([3.0], method="b"), table([5.0, 6.0], method="a")
    assert read_tables(tmp_path) == []
    for one in (second, first):
        write_table(tmp_path, one)
    assert read_tables(tmp_path) == [first, second]
    written = (tmp_path / "percentiles.json").read_bytes()
    write_table(tmp_path, again)
    assert read_tables(tmp_path) == [again, second]
    write_table(tmp_path, first)
    assert (tmp_path / "percentiles.json").read_bytes() == written
    assert content_hash(tmp_path) == before
    assert len({first.digest, second.digest, again.digest}) == 3


def test_a_table_is_for_its_column_level_orientation_and_settings() -> None:
    own: tuple[Any, ...] = ("value", "turn", "higher", {"method": "a"})
    found = table([1.0], method="a")
    assert found.is_for(*own)
    for place, other in enumerate(("length", "dialogue", "lower", {"method": "a", "mixing": "ratings"})):
        assert not found.is_for(*own[:place], other, *own[place + 1 :])


AGAIN = "Copy the folder again."
UPDATE = "Update dialeval-plugin, or copy the model folder again."


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format_version": 2}, f"format_version is 2, this release reads 1. {UPDATE}"),
        ({"tables": [{}]}, f"tables.0.column: field required. {AGAIN}"),
        ({"quantiles": [2, 1]}, f"quantiles of 'value': expected two or more numbers in ascending order. {AGAIN}"),
        ({"quantiles": [2]}, f"quantiles of 'value': expected two or more numbers in ascending order. {AGAIN}"),
        ({"quantiles": ["2", "3"]}, f"tables.0.quantiles.0: input should be a valid number. {AGAIN}"),
        ({"level": "system"}, f"tables.0.level: input should be 'turn' or 'dialogue'. {AGAIN}"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_refused_with_the_name_of_its_file(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    write_table(tmp_path, table([1.0, 2.0]))
    path = tmp_path / "percentiles.json"
    stored = json.loads(path.read_text())
    for name, value in change.items():
        (stored if name in stored else stored["tables"][0])[name] = value
    path.write_text(json.dumps(stored))
    with refused(f"{path}: {problem}", ModelLoadError):
        read_tables(tmp_path)


def test_a_table_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path, table([1.0, 2.0]))
    path = tmp_path / "percentiles.json"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelLoadError, match="^" + str(path)):
        read_tables(tmp_path)
