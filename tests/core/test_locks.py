"""The lock against other processes: FAULTS R62 (two processes), A72 (advice)."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.locks import sole_process
from tests.refusals import refused


def test_r62_the_lock_keeps_a_second_one_out_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run"
    with sole_process(path):
        assert [entry.name for entry in path.parent.iterdir()] == ["run.lock"]
        with (
            refused(f"{path}: another process is at work on this run. Wait until it ends, or choose another output."),
            sole_process(path),
        ):
            pass
    assert list(path.parent.iterdir()) == []
    with pytest.raises(RuntimeError), sole_process(path):
        raise RuntimeError
    with sole_process(path):
        pass
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.EACCES, "Choose another place, or ask for permission to write there."),
        (errno.EROFS, "Choose another place, or ask for permission to write there."),
        (errno.EEXIST, "Choose another place."),
        (errno.EDQUOT, "Finished parts are kept; repeat the command when there is room."),
        (errno.ENAMETOOLONG, "Choose a shorter name for the output, next to which this file is written."),
    ],
)
def test_the_advice_is_about_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, advice: str) -> None:
    def denied(self: Path, *_: Any, **options: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", denied)
    path = tmp_path / "run"
    with refused(f"{path}: cannot be written ({os.strerror(code)}). {advice}"), sole_process(path):
        pass


def test_d32_a_name_too_long_says_so(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251)
    advice = "Choose a shorter name for the output, next to which this file is written."
    with refused(f"{path}: cannot be written (File name too long). {advice}"), sole_process(path):
        pass
