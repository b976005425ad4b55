"""Rows without a score (R31): exact bounds always hold the value of the whole set, the sensitivity range mostly."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics.coefficients.by_name import COEFFICIENTS
from dialeval_plugin.statistics.sensitivity import sensitivity_range
from tests.refusals import refused


def half_scored(generator: np.random.Generator) -> tuple[list[float], list[float | None], list[float]]:
    """Whole scores, the same with 5 to 50 % left out, and ratings."""
    n = int(generator.integers(20, 120))
    ratings = generator.integers(1, 6, size=n)
    scores = np.clip((ratings + generator.normal(scale=generator.uniform(0.3, 3), size=n)).round(1), 0, 6)
    is_missing = generator.random(n) < generator.uniform(0.05, 0.5)
    partly = [None if missing else float(score) for score, missing in zip(scores, is_missing, strict=True)]
    return scores.tolist(), partly, ratings.tolist()


@pytest.mark.parametrize(
    ("scores", "ratings", "scale", "low", "high"),
    [
        ([1, 2, 3, None, None, None], [1, 2, 3, 5, 1, 3], (0, 10), [1, 2, 3, 0, 10, 5], [1, 2, 3, 10, 0, 5]),
        # Without a scale its ends are those of the scores given.
        ([1, None, 4, 2], [1, 3, 3, 2], None, [1, 1, 4, 2], [1, 4, 4, 2]),
    ],
)
def test_filled_by_hand(scores: Any, ratings: Any, scale: Any, low: list[int], high: list[int]) -> None:
    found = sensitivity_range([*scores, 2], [*ratings, None], coefficient="pearson", scale=scale)
    assert found.high == pytest.approx(stats.pearsonr(high, ratings).statistic, abs=1e-9)
    assert found.low == pytest.approx(stats.pearsonr(low, ratings).statistic, abs=1e-9)
    scored = [(score, rating) for score, rating in zip(scores, ratings, strict=True) if score is not None]
    assert (found.value, found.is_bound) == (pytest.approx(stats.pearsonr(*zip(*scored, strict=True)).statistic), False)
    assert (found.n_total, found.n_scored, found.n_unscored) == (len(scores), 3, len(scores) - 3)


@pytest.mark.parametrize("name", sorted(COEFFICIENTS))
def test_all_scored(name: str) -> None:
    found = sensitivity_range([1, 2, 4, 3], [1, 2, 2, 1], coefficient=name)
    assert found.low == found.value == found.high
    assert (found.is_bound, found.n_unscored) == (True, 0)


def test_bounds_always_hold_the_value_of_the_whole_set() -> None:
    generator = np.random.default_rng(31)
    for _ in range(60):
        scores, partly, ratings = half_scored(generator)
        pairs = sensitivity_range(partly, ratings, coefficient="pairwise_accuracy")
        assert pairs.is_bound
        assert pairs.low - 1e-12 <= COEFFICIENTS["pairwise_accuracy"].of_pairs(scores, ratings) <= pairs.high + 1e-12


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall_b"])
def test_the_range_holds_the_value_of_the_whole_set_mostly(name: str) -> None:
    generator = np.random.default_rng(7)
    hits = 0
    for _ in range(80):
        scores, partly, ratings = half_scored(generator)
        found = sensitivity_range(partly, ratings, coefficient=name)
        hits += found.low <= COEFFICIENTS[name].of_pairs(scores, ratings) <= found.high
    assert hits / 80 >= 0.8


def test_bounds_of_pairs_by_hand() -> None:
    # Of 6 pairs, 3 are known, of which 2 agree.
    found = sensitivity_range([1, 3, 2, None], [1, 2, 3, 3], coefficient="pairwise_accuracy")
    assert (found.low, found.value, found.high) == pytest.approx((2 / 6, 2 / 3, 5 / 6), abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ([None] * 4, "spearman: 0 pairs of score and rating, at least 3 are needed. Score and rate more examples."),
        ([1, 1, 1, None], "spearman: all 3 scores are 1.0. Give scores that differ."),
    ],
)
def test_undefined(scores: Any, reason: str) -> None:
    found = sensitivity_range(scores, [1, 2, 3, 4])
    assert (found.low, found.value, found.high, found.reason) == (None, None, None, reason)
    json.dumps(asdict(found), allow_nan=False)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ((5, 1), "sensitivity_range: scale is (5, 1). Give the lowest and the highest value, in this order."),
        ((2, 5), "sensitivity_range: 1.0 is outside the scale (2, 5). Give the whole scale."),
    ],
)
def test_wrong_scale(scale: Any, message: str) -> None:
    with refused(message):
        sensitivity_range([1, 2, None], [1, 2, 3], scale=scale)
