"""Many contexts: the journal, a killed run, what is written, that training can read it, and the sheet for people.

FAULTS R47, R61, R63, R69.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dialeval_plugin.core.plain_text import for_spreadsheet
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora.readers import dailydialog_pp
from dialeval_plugin.corpora.registry import read_items
from dialeval_plugin.methods.augmentation.augmentation import (
    SHEET_HEADER,
    AugmentedContext,
    Candidate,
    ResponseWriter,
    augment,
    incomplete_path,
    write_augmented,
    write_spot_check,
)
from dialeval_plugin.methods.slide.data import MixedSets, split_by_context
from tests.refusals import refusal
from tests.scripted_writer import CONTEXTS, NumberedScript, finish, is_generation


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(tmp_path_factory.mktemp("finished"), NumberedScript())


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_the_output_is_dailydialog_pp_that_training_reads(finished: Path) -> None:
    sets = dailydialog_pp.read(finished)
    assert [item.id for item in sets] == ["c0", "c1", "c2", "c4", "c5", "c6", "c7", "c8"]
    assert sets[0].context == CONTEXTS[0].context
    assert sets[5].positive == ("Fit 6a.", "Fit 6b.", "Fit 6d.", "Fit 6e.", "Fit 6c.")
    assert {(len(item.positive), len(item.adversarial)) for item in sets} == {(5, 5)}
    splits = split_by_context(sets, fraction=0.25, seed=0)
    assert (len(splits.training), len(splits.validation)) == (6, 2)
    assert MixedSets(splits.training, ranked_per_set=1, seed=0)[0].labels == (1,) * 5 + (0,) * 5
    assert len(read_items(finished)) == 80


def test_each_response_says_where_it_is_from(finished: Path) -> None:
    row = rows(finished)[5]
    provenance = row["provenance"]
    assert isinstance(provenance, dict)
    expected = {"llm": "scripted@1", "rounds": 2, "seed": 0, "temperature": 0.7, "version": "0.1.0"}
    assert {key: provenance[key] for key in expected} == expected
    by_text = {response["text"]: response for response in provenance["responses"]}
    judged = {"round": 1, "llm_verdict": "negative", "slm_score": None, "is_accepted": False}
    assert by_text["Misses."] == {"kind": "positive", "text": "Misses.", **judged}
    assert (by_text["Fit 6c."]["round"], by_text["Fit 6c."]["is_accepted"]) == (2, True)
    written = [*row["positive_responses"], *row["adversarial_negative_responses"]]  # type: ignore[misc]
    assert {text for text, response in by_text.items() if response["is_accepted"]} == set(written)


def test_a_context_that_was_not_completed_is_reported_and_not_padded(finished: Path) -> None:
    (row,) = rows(incomplete_path(finished))
    assert (row["id"], row["positive_responses"], row["adversarial_negative_responses"]) == ("c3", [], [])
    assert row["reason"] == (
        "0 of 5 positive and 0 of 5 adversarial responses in 2 rounds; answers without responses: 2 refusal"
    )
    assert dailydialog_pp.read(incomplete_path(finished))[0].id == "c3"


OUTPUTS = ("out.jsonl", "out.jsonl.incomplete.jsonl")


def has_the_bytes_of(finished: Path, folder: Path, *names: str) -> bool:
    return all((folder / name).read_bytes() == (finished.parent / name).read_bytes() for name in names)


@pytest.mark.parametrize("cut", [0, 5, 60, 400, 1500, 4000, None])
def test_a_journal_cut_at_any_byte_ends_with_the_same_files(cut: int | None, finished: Path, tmp_path: Path) -> None:
    whole = (finished.parent / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(whole[:cut])
    script = NumberedScript()
    finish(tmp_path, script)
    assert has_the_bytes_of(finished, tmp_path, *OUTPUTS, "journal")
    n_done = max(whole[:cut].count(b"\n") - 1, 0)
    assert sorted(script.drawn) == [str(number) for number in range(n_done, 9)]
    assert cut is not None or script.model.asked == []


def test_a_context_without_an_answer_is_asked_about_again(finished: Path, tmp_path: Path) -> None:
    script = NumberedScript()
    answer = script.model.answer
    down = Unscored(Reason.API_ERROR, "TimeoutError: slow")
    script.model.answer = lambda prompt: down if is_generation(prompt) and "FS: Is 4 odd?" in prompt else answer(prompt)
    output = finish(tmp_path, script)
    assert [item.id for item in dailydialog_pp.read(output)] == ["c0", "c1", "c2", "c5", "c6", "c7", "c8"]
    assert [(row["id"], row["reason"]) for row in rows(incomplete_path(output))][1] == ("c4", "api_error: TimeoutError: slow")

    again = NumberedScript()
    finish(tmp_path, again)
    assert again.drawn == {"4": 1}
    assert has_the_bytes_of(finished, tmp_path, *OUTPUTS)


@pytest.mark.parametrize("change", ["contexts", "rounds", "model"])
def test_a_journal_of_another_run_is_refused(change: str, finished: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_bytes((finished.parent / "journal").read_bytes())
    script = NumberedScript()
    if change == "model":
        script.model.identity = "scripted@2"
    writer = ResponseWriter(script.model, rounds=3 if change == "rounds" else 2)
    assert refusal(augment, CONTEXTS[:-1] if change == "contexts" else CONTEXTS, writer, journal=journal) == (
        f"{journal}: this unfinished run has other inputs or settings than the present one. "
        "Delete the file to start again, or repeat the first command to finish it."
    )


def test_files_that_would_be_empty_are_not_written_and_old_ones_do_not_stay(tmp_path: Path) -> None:
    writer = ResponseWriter(NumberedScript().model, rounds=1)
    output = tmp_path / "out.jsonl"
    write_augmented(augment(CONTEXTS[3:4], writer), output, writer.provenance)
    assert (output.exists(), incomplete_path(output).exists()) == (False, True)
    write_augmented(augment(CONTEXTS[:1], writer), output, writer.provenance)
    assert (output.exists(), incomplete_path(output).exists()) == (True, False)


SLOW = """
import sys, time
from pathlib import Path
from tests.scripted_writer import NumberedScript, finish

class Slow(NumberedScript):
    def __call__(self, prompt):
        with open(sys.argv[2], "a") as calls:
            calls.write("x\\n")
        time.sleep(0.004)
        return super().__call__(prompt)

finish(Path(sys.argv[1]), Slow())
"""


def start(folder: Path, calls: str) -> subprocess.Popen[bytes]:
    root = Path(__file__).resolve().parents[3]
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(folder), str(folder / calls)], env={**os.environ, "PYTHONPATH": str(root)}
    )


def n_calls(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_run_loses_the_context_in_flight_only_and_ends_with_the_same_bytes(
    seed: int, finished: Path, tmp_path: Path
) -> None:
    n_before_the_kill = random.Random(seed).randrange(15, 70)
    process = start(tmp_path, "first")
    deadline = time.monotonic() + 120
    while n_calls(tmp_path / "first") < n_before_the_kill:
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out.jsonl").exists()
    n_done = max((tmp_path / "journal").read_bytes().count(b"\n") - 1, 0)
    assert 0 < n_done < len(CONTEXTS)

    assert start(tmp_path, "second").wait(timeout=120) == 0
    assert has_the_bytes_of(finished, tmp_path, *OUTPUTS, "journal")
    # One request and ten checks a context, but for c3 (two refusals) and c6 (a second round of one check).
    costs = [11, 11, 11, 2, 11, 11, 13, 11, 11]
    assert n_calls(tmp_path / "second") == sum(costs[n_done:])
    assert n_calls(tmp_path / "first") <= sum(costs[: n_done + 1])


# The sheet for people


def context(id: str, turns: tuple[str, ...], *texts: str) -> AugmentedContext:
    candidates = [
        Candidate("positive" if place % 2 == 0 else "adversarial", text, 1, "positive", None, True)
        for place, text in enumerate(texts)
    ]
    return AugmentedContext(id, turns, (*candidates, Candidate("positive", "Rejected.", 1, "negative")))


ACCEPTED = [
    context("=1+1", ("=SUM(A1)", 'He said "no",\nthen left.'), "=HYPERLINK(1)", "- said nobody.", "Fine, “thanks”."),
    context("b", ("Hi.",), *(f"Response {number}." for number in range(7))),
]


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_each_row_has_what_a_person_needs_and_a_blank_for_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    assert write_spot_check(path, ACCEPTED, n=100, seed=0) == 10
    header, *rows = cells(path)
    assert tuple(header) == SHEET_HEADER == ("context_id", "context", "response", "intended_label", "verdict")
    assert {row[4] for row in rows} == {""}
    assert ["'=1+1", 'FS: =SUM(A1)\nSS: He said "no",\nthen left.', "'=HYPERLINK(1)", "positive", ""] in rows
    assert ["'=1+1", 'FS: =SUM(A1)\nSS: He said "no",\nthen left.', "'- said nobody.", "adversarial", ""] in rows
    assert "Rejected." not in {row[2] for row in rows}
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")


def test_the_sample_is_the_seeds(tmp_path: Path) -> None:
    drawn = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert write_spot_check(tmp_path / name, ACCEPTED, n=4, seed=seed) == 4
        drawn.append(cells(tmp_path / name))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({(row[0], row[2]) for row in drawn[0][1:]}) == 4


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", "  =", "\u00a0@"])
def test_no_cell_starts_as_a_formula_does(start: str) -> None:
    assert for_spreadsheet(f"{start}1+1|cmd") == f"'{start}1+1|cmd"


@pytest.mark.parametrize("cell", ["", "1 = 1", "a@b.org", "“= quoted", "'tis"])
def test_other_cells_stay_as_they_are(cell: str) -> None:
    assert for_spreadsheet(cell) == cell
