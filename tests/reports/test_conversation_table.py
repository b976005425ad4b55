"""The table of conversations: each one's mean and worst turn, the worst conversation first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example, Origin, Turn
from dialeval_plugin.core.scores import Orientation, Reason, Row, Scores, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.reports import printed_scores
from dialeval_plugin.reports.printed_scores import N_SHOWN, ConversationTable
from dialeval_plugin.reports.tables import Table
from tests.refusals import refused

PLACES: list[tuple[str, int | None]] = [("a", 2), ("a", 4), ("a", 6), ("b", 2), ("b", 4), ("c", 2), ("d", 3)]
VALUES = (0.5, 0.2, 0.8, 0.4, None, None, 0.4)


def table(scores: Scores, path: Path | None = None) -> Table | None:
    """The table of scores that come in three blocks."""
    found = ConversationTable(path)
    for part in (slice(2), slice(2, 3), slice(3, None)):
        n = len(scores.ids[part])
        columns = {name: values[part] for name, values in scores.columns.items()}
        found.add(replace(scores, ids=("",) * n, columns=columns, items=scores.items[part]))
    return found.report()


def scored(
    values: tuple[float | None, ...], orientation: Orientation = "higher", places: list[tuple[str, int | None]] = PLACES
) -> Scores:
    rows: list[Row] = [Unscored(Reason.EMPTY_INPUT) if value is None else {"x": value} for value in values]
    signature = Signature({"method": "x"})
    items = [Example(f"{id}:{number}", (), Turn("x"), origin=Origin(id, number)) for id, number in places[: len(rows)]]
    return Scores.from_rows(rows, items, ("x",), signature, orientation=orientation)


def text_of(table: Table | None) -> str:
    assert table is not None
    return table.render("text")


@pytest.mark.parametrize(
    ("orientation", "expected"),
    [
        ("higher", [("b", 0.4, 2, 0.4), ("d", 0.4, 3, 0.4), ("a", 0.5, 4, 0.2), ("c", None, None, None)]),
        ("lower", [("a", 0.5, 6, 0.8), ("b", 0.4, 2, 0.4), ("d", 0.4, 3, 0.4), ("c", None, None, None)]),
    ],
)
def test_the_worst_conversation_is_first_and_one_without_a_score_last(orientation: Orientation, expected: object) -> None:
    found = table(scored(VALUES, orientation))
    assert found is not None
    rows = found.rows
    assert [(row["conversation"], row["mean"], row["worst_turn"], row["worst_score"]) for row in rows] == expected
    assert {row["conversation"]: (row["n_turns"], row["n_scored"]) for row in rows} == {
        "a": (3, 3),
        "b": (2, 1),
        "c": (1, 0),
        "d": (1, 1),
    }


def test_the_table_is_printed_and_written(tmp_path: Path) -> None:
    scores = scored(VALUES)
    assert text_of(table(scores, tmp_path / "c.csv")) == (
        "conversation  n_turns  n_scored   mean  worst_turn  worst_score\n"
        "------------  -------  --------  -----  ----------  -----------\n"
        "b                   2         1  0.400           2        0.400\n"
        "d                   1         1  0.400           3        0.400\n"
        "a                   3         3  0.500           4        0.200\n"
        "c                   1         0\n"
    )
    assert (tmp_path / "c.csv").read_text(encoding="utf-8") == (
        "conversation,n_turns,n_scored,mean,worst_turn,worst_score\nb,2,1,0.4,2,0.4\nd,1,1,0.4,3,0.4\na,3,3,0.5,4,0.2\nc,1,0,,,\n"
    )
    table(scores, tmp_path / "c.json")
    written = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert [row["conversation"] for row in written["rows"]] == ["b", "d", "a", "c"]
    assert (written["main"], written["orientation"], written["signature"]) == ("x", "higher", "method:x")


def test_a_single_conversation_has_no_table_and_of_many_the_worst_are_shown() -> None:
    assert table(scored((0.5, 0.2))) is None
    assert table(scored((0.5, 0.2, 0.3), places=[("a", None), ("b", None), ("c", 1)])) is None
    many = text_of(table(scored((0.5,) * 30, places=[(str(number), 2) for number in range(30)]))).split("\n")
    assert (len(many), many[-2]) == (2 + N_SHOWN + 3, "10 more conversations: --by-conversation FILE.csv has all.")


def test_memory_does_not_grow_with_the_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[tuple[str, int | None]] = [(str(number // 2), number) for number in range(200)]
    scores = scored(tuple((number * 37 % 101) / 101 for number in range(200)), places=places)
    expected = text_of(table(scores))
    monkeypatch.setattr(printed_scores, "MOST_CLUSTERS", 3)
    found = ConversationTable()
    for start in range(0, 200, 5):  # every second conversation is in two blocks
        n = slice(start, start + 5)
        columns = {name: values[n] for name, values in scores.columns.items()}
        found.add(replace(scores, ids=("",) * 5, columns=columns, items=scores.items[n]))
        assert len(found._conversations) <= 6
        assert len(found._complete) <= N_SHOWN
    assert text_of(found.report()) == expected


def test_a_file_that_cannot_be_the_table_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.touch()
    with refused("out.txt: is neither CSV nor JSON by its name. Give a name that ends in .csv or .json."):
        ConversationTable(Path("out.txt"), str(source))
    made = ConversationTable(Path("out.csv"), str(source))
    whole = Example("a", (), Turn("x"), origin=Origin("a"))
    for item in (None, replace(whole, origin=None), whole):
        with refused("out.csv: what is scored are no turns of conversations. Leave --by-conversation out."):
            made.check(item)
    with refused(f"{source}: is the input. Choose another name for the table of the conversations."):
        ConversationTable(source, str(source))
    ConversationTable(None, str(source)).check(None)
