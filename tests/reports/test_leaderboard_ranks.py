"""Rank clusters from the rows of several runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dialeval_plugin.reports.leaderboard import Column
from dialeval_plugin.reports.leaderboard_build import build
from tests.leaderboard_files import documents, noisy_scores, write_run, write_runs

GUPTA = Column("dailydialog-gupta", "turn", "overall")


def config(name: str) -> dict[str, object]:
    return {"model": "dialogue-metric", "model_args": {"scorer": name}, "scorer": name}


def ranks(folder: Path, **options: int) -> dict[str, int | None]:
    board = build([folder], **options).board
    return {cell.evaluator: cell.figures["spearman"].rank for cell in board.cells if cell.column == GUPTA}


def test_evaluators_that_differ_stand_in_clusters_of_their_own_and_equal_ones_in_one(tmp_path: Path) -> None:
    rows = documents(60)
    noise = {"sharp": 0.01, "sharp too": 0.011, "random": 9.0}
    for second, (name, width) in enumerate(noise.items()):
        scores = noisy_scores(rows, width, seed=second)
        write_run(tmp_path, config(name), {"dstc10_dialog_dgu": (rows, scores)}, second=second)
    assert ranks(tmp_path, rank_rounds=200) == {"sharp": 1, "sharp too": 1, "random": 2}
    assert set(ranks(tmp_path, rank_rounds=0).values()) == {None}


def test_only_the_main_coefficient_is_ranked_and_no_column_with_one_evaluator(tmp_path: Path) -> None:
    write_runs(tmp_path)
    board = build([tmp_path], rank_rounds=50).board
    zhao = Column("dailydialog-zhao", "turn", "appropriateness")
    found = {cell.evaluator: cell.figures for cell in board.cells if cell.column == zhao}
    assert found["sharp"]["spearman"].rank == 1
    assert found["sharp"]["pearson"].rank is None


def test_rows_that_are_rated_differently_in_two_runs_give_no_ranks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows, others = documents(20), documents(20)
    others[3]["rating"] = rows[3]["rating"] + 1
    write_run(tmp_path, config("one"), {"dstc10_dialog_dgu": (rows, noisy_scores(rows, 0.1))}, second=1)
    write_run(tmp_path, config("two"), {"dstc10_dialog_dgu": (others, noisy_scores(others, 0.1))}, second=2)
    with caplog.at_level(logging.WARNING):
        assert ranks(tmp_path) == {"one": None, "two": None}
    assert caplog.messages == [
        f"{GUPTA}: 'response-3' is rated {others[3]['rating']} in one run and {rows[3]['rating']} in another, so there are no "
        "ranks. Run the older one again."
    ]
