"""Our own JSON lines: what is refused, and the line that is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.rated_items import read_rated_items
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.registry import read_dialogues, read_items
from dialeval_plugin.corpora.score_files import read_score_file


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rows_without_an_id_are_numbered(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", {"context": [], "response": "a"}, {"id": None, "context": ["x"], "response": "b"})

    assert [item.id for item in read_items(path)] == ["0", "1"]


BAD_IDS = [("true", "got True."), ("[1]", "got [1]."), ('{"a": 1}', "got {'a': 1}."), ("1.5", "got 1.5.")]


@pytest.mark.parametrize(("id", "got"), BAD_IDS)
@pytest.mark.parametrize(
    ("read", "row"),
    [
        (read_items, '"context": ["x"], "response": "y"'),
        (read_rated_items, '"rating": 3'),
        (read_score_file, '"value": 3'),
        (dailydialog_pp.read, '"context": ["x"], "positive_responses": ["y"]'),
    ],
)
def test_d14_an_id_is_a_text_or_a_whole_number(
    read: Callable[[Path], object], row: str, id: str, got: str, tmp_path: Path
) -> None:
    """FAULTS D14: lists, objects and true were taken as ids without a word."""
    path = tmp_path / "in.jsonl"
    path.write_text(f'{{"id": "a", {row}}}\n{{"id": {id}, {row}}}\n')
    with pytest.raises(InputError) as refused:
        read(str(path) if read is read_rated_items else path)  # type: ignore[arg-type]
    assert str(refused.value) == f"{path}:2: id: expected a string or an integer, {got}"


@pytest.mark.parametrize("read", [read_items, read_rated_items, read_score_file, read_dialogues])
def test_d14_half_a_surrogate_pair_is_refused_when_it_is_read(read: Callable[[Path], object], tmp_path: Path) -> None:
    """FAULTS D14: the id reached the writer of the scores, after hours of scoring, each time."""
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": "x\\ud800", "context": ["x"], "response": "y", "turns": ["x"]}\n')
    with pytest.raises(InputError) as refused:
        read(str(path) if read is read_rated_items else path)  # type: ignore[arg-type]
    assert str(refused.value).startswith(f"{path}:1: holds 'x\\ud800', half of a surrogate pair, which is not Unicode.")


def test_d14_whole_numbers_are_ids(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": 7, "context": [], "response": "a"}\n{"id": 0, "context": [], "response": "b"}\n')
    assert [item.id for item in read_items(path)] == ["7", "0"]


@pytest.mark.parametrize("label", ["cluster", "dialogue", "item", "system"])
def test_a_label_of_a_rating_is_a_text_or_a_whole_number(label: str, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(f'{{"id": "a", "rating": 3, "{label}": 0}}\n{{"id": "b", "rating": 3, "{label}": ""}}\n')
    first, second = read_rated_items(str(path))
    name = "cluster" if label == "dialogue" else label
    # The number 0 was taken for none, so that dialogue 0 was resampled row by row.
    assert (getattr(first, name), getattr(second, name)) == ("0", None)

    path.write_text(f'{{"id": "a", "rating": 3, "{label}": [1]}}\n')
    with pytest.raises(InputError) as refused:
        read_rated_items(str(path))
    assert str(refused.value) == f"{path}:1: {label}: expected a string or an integer, got [1]."


def test_r08_a_response_rated_again_counts_again_and_is_counted_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """FAULTS R08: two ratings of one response under two ids are data; they were taken without a word."""
    row = {"dialogue_id": "d", "model": "m", "context": "x", "response": "y", "annotations": {"Overall": [3]}}
    again = {**row, "annotations": {"Overall": [1]}}
    path = tmp_path / "in.json"
    path.write_text(json.dumps([row, again, again, {**row, "model": "n"}, {**row, "response": "z"}]))

    rated = read_rated_items(str(path))
    assert [item.ratings["Overall"] for item in rated] == [(3.0,), (1.0,), (1.0,), (3.0,), (3.0,)]
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: 2 of 5 items have the text and the system of an earlier one; each counts"
    ]


def test_r08_dialogues_rated_again_are_counted_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = {"dialogue_id": "d", "model": "m", "dialog": [{"speaker": "a", "text": "x"}], "annotations": {"Overall": [3]}}
    path = tmp_path / "in.json"
    path.write_text(json.dumps([row, {**row, "dialogue_id": "e"}]))

    assert len(read_rated_items(str(path))) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: 1 of 2 items have the text and the system of an earlier one; each counts"
    ]
