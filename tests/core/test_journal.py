"""The journal by itself: FAULTS R61 (damage), R62 (two processes), R63 (kills), D31 (nobody else reads it)."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.journal import Journal, sole_process
from tests.refusals import refused


def same(value: Any) -> Any:
    return value


def test_parts_come_back_in_their_order_and_each_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "newer" / "journal"
    journal = Journal(path, "id")
    assert journal.read(same) == []
    for part in ([1], {"a": "ü\u2028\n"}, None):
        journal.append(part)
    assert journal.read(same) == [[1], {"a": "ü\u2028\n"}, None]
    assert journal.read(repr) == ["[1]", "{'a': 'ü\\u2028\\n'}", "None"]
    assert path.read_bytes() == '{"run": "id"}\n[1]\n{"a": "ü\u2028\\n"}\nnull\n'.encode()


@pytest.mark.parametrize("cut", range(len('{"run": "id"}\n[1]\n[2]\n') + 1))
def test_r63_a_part_that_a_kill_left_half_written_is_cut_off(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    whole = b'{"run": "id"}\n[1]\n[2]\n'
    path.write_bytes(whole[:cut])
    n_whole = max(whole[:cut].count(b"\n") - 1, 0)
    journal = Journal(path, "id")
    assert journal.read(same) == [[1], [2]][:n_whole]
    assert path.read_bytes() == (b'{"run": "id"}\n', b'{"run": "id"}\n[1]\n', whole)[n_whole]
    journal.append([3])
    assert journal.read(same) == [*[[1], [2]][:n_whole], [3]]


@pytest.mark.parametrize("raw", [b'{"run": "ie"}\n', b'{"run": "other"}\n[1]\n', b"x", b'[1]\n{"run": "id"}\n'])
def test_a_journal_of_another_run_is_refused_and_kept(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(raw)
    with refused(
        f"{path}: this unfinished run has other inputs or settings than the present one. "
        "Delete the file to start again, or repeat the first command to finish it."
    ):
        Journal(path, "id").read(same)
    assert path.read_bytes() == raw


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[1", ": not valid JSON (Expecting ',' delimiter). Was the file cut off?"),
        (b"\xff", ": is damaged ('utf-8' codec can't decode byte 0xff in position 0: invalid start byte)."),
        (b"[" * 100_000, ": is nested too deeply, more than 100 levels. No file of this kind is; copy it again."),
        (b"1" * 5_000, f": has a number that cannot be read ({'1' * 20} is beyond the range of a float). Write it shorter."),
        (b'"x"', ": is damaged ('x')."),
        (b"7", ": is damaged (unsupported operand type(s) for +: 'int' and 'str')."),
        (b"null", ": is damaged (no part)."),
    ],
)
def test_r61_d13_a_damaged_line_is_named_and_the_file_kept(line: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    raw = b'{"run": "id"}\n[1]\n' + line + b"\n[2]\n"
    path.write_bytes(raw)

    def decode(part: Any) -> Any:
        if part is None:
            raise ValueError("no part")
        return {}[part] if isinstance(part, str) else part if isinstance(part, list) else part + ""

    with refused(f"{path}:3{problem} Delete the file to start again."):
        Journal(path, "id").read(decode)
    assert path.read_bytes() == raw


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """An empty one."""
    made = Journal(tmp_path / "journal", 'quo"te')
    made.read(same)
    assert json.loads(made.path.read_text()) == {"run": 'quo"te'}
    return made


def test_d31_a_journal_is_its_users_alone(journal: Journal) -> None:
    journal.append([1])
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600


def test_a_part_is_on_the_disk_when_append_returns(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    header, seen = journal.path.read_bytes(), []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(journal.path.read_bytes()))
    journal.append([1])
    assert seen == [header + b"[1]\n"]


def test_no_number_that_is_not_finite_is_kept(journal: Journal) -> None:
    with pytest.raises(ValueError, match=r"^Out of range float values are not JSON compliant"):
        journal.append([float("nan")])
    assert journal.read(same) == []


def test_r62_the_lock_keeps_a_second_one_out_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal"
    with sole_process(path):
        assert [found.name for found in path.parent.iterdir()] == ["journal.lock"]
        with (
            refused(f"{path}: another process is at work on this run. Wait until it ends, or choose another output."),
            sole_process(path),
        ):
            pass
    assert list(path.parent.iterdir()) == []
    with sole_process(path):
        pass


def test_the_lock_opens_when_the_run_fails(journal: Journal) -> None:
    with pytest.raises(RuntimeError), sole_process(journal.path):
        raise RuntimeError
    with sole_process(journal.path):
        pass
    assert list(journal.path.parent.iterdir()) == [journal.path]


def test_d32_a_name_too_long_says_so(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251)
    advice = "Choose a shorter name for the output, beside which this file stands."
    with refused(f"{path}: cannot be written (File name too long). {advice}"), sole_process(path):
        pass


def test_r64_a_journal_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, "id")
    journal.read(same)
    path.write_bytes(path.read_bytes() + b"[1")  # a part that a kill left half written is to be cut off

    def full(self: Path, mode: str = "r", **options: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    message = (
        f"{path}: cannot be written (No space left on device). Finished parts are kept; repeat the command when there is room."
    )
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        with refused(message):
            journal.append([1])
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", lambda self: b'{"run": "id"}\n[1')
        patched.setattr(Path, "open", full)
        with refused(message):
            journal.read(same)
    (tmp_path / "file").touch()
    for path, problem in ((tmp_path / "file" / "journal", "File exists"), (tmp_path, "Is a directory")):
        said = f"{path}: cannot be written ({problem}). Finished parts are kept; repeat the command when there is room."
        with refused(said):
            Journal(path, "id").read(same)
        with refused(said), sole_process(path):
            Journal(path, "id").read(same)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.EACCES, "Choose another place, or ask for permission to write there."),
        (errno.EROFS, "Choose another place, or ask for permission to write there."),
        (errno.EDQUOT, "Finished parts are kept; repeat the command when there is room."),
    ],
)
def test_the_advice_is_about_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, advice: str) -> None:
    journal = Journal(tmp_path / "journal", "id")
    journal.read(same)

    def denied(self: Path, mode: str = "r", **options: Any) -> Any:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "open", denied)
    with refused(f"{journal.path}: cannot be written ({os.strerror(code)}). {advice}"):
        journal.append([1])
