"""`dialeval augment`: what it prints, writes and exits with, with scripted answers in the model's place."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.corpora.readers import dailydialog_pp
from tests.cli import running
from tests.refusals import refused
from tests.scripted_writer import CONTEXTS, NumberedScript, is_generation


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NumberedScript:
    """The model that every name loads."""
    found = NumberedScript()
    monkeypatch.setattr("dialeval_plugin.hosts.lm_eval.backend.load_language_model", lambda *_, **__: found.model)
    monkeypatch.setenv("DIALEVAL_ANSWERS", str(tmp_path / "answers.sqlite"))
    return found


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    return running.write_rows(tmp_path / "contexts.jsonl", [{"id": item.id, "context": item.context} for item in CONTEXTS])


def run(*arguments: Any) -> Result:
    return running.run("augment", *arguments, "--llm", "any")


def test_contexts_become_training_data_and_a_sheet(script: NumberedScript, contexts: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "responses.jsonl"
    done = run(contexts, "--output", output, "--rounds", "2", "--spot-check", "7", "--seed", "3")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "8 of 9 contexts have five positive and five adversarial responses",
        f"responses: {output}",
        f"not complete: {output}.incomplete.jsonl",
        "  c3: 0 of 5 positive and 0 of 5 adversarial responses in 2 rounds; answers without responses: 2 refusal",
        f"spot check: {output}.spot-check.csv, 7 responses",
    ]
    sets = dailydialog_pp.read(output)
    assert [item.id for item in sets] == [f"c{number}" for number in range(9) if number != 3]
    with Path(f"{output}.spot-check.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.reader(file))) == 8
    assert done.stderr.splitlines()[-2].startswith("llm: 92 calls, about ")


def test_a_dry_run_asks_and_writes_nothing(script: NumberedScript, contexts: Path, tmp_path: Path) -> None:
    done = run(contexts, "--output", tmp_path / "out.jsonl", "--rounds", "2", "--dry-run")
    assert done.exit_code == 0, done.output
    first, second = done.stdout.splitlines()
    assert first.startswith("dry run: 9 calls, about ")
    assert first.endswith(", 0 of 9 requests from the cache (0 %)")
    assert second == "Each context then has its 10 responses checked, one call each, and up to 1 further rounds."
    assert script.model.asked == []
    assert not (tmp_path / "out.jsonl").exists()


def test_a_second_run_is_answered_from_the_file_of_answers(script: NumberedScript, contexts: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    answers = tmp_path / "kept.sqlite"
    run(contexts, "--output", first, "--rounds", "2", "--answers", answers)
    n_asked = len(script.model.asked)
    done = run(contexts, "--output", second, "--rounds", "2", "--answers", answers)
    assert len(script.model.asked) == n_asked
    assert ", 92 of 92 requests from the cache (100 %), 0 failed" in done.stderr
    assert first.read_bytes() == second.read_bytes()
    run(contexts, "--output", second, "--rounds", "2", "--no-answers")
    assert len(script.model.asked) > n_asked


def test_a_model_that_is_down_leaves_a_run_to_be_finished(script: NumberedScript, contexts: Path, tmp_path: Path) -> None:
    answer = script.model.answer
    down = Unscored(Reason.API_ERROR, "TimeoutError: slow")
    script.model.answer = lambda prompt: down if is_generation(prompt) and "FS: Is 8 odd?" in prompt else answer(prompt)
    output = tmp_path / "responses.jsonl"
    done = run(contexts, "--output", output, "--rounds", "2")
    assert done.exit_code == 1
    assert "  c8: api_error: TimeoutError: slow" in done.stdout.splitlines()
    assert "the model gave no answer for 1 contexts; the same command asks again" in done.stderr.splitlines()

    script.model.answer = answer
    script.drawn.clear()
    done = run(contexts, "--output", output, "--rounds", "2")
    assert (done.exit_code, script.drawn) == (0, {"8": 1})
    assert len(dailydialog_pp.read(output)) == 8


def test_a_prompt_that_is_too_long_is_not_said_to_be_asked_again(
    script: NumberedScript, contexts: Path, tmp_path: Path
) -> None:
    script.model.answer = lambda prompt: Unscored(Reason.CONTEXT_TOO_LONG, "the prompt has 685 tokens")
    done = run(contexts, "--output", tmp_path / "responses.jsonl")
    assert (done.exit_code, "asks again" in done.stderr) == (1, False)
    assert "  c0: context_too_long: the prompt has 685 tokens" in done.stdout.splitlines()


def test_nothing_complete_is_a_failure_with_reasons(script: NumberedScript, contexts: Path, tmp_path: Path) -> None:
    script.model.answer = lambda prompt: "Well."
    output = tmp_path / "responses.jsonl"
    done = run(contexts, "--output", output, "--rounds", "1", "--spot-check", "5")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "0 of 9 contexts have five positive and five adversarial responses"
    assert lines[-1] == "  and 4 more"
    assert len(lines) == 8
    assert not output.exists()
    assert not Path(f"{output}.spot-check.csv").exists()


def test_the_small_model_checks_by_probability(script: NumberedScript, contexts: Path, tmp_path: Path, tiny_slm: Path) -> None:
    output = tmp_path / "responses.jsonl"
    run(contexts, "--output", output, "--rounds", "1", "--slm", tiny_slm)
    rows = [
        json.loads(line)
        for path in (output, Path(f"{output}.incomplete.jsonl"))
        if path.exists()
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]
    ]
    assert len(rows) == 9
    assert {row["provenance"]["slm"].partition("|slm:")[0] for row in rows} == {"method:slide|variant:slm_probability"}
    judged = [response for row in rows for response in row["provenance"]["responses"] if response["slm_score"] is not None]
    assert judged
    for response in judged:
        assert response["is_accepted"] == ((response["slm_score"] >= 0.5) == (response["kind"] == "positive"))


def test_wrong_options_are_named(script: NumberedScript, contexts: Path, tmp_path: Path) -> None:
    for options, message in (
        ([tmp_path], f"{tmp_path}: is a folder, expected the name of a file to write."),
        ([contexts], f"{contexts}: is the input. Choose another name for --output."),
        (["x", "--answers", "y", "--no-answers"], "--answers and --no-answers: cannot be combined. Leave one of them out."),
        (["x", "--rounds", "0"], "augment: rounds is 0. Give 1 or more."),
    ):
        with refused(message):
            run(contexts, "--output", *options)
    assert script.model.asked == []


def test_a_spot_check_of_less_than_nothing_is_refused(contexts: Path, tmp_path: Path) -> None:
    done = run(contexts, "--output", tmp_path / "x", "--spot-check", "-1")
    assert done.exit_code == 2
    assert "--spot-check" in done.output
