"""The tables of reproduction/results/results.md on a few small results, and the table of evaluators behind them."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.registry import ENTRY_POINT_GROUP
from dialeval_plugin.leaderboard.result_files import read_runs
from reproduction.results import runs, write
from reproduction.results.evaluators import KINDS, RatedTask, evaluators, plan, tasks_at_hand, tasks_of
from tests.layouts import fed_rows, write_fed
from tests.leaderboard_files import LM_EVAL_FILES, documents, noisy_scores, scorer_config, write_run
from tests.refusals import refused

RESULTS = Path(write.__file__).with_name("results.md")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a small model on all turn-level sets, of BLEU on those with references, and of a judge."""
    folder = tmp_path_factory.mktemp("work") / "runs"
    rows = [{**row, "raters": [row["rating"], row["rating"] + place % 2]} for place, row in enumerate(documents(60))]
    of_all = {f"dstc10_dialog_{code}": (rows, noisy_scores(rows, 0.2)) for code in write.TURN_LEVEL}
    of_some = {f"dstc10_dialog_{code}": (rows, noisy_scores(rows, 0.4)) for code in write.WITH_REFERENCES}
    write_run(folder / "slide-slm", scorer_config("slide", slm="/m/slm", variant="slm"), of_all)
    write_run(folder / "bleu-1", scorer_config("bleu", n=1), of_some)
    for name in ("hred", "vhcr"):
        write_run(folder / f"reconstruction-{name}", scorer_config("dialogue_reconstruction", model=f"/m/{name}"), of_some)
    judge = {"model": "hf", "model_args": {"pretrained": "/m/gpt2"}}
    write_run(folder / "judge", judge, {"dstc10_dialog_ft": (rows, [0.5] * 60)})
    return folder.parent


@pytest.fixture(scope="module")
def results(work: Path) -> write.Results:
    return write.read_results(work / "runs")


def cells(table: str) -> dict[str, list[str]]:
    """First cell of a line to the others; the title, the head and the rule are left out."""
    lines = [[cell.strip() for cell in line[2:-2].split(" | ")] for line in table.splitlines()[4:]]
    return {name: rest for name, *rest in lines}


def test_a_figure_is_the_files_with_its_interval(work: Path, results: write.Results) -> None:
    (run,) = (run for run in read_runs([work / "runs" / "bleu-1"]) if run.task == "dstc10_dialog_tu")
    found = run.metrics
    expected = f"{found['pearson']:.3f} [{found['pearson_ci_low']:.2f}, {found['pearson_ci_high']:.2f}]"
    topical = write.slide_tables(results)[2]
    assert cells(topical)["BLEU-1"][:3] == ["0.352", "0.330", expected]


def test_rows_of_the_paper_that_cannot_be_run_say_why(results: write.Results) -> None:
    rows = cells(write.slide_tables(results)[0])
    assert rows["SLIDE (GPT-4)"][:3] == ["0.773", "0.704", "not run (needs GPT-4)"]
    assert rows["BARTSCORE"][2] == "not run (needs facebook/bart-large-cnn from a model hub)"
    assert rows["Ours (SLM-Prob-only)"][2] == "not run (needs a model: SLM)"
    assert rows["METEOR"][2] == "not run (not yet run)"
    assert rows["*dialogue_reconstruction (hred)*"][:2] == ["", ""]
    assert len(rows) == 27 + 2


def test_a_mean_is_over_all_of_its_sets_or_none(results: write.Results) -> None:
    rows = cells(write.means_table(results))
    assert next(iter(rows)) == "slide (slm)"
    assert set(rows) == {"slide (slm)", "bleu-1", "dialogue_reconstruction (hred)", "dialogue_reconstruction (vhcr)"}
    runs = results["slide-slm"]
    values = [runs[f"dstc10_dialog_{code}"].metrics["spearman"] or 0.0 for code in write.TURN_LEVEL]
    value, low, high = map(float, re.findall(r"[-\d.]+", rows["slide (slm)"][0]))
    assert value == pytest.approx(sum(values) / 9, abs=5e-4)
    # All sets are the same here: the standard error of the mean is that of one by the root of nine.
    one = runs["dstc10_dialog_tu"].metrics
    assert high - low == pytest.approx(((one["spearman_ci_high"] or 0) - (one["spearman_ci_low"] or 0)) / 3, abs=2e-3)
    assert rows["bleu-1"][0] == ""


def test_what_is_scored_in_part_says_so(tmp_path: Path) -> None:
    rows = documents(80)
    scores: list[float | None] = [*[None] * 20, *noisy_scores(rows, 0.2)[20:]]
    of_all = {f"dstc10_dialog_{code}": (rows, scores) for code in write.TURN_LEVEL}
    write_run(tmp_path / "runs" / "dre", scorer_config("dre", llm="hf", llm_args="pretrained=/m/gpt2"), of_all)
    results = write.read_results(tmp_path / "runs")
    assert cells(write.means_table(results))["dre (gpt2)"][0].endswith("] (75% scored)")
    assert cells(write.slide_tables(results)[2])["*dre (gpt2)*"][2].endswith("] (75% scored)")


def test_the_twin_of_table_6_has_the_papers_rows_and_ours(results: write.Results) -> None:
    rows = cells(write.huynh_table(results))
    opt = rows["paper: OPT 6.7B, 4 examples BM25_C"]
    assert opt == ["0.115", "0.258", "0.444", "0.228", "0.091", "0.486", "0.044", "0.657"]
    assert rows["paper: Best of DSTC10 baselines"] == ["0.319", "0.532", "0.493", "0.596", "0.363", "0.247", "0.395", "0.555"]
    assert rows["gpt2, as a judge"] == ["", "", "", "", "", "undefined", "", ""]
    assert rows["slide (slm)"][4] == ""
    assert rows["*one person against the others*"][4] == ""
    assert float(rows["*one person against the others*"][0]) > 0.8
    assert len(rows) == 10 + 5 + 1


def test_what_has_no_results_is_listed(results: write.Results) -> None:
    rows = cells(write.not_run_table(results))
    assert rows["slide"] == ["needs a model: SLM and LLM"]
    assert rows["breakdown-likelihood-ratio"] == ["needs a model: language model and background"]
    assert not {"bleu-1", "slide-slm", "reconstruction", "judge"} & set(rows)
    assert "reconstruction-dialogue" in rows


def test_the_script_writes_between_the_markers(work: Path, tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    shutil.copy(RESULTS, page)
    before = page.read_text(encoding="utf-8").split("<!-- results -->")[0]
    write.main(["--work", str(work), "--document", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith(before)
    assert text.count("<!-- end of results -->") == 1
    assert "### SLIDE, Table 2: PersonaChat" in text


def test_results_of_one_evaluator_are_read_and_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    advice = f"Type `python -m reproduction.results.runs --work {tmp_path}`."
    with refused(f"{tmp_path / 'runs'}: no evaluator has results here. {advice}"):
        write.read_results(tmp_path / "runs")
    shutil.copytree(LM_EVAL_FILES, tmp_path / "runs" / "judge")
    results = write.read_results(tmp_path / "runs")
    assert set(results["judge"]) == {"dstc10_dialog_mini", "dailydialog_pp_mini", "slide_mini"}
    assert write.huynh_table(results).count("\n") == 3 + 10 + 1


def test_every_row_names_a_scorer_and_every_scorer_has_a_row() -> None:
    rows = evaluators()
    assert len({row.name for row in rows}) == len(rows)
    # A judge with one prompt of ours: the tasks ask with the same prompts. Replayed judges have a page of their own. The
    # evaluator of assistants has tables of its own, auto and cascade hand each response to other scorers, and a rubric is the
    # user's own.
    ours = {point.name for point in entry_points(group=ENTRY_POINT_GROUP) if point.value.startswith("dialeval_plugin.")}
    others = {"llm_judge", "replay_judge", "assistant", "auto", "cascade", "rubric"}
    assert {row.scorer for row in rows if row.scorer} == ours - others
    assert set(write.SLIDE_ROWS.values()) <= {row.name for row in rows}


def test_with_every_folder_all_run_but_what_needs_a_hub_and_without_one_its_option_is_said() -> None:
    folders = {kind: [f"/m/{kind}"] for kind in KINDS} | {"reconstruction": ["/m/hred", "/m/vhcr"]}
    found = plan({"language_model": ["/m/lm"], "llm": ["/m/gpt2"]})
    lacking = {"breakdown-likelihood-ratio": "--background", "slide": "--slm", "causalscore": "--causalscore"}
    assert {name: found.not_run[name] for name in lacking} == {
        name: f"needs {option} FOLDER" for name, option in lacking.items()
    }
    assert "judge" not in found.not_run
    found = plan(folders)
    assert set(found.not_run) == {row.name for row in evaluators() if row.not_here}
    options = {row.name: row.options for row in found.ready}
    expected = {"model": "/m/language_model", "background": "/m/background", "method": "likelihood_ratio"}
    assert options["breakdown-likelihood-ratio"] == expected
    assert options["reconstruction-vhcr"]["model"] == "/m/vhcr"
    assert options["slide"] == {"slm": "/m/slm", "llm": "hf", "llm_args": "pretrained=/m/llm"}
    assert Path(options["bertscore"]["model"]).is_dir()
    assert not [value for values in options.values() for value in values.values() if "{" in str(value)]


def test_tasks_fit_the_level_and_the_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fed(tmp_path, fed_rows(2))
    monkeypatch.setenv("DIALEVAL_DATA_DIR", str(tmp_path))
    at_hand = tasks_at_hand()
    assert len(at_hand) == 8 + 10
    assert not [task for task in at_hand if task.name.endswith("_overall")]
    rows = {row.name: row for row in evaluators()}
    tasks = [RatedTask("tu", "turn", True), RatedTask("ft", "turn", False), RatedTask("fd", "dialogue", False)]
    assert tasks_of(rows["bleu-4"], tasks) == ["tu"]
    assert tasks_of(rows["slide-slm"], tasks) == ["tu", "ft"]
    assert tasks_of(rows["likelihood-dialogue"], tasks) == ["fd"]
    assert tasks_of(rows["judge"], tasks) == ["tu", "ft", "fd"]


def test_runs_are_skipped_once_finished_and_a_failure_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = documents(8)
    calls: list[list[str]] = []

    def run(words: list[str], **_: Any) -> Any:
        calls.append(words)
        output = Path(words[words.index("--output_path") + 1])
        if output.name == "bleu-4":
            return runs.subprocess.CompletedProcess(words, 3)
        write_run(output, scorer_config("bleu", n=1), {"dstc10_dialog_tu": (rows, noisy_scores(rows, 0.1))})
        return runs.subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(runs.subprocess, "run", run)
    monkeypatch.setattr(runs, "tasks_at_hand", lambda: [RatedTask("dstc10_dialog_tu", "turn", True)])
    words = ["--work", str(tmp_path), "--rank-rounds", "0", "--only", "bleu-1", "bleu-4", "g-eval"]
    assert runs.main(words) == 1
    assert runs.main(words) == 1
    assert [words[words.index("--model_args") + 1] for words in calls] == ["scorer=bleu,n=1", *["scorer=bleu,n=4"] * 2]
    said = capsys.readouterr()
    assert "[1/2] bleu-1: there already" in said.out
    assert "not run: g-eval: needs --llm FOLDER" in said.out
    assert f"FAILED: bleu-4; see {tmp_path / 'runs' / 'bleu-4' / 'run.log'}" in said.err
    assert (tmp_path / "board" / "index.html").exists()


def test_evaluators_are_run_in_the_order_they_are_named_and_a_row_stands_for_all_its_models(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--work", "w", "--list", "--reconstruction", "/m/hred", "--reconstruction", "/m/vhcr"]
    words += ["--only", "rouge-l", "reconstruction", "reconstruction-dialogue-vhcr", "bleu-1"]
    assert runs.main(words) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["rouge-l", "reconstruction-hred", "reconstruction-vhcr", "reconstruction-dialogue-vhcr", "bleu-1"]


def test_models_in_the_box_are_run_where_no_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--work",
        "w",
        "--list",
        "--general",
        "/m/one",
        "--general",
        "/m/two",
        "--only",
        "slide-slm",
        "general",
        "reconstruction",
    ]
    assert runs.main(words) == 0
    first = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert first == ["slide-slm", "general-one", "general-two", "reconstruction"]
    assert all((runs.PRETRAINED / name).is_dir() for name in runs.IN_THE_BOX.values())
    assert set(runs.IN_THE_BOX) <= set(KINDS)


def test_an_evaluator_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with refused("--only: there is no evaluator blue. Type --list to see all.", SystemExit):
        runs.main(["--work", str(tmp_path), "--only", "blue"])
