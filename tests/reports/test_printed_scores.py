"""Output of `dialeval score`, to the letter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Origin, Turn
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Orientation, Reason, Row, Scores, Unscored
from dialeval_plugin.core.signature import Signature
from dialeval_plugin.reports.printed_scores import RunningSummary, drawn_bars, drawn_rows, summary

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


class Valued(Scorer):
    """Whose scores are made up here."""

    name = "valued"
    columns = ("value",)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        raise NotImplementedError

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        return {"method": "m"}


def summed(
    found: Scores, ends: tuple[float, float] = (0.0, 1.0), items: Sequence[Item] = (), n_worst: int = 0
) -> RunningSummary:
    scorer = Valued()
    scorer.range, scorer.orientation = ends, found.orientation
    made = RunningSummary(scorer, n_worst)
    made.add(replace(found, items=tuple(items or (Example.from_texts([], "x", id=id) for id in found.ids))))
    return made


def histogram(found: Scores, ends: tuple[float, float]) -> str:
    bars = summed(found, ends).bars
    return "" if bars is None else drawn_bars(bars)


def worst_rows(found: Scores, items: Sequence[Item], n: int, explanations: Sequence[str] = (), *, width: int = 80) -> str:
    rows = summed(found, items=items, n_worst=n).worst
    return drawn_rows(rows, explanations, n_scored=found.n_scored, has_percentiles="percentile" in found.columns, width=width)


def test_a_summary_counts_what_has_no_score_and_what_was_left_out() -> None:
    meta = {"main": "value", "mean": 0.375, "n_scored": 2, "n_total": 3, "signature": "method:m", "left_out": {}}
    assert summary(meta) == "value: mean 0.3750, 2 of 3 scored\nm#e4598341 (dialeval unknown)"
    assert summary({**meta, "mean": None, "left_out": {"system message": 2}}, "", 7) == (
        "value: no score, 2 of 3 scored\nleft out: 2 system messages\nm#e4598341 (dialeval unknown)"
    )
    assert (
        summary(meta, "[0.1000, 0.5000]", 12)
        == "value: mean 0.3750 [0.1000, 0.5000], 2 of 3 scored, 12 conversations\nm#e4598341 (dialeval unknown)"
    )


def test_the_mean_has_an_interval_over_conversations() -> None:
    """Rows of one conversation resemble each other: as if they were each of its own, the interval would be too narrow."""
    rows = [(str(number), value) for number in range(40) for value in (number % 4, number % 4 + 0.5)]

    def interval(conversations: Sequence[str]) -> tuple[float, float]:
        items = [
            Example(str(place), (), Turn("x"), origin=Origin(conversation, place))
            for place, conversation in enumerate(conversations)
        ]
        found = summed(scores(*(value for _, value in rows)), items=items).estimate
        assert found.ci_low is not None
        assert found.ci_high is not None
        return found.ci_low, found.ci_high

    (low, high), (narrow_low, narrow_high) = interval([name for name, _ in rows]), interval([str(n) for n in range(80)])
    assert low < narrow_low < 1.75 < narrow_high < high
    assert (high - low) / (narrow_high - narrow_low) == pytest.approx(2**0.5, rel=0.15)


def test_responses_after_growing_contexts_of_one_opening_are_of_one_conversation() -> None:
    openings = [[f"Tea {number}?", "Yes.", "Hot?"] for number in range(4)]
    items = [
        Example.from_texts([*opening, *longer], "Well.", id=f"{number}/{len(longer)}")
        for number, opening in enumerate(openings)
        for longer in ([], ["Very.", "Milk?"], ["Very.", "Milk?", "No.", "So?"])
    ]
    assert summed(scores(*range(12)), items=items).estimate.n_clusters == 4


def test_of_more_conversations_than_are_kept_apart_some_share_their_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialeval_plugin.reports.printed_scores.MOST_CLUSTERS", 40)
    values = [float(number % 10) for number in range(4000)]
    found = summed(scores(*values))
    interval = found.estimate
    assert (interval.n_clusters, found.mean()) == (40, pytest.approx(4.5))
    assert interval.ci_low is not None
    assert interval.ci_high is not None
    assert interval.ci_low < 4.5 < interval.ci_high
    # 2.87 of standard deviation, over the root of 4000 rows, times twice 1.96.
    assert interval.ci_high - interval.ci_low == pytest.approx(0.178, rel=0.35)


def test_a_histogram_of_percentiles() -> None:
    percentiles = (0.0, 9.9, 10.0, 100.0, *[55.0] * 7, None)
    assert histogram(scores(*[0.5] * 11, None, percentiles=percentiles), (0.0, 1.0)) == "\n".join(
        [
            "percentile among good responses:",
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


@pytest.mark.parametrize("values", [(), (None,)])
def test_without_a_score_there_is_no_histogram(values: tuple[float | None, ...]) -> None:
    assert histogram(scores(*values), (0.0, 1.0)) == ""


def test_the_worst_come_first_and_equal_ones_in_their_order() -> None:
    values = (0.3, None, 0.1, 0.3, 0.2)

    def worst(n: int, orientation: Orientation = "higher") -> list[int]:
        return [int(row.item.id) for row in summed(scores(*values, orientation=orientation), n_worst=n).worst]

    assert worst(3) == [2, 4, 0]
    assert worst(10) == [2, 4, 0, 3]
    assert worst(2, "lower") == [0, 3]
    assert worst(0) == []


def test_the_worst_rows_with_percentile_turn_before_response_and_why() -> None:
    found = scores(0.9, 0.0123, 0.2, None, percentiles=(61.25, 0.04, 12.0, None))
    assert worst_rows(found, ITEMS, 3, ["words out of order", "one\n  \x1btwo", "three"], width=34) == "\n".join(
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
    assert worst_rows(scores(0.5), [dialogue], 1, width=18) == "\n".join(
        ["worst 1 of 1 (score, id):", "  0.5000  d", "      > Any plums?", "      < 三個字..."]
    )
