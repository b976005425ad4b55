"""Holm's correction, rank clusters, and permutation tests of all pairs against the test of one pair on the same ranks."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialeval_plugin.statistics.levels import RatingTable
from dialeval_plugin.statistics.ranking import holm, rank_clusters, rank_metrics, rank_permutation_tests
from dialeval_plugin.statistics.significance import Measure, Paired, permutation_test
from tests.refusals import refusal


@given(st.lists(st.floats(0, 1) | st.none(), max_size=8))
def test_holm_by_definition(p_values: list[float | None]) -> None:
    tested = sorted(p for p in p_values if p is not None)
    stepped = [min(1.0, (len(tested) - k) * p) for k, p in enumerate(tested)]
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        expected = None if p is None else max(stepped[: max(k for k, other in enumerate(tested) if other == p) + 1])
        assert adjusted == expected


def test_holm_of_the_textbook() -> None:
    # Holm 1979, as in R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm").
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


def test_a_cluster_starts_below_a_significant_difference() -> None:
    values = {"d": 0.1, "a": 0.9, "c": 0.3, "b": 0.8, "e": None}
    # c is worse than a, though not than b; d is no worse than c, the only one of its cluster.
    p_values = {("a", "c"): 0.05, ("b", "c"): 0.5, ("d", "a"): 0.01, ("c", "d"): 0.2}
    assert rank_clusters(values, p_values) == {"d": 2, "a": 1, "c": 2, "b": 1, "e": None}
    assert set(rank_clusters(values, {}).values()) == {1, None}


def test_rank_metrics() -> None:
    generator = np.random.default_rng(2)
    ratings = generator.integers(1, 6, size=80)
    good, fair, none = (ratings + generator.normal(scale=scale, size=80) for scale in (1, 1, 20))
    scores = {"none": none, "good": good, "fair": fair, "constant": [1] * 80}
    found = rank_metrics(scores, RatingTable(ratings=ratings), Measure("pearson"), rounds=199)
    assert found.ranks == {"none": 2, "good": 1, "fair": 1, "constant": None}
    assert list(found.comparisons) == list(found.adjusted)
    assert found.comparisons["none", "good"].p_value == 1 / 200
    assert found.adjusted["none", "good"] == 3 / 200
    assert found.adjusted["none", "constant"] is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(holm, [0.5, 1.5]), "holm: p_values[1] is 1.5. Give a number from 0 to 1, or None where there is no test."),
        (partial(rank_clusters, {}, {}, alpha=5), "rank_clusters: alpha is 5. Give a number between 0 and 1, such as 0.05."),
        (
            partial(rank_permutation_tests, {"one": [1.0, 2.0]}, [1.0]),
            "rank_permutation_tests: 1 ratings but 2 scores of one. Give one of each for every row.",
        ),
    ],
)
def test_wrong_input(call: partial[Any], message: str) -> None:
    assert refusal(call) == message


def test_metrics_are_ordered_on_the_rows_that_all_have() -> None:
    ratings = list(range(10))
    scores = {"partly": [*range(5), *[None] * 5], "whole": [0, 1, 2, 3, 4, 9, 5, 8, 6, 7]}
    found = rank_metrics(scores, RatingTable(ratings=ratings), Measure("pearson"))
    assert found.comparisons["partly", "whole"].n_both == 5
    assert found.ranks == {"partly": 1, "whole": 1}


def metrics(n: int, *, seed: int = 0) -> tuple[dict[str, list[float | None]], list[float | None], list[int]]:
    """Three metrics, one of which leaves rows out, ratings with ties, and clusters of three rows."""
    generator = np.random.default_rng(seed)
    ratings = generator.integers(1, 6, n).astype(float)
    scores = {f"noise {width}": (ratings + generator.normal(0, width, n)).round(1).tolist() for width in (1, 3, 9)}
    scores["noise 3"] = [None if row % 7 == 0 else value for row, value in enumerate(scores["noise 3"])]
    return scores, [None if row == 4 else float(value) for row, value in enumerate(ratings)], [row // 3 for row in range(n)]


@pytest.mark.parametrize("n", [21, 60])
def test_a_pair_gets_the_p_value_of_the_single_test_on_its_ranks(n: int) -> None:
    scores, ratings, clusters = metrics(n)
    found = rank_permutation_tests(scores, ratings, clusters=clusters, rounds=300, seed=3)
    assert list(found) == list(itertools.combinations(scores, 2))
    for (a, b), p in found.items():
        rows = [row for row in range(n) if None not in (scores[a][row], scores[b][row], ratings[row])]
        ranked = [stats.rankdata([column[row] for row in rows]) for column in (scores[a], scores[b], ratings)]
        paired = Paired(scores_a=ranked[0], scores_b=ranked[1], ratings=ranked[2], clusters=[clusters[row] for row in rows])
        single = permutation_test(paired, Measure("pearson"), rounds=300, seed=3)
        assert p == pytest.approx(single.p_value, abs=1e-12)
        assert single.value_a == pytest.approx(stats.spearmanr(*ranked[::2]).statistic)


def test_what_cannot_be_tested_has_no_p_value() -> None:
    ratings = [1.0, 2.0, 3.0, 4.0]
    scores = {"one": ratings, "constant": [1.0] * 4, "nothing": [None] * 4, "two": [2.0, 1.0, 4.0, 3.0]}
    found = rank_permutation_tests(scores, ratings)
    assert {pair for pair, p in found.items() if p is not None} == {("one", "two")}
    assert set(rank_permutation_tests(scores, ratings, clusters=["a"] * 4).values()) == {None}
    assert set(rank_permutation_tests(scores, ratings, rounds=0).values()) == {None}


def test_equal_metrics_never_differ_and_opposite_ones_do() -> None:
    ratings = list(range(40))
    scores = {"a": ratings, "b": [2 * value for value in ratings], "c": ratings[::-1]}
    found = rank_permutation_tests(scores, ratings, rounds=999)
    assert found == {("a", "b"): 1.0, ("a", "c"): 0.001, ("b", "c"): 0.001}


def test_of_metrics_that_are_equally_good_about_one_in_twenty_differs() -> None:
    generator = np.random.default_rng(5)
    n_tests = n_small = 0
    for _ in range(40):
        ratings = np.repeat(generator.normal(size=25), 2)
        scores = {str(place): ratings + generator.normal(0, 2, 50) for place in range(5)}
        found = rank_permutation_tests(scores, ratings, clusters=np.arange(50) // 2, rounds=199)
        n_tests += len(found)
        n_small += sum(p is not None and p <= 0.05 for p in found.values())
    assert n_tests == 400
    assert 5 <= n_small <= 40
