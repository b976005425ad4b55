"""g and K-top ratings against the transcription of the paper's formulas, and their edges."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.methods.judging.goodness import (
    distribution_of_forms,
    goodness,
    goodness_of_forms,
    k_top_rating,
    merge_forms,
    merge_ratings,
)

LOGS = st.floats(min_value=-700, max_value=0)


@pytest.fixture(scope="module")
def huynh(oracles_dir: Path) -> Any:
    return json.loads((oracles_dir / "huynh.json").read_text(encoding="utf-8"))


def test_g_agrees_with_the_transcription(huynh: dict[str, Any]) -> None:
    for case in huynh["yes_no"]:
        yes, no = case["in"]["logp_yes"], case["in"]["logp_no"]
        assert goodness(yes, no) == pytest.approx(case["out"]["g_probabilities"], abs=1e-6)
        printed = case["out"]["g_log_probabilities_as_printed"]
        assert goodness(yes, no, reading="literal_log") == pytest.approx(printed, abs=1e-6)


def test_the_two_readings_run_in_opposite_directions(huynh: dict[str, Any]) -> None:
    cases = huynh["monotonicity_logp_no_-2"]
    for case in cases:
        assert goodness(case["logp_yes"], case["logp_no"]) == pytest.approx(case["g_probabilities"], abs=1e-6)
    ordered = sorted(cases, key=lambda case: case["logp_yes"])
    read = [goodness(case["logp_yes"], case["logp_no"]) or 0.0 for case in ordered]
    literal = [goodness(case["logp_yes"], case["logp_no"], reading="literal_log") or 0.0 for case in ordered]
    assert all(one < two for one, two in itertools.pairwise(read))
    assert all(one > two for one, two in itertools.pairwise(literal))


def test_k_top_ratings_agree_with_the_transcription(huynh: dict[str, Any]) -> None:
    for case in huynh["k_top"]:
        logs = dict(zip(case["in"]["ratings"], case["in"]["logp"], strict=True))
        found = k_top_rating(logs, k=case["in"]["K"])
        printed = k_top_rating(logs, k=case["in"]["K"], reading="literal_log")
        assert found is not None
        assert printed is not None
        assert list(found.top) == case["out"]["top"]
        assert found.top[0] == case["out"]["argmax_rating"]
        assert found.weights == pytest.approx(case["out"]["w_probabilities"], abs=1e-6)
        assert found.rating == pytest.approx(case["out"]["rating_probabilities"], abs=1e-6)
        assert printed.weights == pytest.approx(case["out"]["w_log_as_printed"], abs=1e-6)
        assert printed.rating == pytest.approx(case["out"]["rating_log_as_printed"], abs=1e-6)


def test_surface_forms_are_summed(huynh: dict[str, Any]) -> None:
    case = huynh["merge_surface_forms"]
    merged = merge_ratings(case["in"]["token_logp"], range(3))
    assert merged == pytest.approx({int(key): value for key, value in case["out"]["merged_logp"].items()}, abs=1e-6)
    found = k_top_rating(merged, k=case["in"]["K"])
    assert found is not None
    assert list(found.top) == case["out"]["top"]
    assert found.rating == pytest.approx(case["out"]["rating_probabilities"], abs=1e-6)


@given(LOGS, LOGS)
def test_g_of_yes_and_g_of_no_sum_to_one(yes: float, no: float) -> None:
    g, other = goodness(yes, no), goodness(no, yes)
    assert g is not None
    assert other is not None
    assert 0 <= g <= 1
    assert g + other == pytest.approx(1)


@given(st.floats(min_value=0, max_value=1))
def test_g_comes_back_from_its_own_logs_over_any_forms(g: float) -> None:
    yes = math.log(g / 2) if g / 2 > 0 else -math.inf
    no = math.log((1 - g) / 2) if g < 1 else -math.inf
    found = goodness_of_forms({" Yes": yes, " yes": yes, " No": no, " no": no})
    assert found == pytest.approx(g, abs=1e-12)


@pytest.mark.parametrize("reading", ["probabilities", "literal_log"])
@pytest.mark.parametrize(
    ("yes", "no"), [(-math.inf, -math.inf), (math.nan, -1.0), (-1.0, math.nan), (math.inf, -1.0), (math.nan, math.nan)]
)
def test_g_without_a_probability_is_none(yes: float, no: float, reading: Any) -> None:
    assert goodness(yes, no, reading=reading) is None


def test_one_impossible_answer_leaves_the_other() -> None:
    assert (goodness(-math.inf, -3.0), goodness(-3.0, -math.inf)) == (0.0, 1.0)
    assert goodness(-3.0, -math.inf, reading="literal_log") is None
    assert goodness(0.0, 0.0, reading="literal_log") is None


def test_a_form_that_is_not_a_number_is_not_dropped() -> None:
    assert math.isnan(merge_forms([(" yes", math.nan), ("Yes", -1.0)])["yes"])


@pytest.mark.parametrize("ratings", [{}, {0: -math.inf, 1: -math.inf}, {0: math.nan, 1: -1.0}])
def test_ratings_without_a_probability_have_no_mean(ratings: dict[int, float]) -> None:
    assert k_top_rating(ratings) is None


@pytest.mark.parametrize(
    ("forms", "reading", "expected"),
    [
        ({" Yes": -0.5}, "probabilities", 1.0),
        ({" No": -0.5}, "probabilities", 0.0),
        ({" Maybe": -0.5}, "probabilities", None),
        ({" Yes": -0.25, " No": -2.0}, "literal_log", 0.25 / 2.25),
        ({" Yes": math.nan, " yes": -0.5, " No": -1.0}, "probabilities", None),
    ],
)
def test_forms_that_are_missing_count_as_0_under_either_reading(forms: Any, reading: Any, expected: float | None) -> None:
    found = goodness_of_forms(forms, reading=reading)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_probabilities_of_the_spellings_are_added_and_renormalised() -> None:
    logs = [math.log(value) for value in (0.1, 0.05, 0.2, 0.1, 0.05, 0.3)]
    assert distribution_of_forms(logs) == pytest.approx((0.2 / 0.8, 0.1 / 0.8, 0.5 / 0.8))
    # Likelihoods too small for a float are still compared.
    assert distribution_of_forms([-2000.0, -2000.0, -3000.0]) == pytest.approx((0.5, 0.5, 0.0))


@pytest.mark.parametrize("logs", [[-math.inf] * 3, [math.nan, -1.0, -1.0], [math.inf, -1.0, -1.0]])
def test_no_probability_is_no_distribution(logs: list[float]) -> None:
    assert distribution_of_forms(logs) is None
