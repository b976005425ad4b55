"""The pipeline of every scorer. FAULTS R24, R43, R61, R63 (what was finished is kept), R64."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from unittest.mock import MagicMock, Mock, call

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core import scorer as pipeline
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scorer import Scorer, run
from dialeval_plugin.core.scores import Reason, Row, Scores, Unscored
from dialeval_plugin.terminal import progress
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


class Wider(Scripted):
    """Scores as it does, in other windows: with its journal a resumed run would not have those of an uninterrupted one."""

    window: ClassVar[int] = 5


def examples(responses: Sequence[str]) -> list[Example]:
    return [Example.from_texts(["Hi."], response, id=f"e{index}") for index, response in enumerate(responses)]


NUMBERS = [str(index / 8) for index in range(10)]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def asked_to_the_end(scorer: Scripted, items: Sequence[Item], journal: Path) -> list[list[str]]:
    """Finish a run, which ends as one that nothing ever stopped, and return what was asked of `scorer` for it."""
    assert run(scorer, items, journal=journal) == Scripted().score(items)
    return scorer.asked


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
        ("turn", [*examples(["1"]), Dialogue("d", ())], "item 1 is of type Dialogue", "Example"),
        ("dialogue", [Dialogue("d", ()), Dialogue("e", ()), *examples(["1"])], "item 2 is of type Example", "Dialogue"),
        ("turn", ["Hi."], "item 0 is of type str", "Example"),
    ],
)
def test_an_item_of_another_level_is_refused_before_any_is_scored(
    level: Level, items: Sequence[Item], wrong: str, wanted: str, journal: Path
) -> None:
    scorer = Scripted(level=level)
    with refused(f"scripted: {wrong}, but this scorer works at {level} level. Pass {wanted} objects."):
        run(scorer, items, journal=journal)
    assert scorer.asked == []
    assert not journal.exists()


def test_the_signature_ends_with_level_and_version_and_the_orientation_is_the_scorers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "orientation", "lower")
    scores = Scripted(options="x").score(examples(["1"]))
    assert str(scores.signature) == f"method:scripted|options:x|level:turn|version:{__version__}"
    assert scores.orientation == "lower"


def test_no_items_give_an_empty_table() -> None:
    scorer = Scripted()
    scores = scorer.score([])
    assert (scores.n_total, scores.values, scorer.asked) == (0, (), [])


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
def test_a_value_that_is_not_finite_is_unscored_through_a_journal_too(text: str, journal: Path) -> None:
    items = examples(["1", text, "2", "3", "4"])
    direct = Scripted().score(items)
    run(Scripted(), items, journal=journal)
    again = Scripted()

    assert direct.unscored == {1: Unscored(Reason.NON_FINITE, f"value is {float(text)}")}
    assert run(again, items, journal=journal) == direct
    assert again.asked == []
    assert not any(word in journal.read_text() for word in ("NaN", "Infinity"))


def test_normalise_rows_sees_all_rows_at_once(monkeypatch: pytest.MonkeyPatch, journal: Path) -> None:
    def normalise_rows(self: Scripted, rows: list[Row]) -> list[Row]:
        top = max(row["value"] for row in rows if not isinstance(row, Unscored))  # type: ignore[type-var]
        return [row if isinstance(row, Unscored) else {**row, "value": row["value"] / top} for row in rows]  # type: ignore[operator]

    monkeypatch.setattr(Scripted, "normalise_rows", normalise_rows)
    items = examples(["1", "refuse", "2", "3", "8"])
    run(Scripted(), items, journal=journal)

    resumed = run(Scripted(), items, journal=journal)
    assert resumed.values == (0.125, None, 0.25, 0.375, 1.0)


# The journal: what is in it was finished, and the rest is scored again.


ITEMS = examples([*NUMBERS, "refuse", "nan", "0.5", "0.1"])
ANOTHER_RUN = "this unfinished run has other inputs or settings than the present one"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scores, bytes]:
    """The scores of an uninterrupted run and its journal."""
    journal = tmp_path_factory.mktemp("finished") / "journal"
    return run(Scripted(), ITEMS, journal=journal), journal.read_bytes()


def test_a_journal_is_a_header_and_a_line_a_window(finished: tuple[Scores, bytes]) -> None:
    header, *windows = finished[1].splitlines()
    assert list(json.loads(header)) == ["run"]
    assert [len(json.loads(window)) for window in windows] == [4, 4, 4, 2]


@given(data=st.data())
def test_a_journal_cut_at_any_byte_is_finished_to_the_same_bytes(
    data: st.DataObject, finished: tuple[Scores, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    scores, raw = finished
    cut = data.draw(st.integers(0, len(raw)))
    journal = tmp_path_factory.mktemp("cut") / "journal"
    journal.write_bytes(raw[:cut])
    scorer = Scripted()

    assert run(scorer, ITEMS, journal=journal) == scores
    assert journal.read_bytes() == raw
    n_whole = max(raw[:cut].count(b"\n") - 1, 0) * Scripted.window
    assert [text for window in scorer.asked for text in window] == [scorer.text(item) for item in ITEMS[n_whole:]]


OTHERS: dict[str, tuple[list[Example], Scripted]] = {
    "fewer": (ITEMS[:-1], Scripted()),
    "order": ([*ITEMS[1:], ITEMS[0]], Scripted()),
    "context": ([Example.from_texts(["Hi!"], "0", id="e0"), *ITEMS[1:]], Scripted()),
    "id": ([Example.from_texts(["Hi."], "0.0", id="other"), *ITEMS[1:]], Scripted()),
    "speaker": ([Example("e0", (Turn("Hi.", "User"),), Turn("0.0")), *ITEMS[1:]], Scripted()),
    "options": (ITEMS, Scripted(options="other")),
    "window": (ITEMS, Wider()),
}


@pytest.mark.parametrize("change", OTHERS)
def test_a_journal_of_another_run_is_refused_and_kept(change: str, finished: tuple[Scores, bytes], journal: Path) -> None:
    journal.write_bytes(finished[1])
    items, scorer = OTHERS[change]
    with pytest.raises(InputError, match=ANOTHER_RUN):
        run(scorer, items, journal=journal)
    assert scorer.asked == []
    assert journal.read_bytes() == finished[1]


def test_a_journal_of_another_version_is_refused(
    finished: tuple[Scores, bytes], journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.write_bytes(finished[1])
    monkeypatch.setattr(pipeline, "__version__", "9.9.9")
    with pytest.raises(InputError, match=ANOTHER_RUN):
        run(Scripted(), ITEMS, journal=journal)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[{", "not valid JSON (Expecting property name enclosed in double quotes). Was the file cut off?"),
        (b'[{"reason": "tired", "detail": ""}]', "is damaged ('tired' is not a valid Reason)."),
        (b'[{"reason": "refusal"}]', "is damaged ('detail')."),
        (b"7", "is damaged ('int' object is not iterable)."),
    ],
)
def test_a_damaged_window_is_named(line: bytes, problem: str, finished: tuple[Scores, bytes], journal: Path) -> None:
    header, first, *rest = finished[1].splitlines(keepends=True)
    journal.write_bytes(header + first + line + b"\n" + b"".join(rest))
    with refused(f"{journal}:3: {problem} Delete the file to start again."):
        run(Scripted(), ITEMS, journal=journal)


def test_a_full_disk_keeps_the_finished_windows(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_calls = iter(range(100))

    def fsync(descriptor: int) -> None:
        if next(n_calls) == 2:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(InputError, match="No space left on device"):
            run(Scripted(), ITEMS, journal=journal)
    assert len(asked_to_the_end(Scripted(), ITEMS, journal)) < 4


# Rows that failed with api_error are asked again (R69); a second process is kept out (R62).


class Failing(Scripted):
    """Has no answer for the texts in `down`."""

    def __init__(self, *down: str) -> None:
        super().__init__()
        self.down = down

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        rows = super().score_batch(items)
        return [
            Unscored(Reason.API_ERROR, "503") if self.text(item) in self.down else row
            for item, row in zip(items, rows, strict=True)
        ]


def test_a_resumed_run_scores_failed_rows_again_and_ends_as_if_none_had_failed(journal: Path) -> None:
    items = examples(["1", "2", "3", "refuse", "2", "5", "6", "7", "8"])
    first = run(Failing("2", "6"), items, journal=journal)
    assert first.unscored_by_reason == {"api_error": 3, "refusal": 1}

    second = Failing("6")
    assert run(second, items, journal=journal).unscored_by_reason == {"api_error": 1, "refusal": 1}
    assert second.asked == [["2", "6"]]

    assert asked_to_the_end(Failing(), items, journal) == [["6"]]
    assert asked_to_the_end(Failing(), items, journal) == []


def test_rows_scored_again_survive_a_cut_of_the_journal(journal: Path) -> None:
    items = examples(["1", "2", "3", "4", "5"])
    run(Failing("2", "5"), items, journal=journal)
    n_before = len(journal.read_bytes())
    run(Failing("5"), items, journal=journal)
    raw = journal.read_bytes()
    for cut in (n_before, n_before + 1, (n_before + len(raw)) // 2, len(raw) - 1, len(raw)):
        journal.write_bytes(raw[:cut])
        assert asked_to_the_end(Failing(), items, journal) == ([["5"]] if cut == len(raw) else [["2", "5"]])


HOLD = """
import sys, time
from pathlib import Path
from dialeval_plugin.core.journal import Journal

with Journal(Path(sys.argv[1]), "any").lock():
    print("locked", flush=True)
    time.sleep(120)
"""


def test_a_second_process_on_the_same_journal_is_refused_until_the_first_is_gone(tmp_path: Path, journal: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(journal)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        scorer = Scripted()
        with pytest.raises(InputError, match="another process is at work on this run"):
            run(scorer, ITEMS, journal=journal)
        assert scorer.asked == []
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()

    asked_to_the_end(Scripted(), ITEMS, journal)
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


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
def test_d12_an_item_without_room_is_one_row_without_a_score(
    error: Exception, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detail = f"memory does not suffice ({str(error) or 'MemoryError'})"
    monkeypatch.setattr(Narrow, "error", error)
    items = examples(["1", "2", "3.00000", "2", "4", "5", "6", "7"])
    scorer = Narrow()
    scores = run(scorer, items, journal=journal)

    assert scores.unscored == {2: Unscored(Reason.CONTEXT_TOO_LONG, detail)}
    assert scores.values == (1.0, 2.0, None, 2.0, 4.0, 5.0, 6.0, 7.0)
    assert scorer.asked == [["1", "2", "3.00000"], ["1"], ["2"], ["3.00000"], ["4", "5", "6", "7"]]
    again = Narrow()
    assert run(again, items, journal=journal) == scores
    assert again.asked == []


@pytest.mark.parametrize(
    ("window", "named"),
    [(4, "one of the 4 items from 'e4' to 'e7'"), (1, "item 'e6'"), (8, "one of the 8 items from 'e0' to 'e7'")],
)
def test_d12_an_error_of_the_scorers_own_goes_on_and_the_log_names_the_items(
    window: int, named: str, journal: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Scripted, "window", window)
    items = examples(["0", "1", "2", "3", "4", "5", "six", "7"])
    with pytest.raises(ValueError, match=r"^could not convert string to float: 'six'$"):
        run(Scripted(), items, journal=journal)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("ERROR", f"scripted: failed on {named}")]
    assert journal.read_bytes().count(b"\n") == 1 + 6 // window


def test_an_error_meant_for_people_is_not_logged_beside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Scripted, items: Sequence[Item]) -> list[Row]:
        raise InputError("scripted: no key. Give one.")

    monkeypatch.setattr(Scripted, "score_batch", refuse)
    with pytest.raises(InputError, match=r"^scripted: no key\. Give one\.$"):
        Scripted().score(examples(["1"]))
    assert caplog.records == []


JOURNALLED = {"columns": {"value": 1.0, "length": 1.0}}


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([[JOURNALLED] * 4, {"4": JOURNALLED}], "place 4 of 4"),
        ([[JOURNALLED] * 4, {"-1": JOURNALLED}], "place -1 of 4"),
        ([[JOURNALLED] * 4] * 4, "16 rows of 14"),
    ],
)
def test_r61_a_journal_with_rows_of_no_item_is_damaged(
    parts: list[object], problem: str, finished: tuple[Scores, bytes], journal: Path
) -> None:
    header = finished[1].split(b"\n")[0] + b"\n"
    journal.write_bytes(header + b"".join(json.dumps(part).encode() + b"\n" for part in parts))
    with refused(f"{journal}: is damaged ({problem}). Delete the file to start again."):
        run(Scripted(), ITEMS, journal=journal)


def test_rows_that_failed_are_asked_again_in_windows(journal: Path) -> None:
    items = examples([str(number) for number in range(12)])
    for _ in range(2):  # a repetition that failed as well stands in the journal
        run(Failing(*map(str, range(10))), items, journal=journal)
    assert asked_to_the_end(Failing(), items, journal) == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]]


def test_a_resumed_run_says_how_many_are_done(journal: Path, caplog: pytest.LogCaptureFixture) -> None:
    items = examples(["1", "2", "3"])
    run(Failing("2"), items, journal=journal)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        run(Failing(), items, journal=journal)
    assert caplog.messages == [f"{journal}: going on from 2 of 3 rows in the journal"]


def test_a_run_without_a_bar_says_now_and_then_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRIAL section 1: 50 seconds without a word where stderr is no terminal."""
    Scripted().score(examples(NUMBERS), progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    Scripted().score(examples(NUMBERS))
    assert capsys.readouterr().err == ""
    Scripted().score(examples(NUMBERS), progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == [f"scripted: {n} of 10 examples ({10 * n} %)" for n in (4, 8, 10)]


def test_a_rehearsal_hands_over_the_windows_of_a_run_and_keeps_nothing() -> None:
    scorer = Scripted()
    pipeline.dry_run(scorer, examples(["1", "1", "2", "3", "4", "5"]))
    assert scorer.asked == [["1", "2", "3"], ["4", "5"]]
    with pytest.raises(InputError, match=r"^scripted: item 0 is of type Dialogue"):
        pipeline.dry_run(scorer, [Dialogue("d", ())])


def test_what_was_cut_is_said_once_a_run(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scripted, "cuts", {"length": "the end was not read", "value": "nothing is ever lost"})
    scores = Scripted().score(examples(["0", "0", "00", "refuse", "0"]))
    assert [record.getMessage() for record in caplog.records] == [
        f"scripted: 1 of 5 examples have no score: {scores.unscored_by_reason}",
        "scripted: in 4 of 5 examples the end was not read",
    ]


def test_the_bar_counts_examples_also_of_a_run_that_goes_on(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = Mock(return_value=MagicMock())
    monkeypatch.setattr(pipeline, "Progress", bars)
    settings = {"unit": "example", "desc": "scripted"}
    items = examples([str(number) for number in range(10)])
    for scorer, own, n_done, disable, steps in (
        (Failing("0", "1"), {"journal": journal}, 0, True, [4, 4, 2]),
        (Failing(), {"journal": journal, "progress": True}, 8, False, [2]),
        (Failing(), {"progress": True}, 0, False, [4, 4, 2]),
    ):
        run(scorer, items, **own)  # type: ignore[arg-type]
        assert bars.call_args == call(**settings, total=10, initial=n_done, disable=disable)
        bar = bars.return_value.__enter__.return_value
        assert bar.update.call_args_list == [call(n) for n in steps]
        bar.update.reset_mock()


def test_an_error_of_the_same_kind_is_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Narrow, "error", RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match=r"^mat1 and mat2 shapes cannot be multiplied$"):
        run(Narrow(), examples(["3.00000"]))


def test_the_order_of_signature_fields_is_no_part_of_a_runs_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    fields: dict[str, str | int | float | bool | None] = {"method": "scripted", "seed": 0, "clip": True, "window": None}
    monkeypatch.setattr(Scripted, "signature_fields", lambda self: fields)
    one = pipeline.run_id(Scripted(), examples(["1"]))
    monkeypatch.setattr(Scripted, "signature_fields", lambda self: dict(reversed(fields.items())))
    assert pipeline.run_id(Scripted(), examples(["1"])) == one
