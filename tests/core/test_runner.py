"""The pipeline of every scorer. FAULTS R24, R43, R64."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from typing import ClassVar

import pytest
import torch

from dialeval_plugin.core import scorer as pipeline
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scorer import Scorer, run
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.version import __version__
from tests.refusals import refused

REFUSED = Unscored(Reason.REFUSAL, "no ▁ \u2028 “quoted”")


class Scripted(Scorer):
    """Scores a response that is a number by that number, refuses "refuse", and keeps what it was asked."""

    name = "scripted"
    columns = ("value", "length")
    window: ClassVar[int] = 4

    def __init__(self, level: Level = "turn", options: str = "") -> None:
        self.level = level
        self.options = options
        self.asked: list[list[str]] = []

    def text(self, item: Item) -> str:
        return item.response.text if isinstance(item, Example) else item.turns[-1].text

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        texts = [self.text(item) for item in items]
        self.asked.append(texts)
        return [REFUSED if text == "refuse" else {"value": float(text), "length": float(len(text))} for text in texts]

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        return {"method": "scripted", "options": self.options}


def examples(responses: Sequence[str]) -> list[Example]:
    return [Example.from_texts(["Hi."], response, id=f"e{index}") for index, response in enumerate(responses)]


NUMBERS = [str(index / 8) for index in range(10)]


def test_items_come_in_windows_and_rows_in_order() -> None:
    scorer = Scripted()
    scores = scorer.score(examples(NUMBERS))
    assert scorer.asked == [NUMBERS[:4], NUMBERS[4:8], NUMBERS[8:]]
    assert scores.values == tuple(float(number) for number in NUMBERS)
    assert scores.ids == tuple(f"e{index}" for index in range(10))


@pytest.mark.parametrize("window", [1, 3, 10, 100])
def test_the_window_changes_no_row(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Scripted().score(examples(NUMBERS))
    monkeypatch.setattr(Scripted, "window", window)
    assert Scripted().score(examples(NUMBERS)) == whole


def test_equal_items_of_a_window_are_scored_once() -> None:
    scorer = Scripted()
    scores = scorer.score(examples(["1", "2", "1", "1", "2", "refuse", "refuse"]))
    assert scorer.asked == [["1", "2"], ["2", "refuse"]]
    assert scores.values == (1.0, 2.0, 1.0, 1.0, 2.0, None, None)


def test_items_are_equal_when_everything_that_a_score_may_depend_on_is() -> None:
    scorer = Scripted()
    same = [
        Example.from_texts(["Hi."], "1", id="a"),
        Example("b", (Turn("Hi."),), Turn("1"), system="bot", ratings={"overall": (3.0,)}),
    ]
    scorer.score(same)
    assert scorer.asked == [["1"]]

    # Each beside the first, in one window: of items in two windows none is ever compared.
    one = Example.from_texts(["Hi."], "1")
    for other in (
        Example.from_texts(["Hi.", ""], "1"),
        Example.from_texts([], "1"),
        Example.from_texts(["Hi!"], "1"),
        Example.from_texts(["Hi."], "1", facts=["tea"]),
        Example.from_texts(["Hi."], "1", references=["tea"]),
        Example("0", (Turn("Hi.", "User"),), Turn("1")),
        Example("0", (Turn("Hi."),), Turn("1", "User")),
    ):
        scorer = Scripted()
        scorer.score([one, other])
        assert scorer.asked == [["1", "1"]], other


def test_dialogues_are_scored_at_their_level() -> None:
    scorer = Scripted(level="dialogue")
    scores = scorer.score([Dialogue("a", (Turn("1"),)), Dialogue("b", (Turn("1"),)), Dialogue("c", (Turn("2"),))])
    assert scorer.asked == [["1", "2"]]
    assert (scores.values, scores.level) == ((1.0, 1.0, 2.0), "dialogue")


@pytest.mark.parametrize(
    ("level", "items", "wrong", "wanted"),
    [
        ("turn", [*examples(["1"]), Dialogue("d", ())], "item 1 is a whole dialogue", "Example"),
        ("dialogue", [Dialogue("d", ()), Dialogue("e", ()), *examples(["1"])], "item 2 is a response", "Dialogue"),
        ("turn", ["Hi."], "item 0 is 'Hi.'", "Example"),
    ],
)
def test_an_item_of_another_level_is_refused_before_any_is_scored(
    level: Level, items: Sequence[Item], wrong: str, wanted: str
) -> None:
    scorer = Scripted(level=level)
    with refused(f"scripted: {wrong}, but this scorer works at {level} level. Pass {wanted} objects."):
        run(scorer, items)
    assert scorer.asked == []


def test_the_signature_ends_with_level_and_version_and_the_orientation_is_the_scorers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "orientation", "lower")
    scores = Scripted(options="x").score(examples(["1"]))
    assert str(scores.signature) == f"method:scripted|options:x|level:turn|version:{__version__}"
    assert scores.orientation == "lower"


def test_no_items_give_an_empty_table() -> None:
    scorer = Scripted()
    scores = scorer.score([])
    assert (scores.n_total, scores.values, scorer.asked) == (0, (), [])


def test_a_generator_is_scored_as_a_list() -> None:
    """It was a TypeError: a generator has no len()."""
    items = examples(["1", "2"])
    assert Scripted().score(item for item in items) == Scripted().score(items)


def test_rows_without_a_score_are_counted_in_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    Scripted().score(examples(["1", "refuse", "nan", "refuse", "5"]))
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "scripted: 3 of 5 examples have no score: {'non_finite': 1, 'refusal': 2}")
    ]


def test_a_scorer_that_loses_a_row_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "score_batch", lambda self, items: [{"value": 1.0}])
    with pytest.raises(RuntimeError, match=r"^scripted\.score_batch returned 1 rows for 3 items$"):
        Scripted().score(examples(["1", "2", "3"]))


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_value_that_is_not_finite_is_unscored(text: str) -> None:
    scores = Scripted().score(examples(["1", text, "2"]))
    assert scores.unscored == {1: Unscored(Reason.NON_FINITE, f"value is {float(text)}")}


def test_normalise_rows_sees_all_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "BLOCK", 2)
    monkeypatch.setattr(Scripted, "normalise_rows", share_of_the_highest)
    assert run(Scripted(), examples(["1", "refuse", "2", "3", "8"])).values == (0.125, None, 0.25, 0.375, 1.0)


def share_of_the_highest(self: Scripted, rows: list[Row]) -> list[Row]:
    top = max(row["value"] for row in rows if not isinstance(row, Unscored))  # type: ignore[type-var]
    return [row if isinstance(row, Unscored) else {**row, "value": row["value"] / top} for row in rows]  # type: ignore[operator]


# One item never takes the others with it (D12, R44); an error of the scorer's own says where it was.


class Narrow(Scripted):
    """Has no room for a batch in which a text is longer than five characters."""

    error: Exception = MemoryError("Unable to allocate 298. GiB")

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        if any(len(self.text(item)) > 5 for item in items):
            self.asked.append([self.text(item) for item in items])
            raise self.error
        return super().score_batch(items)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 298. GiB"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 7 bytes."),
        torch.OutOfMemoryError("CUDA out of memory."),
    ],
)
def test_d12_an_item_without_room_is_one_row_without_a_score(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    detail = f"memory does not suffice ({str(error) or 'MemoryError'})"
    monkeypatch.setattr(Narrow, "error", error)
    items = examples(["1", "2", "3.00000", "2", "4", "5", "6", "7"])
    scorer = Narrow()
    scores = run(scorer, items)

    assert scores.unscored == {2: Unscored(Reason.CONTEXT_TOO_LONG, detail)}
    assert scores.values == (1.0, 2.0, None, 2.0, 4.0, 5.0, 6.0, 7.0)
    assert scorer.asked == [["1", "2", "3.00000"], ["1"], ["2"], ["3.00000"], ["4", "5", "6", "7"]]


@pytest.mark.parametrize(
    ("window", "named"),
    [(4, "one of the 4 items from 'e4' to 'e7'"), (1, "item 'e6'"), (8, "one of the 8 items from 'e0' to 'e7'")],
)
def test_d12_an_error_of_the_scorers_own_goes_on_and_the_log_names_the_items(
    window: int, named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Scripted, "window", window)
    items = examples(["0", "1", "2", "3", "4", "5", "six", "7"])
    with pytest.raises(ValueError, match=r"^could not convert string to float: 'six'$"):
        run(Scripted(), items)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("ERROR", f"scripted: failed on {named}")]


def test_an_error_meant_for_people_is_not_logged_beside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Scripted, items: Sequence[Item]) -> list[Row]:
        raise InputError("scripted: no key. Give one.")

    monkeypatch.setattr(Scripted, "score_batch", refuse)
    with pytest.raises(InputError, match=r"^scripted: no key\. Give one\.$"):
        Scripted().score(examples(["1"]))
    assert caplog.records == []


def test_a_run_without_a_bar_says_now_and_then_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRIAL section 1: 50 seconds without a word where stderr is no terminal."""
    Scripted().score(examples(NUMBERS), progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("tqdm.std.time", itertools.count(0, 20).__next__)
    Scripted().score(examples(NUMBERS))
    assert capsys.readouterr().err == ""
    Scripted().score(examples(NUMBERS), progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"scripted: {n} of 10 examples ({10 * n} %)" for n in (4, 8, 10)]


def test_what_was_cut_is_said_once_a_run(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "truncation_columns", {"length": "the end was not read", "value": "nothing is ever lost"})
    scores = Scripted().score(examples(["0", "0", "00", "refuse", "0"]))
    assert [record.getMessage() for record in caplog.records] == [
        f"scripted: 1 of 5 examples have no score: {scores.unscored_by_reason}",
        "scripted: in 4 of 5 examples the end was not read",
    ]


def test_an_error_of_the_same_kind_is_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Narrow, "error", RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match=r"^mat1 and mat2 shapes cannot be multiplied$"):
        run(Narrow(), examples(["3.00000"]))
