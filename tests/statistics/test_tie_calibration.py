"""Pairwise accuracy with tie calibration: golden values of mt-metrics-eval, brute force on ties (R21), invariances (R27)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.statistics.coefficients import by_name
from dialeval_plugin.statistics.coefficients.by_name import accuracy_at, calibrated_epsilon, pairwise_accuracy
from tests.refusals import refused

# google-research/mt-metrics-eval, stats_test.py, testKendallVariants and testKendallWithTiesOpt.
GOLD = [1, 2, 2, 3, 4]
METRIC = [2, 1, 1.5, 5, 3]
SEVEN = [1, 1, 1, 2, 2, 3, 4], [1, 1, 2, 2, 4, 3, 3]

few_levels = st.integers(1, 3).map(float)
some_levels = st.sampled_from([-2.5, 0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 1.0, 7.0])
rows_with_ties = st.lists(st.tuples(some_levels | few_levels, few_levels), min_size=3, max_size=20)


def agreeing(x: Any, y: Any, epsilon: float) -> float:
    """Share of the pairs, counted one by one."""
    pairs = list(itertools.combinations(range(len(x)), 2))
    signs = [(0 if abs(x[i] - x[j]) <= epsilon else np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in pairs]
    return sum(a == b for a, b in signs) / len(pairs)


def best_by_trying(x: Any, y: Any) -> tuple[float, float]:
    """Highest accuracy and the smallest epsilon that reaches it, of all differences."""
    tried = sorted({0.0, *(abs(a - b) for a, b in itertools.combinations(x, 2))})
    accuracies = [agreeing(x, y, epsilon) for epsilon in tried]
    best = max(accuracies)
    return best, next(epsilon for epsilon, accuracy in zip(tried, accuracies, strict=True) if accuracy >= best - 1e-12)


@pytest.mark.parametrize(
    ("scores", "ratings", "epsilon", "expected"),
    [
        (METRIC, GOLD, 0, 0.6),
        (METRIC, GOLD, 2, 0.4),
        (METRIC, GOLD, None, 0.7),
        # testAgreement: 5 of 10 pairs; testKendallVariants_23: 14 of 21; with epsilon 1 in the first, 3 ties and 7 ordered.
        ([1, 1, 2, 1, 2], [1, 2, 3, 3, 4], 0, 0.5),
        (*SEVEN, 0, 14 / 21),
        (*SEVEN[::-1], 0, 14 / 21),
        (*SEVEN, 1, 10 / 21),
    ],
)
def test_golden_values_of_mt_metrics_eval(scores: Any, ratings: Any, epsilon: float | None, expected: float) -> None:
    assert pairwise_accuracy(scores, ratings, epsilon=epsilon) == expected


@pytest.mark.parametrize("groups", [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]])
def test_one_epsilon_for_all_groups(groups: list[int]) -> None:
    """testKendallWithTiesOpt of mt-metrics-eval, averaged by system and by item."""
    gold, metric = np.array([1, 2, 2, 3, 3, 4.0]), np.array([2, 1, 1.5, 5, 3, 2])
    members = [np.flatnonzero(np.array(groups) == group) for group in set(groups)]

    def average(epsilon: float) -> float:
        return float(np.mean([accuracy_at(metric[rows], gold[rows], epsilon) for rows in members]))

    found = calibrated_epsilon(metric, gold, groups=groups)
    differences = {abs(a - b) for rows in members for a, b in itertools.combinations(metric[rows], 2)}
    assert average(found) == pytest.approx(max(average(epsilon) for epsilon in (0.0, *differences)), abs=1e-12)


@given(rows_with_ties, some_levels)
def test_equal_to_counting_on_ties(rows: list[tuple[float, float]], epsilon: float) -> None:
    x, y = np.array(rows).T
    assert accuracy_at(x, y, abs(epsilon)) == pytest.approx(agreeing(x, y, abs(epsilon)), abs=1e-12)
    best, smallest = best_by_trying(x.tolist(), y.tolist())
    found = calibrated_epsilon(x, y)
    assert found == smallest
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert pairwise_accuracy(x, y) == pytest.approx(best, abs=1e-12)


@given(rows_with_ties, st.randoms(use_true_random=False))
def test_invariances(rows: list[tuple[float, float]], random: Any) -> None:
    x, y = np.array(rows).T
    shuffled_x, shuffled_y = np.array(random.sample(rows, len(rows))).T
    # Powers of two, which round nothing: the differences that are compared with epsilon stay what they are.
    for same in ((shuffled_x, shuffled_y), (-x, -y), (4 * x, y), (x, y**3)):
        assert accuracy_at(*same, 0.0) == pytest.approx(accuracy_at(x, y, 0.0), abs=1e-12)
        best = calibrated_epsilon(*same)
        assert accuracy_at(*same, best) == pytest.approx(accuracy_at(x, y, calibrated_epsilon(x, y)), abs=1e-12)
    assert accuracy_at(y, y, 0.0) == 1.0


def test_a_sample_of_pairs_finds_almost_the_best_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(2)
    ratings = generator.integers(1, 4, size=400)
    scores = ratings + generator.normal(size=400)
    exact = calibrated_epsilon(scores, ratings)
    monkeypatch.setattr(by_name, "MAX_CANDIDATES", 20_000)
    sampled = calibrated_epsilon(scores, ratings, seed=1)
    best = pairwise_accuracy(scores, ratings, epsilon=exact)
    assert best - 0.005 < pairwise_accuracy(scores, ratings, epsilon=sampled) <= best
    assert calibrated_epsilon(scores, ratings, seed=1) == sampled
    assert calibrated_epsilon(scores, ratings, seed=2) != sampled


def test_a_large_table_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(2)
    scores = generator.normal(size=100)
    ratings = (scores + generator.normal(size=100)).round()
    monkeypatch.setattr(by_name, "_MAX_FIELDS", 99)
    assert calibrated_epsilon(scores, ratings) != calibrated_epsilon(scores, ratings, seed=1)


@pytest.mark.parametrize("epsilon", [-1, float("nan")])
def test_wrong_epsilon(epsilon: float) -> None:
    with refused(f"pairwise_accuracy: epsilon is {epsilon!r}. Give 0 or more."):
        pairwise_accuracy(METRIC, GOLD, epsilon=epsilon)
