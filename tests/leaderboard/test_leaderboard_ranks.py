"""Rank clusters from the rows of several runs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.board import PairTests
from dialeval_plugin.leaderboard.build import build
from tests.leaderboard_files import GUPTA, ZHAO, documents, noisy_scores, write_runs, write_scores


def ranks(folder: Path, **options: int) -> dict[str, int | None]:
    board = build([folder], **options).board
    return {cell.evaluator: cell.figures["spearman"].rank for cell in board.cells if cell.column == GUPTA}


def test_evaluators_that_differ_stand_in_clusters_of_their_own_and_equal_ones_in_one(tmp_path: Path) -> None:
    rows = documents(60)
    noise = {"sharp": 0.01, "sharp too": 0.011, "random": 9.0}
    for second, (name, width) in enumerate(noise.items()):
        scores = noisy_scores(rows, width, seed=second)
        write_scores(tmp_path, name, rows, scores, second=second)
    assert ranks(tmp_path, rank_rounds=200) == {"sharp": 1, "sharp too": 1, "random": 2}
    assert set(ranks(tmp_path, rank_rounds=0).values()) == {None}


def test_where_nothing_can_be_told_apart_there_are_no_ranks_but_the_number_of_tests(tmp_path: Path) -> None:
    rows = documents(12)
    for second, name in enumerate(("one", "two", "three")):
        write_scores(tmp_path, name, rows, noisy_scores(rows, 5.0, seed=second), second=second)
    board = build([tmp_path], rank_rounds=100).board
    assert {cell.figures["spearman"].rank for cell in board.cells} == {None}
    assert board.tests == (
        PairTests(column=GUPTA, coefficient="spearman", n_rows=12, n_dialogues=6, n_pairs=3, n_different=0, n_rounds=120),
    )


def test_many_evaluators_can_still_be_told_apart(tmp_path: Path) -> None:
    """Of 66 pairs none survives Holm's correction with 1000 permutations of each."""
    rows = documents(60)
    for second in range(12):
        scores = noisy_scores(rows, 0.01 if second < 6 else 9.0, seed=second)
        write_scores(tmp_path, f"{second:02}", rows, scores, second=second)
    assert list(ranks(tmp_path).values()).count(1) == 6


def test_an_evaluator_without_a_score_keeps_no_other_from_its_rank(tmp_path: Path) -> None:
    rows = documents(60)
    scores_of = {"sharp": noisy_scores(rows, 0.01), "random": noisy_scores(rows, 9.0), "silent": [None] * 60}
    for second, (name, scores) in enumerate(scores_of.items()):
        write_scores(tmp_path, name, rows, scores, second=second)
    assert ranks(tmp_path) == {"sharp": 1, "random": 2, "silent": None}


def test_only_the_main_coefficient_is_ranked_and_no_column_with_one_evaluator(tmp_path: Path) -> None:
    write_runs(tmp_path)
    board = build([tmp_path], rank_rounds=50).board
    found = {cell.evaluator: cell.figures for cell in board.cells if cell.column == ZHAO}
    assert found["sharp"]["spearman"].rank == 1
    assert found["sharp"]["pearson"].rank is None


def test_rows_that_are_rated_differently_in_two_runs_give_no_ranks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows, others = documents(20), documents(20)
    others[3]["rating"] = rows[3]["rating"] + 1
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.1), second=1)
    write_scores(tmp_path, "two", others, noisy_scores(others, 0.1), second=2)
    with caplog.at_level(logging.WARNING):
        assert ranks(tmp_path) == {"one": None, "two": None}
    assert caplog.messages == [
        f"{GUPTA}: 'response-3' is rated {others[3]['rating']} in one run and {rows[3]['rating']} in another, so there are no "
        "ranks. Run the older one again."
    ]
