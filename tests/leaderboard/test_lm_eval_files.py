"""Reading lm-eval's files. FAULTS R09, R66, R76, R78; issue 6."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.leaderboard.task_runs import TaskRun, newest, rescore
from dialeval_plugin.reports.correlation_report import ReportOptions
from dialeval_plugin.statistics.bootstrap import Bootstrap
from tests.leaderboard_files import DATE, LM_EVAL_FILES, change_json, metadata_of, write_runs
from tests.refusals import refused

JUDGE = "scripted-judge (garble=grapes)"


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str], TaskRun]:
    return {(run.task, run.evaluator): run for run in read_runs([LM_EVAL_FILES])}


def result_file(folder: Path) -> Path:
    return folder / f"judge_{DATE}.json"


def run_of(folder: Path, task: str = "slide_mini", variant: str = "llm") -> TaskRun:
    """The one run of a task and variant in a folder."""
    (run,) = (run for run in read_runs([folder]) if (run.task, run.about.variant) == (task, variant))
    return run


def test_runs_load_newest_first() -> None:
    assert [(run.evaluator, run.task, run.kind) for run in read_runs([LM_EVAL_FILES])] == [
        ("slide (models/slm, slm)", "dstc10_dialog_mini", "rating"),
        (f"{JUDGE}, dailydialog_pp, 5 examples", "dailydialog_pp_mini", "classification"),
        (f"{JUDGE}, dstc10_dialog", "dstc10_dialog_mini", "rating"),
        (f"{JUDGE}, slide", "slide_mini", "rating"),
        (f"{JUDGE}, slide, slm", "slide_mini", "rating"),
        (f"{JUDGE}, slide, llm", "slide_mini", "rating"),
    ]


def test_a_run_says_what_ran_on_what(runs: dict[tuple[str, str], TaskRun]) -> None:
    run = runs["slide_mini", f"{JUDGE}, slide, llm"]
    assert (run.model, run.about.variant, run.about.dataset) == (JUDGE, "llm", "mini")
    assert (run.about.level, run.about.quality, run.version, run.is_partial) == ("turn", "fits", "2.0", True)
    assert run.date.isoformat() == "2026-11-27T09:29:48.826895+00:00"
    assert (run.n_total, run.n_scored, run.n_unscored, run.unscored_by_reason) == (8, 7, 1, {"parse_failure": 1})
    assert run.metrics["spearman"] == pytest.approx(-0.4409585518440985)
    assert run.metrics["n_scored"] == 7
    assert run.signature.startswith(
        "task:slide_mini|version:2.0|quality:fits|model:scripted-judge|garble:grapes|variant:llm|n_shot:0"
    )
    assert "|lm_eval_version:0.4.13|" in run.signature
    assert "|[method:slide|variant:slide|slm:" in run.signature
    assert run.cost.n_requests == 8
    scorer = runs["dstc10_dialog_mini", "slide (models/slm, slm)"]
    assert scorer.cost.seconds is not None
    assert "|[method:slide|" in scorer.signature


def test_the_time_of_a_run_is_shared_out_by_requests(runs: dict[tuple[str, str], TaskRun]) -> None:
    tasks = {run.task: run for run in runs.values() if run.model == JUDGE}
    whole = float(json.loads(result_file(LM_EVAL_FILES).read_text())["total_evaluation_time_seconds"])
    requests = {"dailydialog_pp_mini": 32, "dstc10_dialog_mini": 32, "slide_mini": 8}
    assert {task: run.cost.n_requests for task, run in tasks.items()} == requests
    assert math.fsum(run.cost.seconds or 0 for run in tasks.values()) == pytest.approx(whole)


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
    run = run_of(copy, variant="slide")
    assert (run.rows, run.outcomes, run.cost.n_requests, run.cost.seconds) == (None, None, None, None)
    assert (run.metrics["n_scored"], run.unscored_by_reason) == (7, {"unknown": 1})


@pytest.mark.parametrize(
    ("change", "figure"),
    [
        (lambda lines: lines[:4], "n_scored is 4, expected 7"),
        (lambda lines: lines * 2, "n_scored is 14, expected 7"),
        (lambda lines: [], "n_scored is 0, expected 7"),
        (lambda lines: [*lines[:-1], lines[-1].replace("[0.25, ", "[0.99, ")], None),
    ],
    ids=["cut at the end of a line", "doubled", "empty", "of another run"],
)
def test_samples_that_do_not_give_the_printed_figures_are_refused(
    copy: Path, change: Callable[[list[str]], list[str]], figure: str | None
) -> None:
    """They were mixed: Spearman's rho of the result file, all other figures and the ranks of the samples."""
    path = copy / f"samples_dstc10_dialog_mini_{DATE}.jsonl"
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    with pytest.raises(InputError) as caught:
        read_runs([copy])
    start, end = f"{path}: holds samples of another run than {result_file(copy)}, or a part of them: ", "or run the task again."
    assert str(caught.value).startswith(start + (figure or "spearman is "))
    assert str(caught.value).endswith(end)


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
    change_json(path, "date", value=json.loads(path.read_text())["date"] + 86400)
    one, other = (run for run in read_runs([copy]) if run.task == "dstc10_dialog_mini")
    assert one.cell == other.cell
    assert one.date > other.date


def test_foreign_tasks_and_absent_sets_are_left_out(copy: Path) -> None:
    foreign = {"gsm8k": {"alias": "gsm8k", "exact_match,strict-match": 0.1}, "dstc10_dialog_dgr": {"alias": "x"}}
    for task, results in foreign.items():
        change_json(result_file(copy), "configs", task, value={})
        change_json(result_file(copy), "results", task, value=results)
    assert {run.task for run in read_runs([copy])} == {"dailydialog_pp_mini", "dstc10_dialog_mini", "slide_mini"}


def test_what_is_no_number_is_none(copy: Path) -> None:
    change_json(result_file(copy), "results", "slide_mini", "spearman,none", value=math.nan)
    assert run_of(copy, variant="slide").metrics["spearman"] is None


@pytest.mark.parametrize(
    ("arguments", "evaluator"),
    [
        (
            {"model": "m", "api_key": "sk-1", "header": {"Authorization": "x"}, "tokenizer": "t", "base_url": "u"},
            "m (tokenizer=t)",
        ),
        (
            {"scorer": "g_eval", "llm": "local-chat-completions", "llm_args": "model=m,api_key=sk-1,temperature=0.5"},
            "g_eval (m (temperature=0.5))",
        ),
    ],
)
def test_secrets_do_not_reach_name_and_signature(arguments: dict[str, Any], evaluator: str, copy: Path) -> None:
    change_json(result_file(copy), "config", "model_args", value=arguments)
    run = run_of(copy, "dstc10_dialog_mini", "")
    assert run.evaluator == f"{evaluator}, dstc10_dialog"
    for secret in ("sk-1", "Authorization"):
        assert secret not in f"{run.evaluator}{run.signature}"


NOT_JSON = "not valid JSON (Expecting property name enclosed in double quotes). Was the file cut off?"
NO_RESULTS = "{path}: is not a result file of lm-eval: it has no 'results'. Leave it out."
NO_CLUSTER = '{"doc_id": 1, "doc": {"id": "x"}, "spearman": [1.0, 2.0, "c"]}'


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
            NO_CLUSTER,
            "{path}: sample 1: spearman or its document is not as this package's tasks write them (KeyError('cluster')). "
            "Run the task again.",
        ),
    ],
)
def test_a_damaged_file_is_named(copy: Path, name: str, text: str, message: str) -> None:
    path = copy / f"{name}_{DATE}.{'json' if name == 'judge' else 'jsonl'}"
    path.write_text(text)
    with refused(message.replace("{path}", str(path))):
        read_runs([copy])


SLIDE, RATED = ("results", "slide_mini", "spearman,none"), ("results", "dstc10_dialog_mini", "n_scored,none")


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (("date",), 1e18, "date: input should be less than or equal to 253402300799"),
        (
            ("n-samples", "slide_mini", "original"),
            -1,
            "n-samples.slide_mini.original: input should be greater than or equal to 0",
        ),
        (("versions",), [1], "versions: input should be an object"),
        (("results",), {"slide_mini": []}, "results.slide_mini: input should be an object"),
        (SLIDE, 1.5, "results.slide_mini.spearman: is 1.5, expected a number from -1 to 1"),
        (SLIDE, 1e308, "results.slide_mini.spearman: is 1e+308, expected a number from -1 to 1"),
        (SLIDE, True, "results.slide_mini.spearman: is True, which is no number"),
        (RATED, -1, "results.dstc10_dialog_mini.n_scored: is -1, expected a number from 0"),
    ],
)
def test_a_field_or_figure_that_cannot_be_is_named(place: tuple[str, ...], value: Any, problem: str, copy: Path) -> None:
    change_json(result_file(copy), *place, value=value)
    with refused(f"{result_file(copy)}: {problem}. Copy the file again."):
        read_runs([copy])


def test_arguments_and_numbers_that_cannot_be_read_are_refused(copy: Path) -> None:
    change_json(result_file(copy), "config", "model_args", value=[1, 2])
    with pytest.raises(InputError, match=rf"^{result_file(copy)}: config\.model_args"):
        read_runs([copy])
    # R78: what the host writes where it has no number is none, but this is no number of the host's.
    change_json(result_file(copy), *RATED, value=10**400)
    with pytest.raises(InputError, match=rf"^{result_file(copy)}.* has a number that cannot be read"):
        read_runs([copy])


def test_what_is_not_there_is_said(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    run, empty = run_of(copy), tmp_path_factory.mktemp("empty")
    advice = "Give what `dialeval lm-eval --output_path FOLDER --log_samples` wrote."
    with refused(f"{empty}: no result of this package's tasks is there. {advice}"):
        read_runs([empty])
    with refused(f"{empty / 'absent'}: there is no such file or folder."):
        read_runs([empty / "absent"])
    result_file(copy).unlink()
    path = copy / f"samples_slide_mini_{DATE}.jsonl"
    with refused(f"{path}: the result file of this run, ..._{DATE}.json, is not there. Give it as well."):
        read_runs([path])
    path.write_text("x")
    assert run.rows is not None
    with refused(f"{path}: has changed since it was read. Read the run again."):
        run.rows[-1].document()


def test_scores_without_their_scorers_signature_are_refused(tmp_path: Path) -> None:
    # TRIAL S1: what `--use_cache` of an older release left behind, another scorer's answers under this one's name.
    write_runs(tmp_path)
    path = tmp_path / "run-1" / "results_2026-05-01T12-00-01.000000.json"
    change_json(path, "config", "scorer_signature", value=None)
    question = ReportOptions(bootstrap=Bootstrap(0), permutations=0)
    for action in (lambda: rescore(read_runs([tmp_path]), question), lambda: build([tmp_path], rank_rounds=0)):
        with refused(
            f"{path}: dstc10_dialog_dgu: has scores, but not the signature of the scorer that gave them: they may be "
            "another's, out of a cache of the host. Run the task again."
        ):
            action()


def test_two_scorers_under_one_name_are_refused(tmp_path: Path) -> None:
    write_runs(tmp_path)
    one, two = (tmp_path / f"run-{n}" / f"results_2026-05-01T12-00-0{n}.000000.json" for n in (1, 2))
    config = {**json.loads(one.read_text(encoding="utf-8"))["config"], "scorer_signature": "method:sharp|slm:other"}
    change_json(two, "config", value=config)
    change_json(two, "configs", value={"dstc10_dialog_dz": {"metadata": metadata_of("dstc10_dialog_dz")}})
    for action in (lambda: newest(read_runs([tmp_path])), lambda: build([tmp_path], rank_rounds=0)):
        with refused(
            f"{one}: 'sharp' is another scorer than in {two}: its signature is 'method:sharp', and there it is "
            "'method:sharp|slm:other'. Leave one of the files out, or run its tasks again."
        ):
            action()


def test_samples_of_two_small_models_in_one_file_are_refused(copy: Path) -> None:
    path = copy / f"samples_slide_mini_{DATE}.jsonl"
    first, *others = path.read_text(encoding="utf-8").splitlines()
    sample = json.loads(first)
    sample["doc"]["signature"] = "method:slide|slm:other"
    path.write_text("\n".join([json.dumps(sample), *others]) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r": slide_mini: mixes samples of 'method:slide.*' and 'method:slide.*'\. Run"):
        read_runs([copy])
