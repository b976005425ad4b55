"""`dialeval bias`: what it prints and keeps, what it would ask, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bias.test_battery import ITEMS, QUESTION
from tests.cli import running
from tests.refusals import refused


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [{"id": item.id, "context": [item.context[0].text], "response": item.response.text} for item in ITEMS]
    return running.write_rows(tmp_path / "log.jsonl", rows)


def test_a_judge_is_tested_and_the_report_kept(log: Path, tmp_path: Path) -> None:
    words = ("bias", log, "--rubric", QUESTION, "--llm", "scripted-judge", "--answers", tmp_path / "answers.sqlite")
    rehearsed = running.run(*words, "--most", 30, "--dry-run")
    done = running.run(*words, "--most", 30, "--output", tmp_path / "bias.json")
    assert (rehearsed.exit_code, done.exit_code) == (0, 0)
    # Here the model does not answer, so that what a repeated prompt costs is counted each time.
    assert rehearsed.stdout.startswith("dry run: ")
    assert done.stderr.splitlines()[0] == "tested: the first 30 of 60"
    report = json.loads((tmp_path / "bias.json").read_text(encoding="utf-8"))
    assert (report["scorer"], report["n_answers"], report["line"]) == ("rubric", 30, 0.5)
    (options,) = (one for one in report["effects"] if one["test"] == "order of options")
    assert options["flips"]["value"] == 1.0
    assert "not tested: self-preference: it needs labels of people" in done.stdout


def test_labels_of_people_show_whether_a_scorer_prefers_a_system(log: Path, tmp_path: Path) -> None:
    rows = [
        {"id": item.id, "system": "ours" if item.id.endswith("1") else "theirs", "label": n % 5} for n, item in enumerate(ITEMS)
    ]
    labels = running.write_rows(tmp_path / "labels.jsonl", rows)
    words = ("--labels", labels, "--own", "ours", "--format", "json")
    done = running.run("bias", log, "--scorer", "response_length", *words)
    found = {row["test"]: row for row in json.loads(done.stdout)["rows"]}
    assert found["self-preference"]["change"] == "ours compared with the other systems"
    assert found["self-preference"]["shift"] is not None


def test_options_that_have_no_meaning_are_refused(log: Path) -> None:
    with refused("--own: is compared with the labels of people. Give them with --labels."):
        running.run("bias", log, "--own", "ours")
    with refused("--dry-run: there is no language model to ask. Name one with --llm."):
        running.run("bias", log, "--dry-run")
