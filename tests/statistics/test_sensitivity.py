"""Rows without a score (R31): exact bounds always hold the value of the whole set, the sensitivity range mostly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics.coefficients.by_name import COEFFICIENTS
from dialeval_plugin.statistics.correlation import sensitivity_range


def half_scored(generator: np.random.Generator) -> tuple[list[float], list[float | None], list[float]]:
    """Whole scores, the same with 5 to 50 % left out, and ratings."""
    n = int(generator.integers(20, 120))
    ratings = generator.integers(1, 6, size=n)
    scores = np.clip((ratings + generator.normal(scale=generator.uniform(0.3, 3), size=n)).round(1), 0, 6)
    is_missing = generator.random(n) < generator.uniform(0.05, 0.5)
    partly = [None if missing else float(score) for score, missing in zip(scores, is_missing, strict=True)]
    return scores.tolist(), partly, ratings.tolist()


def test_filled_by_hand() -> None:
    low, high = sensitivity_range([1, None, 4, 2, 2], [1, 3, 3, 2, None], coefficient="pearson")
    assert high == pytest.approx(stats.pearsonr([1, 4, 4, 2], [1, 3, 3, 2]).statistic, abs=1e-9)
    assert low == pytest.approx(stats.pearsonr([1, 1, 4, 2], [1, 3, 3, 2]).statistic, abs=1e-9)


@pytest.mark.parametrize("name", sorted(COEFFICIENTS))
def test_all_scored(name: str) -> None:
    scores, ratings = [1, 2, 4, 3], [1, 2, 2, 1]
    value = COEFFICIENTS[name].of_pairs(scores, ratings)
    assert sensitivity_range(scores, ratings, coefficient=name) == (value, value)


def test_bounds_always_hold_the_value_of_the_whole_set() -> None:
    generator = np.random.default_rng(31)
    for _ in range(60):
        scores, partly, ratings = half_scored(generator)
        low, high = sensitivity_range(partly, ratings, coefficient="pairwise_accuracy")
        assert low - 1e-12 <= COEFFICIENTS["pairwise_accuracy"].of_pairs(scores, ratings) <= high + 1e-12


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall_b"])
def test_the_range_holds_the_value_of_the_whole_set_mostly(name: str) -> None:
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(80):
        scores, partly, ratings = half_scored(generator)
        low, high = sensitivity_range(partly, ratings, coefficient=name)
        hits += low <= COEFFICIENTS[name].of_pairs(scores, ratings) <= high
    assert hits / 80 >= 0.8


def test_bounds_of_pairs_by_hand() -> None:
    # Of 6 pairs, 3 are known, of which 2 agree.
    ends = sensitivity_range([1, 3, 2, None], [1, 2, 3, 3], coefficient="pairwise_accuracy")
    assert ends == pytest.approx((2 / 6, 5 / 6), abs=1e-12)


@pytest.mark.parametrize("scores", [[None] * 4, [1, 1, 1, None]])
def test_undefined(scores: Any) -> None:
    assert sensitivity_range(scores, [1, 2, 3, 4]) == (None, None)
