"""Equation 1 against the oracles, by hand, and where it is undefined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.methods.causalscore.aggregation import (
    Aggregation,
    ScoreParts,
    combine,
    conditional_pairs,
    dependent_turns,
    score,
)
from tests.refusals import refusal

THREE = np.array([[0.0, 0.2, 0.4], [0.6, 0.0, 0.8], [0.1, 0.3, 0.0]])


def parts_of(p_uncond: Any, p_cond: Any, texts: list[str], **options: Any) -> ScoreParts:
    chosen = Aggregation(**options)
    probabilities, matrix = np.array(p_uncond, dtype=float), np.array(p_cond, dtype=float).reshape(len(texts), len(texts))
    pairs = conditional_pairs(probabilities, texts, chosen)
    return combine(probabilities, pairs, matrix[pairs[:, 0], pairs[:, 1]], chosen)


def score_of(p_uncond: Any, p_cond: Any, texts: list[str], **options: Any) -> float:
    return score(parts_of(p_uncond, p_cond, texts, **options), Aggregation(**options))


def test_the_oracle_holds_for_every_reading(oracles_dir: Path) -> None:
    readings: dict[str, dict[str, Any]] = {
        "code_score": {"dedupe": "text"},
        "code_v1_top3_score": {"dedupe": "text", "average": "top_3"},
        "eq1_score": {},
        "eq1_score_unordered_pairs_i_lt_j": {"pairs": "unordered"},
        "ablation_no_cond": {"variant": "unconditional"},
        "ablation_no_uncond": {"variant": "conditional"},
        "ablation_maxci_alone": {"variant": "max_ci"},
        "ablation_maxci_half": {"variant": "max_ci", "max_ci": "half"},
    }
    compared = dict.fromkeys(readings, 0)
    for case in json.loads((oracles_dir / "causalscore.json").read_text(encoding="utf-8"))["cases"]:
        given, expected = case["in"], case["out"]
        texts, p = given["history"], np.array(given["p_uncond"], dtype=float)
        matrix = [[np.nan if value is None else value for value in row] for row in given["p_cond"]]
        assert dependent_turns(p).tolist() == expected["dependent"]
        n_asked = expected["calls_uncond_texts_cond_texts"][3]
        assert len(conditional_pairs(p, texts, Aggregation(dedupe="text"))) == n_asked
        for name, options in readings.items():
            value = score_of(p, matrix, texts, **options)
            if expected[name] in (None, "nan"):
                assert 0 <= value <= 1
            else:
                assert value == pytest.approx(expected[name], abs=1e-6), (case["kind"], name)
                compared[name] += 1
        parts = parts_of(p, matrix, texts)
        for name, part in (("eq1_mean_uncond", parts.unconditional), ("eq1_mean_cond_ordered_pairs", parts.conditional)):
            assert expected[name] is None or part == pytest.approx(expected[name], abs=1e-6)
    assert min(compared.values()) >= 70


@pytest.mark.parametrize(
    ("p", "conditional", "texts", "options", "expected"),
    [
        ([0.6, 0.8, 0.7], THREE, "abc", {}, (0.7 + 0.4) / 2),
        ([0.6, 0.8, 0.7], THREE, "abc", {"pairs": "unordered"}, (0.7 + (0.2 + 0.4 + 0.8) / 3) / 2),
        ([0.6, 0.8, 0.7], THREE, "abc", {"variant": "max_ci"}, 0.8),
        ([0.6, 0.8, 0.7], THREE, "abc", {"variant": "preceding_2"}, 0.4),
        # One dependent turn.
        ([0.9, 0.5], np.zeros((2, 2)), "ab", {}, 0.9),
        ([0.9, 0.5], np.zeros((2, 2)), "ab", {"single": "half"}, 0.45),
        # No history, and no dependent turn.
        ([], np.zeros((0, 0)), "", {}, 0.0),
        ([], np.zeros((0, 0)), "", {"dedupe": "text"}, 0.0),
        ([0.5, 0.1], np.zeros((2, 2)), "ab", {}, 0.0),
        # Equal texts are pairs by position and none by text.
        ([0.75, 0.75], np.full((2, 2), 0.25), "ss", {}, 0.5),
        ([0.75, 0.75], np.full((2, 2), 0.25), "ss", {"dedupe": "text"}, 0.75),
        ([0.75, 0.75], np.full((2, 2), 0.25), "ss", {"dedupe": "text", "single": "half"}, 0.375),
    ],
)
def test_by_hand(p: list[float], conditional: FloatArray, texts: str, options: dict[str, Any], expected: float) -> None:
    assert score_of(p, conditional, list(texts), **options) == pytest.approx(expected)


def test_the_three_largest_of_each_cause_by_hand() -> None:
    p, texts = [0.9, 0.8, 0.7, 0.6, 0.55], list("abcde")
    matrix = np.array([[(place + 1) / 10 for place in range(5)]] * 5)
    # Of a turn's four pairs the smallest is left out: for a 0.2, for the others 0.1.
    conditional = ((0.3 + 0.4 + 0.5) + (0.3 + 0.4 + 0.5) + (0.2 + 0.4 + 0.5) + (0.2 + 0.3 + 0.5) + (0.2 + 0.3 + 0.4)) / 15
    parts = parts_of(p, matrix, texts, average="top_3")
    assert parts == pytest.approx((0.8, conditional, 0.5))
    assert parts_of(p, matrix, texts) == pytest.approx((0.71, 0.3, 0.5))
    # By text, the mean of the turns' means: e has no condition after it, d one.
    by_turn = parts_of(p, matrix, texts, dedupe="text", pairs="unordered").conditional
    assert by_turn == pytest.approx(((0.2 + 0.3 + 0.4 + 0.5) / 4 + (0.3 + 0.4 + 0.5) / 3 + 0.45 + 0.5) / 4)


def test_conditions_are_the_strongest_turns_and_of_equals_the_later() -> None:
    p = np.array([0.6, 0.9, 0.9, 0.2, 0.8])
    texts = list("abcde")
    one, two = (conditional_pairs(p, texts, Aggregation(conditions=number)).tolist() for number in (1, 2))
    assert one == [[0, 2], [1, 2], [4, 2]]
    assert two == [[0, 1], [0, 2], [1, 2], [2, 1], [4, 1], [4, 2]]


@given(st.lists(st.floats(0, 1), max_size=8), st.integers(1, 9), st.randoms(use_true_random=False))
def test_scores_lie_between_0_and_1_and_pruning_to_all_changes_nothing(p: list[float], k: int, random: Any) -> None:
    matrix = np.array([[random.random() for _ in p] for _ in p]).reshape(len(p), len(p))
    texts = [random.choice("abc") for _ in p]
    for options in ({}, {"dedupe": "text"}, {"average": "top_3"}, {"pairs": "unordered"}, {"conditions": k}):
        assert 0 <= score_of(p, matrix, texts, **options) <= 1
    if k >= len(p):
        assert score_of(p, matrix, texts, conditions=k) == score_of(p, matrix, texts)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"variant": "best"}, "variant is 'best'. Give one of causalscore, unconditional, conditional, max_ci, preceding_2."),
        ({"conditions": 2.0}, "conditions is 2.0. Give a whole number from 1 or 'all'."),
        ({"conditions": 0}, "conditions is 0. Give a whole number from 1 or 'all'."),
    ],
)
def test_unknown_options_are_refused(options: dict[str, Any], problem: str) -> None:
    assert refusal(Aggregation, **options) == f"causalscore: {problem}"
