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


def test_a_wrong_value_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.jsonl", {"context": ["x"], "response": "y"}, {"id": "k", "context": ["x", None], "response": "y"}
    )
    with pytest.raises(InputError) as refused:
        read_items(path)
    assert str(refused.value) == f"{path}:2: Example 'k': context[1]: expected a string, got None (NoneType). Pass text."
