"""Permutation tests of all pairs at once, against the test of one pair on the same ranks and the same swaps."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics.comparison.ranking import rank_permutation_tests
from dialeval_plugin.statistics.comparison.significance import Measure, Paired, permutation_test
from tests.refusals import refused


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
        single = permutation_test(
            Paired(scores_a=ranked[0], scores_b=ranked[1], ratings=ranked[2], clusters=[clusters[row] for row in rows]),
            Measure("pearson"),
            rounds=300,
            seed=3,
        )
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


def test_lengths_that_differ_are_refused() -> None:
    with refused("rank_permutation_tests: 1 ratings but 2 scores of one. Give one of each for every row."):
        rank_permutation_tests({"one": [1.0, 2.0]}, [1.0])


def test_thirty_metrics_take_seconds() -> None:
    generator = np.random.default_rng(1)
    ratings = generator.normal(size=300)
    scores = {str(place): ratings + generator.normal(0, 1 + place, 300) for place in range(30)}
    started = time.process_time()
    found = rank_permutation_tests(scores, ratings, rounds=2000)
    assert len(found) == 435
    assert time.process_time() - started < 30
