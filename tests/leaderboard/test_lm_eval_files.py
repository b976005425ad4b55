"""Reading lm-eval's files, those of past releases among them. FAULTS R09, R66, R76, R78; issue 6."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.leaderboard.task_runs import TaskRun

HISTORIC = Path(__file__).parents[1] / "historic_results"
DATE = "2026-11-20T16-37-41.528475"
JUDGE = "scripted-judge (garble=grapes)"


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str], TaskRun]:
    return {(run.task, run.evaluator): run for run in read_runs([HISTORIC / "0.1.0"])}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of one run, beside one another, to damage them."""
    for path in (HISTORIC / "0.1.0").glob("*_*"):
        shutil.copy(path, tmp_path)
    return tmp_path


def result_file(folder: Path) -> Path:
    return folder / f"judge_{DATE}.json"


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_files_of_0_1_0_load_newest_first() -> None:
    assert [(run.evaluator, run.task, run.kind) for run in read_runs([HISTORIC])] == [
        ("slide (models/slm, slm)", "dstc10_dialog_mini", "rating"),
        (f"{JUDGE}, dailydialog_pp, 5 examples", "dailydialog_pp_mini", "classification"),
        (f"{JUDGE}, dstc10_dialog", "dstc10_dialog_mini", "rating"),
        (f"{JUDGE}, slide", "slide_mini", "rating"),
        (f"{JUDGE}, slide, slm", "slide_mini", "rating"),
        (f"{JUDGE}, slide, llm", "slide_mini", "rating"),
    ]


def test_a_run_says_what_ran_on_what(runs: dict[tuple[str, str], TaskRun]) -> None:
    run = runs["slide_mini", f"{JUDGE}, slide, llm"]
    assert (run.model, run.method, run.variant, run.dataset) == (JUDGE, "slide", "llm", "mini")
    assert (run.level, run.quality, run.version, run.is_partial) == ("turn", "fits", "1.0", True)
    assert run.date.isoformat() == "2026-11-20T16:36:51.092803+00:00"
    assert (run.n_total, run.n_scored, run.n_unscored, run.unscored_by_reason) == (8, 7, 1, {"parse_failure": 1})
    assert run.metrics["spearman"] == pytest.approx(-0.4409585518440985)
    assert run.metrics["n_scored"] == 7
    assert run.signature.startswith(
        "task:slide_mini|version:1.0|quality:fits|model:scripted-judge|garble:grapes|variant:llm|n_shot:0"
    )
    assert "|[method:slide|prompt:slide-v1-" in run.signature
    assert (run.n_requests, run.settings["lm_eval_version"]) == (8, "0.4.13")


def test_the_time_of_a_run_is_shared_out_by_requests(runs: dict[tuple[str, str], TaskRun]) -> None:
    tasks = {run.task: run for run in runs.values() if run.model == JUDGE}
    whole = float(json.loads(result_file(HISTORIC / "0.1.0").read_text())["total_evaluation_time_seconds"])
    assert {task: run.n_requests for task, run in tasks.items()} == {
        "dailydialog_pp_mini": 32,
        "dstc10_dialog_mini": 32,
        "slide_mini": 8,
    }
    assert math.fsum(run.seconds or 0 for run in tasks.values()) == pytest.approx(whole)


def test_a_row_has_its_score_its_raters_and_its_document(runs: dict[tuple[str, str], TaskRun]) -> None:
    run = runs["dstc10_dialog_mini", f"{JUDGE}, dstc10_dialog"]
    assert run.rows is not None
    row = run.rows[-1]
    assert (row.id, row.cluster, row.system, row.score) == ("63a4", "b93070f1a610095e", "adversarial", 0.25)
    assert (row.rating, row.ratings, row.response_words, row.context_words) == (0.0, (0.0,), 9, 47)
    document = row.document()
    assert (document["id"], document["response"]["text"]) == ("63a4", "He ruled for nine years, and nobody missed him.")
    (unscored,) = (row for row in run.rows if row.score is None)
    assert (unscored.id, unscored.unscored) == ("62a4", "non_finite")


def test_a_scorer_is_named_with_its_options_and_signature(runs: dict[tuple[str, str], TaskRun]) -> None:
    run = runs["dstc10_dialog_mini", "slide (models/slm, slm)"]
    assert (run.method, run.seconds is not None) == ("slide", True)
    assert "|[method:slide|" in run.signature


def test_a_classification_has_outcomes_instead_of_rows(runs: dict[tuple[str, str], TaskRun]) -> None:
    run = runs["dailydialog_pp_mini", f"{JUDGE}, dailydialog_pp, 5 examples"]
    assert run.rows is None
    assert run.outcomes is not None
    assert run.outcomes[0][0] == "positive"
    assert run.metrics["accuracy_random"] is None
    assert run.undefined["accuracy_random"].startswith("undefined (")


def test_results_without_samples_keep_their_metrics(copy: Path) -> None:
    for path in copy.glob("samples_*"):
        path.unlink()
    found = {run.task: run for run in read_runs([copy]) if run.variant in {"", "llm"}}
    run = found["slide_mini"]
    assert (run.rows, run.outcomes, run.n_requests, run.seconds) == (None, None, None, None)
    assert (run.metrics["n_scored"], run.unscored_by_reason) == (7, {"unknown": 1})


def test_a_file_brings_the_rest_of_its_run(copy: Path) -> None:
    by_folder = read_runs([copy])
    assert read_runs([result_file(copy)]) == by_folder
    assert read_runs([copy / f"samples_slide_mini_{DATE}.jsonl"]) == by_folder


def test_results_and_samples_may_lie_apart_as_on_the_hub(copy: Path) -> None:
    results, details = copy / "results" / "org" / "model", copy / "details" / "org__model"
    for folder in (results, details):
        folder.mkdir(parents=True)
    result_file(copy).rename(results / f"results_{DATE}.json")
    for path in copy.glob("samples_*"):
        path.rename(details / path.name)
    # The host pushes the whole folder, so that the results are there twice.
    shutil.copy(results / f"results_{DATE}.json", details)
    found = read_runs([copy])
    assert len(found) == 5
    assert all(run.outcomes is not None for run in found)


def test_repetitions_of_a_cell_are_kept_newest_first(copy: Path) -> None:
    later = "2026-11-21T10-00-00.000000"
    for path in list(copy.iterdir()):
        shutil.copy(path, copy / path.name.replace(DATE, later))
    path = copy / f"judge_{later}.json"
    change(path, date=json.loads(path.read_text())["date"] + 86400)
    found = [run for run in read_runs([copy]) if run.task == "dstc10_dialog_mini"]
    assert len(found) == 2
    assert found[0].cell == found[1].cell
    assert found[0].date > found[1].date


def test_foreign_tasks_and_absent_sets_are_left_out(copy: Path) -> None:
    path = result_file(copy)
    file = json.loads(path.read_text())
    file["configs"] |= {"gsm8k": {}, "dstc10_dialog_dgr": {}}
    file["results"] |= {"gsm8k": {"alias": "gsm8k", "exact_match,strict-match": 0.1}, "dstc10_dialog_dgr": {"alias": "x"}}
    change(path, configs=file["configs"], results=file["results"])
    assert {run.task for run in read_runs([copy])} == {"dailydialog_pp_mini", "dstc10_dialog_mini", "slide_mini"}


def test_what_is_no_number_is_none(copy: Path) -> None:
    path = result_file(copy)
    path.write_text(path.read_text().replace('"llm_spearman,none": -0.4409585518440985', '"llm_spearman,none": NaN'))
    (run,) = (run for run in read_runs([copy]) if run.variant == "llm")
    assert run.metrics["spearman"] is None


def test_secrets_do_not_reach_the_settings(copy: Path) -> None:
    path = result_file(copy)
    config = json.loads(path.read_text())["config"]
    config["model_args"] = {
        "model": "m",
        "api_key": "sk-1",
        "header": {"Authorization": "x"},
        "tokenizer": "t",
        "base_url": "u",
    }
    change(path, config=config)
    run = next(run for run in read_runs([copy]) if run.task == "dstc10_dialog_mini")
    assert run.evaluator == "m (tokenizer=t), dstc10_dialog"
    assert "sk-1" not in f"{run.settings}{run.signature}"
    assert "Authorization" not in f"{run.settings}{run.signature}"


def test_secrets_of_the_model_that_a_scorer_asks_do_not_either(copy: Path) -> None:
    path = result_file(copy)
    config = json.loads(path.read_text())["config"]
    asked = "model=m,api_key=sk-1,temperature=0.5"
    config["model_args"] = {"scorer": "g_eval", "llm": "local-chat-completions", "llm_args": asked}
    change(path, config=config)
    run = next(run for run in read_runs([copy]) if run.task == "dstc10_dialog_mini")
    assert "m (temperature=0.5)" in run.evaluator
    assert "sk-1" not in f"{run.evaluator}{run.settings}{run.signature}"


NOT_JSON = "not valid JSON (Expecting property name enclosed in double quotes). Was the file cut off?"
NO_RESULTS = "{path}: is not a result file of lm-eval: it has no 'results'. Leave it out."


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("judge", "{", f"{{path}}: {NOT_JSON}"),
        ("judge", "{}", NO_RESULTS),
        ("judge", "[]", NO_RESULTS),
        ("samples_slide_mini", '{"doc": {', f"{{path}}:1: {NOT_JSON}"),
        ("samples_slide_mini", '{"doc_id": 1}', "{path}:1: is not a sample of lm-eval: it has no 'doc'. Leave the file out."),
        (
            "samples_slide_mini",
            '{"doc_id": 1, "doc": {"id": "x"}, "slide_spearman": [1.0, 2.0, "c"], "slm_spearman": null, "llm_spearman": null}',
            "{path}: sample 1: slide_spearman or its document is not as this package's tasks write them (KeyError('cluster')). "
            "Run the task again.",
        ),
    ],
)
def test_a_damaged_file_is_named(copy: Path, name: str, text: str, message: str) -> None:
    path = copy / f"{name}_{DATE}.{'json' if name == 'judge' else 'jsonl'}"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_runs([copy])
    assert str(caught.value) == message.replace("{path}", str(path))


def test_samples_without_results_are_refused(copy: Path) -> None:
    result_file(copy).unlink()
    path = copy / f"samples_slide_mini_{DATE}.jsonl"
    with pytest.raises(InputError) as caught:
        read_runs([path])
    assert str(caught.value) == f"{path}: the result file of this run, ..._{DATE}.json, is not there. Give it as well."


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_runs([tmp_path])
    assert str(caught.value) == (
        f"{tmp_path}: no result of this package's tasks is there. Give what `dialeval lm-eval --output_path FOLDER "
        "--log_samples` wrote."
    )
    with pytest.raises(InputError) as caught:
        read_runs([tmp_path / "absent"])
    assert str(caught.value) == f"{tmp_path / 'absent'}: there is no such file or folder."


def test_a_document_that_is_gone_is_said(copy: Path) -> None:
    (run,) = (run for run in read_runs([copy]) if run.variant == "llm")
    assert run.rows is not None
    path = copy / f"samples_slide_mini_{DATE}.jsonl"
    path.write_text("x")
    with pytest.raises(InputError) as caught:
        run.rows[-1].document()
    assert str(caught.value) == f"{path}: has changed since it was read. Read the run again."
