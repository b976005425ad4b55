"""FAULTS R06 (any text round-trips), R09 (file faults), R64 (nothing is half written), R65 (no NaN)."""

from __future__ import annotations

import errno
import gzip
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dialeval_plugin import files
from dialeval_plugin.errors import InputError
from dialeval_plugin.files import (
    atomic_path,
    parse_json,
    read_json,
    read_json_lines,
    read_text,
    to_json,
    write_json_lines,
    write_text,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "rows.jsonl"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def message(text: str) -> str:
    return f"^{re.escape(text)}$"


@given(texts=st.lists(TEXT, min_size=1, max_size=5))
@example(texts=["\x00", "\u2028\u2029\x85\x0b\x0c\x1c", "\r\n", "\ufeff", "\u202e\u05d0", "\U0001f600", "", "<|endoftext|>"])
def test_any_text_round_trips_one_record_a_line(scratch: Path, texts: list[str]) -> None:
    rows = [{"id": str(index), text: text} for index, text in enumerate(texts)]
    write_json_lines(scratch, rows)
    assert scratch.read_bytes().count(b"\n") == len(rows)
    assert [line.value for line in read_json_lines(scratch)] == rows
    assert [line.where for line in read_json_lines(scratch)] == [f"{scratch}:{n}" for n in range(1, len(rows) + 1)]


@given(text=TEXT.filter(lambda text: not text.startswith("\ufeff")))
def test_write_text_round_trips(scratch: Path, text: str) -> None:
    write_text(scratch, text)
    assert read_text(scratch) == text


def test_lone_surrogate_is_refused_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_json_lines(path, [{"text": "\ud800"}])
    assert names(tmp_path) == ["rows.jsonl"]
    assert path.read_text() == "before"


def test_byte_order_mark_carriage_returns_and_blank_lines_are_no_content(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"a": 2}')
    assert read_json_lines(path) == [(f"{path}:1", {"a": 1}), (f"{path}:4", {"a": 2})]


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n', mtime=0))
    assert read_json_lines(path) == [(f"{path}:1", {"a": 1})]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ": is empty, expected one JSON object a line."),
        (b" \n\n", ": is empty, expected one JSON object a line."),
        (b'{"a": 1}\n{"a": ', ":2: not valid JSON (Expecting value). Was the file cut off?"),
        (b'{"a": 1}\n\n{"a" 2}\n', ":3: not valid JSON (Expecting ':' delimiter). Was the file cut off?"),
        (b'{"a": 1}\n[1]\n', ":2: expected a JSON object, got list."),
        (b'{"a": "\xe9"}\n', ":1: byte 7 is not UTF-8. Convert the file to UTF-8."),
        (b'{"a": 1}\n{"b": "r\xe9"}\n', ":2: byte 17 is not UTF-8. Convert the file to UTF-8."),
        ('{"a": 1}'.encode("utf-16"), ":1: byte 0 is not UTF-8. Convert the file to UTF-8."),
    ],
)
def test_file_fault_names_path_and_line(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message(f"{path}{text}")) as raised:
        read_json_lines(path)
    assert raised.value.exit_code == 2


def test_bad_json_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('{"a": 1,\n"b": }')
    with pytest.raises(InputError, match=message(f"{path}:2: not valid JSON (Expecting value). Was the file cut off?")):
        read_json(path)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message(f"{tmp_path / 'none'}: there is no such file.")):
        read_text(tmp_path / "none")
    with pytest.raises(InputError, match=message(f"{tmp_path}: is a folder, expected a file.")):
        read_text(tmp_path)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{}")

    def refuse(self: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=message(f"{path}: cannot be read (Permission denied).")):
        read_text(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"plain text", "Not a gzipped file (b'pl')"),
        (gzip.compress(b"text" * 100, mtime=0)[:-9], "Compressed file ended before the end-of-stream marker was reached"),
    ],
)
def test_damaged_gzip(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message(f"{path}: is not a complete gzip file ({problem}). Copy it again.")):
        read_text(path)


def test_a_damaged_gzip_stream_is_an_input_error(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(bytes(range(256)) * 40))
    content[20:40] = b"\xff" * 20
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}: is not a complete gzip file"):
        read_text(path)


def test_failing_writer_leaves_the_previous_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("before")

    def rows() -> Any:
        yield {"a": 1}
        raise RuntimeError("the model crashed")

    with pytest.raises(RuntimeError, match=r"^the model crashed$"):
        write_json_lines(path, rows())
    assert path.read_text() == "before"
    assert names(tmp_path) == ["rows.jsonl"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_full_disk_leaves_the_previous_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("before")

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, name, refuse)
    text = f"{path}: cannot be written (No space left on device). The previous file, if any, is unchanged."
    with pytest.raises(InputError, match=message(text)):
        write_text(path, "after")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["rows.jsonl"]


def test_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"

    def refuse(**_: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    with pytest.raises(InputError, match=message(f"{path}: cannot be written (Read-only file system). Choose another place.")):
        write_text(path, "after")
    assert names(tmp_path) == []


def test_target_is_a_folder_or_lies_below_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message(f"{tmp_path}: is a folder, expected the name of a file to write.")):
        write_text(tmp_path, "text")
    (tmp_path / "file").write_text("before")
    path = tmp_path / "file" / "rows.jsonl"
    with pytest.raises(InputError, match=message(f"{path}: cannot be written (File exists). Choose another place.")):
        write_text(path, "text")


def test_new_folders_are_made_and_the_mode_is_that_of_an_ordinary_file(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "rows.jsonl"
    with atomic_path(path) as temporary:
        temporary.write_text("text")
        assert not path.exists()
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert path.stat().st_mode == ordinary.stat().st_mode
    assert names(path.parent) == ["rows.jsonl"]


@pytest.mark.parametrize("value", NOT_FINITE)
def test_no_writer_writes_nan(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match=r"^Out of range float values are not JSON compliant"):
        to_json({"a": [value]})
    with pytest.raises(ValueError, match=r"^Out of range float values are not JSON compliant"):
        write_json_lines(tmp_path / "rows.jsonl", [{"a": 1.0}, {"a": {"b": value}}])
    assert names(tmp_path) == []


@given(value=st.recursive(st.floats() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=6))
def test_what_is_written_is_strict_json(value: Any) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    try:
        text = to_json(value)
    except ValueError:
        return
    assert json.loads(text, parse_constant=refuse) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, "is nested too deeply. No file of this kind is; copy it again."),
        (
            "1" * 5_000,
            f"has a number that cannot be read ({'1' * 20} is beyond the range of a float). Write it shorter.",
        ),
        (
            "1" * 400,
            f"has a number that cannot be read ({'1' * 20} is beyond the range of a float). Write it shorter.",
        ),
        ("[1e999]", "has a number that cannot be read (1e999 is beyond the range of a float). Write it shorter."),
        ("[NaN]", "holds NaN, which is not JSON. Leave out what has no value, or write null."),
    ],
)
def test_json_that_cannot_be_held_is_one_error(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(text, "x.json")
    assert str(caught.value) == f"x.json: {problem}"
