"""Rows of files: JSON arrays, ids and labels, and responses that are rated twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.corpora.rated_items import RatedItem, read_rated_items
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.registry import read_dialogues, read_items
from dialeval_plugin.corpora.rows import read_array, unique_ids
from dialeval_plugin.corpora.score_files import read_score_file
from tests.layouts import DIALOGUE, RESPONSE, lines, write
from tests.refusals import refusal, refused

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    rows=st.lists(st.dictionaries(st.text(), VALUES, max_size=3), min_size=1, max_size=4), indent=st.sampled_from([None, 0, 4])
)
def test_reads_what_json_reads(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], indent: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.json"
    text = json.dumps(rows, indent=indent)
    path.write_bytes(text.encode())
    assert [line.value for line in read_array(path)] == json.loads(text)


def test_each_row_knows_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.json", '\n[{"a": 1}, {\n"b":\n2},\n\n{"c": 3}]\n')
    assert [line.where for line in read_array(path)] == [f"{path}:2", f"{path}:2", f"{path}:6"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: expected a JSON array of objects. Is this another file's layout?"),
        ('{"a": 1}', ":1: expected a JSON array of objects. Is this another file's layout?"),
        ('\n[{"a": 1},\n{"a": ', ":3: not valid JSON (Expecting value). Was the file cut off?"),
        ('[{"a": 1},\n', ":2: not valid JSON (the array does not end). Was the file cut off?"),
        ('[{"a": 1}\n', ":2: not valid JSON (expected ',' or ']' after a row). Was the file cut off?"),
        ("[", ":1: not valid JSON (the array does not end). Was the file cut off?"),
        ('[{"a": 1},\n]', ":2: not valid JSON (a comma before the closing bracket). Was the file edited by hand?"),
        ("[{}]\n[{}]", ":2: not valid JSON (text after the closing bracket). Were two files joined?"),
        (
            '[{},\n"text"]',
            ":2: expected a conversation, got 'text' (str). "
            "Give a list of messages, or an object that has one under 'messages'.",
        ),
        ("[ ]", ": is an empty array, expected one object a row."),
    ],
)
def test_malformed_array_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "rows.json", text)
    with refused(f"{path}{message}"):
        read_array(path)


@given(ids=st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "a#2#2"]), max_size=12))
def test_unique_ids_are_unique_and_keep_the_first(ids: list[str]) -> None:
    unique = unique_ids(ids)
    assert len(set(unique)) == len(ids) == len(unique)
    for id in set(ids):
        assert unique[ids.index(id)] == id


def rated(path: Path) -> list[RatedItem]:
    return read_rated_items(str(path))


BAD_IDS = [("true", "got True."), ("[1]", "got [1]."), ('{"a": 1}', "got {'a': 1}."), ("1.5", "got 1.5.")]


@pytest.mark.parametrize(("id", "got"), BAD_IDS)
@pytest.mark.parametrize(
    ("read", "row"),
    [
        (read_items, '"context": ["x"], "response": "y"'),
        (rated, '"rating": 3'),
        (read_score_file, '"value": 3'),
        (dailydialog_pp.read, '"context": ["x"], "positive_responses": ["y"]'),
    ],
)
def test_d14_an_id_is_a_text_or_a_whole_number(
    read: Callable[[Path], object], row: str, id: str, got: str, tmp_path: Path
) -> None:
    """FAULTS D14: lists, objects and true were taken as ids without a word."""
    path = write(tmp_path / "in.jsonl", f'{{"id": "a", {row}}}\n{{"id": {id}, {row}}}\n')
    with refused(f"{path}:2: id: expected a string or an integer, {got}"):
        read(path)


@pytest.mark.parametrize("read", [read_items, rated, read_score_file, read_dialogues])
def test_d14_half_a_surrogate_pair_is_refused_when_it_is_read(read: Callable[[Path], object], tmp_path: Path) -> None:
    """FAULTS D14: the id reached the writer of the scores, after hours of scoring, each time."""
    path = write(tmp_path / "in.jsonl", '{"id": "x\\ud800", "context": ["x"], "response": "y", "turns": ["x"]}\n')
    message = refusal(read, path)
    assert "half of a surrogate pair" in message or "the lone surrogate" in message


@pytest.mark.parametrize(
    ("ids", "read"),
    # Rows without an id are numbered.
    [([{"id": 7}, {"id": 0}], ["7", "0"]), ([{}, {"id": None}], ["0", "1"])],
)
def test_d14_whole_numbers_are_ids(ids: list[dict[str, object]], read: list[str], tmp_path: Path) -> None:
    rows = lines(*({**id, "context": ["x"], "response": "b"} for id in ids))
    assert [item.id for item in read_items(write(tmp_path / "in.jsonl", rows))] == read


@pytest.mark.parametrize("label", ["cluster", "dialogue", "item", "system"])
def test_a_label_of_a_rating_is_a_text_or_a_whole_number(label: str, tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", lines({"id": "a", "rating": 3, label: 0}, {"id": "b", "rating": 3, label: ""}))
    first, second = rated(path)
    name = "cluster" if label == "dialogue" else label
    # The number 0 was taken for none, so that dialogue 0 was resampled row by row.
    assert (getattr(first, name), getattr(second, name)) == ("0", None)

    write(path, lines({"id": "a", "rating": 3, label: [1]}))
    with refused(f"{path}:1: {label}: expected a string or an integer, got [1]."):
        rated(path)


def test_r08_a_response_rated_again_counts_again_and_is_counted_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """FAULTS R08: two ratings of one response under two ids are data; they were taken without a word."""
    row = {**RESPONSE, "annotations": {"Overall": [3]}}
    again = {**RESPONSE, "annotations": {"Overall": [1]}}
    path = write(tmp_path / "in.json", row, again, again, {**row, "model": "n"}, {**row, "response": "z"})
    assert [item.ratings["Overall"] for item in rated(path)] == [(3.0,), (1.0,), (1.0,), (3.0,), (3.0,)]
    assert caplog.messages == [f"{path}: 2 of 5 items have the text and the system of an earlier one; each counts"]


def test_r08_dialogues_rated_again_are_counted_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "in.json", DIALOGUE, {**DIALOGUE, "dialogue_id": "e"})
    assert len(rated(path)) == 2
    assert caplog.messages == [f"{path}: 1 of 2 items have the text and the system of an earlier one; each counts"]
