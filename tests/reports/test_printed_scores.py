"""What `dialeval score` prints, to the letter."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.scores import Orientation, Reason, Row, Scores, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.reports.printed_scores import histogram, summary, worst_places, worst_rows

ITEMS = [
    Example.from_texts(["Hi.", "How was the market?"], "It was full, and they had plums.", id="chat-1/4"),
    Example.from_texts([], "plums market the at", id="chat-1/6"),
    Example.from_texts(["\x1b[31mRed?\x07\n"], "no\u202e \x1b]0;title\x07 text", id="chat\x1b-2"),
    Example.from_texts(["Hi."], " ", id="blank"),
]


def scores(*values: float | None, percentiles: tuple[float | None, ...] = (), orientation: Orientation = "higher") -> Scores:
    rows: list[Row] = [Unscored(Reason.EMPTY_INPUT) if value is None else {"value": value} for value in values]
    ids = [item.id for item in ITEMS[: len(rows)]] if len(rows) <= len(ITEMS) else list(map(str, range(len(rows))))
    found = Scores.from_rows(rows, ids, ("value",), Signature({"method": "m"}), "turn", orientation)
    return replace(found, columns={**found.columns, "percentile": percentiles}) if percentiles else found


def test_a_summary_counts_what_has_no_score() -> None:
    assert summary(scores(0.5, 0.25, None)) == "value: mean 0.3750, 2 of 3 scored\nmethod:m"
    assert summary(scores(None)) == "value: no score, 0 of 1 scored\nmethod:m"


def test_a_histogram_of_percentiles() -> None:
    percentiles = (0.0, 9.9, 10.0, 100.0, *[55.0] * 7, None)
    assert histogram(scores(*[0.5] * 11, None, percentiles=percentiles), (0.0, 1.0)) == "\n".join(
        [
            "percentile among people's own:",
            "    0 to  10  ############### 2",
            "   10 to  20  ######## 1",
            "   20 to  30   0",
            "   30 to  40   0",
            "   40 to  50   0",
            "   50 to  60  ################################################## 7",
            "   60 to  70   0",
            "   70 to  80   0",
            "   80 to  90   0",
            "   90 to 100  ######## 1",
        ]
    )


@pytest.mark.parametrize(
    ("ends", "first", "last"),
    [((0.0, 1.0), "    0 to 0.1", "  0.9 to   1"), ((-math.inf, math.inf), "   0.2 to 0.26", "  0.74 to  0.8")],
)
def test_a_histogram_of_scores_spans_the_range_or_else_the_scores(ends: tuple[float, float], first: str, last: str) -> None:
    title, *bars = histogram(scores(0.2, 0.8, 0.3), ends).split("\n")
    assert (title, len(bars)) == ("value:", 10)
    assert (bars[0].startswith(first), bars[-1].startswith(last)) == (True, True)
    assert sum(int(bar.split()[-1]) for bar in bars) == 3


def test_scores_beyond_the_range_are_in_the_histogram_and_equal_ones_too() -> None:
    assert histogram(scores(1.0, 4.0), (0.0, 1.0)).split("\n")[-1] == "  3.6 to   4  " + "#" * 50 + " 1"
    assert sum(int(bar.split()[-1]) for bar in histogram(scores(2.0, 2.0), (0.0, math.inf)).split("\n")[1:]) == 2


@pytest.mark.parametrize("values", [(), (None,), (0.5,), (0.5, None)])
def test_fewer_than_two_scores_have_no_histogram(values: tuple[float | None, ...]) -> None:
    assert histogram(scores(*values), (0.0, 1.0)) == ""


def test_the_worst_come_first_and_equal_ones_in_their_order() -> None:
    values = (0.3, None, 0.1, 0.3, 0.2)
    assert worst_places(scores(*values), 3) == [2, 4, 0]
    assert worst_places(scores(*values), 10) == [2, 4, 0, 3]
    assert worst_places(scores(*values, orientation="lower"), 2) == [0, 3]
    assert worst_places(scores(*values), 0) == []


def test_the_worst_rows_with_percentile_turn_before_response_and_why() -> None:
    found = scores(0.9, 0.0123, 0.2, None, percentiles=(61.25, 0.04, 12.0, None))
    assert worst_rows(found, ITEMS, [1, 2, 0], ["words out of order", "one\n  \x1btwo", "three"], width=34) == "\n".join(
        [
            "worst 3 of 3 (percentile, score, id):",
            "    0.0  0.0123  chat-1/6",
            "      < plums market the at",
            "      words out of order",
            "   12.0  0.2000  chat -2",
            "      > [31mRed?",
            "      < no ]0;title text",
            "      one",
            "         two",
            "   61.2  0.9000  chat-1/4",
            "      > How was the market?",
            "      < It was full, and they h...",
            "      three",
        ]
    )


def test_without_percentiles_the_score_comes_first_and_of_a_dialogue_its_last_turns() -> None:
    dialogue = Dialogue("d", (Turn("Hello."), Turn("Any plums?"), Turn("三個字三個字")))
    assert worst_rows(scores(0.5), [dialogue], [0], width=18) == "\n".join(
        ["worst 1 of 1 (score, id):", "  0.5000  d", "      > Any plums?", "      < 三個字..."]
    )
