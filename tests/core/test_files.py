"""FAULTS R06 (any text round-trips), R09 (file faults), R67 (other shapes), R64 (nothing is half written), R65 (no NaN)."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import re
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dialeval_plugin.core import files
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import (
    atomic_path,
    checked,
    parse_json,
    parse_json_prefix,
    read_json,
    read_json_lines,
    read_text,
    to_json,
    write_json_lines,
    write_text,
)
from tests.refusals import refused

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "rows.jsonl"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


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


@pytest.mark.parametrize(("name", "packed"), [("rows.jsonl", bytes), ("rows.jsonl.gz", gzip.compress)])
def test_byte_order_mark_carriage_returns_and_blank_lines_are_no_content(
    name: str, packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(packed(b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"a": 2}'))
    assert read_json_lines(path) == [(f"{path}:1", {"a": 1}), (f"{path}:4", {"a": 2})]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ": is empty, expected one JSON object a line."),
        (b" \n\n", ": is empty, expected one JSON object a line."),
        (b'{"a": 1}\n{"a": ', ":2: not valid JSON (Expecting value). Was the file cut off?"),
        (b'{"a": 1}\n\n{"a" 2}\n', ":3: not valid JSON (Expecting ':' delimiter). Was the file cut off?"),
        (b'{"a": 1}\n[1]\n', ":2: expected a JSON object, got [1]."),
        (b'{"a": "\xe9"}\n', ":1: byte 7 is not UTF-8. Convert the file to UTF-8."),
        (b'{"a": 1}\n{"b": "r\xe9"}\n', ":2: byte 17 is not UTF-8. Convert the file to UTF-8."),
        ('{"a": 1}\n[1]'.encode("utf-16"), ":2: expected a JSON object, got [1]."),
    ],
)
def test_file_fault_names_path_and_line(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with refused(f"{path}{text}"):
        read_json_lines(path)
    assert InputError.exit_code == 2


def refuse_with(number: int) -> Callable[..., Any]:
    """A function of the system that fails."""

    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(f"{tmp_path / 'none'}: there is no such file."):
        read_text(tmp_path / "none")
    with refused(f"{tmp_path}: is a folder, expected a file."):
        read_text(tmp_path)
    monkeypatch.setattr(Path, "open", refuse_with(errno.EACCES))
    with refused(f"{tmp_path / 'rows.jsonl'}: cannot be read (Permission denied). Check that you may read it."):
        read_text(tmp_path / "rows.jsonl")


PACKED = gzip.compress(bytes(range(256)) * 40, mtime=0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"plain text", r"Not a gzipped file \(b'pl'\)"),
        (PACKED[:-9], "Compressed file ended before the end-of-stream marker was reached"),
        (PACKED[:20] + b"\xff" * 20 + PACKED[40:], ".*"),
    ],
)
def test_damaged_gzip(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=rf"^{re.escape(str(path))}: is not a complete gzip file \({problem}\)\. Copy it again\.$"
    ):
        read_text(path)


def crashing() -> Iterator[dict[str, int]]:
    yield {"a": 1}
    raise RuntimeError("the model crashed")


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (crashing, RuntimeError),
        (lambda: [{"text": "\ud800"}], UnicodeEncodeError),
        *((lambda value=value: [{"a": 1.0}, {"a": {"b": value}}], ValueError) for value in NOT_FINITE),
    ],
)
def test_failing_writer_leaves_the_previous_file_and_nothing_else(
    rows: Callable[[], Any], error: type[Exception], tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("before")
    with pytest.raises(error):
        write_json_lines(path, rows())
    assert path.read_text() == "before"
    assert names(tmp_path) == ["rows.jsonl"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_full_disk_leaves_the_previous_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("before")
    monkeypatch.setattr(files.os, name, refuse_with(errno.ENOSPC))
    with refused(f"{path}: cannot be written (No space left on device). The previous file, if any, is unchanged."):
        write_text(path, "after")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["rows.jsonl"]


def test_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    monkeypatch.setattr(files.os, "open", refuse_with(errno.EROFS))
    with refused(f"{path}: cannot be written (Read-only file system). Choose another place."):
        write_text(path, "after")
    assert names(tmp_path) == []


def test_target_is_a_folder_or_lies_below_a_file(tmp_path: Path) -> None:
    with refused(f"{tmp_path}: is a folder, expected the name of a file to write."):
        write_text(tmp_path, "text")
    (tmp_path / "file").write_text("before")
    path = tmp_path / "file" / "rows.jsonl"
    with refused(f"{path}: cannot be written (File exists). Choose another place."):
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
def test_no_nan_is_json(value: float) -> None:
    with pytest.raises(ValueError, match=r"^Out of range float values are not JSON compliant"):
        to_json({"a": [value]})


@given(value=st.recursive(st.floats() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=6))
def test_what_is_written_is_strict_json(value: Any) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    try:
        text = to_json(value)
    except ValueError:
        return
    assert json.loads(text, parse_constant=refuse) == value


TOO_DEEP = "is nested too deeply, more than 100 levels. No file of this kind is; copy it again."
TOO_LONG = "has a number that cannot be read ({} is beyond the range of a float). Write it shorter."
DOUBLED = "has the key {!r} twice in one object. Keep one of them."
HALF = "holds {!r}, half of a surrogate pair, which is not Unicode. Write the character whole."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 100_000, TOO_DEEP),
        ("[" * 101 + "]" * 101, TOO_DEEP),
        ("1" * 5_000, TOO_LONG.format("1" * 20)),
        ("1" * 400, TOO_LONG.format("1" * 20)),
        ("[1e999]", TOO_LONG.format("1e999")),
        ("[NaN]", "holds NaN, which is not JSON. Leave out what has no value, or write null."),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', DOUBLED.format("c")),
        ('{"a": 1,\n"b": 2,\n"a": 1}', DOUBLED.format("a")),
        ('["\\ud83d\\ude00", {"cut \\ud83d": 1}]', HALF.format("cut \ud83d")),
        ('{"a": "\\uDE00\\uD83D"}', HALF.format("\ude00\ud83d")),
    ],
)
def test_d13_d14_r08_json_that_no_writer_means_is_refused(text: str, problem: str) -> None:
    """FAULTS D13 (depth), D14 (lone surrogates), R08 (of a doubled key the last value won)."""
    with refused(f"x.json: {problem}"):
        parse_json(text, "x.json")
    with refused(f"x.json:2: {problem}"):
        parse_json_prefix(f"[\n {text}, 7]", 3, "x.json")


def test_json_up_to_the_limits_is_read() -> None:
    text = "[" * 100 + '"\\ud83d\\ude00 \\\\ud83d"' + "]" * 100
    value = parse_json(text, "x.json")
    for _ in range(100):
        (value,) = value
    assert value == "\U0001f600 \\ud83d"
    assert parse_json('[{"a": 1}, {"a": 2}]', "x.json") == [{"a": 1}, {"a": 2}]
    assert parse_json_prefix('[{"a": [1]} , 2]', 1, "x.json") == ({"a": [1]}, 11)


def test_a_text_that_is_no_json_is_named_with_its_line(tmp_path: Path) -> None:
    problem = "not valid JSON (Expecting value). Was the file cut off?"
    with refused(f"x.json:3: {problem}"):
        parse_json_prefix('[\n{"a":\n}]', 2, "x.json")
    write_text(tmp_path / "x.json", '{"a": 1,\n"b": }')
    with refused(f"{tmp_path / 'x.json'}:2: {problem}"):
        read_json(tmp_path / "x.json")


@dataclass(frozen=True, slots=True)
class _Point:
    name: str
    place: tuple[float, ...]


def test_an_object_becomes_a_dataclass_and_a_list_a_tuple() -> None:
    assert checked({"name": "a", "place": [1, 2.5]}, _Point, "x.json", advice="") == _Point("a", (1.0, 2.5))


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "a", "place": [1, "2"]}, "place.1: input should be a valid number"),
        ({"name": "a", "place": [True]}, "place.0: input should be a valid number"),
        ({"name": 1, "place": []}, "name: input should be a valid string"),
        ({"place": []}, "name: field required"),
        ([], "input should be an object"),
        (None, "input should be an object"),
    ],
)
def test_the_first_field_that_is_wrong_is_named(value: object, problem: str) -> None:
    with refused(f"x.json: {problem}. Copy it again."):
        checked(value, _Point, "x.json", advice="Copy it again.")


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_d23_a_file_beyond_the_limit_is_refused_before_it_is_held(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS R09, D23: 1.5 MB of gzip took 3.1 GB."""
    path = tmp_path / name
    content = b" " * 5_000_000
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert read_text(path) == content.decode()

    monkeypatch.setattr(files, "MAX_FILE_BYTES", 3_000_000)
    with refused(f"{path}: holds more than 3 MB, the limit of a file. Split it."):
        read_text(path)


def test_d23_a_gzip_bomb_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bytes(300_000_000), compresslevel=1))
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 1_000_000)
    tracemalloc.start()
    try:
        with refused(f"{path}: holds more than 1 MB, the limit of a file. Split it."):
            read_text(path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


# What stands at the place of an output keeps its kind, its mode and its links (D7, D24).


def test_d7_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write_json_lines(pipe, [{"a": 1}, {"a": 2}])
        assert reader.stdout is not None
        assert reader.stdout.read() == b'{"a": 1}\n{"a": 2}\n'
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_d7_a_device_stays_a_device(tmp_path: Path) -> None:
    """`--output /dev/null` as root replaced the device by a file."""
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.open("wb").close()
    except PermissionError:
        pytest.skip("this machine lets nobody make devices")
    write_text(device, "text")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert names(tmp_path) == ["null"]


WRITE_TO_STDOUT = """
import sys
from pathlib import Path
from dialeval_plugin.core.files import write_text

print("before")
write_text(Path(sys.argv[1]), "text\\n")
print("after")
"""


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_d7_standard_output_is_written_to_wherever_it_leads(kind: str, tmp_path: Path) -> None:
    # What /dev/stdout is; root would lose the real one if this failed.
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-c", WRITE_TO_STDOUT, str(link)]
    if kind == "pipe":
        assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"before\ntext\nafter\n"
    else:
        with (tmp_path / "out").open("wb") as out:
            subprocess.run(command, stdout=out, check=True)
        assert (tmp_path / "out").read_bytes() == b"before\ntext\nafter\n"
        assert names(tmp_path) == ["out", "stdout"]
    assert link.is_symlink()


def test_d7_a_failed_block_sends_nothing_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with atomic_path(pipe) as temporary:
            temporary.write_text("half")
            raise RuntimeError("the model crashed")

    with pytest.raises(RuntimeError, match=r"^the model crashed$"):
        write()
    assert names(tmp_path) == ["pipe"]


def test_d7_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "target").write_text("old")
    (real / "twin").hardlink_to(real / "target")
    link = tmp_path / "link"
    link.symlink_to("real/target")
    hanging = tmp_path / "hanging"
    hanging.symlink_to("real/new")

    write_text(link, "new")
    write_text(hanging, "new")

    assert (link.readlink(), hanging.readlink()) == (Path("real/target"), Path("real/new"))
    assert (real / "target").read_text() == (real / "new").read_text() == "new"
    # Replaced, not written over: who has the old file open reads on.
    assert (real / "twin").read_text() == "old"
    assert (names(tmp_path), names(real)) == (["hanging", "link", "real"], ["new", "target", "twin"])


def test_a_link_to_itself_is_one_error(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("link")
    with refused(f"{link}: cannot be written (Too many levels of symbolic links). Choose another place."):
        write_text(link, "text")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_d7_a_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("old")
    path.chmod(mode)
    with atomic_path(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) & 0o077 == 0
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_d7_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("old")
    os.chown(path, 12345, 54321)
    write_text(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_d24_a_new_file_has_the_mode_of_the_mask_which_is_never_changed(
    mask: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mask belongs to the process: set to 0 for a moment, files of other threads were writable by all."""
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("the mask was changed"))
            write_text(tmp_path / "new", "text")
    finally:
        assert os.umask(before) == mask
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~mask


def test_the_folder_of_a_replaced_file_is_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a power cut takes the new name back."""
    synced = []
    fsync = os.fsync

    def record(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        fsync(descriptor)

    monkeypatch.setattr(files.os, "fsync", record)
    write_text(tmp_path / "new", "text")
    assert synced == [False, True]


def test_line_ends_are_written_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "text"
    write_text(path, "a\r\nb\nc\r")
    assert path.read_bytes() == b"a\r\nb\nc\r"


def test_d32_a_name_as_long_as_the_file_system_takes_is_written(tmp_path: Path) -> None:
    write_text(tmp_path / ("n" * 255), "text")
    assert names(tmp_path) == ["n" * 255]
    write_text(tmp_path / ("ü" * 127), "text")
    path = tmp_path / ("n" * 256)
    with refused(f"{path}: cannot be written (File name too long). Choose another place."):
        write_text(path, "text")


@pytest.mark.parametrize("name", ["a\ud800", "a\x00b"])
def test_a_path_that_cannot_be_is_one_error(name: str) -> None:
    path = Path(name)
    for call in (read_text, lambda path: write_text(path, "text")):
        with refused(f"{name!r}: cannot be the name of a file. Choose another."):
            call(path)
