"""Our own JSON lines: what is refused, and the line that is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.corpora.readers import read_items
from dialeval_plugin.errors import InputError


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rows_without_an_id_are_numbered(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", {"context": [], "response": "a"}, {"id": None, "context": ["x"], "response": "b"})

    assert [item.id for item in read_items(path)] == ["0", "1"]


def test_an_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    rows = [{"id": id, "context": ["x"], "response": "y"} for id in ("a", "b", "a")]
    path = write(tmp_path / "in.jsonl", *rows)
    with pytest.raises(InputError) as refused:
        read_items(path)
    assert str(refused.value) == f"{path}:3: the id 'a' is also that of {path}:1. Give every example its own."


def test_a_csv_is_told_from_a_file_that_was_cut_off(tmp_path: Path) -> None:
    """TRIAL entry 23: `score` said of a CSV "not valid JSON (Expecting value). Was the file cut off?"."""
    path = tmp_path / "in.csv"
    path.write_text("context,response\nHi.,Hello.\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_items(path)
    assert str(refused.value) == (
        f"{path}: holds neither JSON lines nor a JSON array. Give one object a line, "
        """{"context": ["turn", ...], "response": "..."}; make them of a CSV's rows first."""
    )


def test_chat_messages_are_answered_with_what_to_give_instead(tmp_path: Path) -> None:
    """TRIAL section 2: `score` said "there is no field 'messages'"."""
    message = {"role": "user", "content": "hi"}
    path = write(tmp_path / "in.jsonl", {"messages": [message, message]})
    with pytest.raises(InputError) as refused:
        read_items(path)
    assert str(refused.value) == (
        f"{path}:1: holds chat messages. Give the content of the last one as 'response', a string, "
        "and that of those before it as 'context', a list of strings."
    )
    path = write(tmp_path / "in.jsonl", {"context": [message], "response": "hi"})
    with pytest.raises(InputError) as refused:
        read_items(path)
    assert str(refused.value) == (
        f"{path}:1: Example '0': context[0]: expected a string, got the chat message {message!r}. Pass its 'content' alone."
    )


def test_a_wrong_value_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.jsonl", {"context": ["x"], "response": "y"}, {"id": "k", "context": ["x", None], "response": "y"}
    )
    with pytest.raises(InputError) as refused:
        read_items(path)
    assert str(refused.value) == f"{path}:2: Example 'k': context[1]: expected a string, got None (NoneType). Pass text."
