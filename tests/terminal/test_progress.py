"""Bars in a terminal, lines elsewhere."""

from __future__ import annotations

import io
import logging
import subprocess
import sys

import pytest

from dialeval_plugin.terminal import progress
from dialeval_plugin.terminal.progress import BetweenBars, Progress, say


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


def looked_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as stderr, until the test ends."""
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def screen(stream: Terminal) -> str:
    """What stands in the terminal: after a carriage return the line is written over; no bar moves up or down."""
    written = stream.getvalue()
    assert "\x1b[A" not in written
    lines = []
    for line in written.split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown.rstrip())
    return "\n".join(lines)


def test_a_bar_is_drawn_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    for _ in Progress(range(3), "scoring", mininterval=0):
        pass
    assert "scoring:  67%" in terminal.getvalue()
    assert screen(terminal) == ""


def test_of_two_bars_the_inner_one_is_shown_in_the_same_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    with Progress(desc="outer", total=2) as outer:
        outer.update()
        with Progress(desc="inner", total=4) as inner:
            inner.refresh()
            assert screen(terminal).startswith("inner")
            outer.refresh()
            assert screen(terminal).startswith("inner")
        assert screen(terminal).startswith("outer:  50%")
    assert screen(terminal) == ""


def test_a_bar_that_an_error_left_behind_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    with Progress(desc="outer", total=2) as outer:
        Progress(desc="lost", total=2)
        outer.refresh()
        assert screen(terminal).startswith("outer")


def test_lines_and_records_stand_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    logger = logging.getLogger("test_progress")
    logger.propagate = False
    logger.addHandler(BetweenBars())
    with Progress(desc="scoring", total=2):
        say("one")
        logger.warning("two")
        *above, bar = screen(terminal).split("\n")
        assert above == ["one", "two"]
        assert bar.startswith("scoring:   0%")
    assert screen(terminal) == "one\ntwo\n"


@pytest.mark.parametrize("kind", ["pipe", "dumb"])
def test_without_a_terminal_there_are_lines_and_no_bar(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "dumb":
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        monkeypatch.setenv("TERM", "dumb")
    now = 100.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    monkeypatch.setattr(progress.Progress, "_said_at", 0.0)
    with Progress(desc="scoring", total=20, unit="example") as bar:
        for _ in range(20):
            now += 4
            bar.update()
            bar.refresh()
    lines = capsys.readouterr().err.splitlines()
    assert "\r" not in "".join(lines)
    # Four seconds an example: a line every third.
    assert [line.split(",")[0] for line in lines[:2]] == [
        "scoring: 3 of 20 examples (15 %)",
        "scoring: 6 of 20 examples (30 %)",
    ]
    assert lines[0].endswith(", 00:12, about 01:08 left")
    assert lines[6:] == ["scoring: 20 of 20 examples (100 %), 01:20"]


def test_a_bar_of_unknown_length_counts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with Progress(desc="scoring", unit="example") as bar:
        bar.update(16_384)
    assert capsys.readouterr().err == "scoring: 16,384 examples, 00:00\n" * 2


def test_what_is_quick_or_disabled_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in Progress(range(100)):
        pass
    for _ in Progress(range(100), disable=True):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_hosts_that_are_imported_later_have_our_bars() -> None:
    script = (
        "from dialeval_plugin.terminal.progress import Progress, draw_one_bar_at_a_time\n"
        "draw_one_bar_at_a_time()\n"
        "import lm_eval.api.task, lm_eval.api.model, transformers.trainer_callback\n"
        "for module in (lm_eval.api.task, lm_eval.api.model, transformers.trainer_callback):\n"
        "    assert module.tqdm is Progress, module\n"
        "list(lm_eval.api.task.tqdm(range(3), total=3, leave=True, position=1))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
