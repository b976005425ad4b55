"""The human ceiling: loops over raters, ragged rows, undefined cases, what more raters give."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics.annotators.raters import in_place_of_raters, leave_one_rater_out, split_half
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from dialeval_plugin.statistics.levels import MAX_CELLS
from tests.cluster_order import SCIPY, interval_by_loop
from tests.refusals import refusal

NO_INTERVAL = {"coefficient": "pearson", "bootstrap": NO_RESAMPLES}


def ratings_of(n_raters: int, n: int = 60, seed: int = 4) -> np.ndarray:
    generator = np.random.default_rng(seed)
    quality = generator.normal(size=(n, 1))
    return np.clip((3 + quality + generator.normal(size=(n, n_raters))).round(), 1, 5)


@pytest.mark.parametrize("coefficient", sorted(SCIPY))
def test_leave_one_rater_out_is_that_of_a_loop(coefficient: str) -> None:
    table = ratings_of(3)
    options = {"coefficient": coefficient, "clusters": np.arange(60) // 3, "bootstrap": Bootstrap(rounds=60, seed=1)}
    found = leave_one_rater_out(table.tolist(), **options)

    def statistic(rows: np.ndarray) -> float:
        others = [np.delete(rows, place, axis=1).mean(axis=1) for place in range(3)]
        return float(np.mean([SCIPY[coefficient](rows[:, place], others[place]).statistic for place in range(3)]))

    assert found.value == pytest.approx(statistic(table), abs=1e-9)
    expected = interval_by_loop(lambda rows: statistic(table[rows]), np.arange(60) // 3, list(table.T), rounds=60, seed=1)
    assert (found.ci_low, found.ci_high) == expected
    assert found.n_clusters == 20


def test_ragged_rows() -> None:
    raters = [[1, 2, None], [3, 4], [5], [2, None, 2], [4, 5, 5], [None, 3, 1], [None, None, 4], [1, 1]]
    found = leave_one_rater_out(raters, **NO_INTERVAL)
    # Rows 0, 1, 3, 4, 5 and 7 have two ratings or more; each place is compared on its own rows.
    places = [([1, 3, 2, 4, 1], [2, 4, 2, 5, 1]), ([2, 4, 5, 3, 1], [1, 3, 4.5, 1, 1]), ([2, 5, 1], [2, 4.5, 3])]
    assert found.value == pytest.approx(np.mean([stats.pearsonr(*place).statistic for place in places]), abs=1e-9)
    assert (found.n_total, found.n_scored, found.n_unscored) == (8, 6, 2)


def test_a_place_without_a_value_is_not_averaged() -> None:
    found = leave_one_rater_out([[1, 2], [2, 1], [3, 3], [4, 5, 4]], **NO_INTERVAL)
    columns = [1, 2, 3, 4], [2, 1, 3, 4.5], [2, 1, 3, 5], [1, 2, 3, 4]
    places = columns[:2], columns[2:]
    assert found.value == pytest.approx(np.mean([stats.pearsonr(*place).statistic for place in places]), abs=1e-9)


def test_split_half_of_two_raters_is_their_correlation() -> None:
    table = ratings_of(2)
    found = split_half(table.tolist(), **NO_INTERVAL)
    # Which of the two is in which half changes from row to row, so the correlation is that of shuffled columns.
    assert found.value == pytest.approx(stats.pearsonr(*table.T).statistic, abs=0.05)


def test_halves_do_not_overlap() -> None:
    """Rows of two raters who contradict each other: overlapping halves would agree."""
    found = split_half([[1, 5], [5, 1], [2, 4], [4, 2], [1, 5], [2, 4]], **NO_INTERVAL)
    assert found.value == pytest.approx(-1, abs=1e-9)


def test_seeds() -> None:
    table = ratings_of(5).tolist()
    boot = Bootstrap(rounds=20, seed=3)
    assert split_half(table, bootstrap=boot) == split_half(table, bootstrap=boot)
    assert split_half(table, bootstrap=boot).value != split_half(table, bootstrap=Bootstrap(rounds=20, seed=4)).value


@pytest.mark.parametrize(
    ("raters", "reason"),
    [
        ([[1], [2], [None, 3], []], "{}: none of 4 rows has 2 raters or more. Have rows rated by several people."),
        ([], "{}: none of 0 rows has 2 raters or more. Have rows rated by several people."),
        ([[1, 1]] * 5, "{}: spearman is undefined on 5 rows with 2 raters. Have more rows rated."),
        ([[1, 2], [2, 1]], "{}: spearman is undefined on 2 rows with 2 raters. Have more rows rated."),
    ],
)
@pytest.mark.parametrize("kind", [leave_one_rater_out, split_half])
def test_undefined(kind: Any, raters: Any, reason: str) -> None:
    found = kind(raters)
    assert (found.value, found.ci_low, found.reason) == (None, None, reason.format(kind.__name__))
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("coefficient", sorted(SCIPY))
def test_in_place_of_raters_is_that_of_a_loop(coefficient: str) -> None:
    table = ratings_of(3)
    scores = table.mean(axis=1).round() + np.random.default_rng(5).integers(0, 3, size=60)
    options = {"coefficient": coefficient, "clusters": np.arange(60) // 3, "bootstrap": Bootstrap(rounds=60, seed=1)}
    found = in_place_of_raters(scores, table, **options)

    def statistic(rows: np.ndarray, *, of_person: bool) -> float:
        places = [(table[rows, place], np.delete(table[rows], place, axis=1).mean(axis=1)) for place in range(3)]
        return float(np.mean([SCIPY[coefficient](own if of_person else scores[rows], y).statistic for own, y in places]))

    def difference(rows: np.ndarray) -> float:
        return statistic(rows, of_person=False) - statistic(rows, of_person=True)

    whole, columns = np.arange(60), [scores, *table.T]
    of_people = leave_one_rater_out(table.tolist(), coefficient=coefficient)
    assert found.person.value == pytest.approx(of_people.value, abs=1e-12)
    assert found.evaluator.value == pytest.approx(statistic(whole, of_person=False), abs=1e-9)
    assert found.difference.value == pytest.approx(difference(whole), abs=1e-9)
    assert found.pilot.value == pytest.approx(difference(whole), abs=1e-9)
    ends = interval_by_loop(difference, np.arange(60) // 3, columns, rounds=60, seed=1)
    assert (found.difference.ci_low, found.difference.ci_high) == ends


def test_in_place_of_raters_counts_what_is_left_out() -> None:
    nan = float("nan")
    raters = np.array([[1, 1, 2], [2, nan, 2], [4, 3, 3], [nan, nan, 5], [1, 2, 1], [3, 5, 4], [5, 4, 5]])
    found = in_place_of_raters(np.array([1, 2, nan, 5, 1, 4, 5]), raters, bootstrap=NO_RESAMPLES).difference
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_unrated) == (7, 5, 1, 1)
    alone = in_place_of_raters(np.arange(3.0), np.full((3, 2), nan)).person
    why = "in_place_of_raters: spearman is undefined on 0 scored rows with 2 raters. Have more rows rated."
    assert (alone.value, alone.reason) == (None, why)


def test_in_place_of_raters_of_many_different_scores_has_bins_around_the_exact_value() -> None:
    table = ratings_of(2, n=2 * MAX_CELLS)
    scores = table.mean(axis=1) + np.random.default_rng(6).normal(size=len(table))
    found = in_place_of_raters(scores, table, bootstrap=Bootstrap(rounds=40)).evaluator
    exact = np.mean([stats.spearmanr(scores, table[:, place]).statistic for place in range(2)])
    assert found.value == pytest.approx(exact, abs=1e-9)
    # By Fisher's transformation an interval of 95 % of so many rows is 0.012 wide or less.
    assert exact - 0.012 < found.ci_low < exact < found.ci_high < exact + 0.012


def test_wrong_input() -> None:
    message = "leave_one_rater_out: raters[1][1] is nan, not a finite number. Give None where there is no value."
    assert refusal(leave_one_rater_out, [[1, 2], [1, float("nan")]]) == message
    message = "split_half: 2 raters but 1 clusters. Give one of each for every row."
    assert refusal(split_half, [[1, 2], [1, 3]], clusters=["a"]) == message
