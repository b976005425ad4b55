"""`dialeval rescore` gives what the tasks themselves printed, for every kind of task. Issue 6."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.files import write_json_lines
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.leaderboard.build import build
from dialeval_plugin.leaderboard.evidence import HALF_THE_PEOPLE, ONE_PERSON
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.leaderboard.task_runs import TaskRun, rescore
from dialeval_plugin.reports.correlation_report import ReportOptions, evaluate_agreement
from dialeval_plugin.reports.score_alignment import AlignedScores, align
from dialeval_plugin.statistics import preferences
from dialeval_plugin.statistics.bootstrap import Estimate
from tests.hosts.through_lm_eval import Chance, evaluate, metrics
from tests.layouts import fed_rows, write_convai, write_fed
from tests.small_corpora import write_dbdc, write_preferences

pytestmark = pytest.mark.long

TASKS = (
    "fed_dialog_turn_specific",
    "fed_dialog_random_turn_specific",
    "convai2_opinion",
    "dbdc_yi",
    "cgdialog_preference_msc",
    "dailydialog_pp_mini",
    "dailydialog_pp_generate_mini",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_convai(tmp_path_factory.mktemp("data"), 30)
    write_fed(root, fed_rows(10))
    write_dbdc(root, ["yi"])
    write_preferences(root, "msc")
    return root


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[TaskRun]:
    """Files of the host's own writer, read again."""
    output = tmp_path_factory.mktemp("output")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DIALEVAL_DATA_DIR", str(data))
        patched.setattr(preferences, "N_FLIPS", 4)
        # Fewer responses of the embedded corpus: those tasks are not what takes time here.
        evaluate(Chance(), *TASKS, output=output, limit=80)
    return read_runs([output])


def estimates(run: TaskRun, **settings: Any) -> dict[str, Estimate]:
    """By the name of the metric in the result file."""
    found = {}
    for finding in rescore([run], ReportOptions(**settings)):
        name = {"kendall_b": "kendall"}.get(finding.statistic, finding.statistic)
        found[f"{finding.quality}_{name}" if run.kind == "preference" else name] = finding.estimate
    return found


def of(runs: list[TaskRun], task: str, variant: str = "") -> TaskRun:
    (run,) = (run for run in runs if (run.task, run.about.variant) == (task, variant))
    return run


@pytest.mark.parametrize(
    ("task", "variant"),
    [
        ("fed_dialog_turn_specific", ""),
        ("convai2_opinion", ""),
        ("convai2_opinion", "product"),
        ("convai2_opinion", "mean_of_means"),
        ("convai2_opinion", "length"),
        ("dbdc_yi", ""),
        ("cgdialog_preference_msc", ""),
        ("dailydialog_pp_mini", ""),
        ("dailydialog_pp_generate_mini", ""),
    ],
)
def test_rescoring_gives_what_the_task_printed(runs: list[TaskRun], task: str, variant: str) -> None:
    run = of(runs, task, variant)
    found = estimates(run)
    assert len(found) >= 3
    for name, estimate in found.items():
        computed = {bound: run.metrics[f"{name}{bound}"] for bound in ("", "_ci_low", "_ci_high")}
        again = {"": estimate.value, "_ci_low": estimate.ci_low, "_ci_high": estimate.ci_high}
        assert again == pytest.approx(computed, abs=1e-12), name
        if not variant and name in run.printed:
            assert run.printed[name] == estimate.value
    assert (run.metrics["n_scored"], run.metrics["n_unscored"]) == (run.n_scored, run.n_unscored)
    assert set(run.printed) == (set() if variant else set(KINDS[run.about.kind].printed))


def test_every_seed_is_rescored_and_their_mean_is_what_was_printed(runs: list[TaskRun]) -> None:
    run = of(runs, "fed_dialog_random_turn_specific")
    findings = rescore([run], ReportOptions(coefficients=("spearman",)))
    seeds = [finding.evaluator.rpartition(", ")[2] for finding in findings]
    assert seeds == sorted({f"seed {row.seed}" for row in run.rows or ()})
    values = [finding.estimate.value or 0.0 for finding in findings]
    assert math.fsum(values) / len(values) == pytest.approx(run.metrics["spearman"], abs=1e-12)


def test_a_row_has_the_raters_of_the_corpus(runs: list[TaskRun]) -> None:
    run = of(runs, "fed_dialog_turn_specific")
    assert (run.about.dataset, run.about.level, run.about.quality) == ("fed", "turn", "specific")
    row = (run.rows or ())[0]
    assert (row.id, row.ratings, row.system) == ("fed_000_1", (2.0, 2.0, 0.0, 0.0, 1.0), "Meena")
    opinion = (of(runs, "convai2_opinion").rows or ())[0]
    assert (opinion.ratings, opinion.context_words, opinion.response_words > 0) == ((opinion.rating,), 0, True)


def test_the_median_of_the_raters_may_stand_for_their_mean(runs: list[TaskRun]) -> None:
    run = of(runs, "fed_dialog_turn_specific")
    by_mean, by_median = (
        rescore([run], ReportOptions(coefficients=("pearson",)), human=how)[0].estimate.value for how in ("mean", "median")
    )
    assert by_mean != by_median


def test_other_settings_are_taken(runs: list[TaskRun]) -> None:
    run = of(runs, "convai2_opinion")
    (whole,) = rescore([run], ReportOptions(coefficients=("spearman",)))
    (within,) = rescore([run], ReportOptions(coefficients=("spearman",), within_range=(3.0, 5.0)))
    rated = [row for row in run.rows or () if row.rating >= 3.0]
    assert whole.estimate.n_scored == len(run.rows or ())
    assert within.estimate.n_scored == len(rated) < whole.estimate.n_scored


# TRIAL 17: scores have one value, one interval and one ceiling, in lm-eval, rescore, meta-eval and on the page


@pytest.mark.parametrize(
    ("dataset", "scorer"),
    [
        ("mini", "random"),
        pytest.param("tu", "chrf", marks=pytest.mark.real_data),
        pytest.param("fd", None, marks=pytest.mark.real_data),
    ],
)
def test_one_figure_has_one_value(dataset: str, scorer: str | None, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if dataset != "mini":
        request.getfixturevalue("data_dir")
    task, output = f"dstc10_dialog_{dataset}", tmp_path / "output"
    # No scorer without a model gives dialogues a score.
    model = Chance() if scorer is None else "dialogue-metric"
    found = evaluate(model, task, model_args="" if scorer is None else f"scorer={scorer}", output=output)
    computed = metrics(found, task)
    (run,) = read_runs([output])
    again = {finding.statistic: finding for finding in rescore([run], ReportOptions(permutations=0))}
    if scorer is None:
        lines = [json.dumps({"id": row.id, "score": row.score}) for row in reversed(run.rows or ())]
        (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    else:
        items = mini.read_examples(split="test") if dataset == "mini" else dstc10.read(dataset)
        scores = load_scorer(scorer).score(items[::-1])
        kept = ("id", scores.main, "unscored")
        rows = [{name: row[name] for name in kept if name in row} for row in scores]
        write_json_lines(tmp_path / "scores.jsonl", rows)
    own = {
        one.statistic: one
        for one in evaluate_agreement(
            align([tmp_path / "scores.jsonl"], AlignedScores(ratings=dataset)), ReportOptions(permutations=0)
        )
    }
    board = build([output]).board
    (cell,) = board.cells
    ceilings = {(one.coefficient, one.name): one.value for one in board.references}
    for name, statistic in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        ends = [computed[f"{name}{end}"] for end in ("", "_ci_low", "_ci_high")]
        assert all(isinstance(end, float) for end in ends)
        for one in (again[statistic].estimate, cell.figures[name], own[statistic].estimate):
            assert [one.value, one.ci_low, one.ci_high] == ends
        assert again[statistic].ceiling == own[statistic].ceiling
        assert again[statistic].ceiling == tuple(ceilings.get((name, who)) for who in (ONE_PERSON, HALF_THE_PEOPLE))
        assert again[statistic].estimate.is_rough == own[statistic].estimate.is_rough == cell.figures[name].is_rough
