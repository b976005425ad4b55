"""Bars in a terminal, lines elsewhere."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from dialeval_plugin.terminal import LogHandler, Progress, say


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
    """Return the text in the terminal: after a carriage return the line is written over."""
    written = stream.getvalue()
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


def test_lines_and_records_stand_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    logger = logging.getLogger("test_progress")
    logger.propagate = False
    logger.addHandler(LogHandler())
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
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    with Progress(desc="scoring", total=20, unit="example") as bar:
        for _ in range(20):
            now += 4
            bar.update()
    lines = capsys.readouterr().err.splitlines()
    assert "\r" not in "".join(lines)
    # Four seconds an example: a line every third.
    assert [line.split(",")[0] for line in lines[:2]] == [
        "scoring: 3 of 20 examples (15 %)",
        "scoring: 6 of 20 examples (30 %)",
    ]
    assert lines[0].endswith(", 00:12, about 01:08 left")
    assert lines[6:] == ["scoring: 20 of 20 examples (100 %), 01:20"]


def test_lines_of_a_long_run_are_further_apart(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    for _ in Progress(range(1000), "training"):
        now += 100
    times = [line.split(", ")[1] for line in capsys.readouterr().err.splitlines()]
    assert times[:3] == ["01:40", "03:20", "05:00"]
    assert len(times) < 60
    assert times[-1] == "27:46:40"


def test_a_bar_of_unknown_length_counts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("tqdm.std.time", lambda: now)
    with Progress(desc="scoring", unit="example") as bar:
        now += 20
        bar.update(16_384)
    assert capsys.readouterr().err == "scoring: 16,384 examples, 00:20\n" * 2


def test_what_is_quick_or_disabled_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in Progress(range(100)):
        pass
    for _ in Progress(range(100), disable=True):
        pass
    assert capsys.readouterr().err == ""
