"""Reliability of ratings: the textbook's table, loops over the analysis of variance, unbalanced rows, undefined cases."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dialeval_plugin.statistics.annotators.reliability import (
    disattenuated_correlation,
    intraclass_correlation,
    quality_agreement,
    repeated_items,
)
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from tests.cluster_order import interval_by_loop
from tests.refusals import refusal

SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
"""Table 2 of Shrout and Fleiss 1979: six targets, four judges."""

ROWS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=2, max_size=12)


def correlations_by_loop(raters: Any) -> tuple[float, float]:
    """ICC(1,1) and ICC(1,k), one sum of squares after the other."""
    rows = [np.array(row, dtype=float) for row in raters if len(row) > 1]
    sizes = [len(row) for row in rows]
    grand = np.mean(np.concatenate(rows))
    between = sum(len(row) * (row.mean() - grand) ** 2 for row in rows) / (len(rows) - 1)
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / (sum(sizes) - len(rows))
    k = (sum(sizes) - sum(size**2 for size in sizes) / sum(sizes)) / (len(rows) - 1)
    return (between - within) / (between + (k - 1) * within), (between - within) / between


def test_the_textbooks_table() -> None:
    """Table 4 of Shrout and Fleiss 1979 has .17 and .44; the mean squares of its Table 3 are 11.24 and 6.26."""
    found = intraclass_correlation(SHROUT_FLEISS, bootstrap=NO_RESAMPLES)
    between, within = 56.2083333333333 / 5, 112.75 / 18
    assert found.of_one.value == pytest.approx((between - within) / (between + 3 * within), abs=1e-12)
    assert found.of_mean.value == pytest.approx((between - within) / between, abs=1e-12)
    assert (round(found.of_one.value, 3), round(found.of_mean.value, 3), found.n_raters) == (0.166, 0.443, 4)
    assert found.ceiling_of_one.value == pytest.approx(0.166**0.5, abs=1e-3)
    assert found.ceiling_of_mean.value == pytest.approx(0.443**0.5, abs=1e-3)
    names = [found.of_one.name, found.of_mean.name, found.ceiling_of_one.name, found.ceiling_of_mean.name]
    assert names == ["reliability_of_one", "reliability_of_mean", "ceiling_of_one", "ceiling_of_mean"]


def test_rows_with_different_numbers_of_ratings() -> None:
    """By hand: of means 1.5, 4 and 3 of 2, 2 and 3 ratings, between 3.643, within 0.625, and k is (7 - 17/7) / 2."""
    found = intraclass_correlation([[1, 2], [None, 4, 4], [2, 3, 4], [5], []], bootstrap=NO_RESAMPLES)
    between = (2 * 1.5**2 + 2 * 4**2 + 3 * 3**2 - 20**2 / 7) / 2
    within = (0.5 + 0 + 2) / 4
    k = (7 - 17 / 7) / 2
    assert found.n_raters == pytest.approx(k)
    assert found.of_one.value == pytest.approx((between - within) / (between + (k - 1) * within), abs=1e-12)
    assert found.of_mean.value == pytest.approx(1 - within / between, abs=1e-12)
    assert (found.of_one.n_total, found.of_one.n_scored, found.of_one.n_unscored) == (5, 3, 2)


@pytest.mark.parametrize("place", [0, 1])
def test_the_interval_is_that_of_a_loop_over_clusters(place: int) -> None:
    generator = np.random.default_rng(5)
    table = np.clip((3 + generator.normal(size=(60, 1)) + generator.normal(size=(60, 3))).round(), 1, 5)
    clusters = np.arange(60) // 3
    found = intraclass_correlation(table.tolist(), clusters=clusters, bootstrap=Bootstrap(rounds=60, seed=1))[place]
    ordered = np.sort(table, axis=1)
    expected = interval_by_loop(
        lambda rows: correlations_by_loop(ordered[rows])[place], clusters, list(ordered.T), rounds=60, seed=1
    )
    assert (found.ci_low, found.ci_high) == expected
    assert (found.n_clusters, found.is_rough) == (20, True)


def test_a_correlation_as_a_share_of_its_ceiling() -> None:
    """The truth behind noisy ratings correlates with them as their ceiling says: its share is 1, whatever their noise."""
    generator = np.random.default_rng(3)
    truth = generator.normal(size=400)
    raters = (truth[:, None] + generator.normal(size=(400, 3))).tolist()
    scores = [None, *truth[1:]]
    clusters = np.arange(400) // 4
    found = disattenuated_correlation(scores, raters, clusters=clusters, bootstrap=Bootstrap(rounds=200))
    of_kept = intraclass_correlation(raters[1:], bootstrap=NO_RESAMPLES)
    r = np.corrcoef(truth[1:], np.mean(raters[1:], axis=1))[0, 1]
    assert found.value == pytest.approx(r / of_kept.ceiling_of_mean.value, abs=1e-12)
    assert found.ci_low < 1 < found.ci_high
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_clusters) == (400, 399, 1, 100)
    order = generator.permutation(400)
    again = disattenuated_correlation(
        [scores[row] for row in order],
        [raters[row] for row in order],
        clusters=clusters[order],
        bootstrap=Bootstrap(rounds=200),
    )
    assert again == found


@pytest.mark.parametrize("raters", [[[1, 5], [5, 1], [1, 5]], [[1], [2], [3]], [[2, 2], [2, 2], [2, 2]]])
def test_a_share_of_no_ceiling(raters: Any) -> None:
    found = disattenuated_correlation([1, 2, 3], raters, bootstrap=NO_RESAMPLES)
    assert (found.value, found.reason) == (
        None,
        "disattenuated_correlation: the ratings have no ceiling above 0, or nothing differs. Have more rows rated twice.",
    )


def test_a_ceiling_is_the_root_of_the_reliability_and_no_root_of_less_than_nothing() -> None:
    generator = np.random.default_rng(0)
    found = intraclass_correlation(generator.integers(1, 6, size=(200, 3)).tolist(), bootstrap=Bootstrap(rounds=200))
    assert found.of_mean.ci_low < 0 < found.of_mean.ci_high
    ceiling = found.ceiling_of_mean
    assert ceiling.value == max(0, found.of_mean.value) ** 0.5
    assert (ceiling.ci_low, ceiling.ci_high) == (0, found.of_mean.ci_high**0.5)
    json.dumps(ceiling.to_dict(), allow_nan=False)


def test_what_is_expected_of_a_row_reaches_the_ceiling_and_nothing_else_passes_it() -> None:
    """20,000 rows of which a third of the variance is the row's: the roots of 1/3 and of 3 * 1/3 / (1 + 2 * 1/3)."""
    generator = np.random.default_rng(3)
    expected = generator.normal(size=20_000)
    ratings = expected[:, None] + 2**0.5 * generator.normal(size=(20_000, 3))
    found = intraclass_correlation(ratings.tolist(), bootstrap=NO_RESAMPLES)
    assert found.ceiling_of_one.value == pytest.approx(3**-0.5, abs=0.01)
    assert found.ceiling_of_mean.value == pytest.approx(0.6**0.5, abs=0.01)
    assert np.corrcoef(expected, ratings[:, 0])[0, 1] == pytest.approx(found.ceiling_of_one.value, abs=0.01)
    assert np.corrcoef(expected, ratings.mean(axis=1))[0, 1] == pytest.approx(found.ceiling_of_mean.value, abs=0.01)


@pytest.mark.parametrize(("has_order", "expected"), [(True, 1 / 3), (False, 0)])
def test_what_one_response_wins_another_loses(has_order: bool, expected: float) -> None:
    """Every two of four responses to 100 contexts are compared: points that depend on each other are no order by themselves.

    In an order they win 3, 2, 1 and 0 times: between the responses 5/12, within 1/6, so (5/12 - 1/6) / (5/12 + 2/6) is a third.
    """
    generator = np.random.default_rng(6)
    found = []
    for _ in range(40):
        points: dict[tuple[int, int], list[int]] = {}
        for context, (better, worse) in itertools.product(range(100), itertools.combinations(range(4), 2)):
            wins = has_order or bool(generator.integers(2))
            points.setdefault((context, better), []).append(int(wins))
            points.setdefault((context, worse), []).append(int(not wins))
        found.append(intraclass_correlation(list(points.values()), bootstrap=NO_RESAMPLES).of_one.value)
    assert np.mean(found) == pytest.approx(expected, abs=0.01)


@given(ROWS)
def test_both_are_those_of_a_loop_in_any_order_and_on_any_scale(rows: list[list[int]]) -> None:
    several = [row for row in rows if len(row) > 1]
    assume(len(several) > 1)
    assume(len({np.mean(row) for row in several}) > 1)
    found = intraclass_correlation(rows, bootstrap=NO_RESAMPLES)
    one, mean = correlations_by_loop(rows)
    assert found.of_one.value == pytest.approx(one, abs=1e-9)
    assert found.of_mean.value == pytest.approx(mean, rel=1e-9, abs=1e-9)
    assert one <= 1
    assert 0 <= found.ceiling_of_one.value <= found.ceiling_of_mean.value <= 1
    # Whole numbers, so that no digit is rounded.
    moved = intraclass_correlation([[100 - 4 * value for value in reversed(row)] for row in rows[::-1]], bootstrap=NO_RESAMPLES)
    assert moved.of_one.value == pytest.approx(one, abs=1e-9)
    assert moved.n_raters == pytest.approx(found.n_raters)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9, unique=True))
def test_raters_who_agree_leave_nothing_to_chance(values: list[float]) -> None:
    assume(np.ptp(values) > 1e-3)
    found = intraclass_correlation([[value] * 3 for value in values], bootstrap=NO_RESAMPLES)
    assert found.of_one.value == pytest.approx(1, abs=1e-9)
    assert found.ceiling_of_mean.value == pytest.approx(1, abs=1e-9)


ONE_RATING = "Give the single ratings of two rows or more, not their mean."


@pytest.mark.parametrize(
    ("raters", "reason"),
    [
        ([], f"intraclass_correlation: 0 of 0 rows have 2 ratings or more. {ONE_RATING}"),
        ([[1], [2], [None, 3]], f"intraclass_correlation: 0 of 3 rows have 2 ratings or more. {ONE_RATING}"),
        ([[1, 2], [3], []], f"intraclass_correlation: 1 of 3 rows have 2 ratings or more. {ONE_RATING}"),
        ([[0.1, 0.1]] * 3, "intraclass_correlation: all ratings are the same. Have rows rated that differ."),
    ],
)
def test_undefined(raters: Any, reason: str) -> None:
    found = intraclass_correlation(raters)
    for estimate in (found.of_one, found.ceiling_of_one, found.ceiling_of_mean):
        assert (estimate.value, estimate.ci_low, estimate.ci_high) == (None, None, None)
    assert found.of_one.reason == reason
    assert (found.n_raters is None) == (len([row for row in raters if len(row) > 1]) < 2)


def test_means_that_are_all_the_same_leave_the_reliability_of_means_undefined() -> None:
    found = intraclass_correlation([[1, 5], [2, 4], [3, 3]], bootstrap=NO_RESAMPLES)
    assert found.of_one.value == pytest.approx(-1)
    assert found.ceiling_of_one.value == 0
    assert found.of_mean.reason == ("intraclass_correlation: all means of the rows are the same. Have rows rated that differ.")


def test_wrong_input() -> None:
    assert refusal(intraclass_correlation, [[1, float("nan")], [1, 2]]) == (
        "intraclass_correlation: raters[0][1] is nan, not a finite number. Give None where there is no value."
    )
    assert refusal(intraclass_correlation, [[1, 2]], clusters=["a", "b"]) == (
        "intraclass_correlation: 1 raters but 2 clusters. Give one of each for every row."
    )
    assert refusal(repeated_items, [1, 2], ["a"]) == "repeated_items: 2 ratings but 1 texts. Give one of each for every row."
    assert refusal(quality_agreement, {"kind": [1, "x"]}, ["a", "a"]) == (
        "quality_agreement: ratings['kind'][1] is 'x', not a finite number. Give None where there is no value."
    )


def test_qualities_agree_on_pairs_that_both_tell_apart() -> None:
    """Kind and clear agree on one of a's two pairs, on b's kind ties; brief agrees with clear alone, on b."""
    ratings = {"kind": [1, 2, 3, 5, 5, 4], "clear": [1, 3, 2, 1, 2, None], "brief": [2, 2, 2, 3, 4, 4]}
    found = quality_agreement(ratings, list("aaabbc"), bootstrap=NO_RESAMPLES)
    assert {name: (one.value, one.n_scored) for name, one in found.items()} == {
        "kind": (2 / 3, 3),
        "clear": (3 / 4, 4),
        "brief": (1, 1),
    }
    assert found["kind"].name == "quality_agreement"


def test_qualities_that_have_nothing_to_do_with_each_other_agree_on_half_of_the_pairs() -> None:
    drawn = np.random.default_rng(8).normal(size=(3, 400))
    found = quality_agreement(dict(zip("abc", drawn, strict=True)), np.arange(400) // 4)
    for one in found.values():
        assert one.ci_low < 0.5 < one.ci_high
        assert (one.n_scored, one.n_clusters) == (1200, 100)


@pytest.mark.parametrize(
    ("ratings", "clusters"),
    [({"kind": [1, 2]}, "aa"), ({"kind": [1, 2], "clear": [1, 2]}, "ab"), ({"kind": [1, 2], "clear": [1, 1]}, "aa")],
)
def test_without_a_pair_that_two_qualities_tell_apart_there_is_no_agreement(ratings: Any, clusters: str) -> None:
    found = quality_agreement(ratings, list(clusters))["kind"]
    assert (found.value, found.reason) == (
        None,
        "quality_agreement: no two rows of one cluster differ by 'kind' and another quality. Have more rated.",
    )


def test_the_same_text_with_opposite_ratings() -> None:
    """Half of the range from 1 to 5 is 2: 1 and 4 are further apart, 2 and 4 are not."""
    texts = ["a", "a", "b", "b", "c", "d", "d"]
    assert repeated_items([1, 4, 2, 4, 5, None, 1], texts) == (2, 1)
    assert repeated_items([3, 3], ["a", "a"]) == (1, 0)
    assert repeated_items([], []) == (0, 0)


def test_an_array_with_nan_is_the_lists_with_none() -> None:
    generator = np.random.default_rng(2)
    table = generator.integers(1, 6, size=(40, 3)).astype(float)
    table[generator.random(table.shape) < 0.2] = np.nan
    lists = [[None if np.isnan(value) else value for value in row] for row in table.tolist()]
    assert intraclass_correlation(table) == intraclass_correlation(lists)
    assert disattenuated_correlation(list(range(40)), table) == disattenuated_correlation(list(range(40)), lists)
