"""Rows next to figures: cases, how far people agree, and rank clusters from the rows of several runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from dialeval_plugin.leaderboard.board import PairTests
from dialeval_plugin.leaderboard.build import BuildResult, build
from dialeval_plugin.leaderboard.evidence import (
    DISPUTED_CASES,
    EVEN_CASES,
    HALF_THE_PEOPLE,
    ONE_PERSON,
    cases,
    differences,
    has_references,
)
from dialeval_plugin.statistics.annotators.raters import leave_one_rater_out, split_half
from dialeval_plugin.statistics.bootstrap import Bootstrap
from tests.leaderboard_files import GUPTA, JUDGE, ZHAO, documents, noisy_scores, scorer_config, write_run, write_scores


def ranks(folder: Path, noise: dict[str, float | None], n_rows: int = 60, **options: int) -> dict[str, int | None]:
    """Ranks of evaluators whose scores follow the same ratings up to noise; None for one that scores nothing."""
    rows = documents(n_rows)
    for second, (name, width) in enumerate(noise.items()):
        scores = [None] * n_rows if width is None else noisy_scores(rows, width, seed=second)
        write_scores(folder, name, rows, scores, second=second)
    return {cell.evaluator: cell.figures["spearman"].rank for cell in build([folder], **options).board.cells}


def test_evaluators_that_differ_stand_in_clusters_of_their_own_and_equal_ones_in_one(tmp_path: Path) -> None:
    noise: dict[str, float | None] = {"sharp": 0.01, "sharp too": 0.011, "random": 9.0}
    assert ranks(tmp_path, noise, rank_rounds=200) == {"sharp": 1, "sharp too": 1, "random": 2}
    assert {cell.figures["spearman"].rank for cell in build([tmp_path], rank_rounds=0).board.cells} == {None}


def test_where_nothing_can_be_told_apart_there_are_no_ranks_but_the_number_of_tests(tmp_path: Path) -> None:
    assert set(ranks(tmp_path, dict.fromkeys(("one", "two", "three"), 5.0), 12, rank_rounds=100).values()) == {None}
    assert build([tmp_path], rank_rounds=100).board.tests == (
        PairTests(column=GUPTA, coefficient="spearman", n_rows=12, n_dialogues=6, n_pairs=3, n_different=0, n_rounds=120),
    )


def test_many_evaluators_can_still_be_told_apart(tmp_path: Path) -> None:
    """None of 66 pairs survives Holm's correction with 1000 permutations of each."""
    noise = {f"{number:02}": 0.01 if number < 6 else 9.0 for number in range(12)}
    assert list(ranks(tmp_path, {**noise}).values()).count(1) == 6


def test_an_evaluator_without_a_score_keeps_no_other_from_its_rank(tmp_path: Path) -> None:
    noise = {"sharp": 0.01, "random": 9.0, "silent": None}
    assert ranks(tmp_path, noise) == {"sharp": 1, "random": 2, "silent": None}


def test_only_the_main_coefficient_is_ranked_and_no_column_with_one_evaluator(runs_folder: Path) -> None:
    board = build([runs_folder], rank_rounds=50).board
    found = {cell.evaluator: cell.figures for cell in board.cells if cell.column == ZHAO}
    assert found["sharp"]["spearman"].rank == 1
    assert found["sharp"]["pearson"].rank is None


def test_more_evaluators_than_can_be_tested_have_no_ranks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three hundred would have taken days, without a word."""
    monkeypatch.setattr("dialeval_plugin.leaderboard.evidence.MOST_RANKED", 1)
    rows = documents(20)
    for second, name in enumerate(("one", "two")):
        write_scores(tmp_path, name, rows, noisy_scores(rows, second), second=second)
    with caplog.at_level(logging.WARNING):
        assert build([tmp_path], rank_rounds=20).board.tests == ()
    said = "dailydialog-gupta (overall, turn level): the pairs of 2 evaluators are too many to test, so there are no ranks."
    assert caplog.messages == [said]


def test_rows_that_are_rated_differently_in_two_runs_give_no_ranks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows, others = documents(20), documents(20)
    others[3]["rating"] = rows[3]["rating"] + 1
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.1), second=1)
    write_scores(tmp_path, "two", others, noisy_scores(others, 0.1), second=2)
    with caplog.at_level(logging.WARNING):
        board = build([tmp_path]).board
    assert [cell.figures["spearman"].rank for cell in board.cells] == [None, None]
    assert caplog.messages == [
        f"{GUPTA}: 'response-3' is rated {others[3]['rating']} in one run and {rows[3]['rating']} in another, so there are no "
        "ranks. Run the older one again."
    ]


def test_people_are_compared_with_each_other_where_their_answers_are_known(tmp_path: Path) -> None:
    rows = documents(40)
    raters = [[row["rating"], min(5.0, row["rating"] + place % 2), 3.0 if place % 3 else 1.0] for place, row in enumerate(rows)]
    known = [{**row, "raters": answers} for row, answers in zip(rows, raters, strict=True)]
    tasks = {"dstc10_dialog_dgu": (known, noisy_scores(rows, 0.1)), "dstc10_dialog_dz": (rows, noisy_scores(rows, 0.1))}
    write_run(tmp_path, scorer_config("one"), tasks)
    board = build([tmp_path]).board
    for name, coefficient in (("spearman", "spearman"), ("pearson", "pearson"), ("kendall", "kendall_b")):
        one, half = (
            function(raters, coefficient=coefficient, bootstrap=Bootstrap(rounds=0)).value
            for function in (leave_one_rater_out, split_half)
        )
        expected = {ONE_PERSON: {GUPTA: pytest.approx(one)}, HALF_THE_PEOPLE: {GUPTA: pytest.approx(half)}}
        assert board.reference_rows(name) == expected


def test_a_case_has_the_score_of_each_evaluator_its_range_and_why_one_is_missing(built: BuildResult) -> None:
    items, groups = cases(built.evidence, built.board)
    group = next(group for group in groups if built.board.columns[group["column"]] == GUPTA)
    assert group["n_total"] == 40
    assert EVEN_CASES <= len(group["cases"]) <= EVEN_CASES + DISPUTED_CASES
    first = group["cases"][0]
    assert items[first["item"]]["id"] == "response-0"
    judge, sharp = group["evaluators"].index(JUDGE), group["evaluators"].index("sharp")
    assert (first["scores"][judge], first["places"][judge]) == (None, None)
    assert first["why"] == {judge: "non_finite"}
    of_sharp = next(item for item in built.evidence if item.evaluator == "sharp" and item.column == GUPTA).scored
    assert group["ranges"][sharp] == (min(of_sharp)[0], max(of_sharp)[0])
    assert first["scores"][sharp] == pytest.approx(of_sharp[0][0], rel=1e-3)
    # Ratings that lie between 1 and 5 are people's own.
    assert first["human"][0] == first["human"][1]


def test_the_cases_hold_those_on_which_two_evaluators_differ_most(tmp_path: Path) -> None:
    rows = documents(100)
    scores = [float(place) for place in range(100)]
    others = [*scores[:36], 99.5, *scores[37:]]
    write_scores(tmp_path, "one", rows, scores, second=1)
    write_scores(tmp_path, "two", rows, others, second=2)
    built = build([tmp_path], rank_rounds=0)
    items, (group,) = cases(built.evidence, built.board)
    ids = [items[case["item"]]["id"] for case in group["cases"]]
    # Every fifth row, and the one that the second lifts to the top.
    assert [id for id in ids if id not in {f"response-{place}" for place in range(0, 100, 5)}] == ["response-36"]
    places = dict(zip(ids, (case["places"] for case in group["cases"]), strict=True))
    assert sorted(places["response-36"]) == [36, 100]
    assert places["response-0"] == [0, 0]


def test_ratings_on_another_scale_are_stretched(tmp_path: Path) -> None:
    rows = [{**row, "rating": place / 9} for place, row in enumerate(documents(10))]
    write_scores(tmp_path, "one", rows, noisy_scores(rows, 0.1))
    built = build([tmp_path], rank_rounds=0)
    _, (group,) = cases(built.evidence, built.board)
    assert [case["human"][1] for case in group["cases"]] == pytest.approx([1 + 4 * place / 9 for place in range(10)])


def test_two_evaluators_differ_by_their_coefficients_on_the_rows_that_both_have_scored(built: BuildResult) -> None:
    found = differences(built.board, built.evidence)
    assert set(found) == {GUPTA, ZHAO}
    for (a, b), one in found[ZHAO].items():
        figures = [built.board.figure(name, ZHAO, "spearman") for name in (a, b)]
        values = [figure.value for figure in figures if figure is not None and figure.value is not None]
        assert one.value == pytest.approx(values[0] - values[1])
        assert one.ci_low is not None
    of_judge = {one.n_scored for pair, one in found[GUPTA].items() if JUDGE in pair}
    assert of_judge == {37}


def test_only_logged_responses_tell_whether_a_set_has_references(built: BuildResult) -> None:
    assert has_references(built.evidence, GUPTA.dataset) is True
    bare = [replace(item, rows=item.rows[:0]) for item in built.evidence]
    assert has_references(bare, GUPTA.dataset) is None
    assert has_references(built.evidence, "of nobody") is None
