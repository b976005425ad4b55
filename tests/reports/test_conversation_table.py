"""The table of conversations: each one's mean and worst turn, the worst conversation first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Origin
from dialeval_plugin.core.scores import Orientation, Reason, Row, Scores, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.reports.conversations import N_SHOWN, check_table_file, conversation_rows, report_conversations
from dialeval_plugin.reports.tables import Table
from tests.refusals import refused

PLACES = [Origin("a", 2), Origin("a", 4), Origin("b", 2), Origin("b", 4), Origin("c", 2), Origin("d", 3), Origin("a", 6)]
VALUES = (0.5, 0.2, 0.4, None, None, 0.4, 0.8)


def scored(values: tuple[float | None, ...], orientation: Orientation = "higher") -> Scores:
    rows: list[Row] = [Unscored(Reason.EMPTY_INPUT) if value is None else {"x": value} for value in values]
    signature = Signature({"method": "x"})
    return Scores.from_rows(rows, [str(place) for place in range(len(rows))], ("x",), signature, orientation=orientation)


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
    rows = conversation_rows(scored(VALUES, orientation), PLACES)
    assert [(row["conversation"], row["mean"], row["worst_turn"], row["worst_score"]) for row in rows] == expected
    assert {row["conversation"]: (row["n_turns"], row["n_scored"]) for row in rows} == {
        "a": (3, 3),
        "b": (2, 1),
        "c": (1, 0),
        "d": (1, 1),
    }


def test_the_table_is_printed_and_written(tmp_path: Path) -> None:
    scores = scored(VALUES)
    assert text_of(report_conversations(scores, PLACES, tmp_path / "c.csv")) == (
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
    report_conversations(scores, PLACES, tmp_path / "c.json")
    written = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))
    assert written["rows"] == conversation_rows(scores, PLACES)
    assert (written["main"], written["orientation"], written["signature"]) == ("x", "higher", "method:x")


def test_a_single_conversation_has_no_table_and_of_many_the_worst_are_shown() -> None:
    assert report_conversations(scored((0.5, 0.2)), PLACES[:2]) is None
    assert report_conversations(scored((0.5, 0.2)), []) is None
    many = text_of(report_conversations(scored((0.5,) * 30), [Origin(str(number), 2) for number in range(30)])).split("\n")
    assert (len(many), many[-2]) == (2 + N_SHOWN + 3, "10 more conversations: --by-conversation FILE.csv has all.")


def test_a_file_that_cannot_be_the_table_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.touch()
    with refused("out.txt: cannot be told to be CSV or JSON. Give a name that ends in .csv or .json."):
        check_table_file(Path("out.txt"), source, PLACES, "turn")
    for places, level in (([], "turn"), (PLACES, "dialogue")):
        with refused("out.csv: what is scored are no turns of conversations. Leave --by-conversation out."):
            check_table_file(Path("out.csv"), source, places, level)  # type: ignore[arg-type] # a literal of a loop
    with refused(f"{source}: is the input. Choose another name for the table of the conversations."):
        check_table_file(source, source, PLACES, "turn")
    check_table_file(None, source, [], "dialogue")
