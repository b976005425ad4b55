"""From result files to the folder."""

from __future__ import annotations

import csv
import errno
import io
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.leaderboard.board import Figure, Leaderboard
from dialeval_plugin.leaderboard.build import FILES, BuildResult, build, cells_of, read, references_of, write
from dialeval_plugin.leaderboard.result_files import read_runs
from tests.leaderboard_files import (
    GUPTA,
    JUDGE,
    ZHAO,
    change_json,
    documents,
    noisy_scores,
    scorer_config,
    write_run,
    write_scores,
)
from tests.refusals import refused


def test_cells_hold_what_the_files_say(built: BuildResult, runs_folder: Path) -> None:
    board = built.board
    assert board.columns == (GUPTA, ZHAO)
    assert board.evaluators[0] == "sharp"
    cell = board.cell("sharp", GUPTA)
    assert cell is not None
    file = json.loads(next(runs_folder.glob("run-1/results_*.json")).read_text())["results"]["dstc10_dialog_dgu"]
    figure = cell.figures["spearman"]
    expected = [file[f"spearman{name},none"] for name in ("", "_ci_low", "_ci_high")]
    assert [figure.value, figure.ci_low, figure.ci_high] == expected
    assert list(cell.figures) == ["spearman", "pearson", "kendall"]
    assert (cell.n_scored, cell.n_total, cell.is_partial, cell.date) == (40, 40, False, "2026-05-01T12:00:01+00:00")
    assert cell.source == "run-1/results_2026-05-01T12-00-01.000000.json"
    assert cell.cost.n_requests == 40
    assert "[method:sharp]" in cell.signature


def test_what_was_not_run_is_missing_and_what_has_no_score_is_counted(built: BuildResult) -> None:
    assert built.board.cell(JUDGE, ZHAO) is None
    cell = built.board.cell(JUDGE, GUPTA)
    assert cell is not None
    assert (cell.n_scored, cell.n_total, cell.is_partial) == (37, 40, True)
    assert built.board.ranking("spearman").unranked == (JUDGE,)
    assert cell.unscored == {"non_finite": 3}


def test_results_of_two_versions_of_a_task_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They were ranked in one column without a word."""
    rows = documents(20)
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.9), second=1)
    change_json(
        write_scores(tmp_path, "two", rows, noisy_scores(rows, 0.1), second=2), "versions", "dstc10_dialog_dgu", value=2.0
    )
    with caplog.at_level(logging.WARNING):
        build([tmp_path], rank_rounds=0)
    advice = "versions 1.0 and 2.0 of dstc10_dialog_dgu are not comparable. Run the older one again."
    assert caplog.messages == [f"leaderboard: dailydialog-gupta (overall, turn level): {advice}"]


def test_the_newest_of_several_runs_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = documents(20)
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.9), second=1)
    newer = write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.0), second=9)
    # A trial with --limit after it took its place.
    trial = {"dstc10_dialog_dgu": (rows[:12], noisy_scores(rows[:12], 0.5))}
    write_run(tmp_path, scorer_config("one"), trial, second=20, n_original=20)
    with caplog.at_level(logging.WARNING):
        board = build([tmp_path], rank_rounds=0).board
    assert [cell.source for cell in board.cells] == [f"run-9/{newer.name}"]
    assert caplog.messages == ["leaderboard: 2 older or partial results of the same evaluator and data are left out"]


def test_without_samples_there_are_figures_and_no_plots(tmp_path: Path) -> None:
    rows = documents(20)
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.1), samples=False)
    built = build([tmp_path], rank_rounds=0)
    assert built.evidence == ()
    assert len(built.board.cells) == 1


def test_the_folder_is_written_whole_and_read_back(built: BuildResult, runs_folder: Path, tmp_path: Path) -> None:
    paths = write(built, tmp_path)
    assert [path.name for path in paths] == list(FILES)
    assert read(tmp_path) == built.board
    first = [path.read_bytes() for path in paths]
    write(build([runs_folder], rank_rounds=0), tmp_path)
    assert [path.read_bytes() for path in paths] == first


def test_a_folder_without_a_leaderboard_says_what_to_type(tmp_path: Path) -> None:
    with refused(f"{tmp_path}: holds no leaderboard.json. Type `dialeval leaderboard build RESULTS --output {tmp_path}`."):
        read(tmp_path)


def board_of(folder: Path, task: str, metrics: dict[str, float]) -> Leaderboard:
    """Build a leaderboard from one run that printed these metrics of a task, without samples."""
    rows = documents(6)
    path = write_run(folder, scorer_config("one"), {task: (rows, noisy_scores(rows, 0.1))}, samples=False)
    values = {f"{name},none": value for name, value in {**metrics, "n_scored": 6, "n_unscored": 0}.items()}
    change_json(path, "results", task, value=values)
    return build([folder]).board


def test_what_a_task_prints_beside_a_figure_is_a_reference_of_its_column_and_no_coefficient(tmp_path: Path) -> None:
    board = board_of(tmp_path / "breakdown", "dbdc_yi", {"accuracy": 0.6, "f1_b": 0.4, "always_breakdown_f1_b": 0.5})
    assert board.coefficients == ("accuracy", "f1_b")
    assert board.reference_rows("f1_b") == {"every turn called a breakdown": {board.columns[0]: 0.5}}
    assert len(board.columns) == 1
    metrics = {"relevance_cont2cat": 0.3, "relevance_cont2cat_floor": 0.2, "relevance_cont2cat_ceiling": 0.4}
    (run,) = read_runs([tmp_path / "breakdown"])
    printed = {**metrics, "empathy_cont2cat": 0.1}
    about = run.about._replace(dataset="dream", kind="preference")
    run = replace(run, task="cgdialog_preference_dream", about=about, printed=printed)
    board = Leaderboard(tuple(cells_of(run)), tuple(references_of(run)))
    assert board.coefficients == ("cont2cat",)
    empathy, relevance = board.columns
    assert (empathy.quality, relevance.quality) == ("empathy", "relevance")
    assert board.reference_rows("cont2cat") == {"coin flips": {relevance: 0.2}, "what most people said": {relevance: 0.4}}


def test_a_signature_that_is_shown_to_others_names_no_folder(tmp_path: Path) -> None:
    rows = documents(20)
    config = scorer_config("one", slm="/home/me/models/mine/", seed=3)
    write_run(tmp_path, config, {"dstc10_dialog_dgu": (rows, noisy_scores(rows, 0.1))})
    (cell,) = build([tmp_path], rank_rounds=0).board.cells
    assert "|slm:mine|seed:3|" in cell.signature
    assert "/home" not in json.dumps(Leaderboard((cell,)).to_dict())


def few_dialogues(folder: Path, n_rows: int) -> tuple[Figure, dict[str, str]]:
    """The figure, and the texts of the files, of a run over `n_rows` responses, two to a dialogue."""
    rows = documents(n_rows)
    path = write_scores(folder, "one", rows, noisy_scores(rows, 0.9))
    for name, value in (("spearman_ci_low,none", 0.872), ("spearman_ci_high,none", 1.0)):
        if n_rows > 4:
            change_json(path, "results", "dstc10_dialog_dgu", name, value=value)
    built = build([folder])
    texts = {path.name: path.read_text() for path in write(built, folder / "board")}
    figure = built.board.cells[0].figures["spearman"]
    assert read(folder / "board").cells[0].figures["spearman"] == figure
    return figure, texts


def test_of_a_handful_of_dialogues_the_board_shows_no_interval(tmp_path: Path) -> None:
    """TRIAL 6: 0.872 to 1.000 of two dialogues."""
    figure, texts = few_dialogues(tmp_path, 4)
    assert (figure.ci_low, figure.ci_high, figure.is_rough, str(figure)) == (None, None, False, f"{figure.value:.3f}")
    assert figure.reason == (
        "spearman: an interval needs 10 clusters (dialogues), here are 2, so there is no interval. "
        "Score and rate more dialogues."
    )
    assert f'<small class="ci" title="{figure.reason}">no interval</small>' in texts["index.html"]
    assert "0.872" not in texts["index.html"]


def test_of_few_dialogues_the_board_says_that_the_interval_is_rough(tmp_path: Path) -> None:
    figure, texts = few_dialogues(tmp_path, 40)
    assert figure.is_rough
    assert str(figure) == f"{figure.value:.3f} [0.872, 1.000, rough]"
    assert '<small class="ci">0.87 to 1.00, rough</small>' in texts["index.html"]
    assert '<line class="interval rough"' in texts["index.html"]
    assert "[0.872, 1.000, rough]" in texts["leaderboard.md"]
    (row, *_) = csv.DictReader(io.StringIO(texts["leaderboard.csv"]))
    assert row["is_rough"] == "True"
    whole, _ = few_dialogues(tmp_path / "more", 60)
    assert (whole.is_rough, whole.ci_low) == (False, 0.872)


def test_no_file_is_replaced_before_all_are_written_and_the_page_is_the_last(
    built: BuildResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(built, tmp_path, title="Before")
    before, replaced = {path: path.read_bytes() for path in tmp_path.iterdir()}, list[str]()
    write_text, replace, full = Path.write_text, Path.replace, list[str]()

    def written(path: Path, *text: Any, **options: Any) -> int:
        if any(path.name.startswith(f".{name}.") for name in full):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_text(path, *text, **options)

    monkeypatch.setattr(Path, "write_text", written)
    monkeypatch.setattr(Path, "replace", lambda path, to: replaced.append(to.name) or replace(path, to))
    for name in FILES:
        full[:] = [name]
        with pytest.raises(InputError):
            write(built, tmp_path, title="After")
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    full.clear()
    write(built, tmp_path, title="After")
    assert (sorted(replaced), replaced[-1]) == (sorted(FILES), "index.html")
