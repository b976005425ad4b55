"""Tables drawn in a terminal, plain elsewhere, with the same content."""

from __future__ import annotations

import io
import sys

import pytest

from dialeval_plugin.terminal import print_entries, print_table

HEAD = ["level", "evaluator", "value", "95 % interval", "scored"]
ROWS = [
    ["turn", "general [bold]", "0.403", "0.251 to 0.541", "180/180"],
    ["turn", "chrf", "0.055", "-0.073 to 0.202", "180/180"],
]
IS_NUMBER = [False, False, True, True, True]
PLAIN = "the table as scripts read it\n"


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, width: int, *table: list[object], encoding: str = "utf-8", **options: object) -> str:
    stream = look_at(monkeypatch, width, encoding)
    print_table(PLAIN, *table, **options)  # type: ignore[arg-type]
    return read(stream)


def look_at(monkeypatch: pytest.MonkeyPatch, width: int, encoding: str = "utf-8") -> Terminal:
    stream = Terminal(io.BytesIO(), encoding=encoding)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def read(stream: Terminal) -> str:
    stream.seek(0)
    text = stream.read()
    return text.replace("\x1b[1m", "").replace("\x1b[0m", "")


def test_a_pipe_gets_the_plain_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(PLAIN, HEAD, ROWS, is_number=IS_NUMBER, notes=["never"])
    assert capsys.readouterr().out == PLAIN


def test_a_file_without_the_signs_gets_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    print_table("Popović\n", HEAD, ROWS)
    stream.seek(0)
    assert stream.read() == "Popovi\\u0107\n"


def test_a_terminal_gets_it_drawn_with_everything_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, 80, HEAD, ROWS, is_number=IS_NUMBER, notes=["Rough."])
    assert [line.rstrip() for line in text.splitlines()] == [
        "level  evaluator       value    95 % interval   scored",
        "─" * 54,
        "turn   general [bold]  0.403   0.251 to 0.541  180/180",
        "turn   chrf            0.055  -0.073 to 0.202  180/180",
        "",
        "Rough.",
    ]


@pytest.mark.parametrize("width", [30, 40, 50])
def test_where_it_is_narrow_it_goes_on_below_and_nothing_is_lost(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, width, HEAD, ROWS, is_number=IS_NUMBER)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for cell in [*HEAD, *ROWS[0], *ROWS[1]]:
        assert set(cell.split()) <= set(words)
    assert text.count("general") == text.count("chrf") == text.count("level") > 1


def test_a_long_last_column_is_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["general", "Apache-2.0; CC BY 4.0; CC BY-NC 4.0; CC BY-NC-SA 4.0"], ["slide", "one\ntwo"]]
    text = shown(monkeypatch, 30, ["model", "licence"], rows)
    assert max(map(len, text.splitlines())) <= 30
    assert [line.split()[0] for line in text.splitlines() if line[:1].strip()][2:] == ["general", "slide"]
    assert set(rows[0][1].split()) <= set(text.split())


def test_a_terminal_without_the_signs_gets_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, 80, ["name", "text"], [["Popović", "三"]], encoding="ascii")
    assert "Popovi\\u0107" in text
    assert "\\u4e09" in text


@pytest.mark.parametrize("name", ["NO_COLOR", "FORCE_COLOR"])
def test_tables_have_no_colours(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    assert "\x1b[3" not in shown(monkeypatch, 80, HEAD, ROWS, is_number=IS_NUMBER)


def test_entries_are_a_name_with_lines_below_it_or_beside_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [("chrf", ["Character n-grams.", "needs references"]), ("random", ["needs nothing else"])]
    print_entries(("scorer", "what it does"), entries)
    assert capsys.readouterr().out == "chrf\n    Character n-grams.\n    needs references\nrandom\n    needs nothing else\n"
    stream = look_at(monkeypatch, 80)
    print_entries(("scorer", "what it does"), entries)
    assert [line.rstrip() for line in read(stream).splitlines()] == [
        "scorer  what it does",
        "─" * 26,
        "chrf    Character n-grams.",
        "        needs references",
        "",
        "random  needs nothing else",
    ]
