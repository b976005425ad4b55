"""From result files to the folder."""

from __future__ import annotations

import csv
import io
import json
import logging
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.board import Leaderboard
from dialeval_plugin.leaderboard.build import FILES, build, read, write
from dialeval_plugin.leaderboard.evidence import cases
from tests.leaderboard_files import (
    GUPTA,
    JUDGE,
    ZHAO,
    documents,
    noisy_scores,
    scorer_config,
    write_run,
    write_runs,
    write_scores,
)
from tests.refusals import refused


def test_cells_hold_what_the_files_say(tmp_path: Path) -> None:
    write_runs(tmp_path)
    board = build([tmp_path], rank_rounds=0).board
    assert board.columns == (GUPTA, ZHAO)
    assert board.evaluators[0] == "sharp"
    cell = board.cell("sharp", GUPTA)
    assert cell is not None
    file = json.loads(next(tmp_path.glob("run-1/results_*.json")).read_text())["results"]["dstc10_dialog_dgu"]
    figure = cell.figures["spearman"]
    assert (figure.value, figure.ci_low, figure.ci_high) == tuple(
        file[f"spearman{name},none"] for name in ("", "_ci_low", "_ci_high")
    )
    assert list(cell.figures) == ["spearman", "pearson", "kendall"]
    assert (cell.n_scored, cell.n_total, cell.is_partial, cell.date) == (40, 40, False, "2026-05-01T12:00:01+00:00")
    assert cell.source == "run-1/results_2026-05-01T12-00-01.000000.json"
    assert cell.cost.n_requests == 40
    assert "[method:sharp]" in cell.signature


def test_what_was_not_run_is_missing_and_what_has_no_score_is_counted(tmp_path: Path) -> None:
    write_runs(tmp_path)
    board = build([tmp_path], rank_rounds=0).board
    assert board.cell(JUDGE, ZHAO) is None
    cell = board.cell(JUDGE, GUPTA)
    assert cell is not None
    assert (cell.n_scored, cell.n_total, cell.is_partial) == (37, 40, True)
    assert board.means("spearman")[JUDGE].n_missing == 1


def test_the_newest_of_several_runs_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = documents(20)
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.9), second=1)
    newer = write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.0), second=9)
    with caplog.at_level(logging.WARNING):
        board = build([tmp_path], rank_rounds=0).board
    assert [cell.source for cell in board.cells] == [f"run-9/{newer.name}"]
    assert caplog.messages == ["leaderboard: 1 older results of the same evaluator and data are left out"]


def test_without_samples_there_are_figures_and_no_plots(tmp_path: Path) -> None:
    rows = documents(20)
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.1), samples=False)
    built = build([tmp_path], rank_rounds=0)
    assert built.evidence == ()
    assert len(built.board.cells) == 1


def test_the_folder_is_written_whole_and_read_back(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs")
    built = build([tmp_path / "runs"], rank_rounds=0)
    paths = write(built, tmp_path / "out")
    assert [path.name for path in paths] == list(FILES)
    assert read(tmp_path / "out") == built.board
    first = [path.read_bytes() for path in paths]
    write(build([tmp_path / "runs"], rank_rounds=0), tmp_path / "out")
    assert [path.read_bytes() for path in paths] == first


def test_a_folder_without_a_leaderboard_says_what_to_type(tmp_path: Path) -> None:
    with refused(f"{tmp_path}: holds no leaderboard.json. Type `dialeval leaderboard build RESULTS --output {tmp_path}`."):
        read(tmp_path)


def test_a_case_lays_scores_on_one_scale_and_leaves_an_unscored_one_out(tmp_path: Path) -> None:
    write_runs(tmp_path)
    built = build([tmp_path], rank_rounds=0)
    group = next(group for group in cases(built.evidence) if group["name"] == str(GUPTA))
    assert group["n_total"] == 40
    assert len(group["cases"]) == 30
    first = group["cases"][0]
    by_name = {item["evaluator"]: item for item in first["judgements"]}
    assert (by_name[JUDGE]["value"], by_name[JUDGE]["rescaled"]) == (None, None)
    assert by_name[JUDGE]["reason"]
    rows = next(item for item in built.evidence if item.evaluator == "sharp" and item.column == GUPTA).scored
    low, high = min(rows)[0], max(rows)[0]
    assert by_name["sharp"]["rescaled"] == pytest.approx(1 + 4 * (by_name["sharp"]["value"] - low) / (high - low))
    # Ratings that lie between 1 and 5 are people's own.
    assert first["human"]["value"] == first["human"]["rescaled"]


def test_ratings_on_another_scale_are_stretched(tmp_path: Path) -> None:
    rows = documents(10)
    for place, row in enumerate(rows):
        row["rating"] = place / 9
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.1))
    (group,) = cases(build([tmp_path], rank_rounds=0).evidence)
    assert [case["human"]["rescaled"] for case in group["cases"]] == pytest.approx([1 + 4 * place / 9 for place in range(10)])


def test_a_signature_that_is_shown_to_others_names_no_folder(tmp_path: Path) -> None:
    rows = documents(20)
    config = scorer_config("one", slm="/home/me/models/mine/", seed=3)
    write_run(tmp_path, config, {"dstc10_dialog_dgu": (rows, noisy_scores(rows, 0.1))})
    (cell,) = build([tmp_path], rank_rounds=0).board.cells
    assert "|slm:mine|seed:3|" in cell.signature
    assert "/home" not in json.dumps(Leaderboard((cell,)).to_dict())


def few_dialogues(folder: Path, n_rows: int) -> Path:
    """A run over `n_rows` responses, two to a dialogue, of an older release: its file has an interval whatever their number."""
    rows = documents(n_rows)
    path = write_scores(folder, "one", rows, noisy_scores(rows, 0.9))
    file = json.loads(path.read_text())
    file["results"]["dstc10_dialog_dgu"] |= {"spearman_ci_low,none": 0.872, "spearman_ci_high,none": 1.0}
    path.write_text(json.dumps(file))
    return folder


def test_of_a_handful_of_dialogues_the_board_shows_no_interval(tmp_path: Path) -> None:
    """TRIAL 6: 0.872 to 1.000 of two dialogues."""
    built = build([few_dialogues(tmp_path, 4)])
    figure = built.board.cells[0].figures["spearman"]
    assert (figure.ci_low, figure.ci_high, figure.is_rough, str(figure)) == (None, None, False, f"{figure.value:.3f}")
    assert figure.reason == (
        "spearman: an interval needs 10 clusters (dialogues), here are 2, so there is no interval. "
        "Score and rate more dialogues."
    )
    write(built, tmp_path / "board")
    page = (tmp_path / "board" / "index.html").read_text()
    assert f'<small class="ci" title="{figure.reason}">no interval</small>' in page
    assert "0.872" not in page


def test_of_few_dialogues_the_board_says_that_the_interval_is_rough(tmp_path: Path) -> None:
    built = build([few_dialogues(tmp_path, 40)])
    figure = built.board.cells[0].figures["spearman"]
    assert figure.is_rough
    assert str(figure) == f"{figure.value:.3f} [0.872, 1.000, rough]"
    write(built, tmp_path / "board")
    page = (tmp_path / "board" / "index.html").read_text()
    assert '<small class="ci">0.87 to 1.00, rough</small>' in page
    assert '<path class="interval rough"' in page
    assert "[0.872, 1.000, rough]" in (tmp_path / "board" / "leaderboard.md").read_text()
    (row, *_) = csv.DictReader(io.StringIO((tmp_path / "board" / "leaderboard.csv").read_text()))
    assert row["is_rough"] == "True"
    assert read(tmp_path / "board").cells[0].figures["spearman"] == figure
    whole = build([few_dialogues(tmp_path / "more", 60)]).board.cells[0].figures["spearman"]
    assert (whole.is_rough, whole.ci_low) == (False, 0.872)
