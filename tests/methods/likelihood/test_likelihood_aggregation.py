"""Equations 5.4 to 5.11 against the thesis' formulas and the authors' notebook."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval_plugin.methods.likelihood.aggregation import (
    DIALOGUE_REDUCTIONS,
    TURN_REDUCTIONS,
    dialogue_log_scores,
    reported,
)

ORACLE = [
    *(
        ("gpt2_sentences_word_probs", aggregation, name)
        for aggregation, name in (
            ("sum_of_means", "5.4_sum_of_means"),
            ("sum_of_sums", "5.5_sum_of_sums"),
            ("mean_of_means", "5.6_mean_of_means"),
            ("mean_of_sums", "5.7_mean_of_sums"),
            ("product_of_sums", "5.8_prod_of_sums"),
            ("product_of_means", "5.9_prod_of_means"),
            ("product_of_products", "5.10_prod_of_prods"),
            # The columns that the notebook computed.
            ("sum_of_means", "gpt2_sentences_word_probs_s_avg_d_sum"),
            ("mean_of_means", "gpt2_sentences_word_probs_s_avg_d_avg"),
        )
    ),
    # The maximum in the place of the token is equation 5.11.
    ("gpt2_sentences_best_word_probs", "sum_of_means", "5.11_sum_of_mean_max"),
    # A next-sentence probability is a turn of one token.
    ("bert-base-uncased_nsp_0", "sum_of_means", "bert_nsp_sum"),
    ("bert-base-uncased_nsp_0", "mean_of_means", "bert_nsp_avg"),
    ("bert-base-uncased_nsp_0", "product_of_means", "bert_nsp_prod"),
]


@pytest.fixture(scope="module")
def cases(oracles_dir: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((oracles_dir / "lm_aggregation.json").read_text(encoding="utf-8"))["cases"]
    assert len(found) == 8
    return found


def logs(rows: list[list[float]]) -> list[np.ndarray]:
    with np.errstate(divide="ignore"):
        return [np.log(np.array(row, dtype=float)) for row in rows]


def log_score(turns: list[np.ndarray], aggregation: str) -> float:
    return dialogue_log_scores(turns, (aggregation,))[aggregation]


@pytest.mark.parametrize(("given", "aggregation", "name"), ORACLE)
def test_every_aggregation_equals_its_equation_and_the_notebook(
    given: str, aggregation: str, name: str, cases: list[dict[str, Any]]
) -> None:
    for case in cases:
        turns = logs([turn if isinstance(turn, list) else [turn] for turn in case["in"][given]])
        published = {**case["out"], **case["out"]["notebook_columns"]}[name]
        assert math.exp(log_score(turns, aggregation)) == pytest.approx(published, rel=1e-6)


def test_the_log_of_a_product_that_vanishes_is_kept(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        found = log_score(logs(case["in"]["gpt2_sentences_word_probs"]), "product_of_products")
        assert found == pytest.approx(float(case["out"]["5.10_log"]), rel=1e-6)
    tiny = [np.full(400, -50.0)] * 30
    assert log_score(tiny, "product_of_products") == pytest.approx(-600_000.0)
    assert reported(-600_000.0, "product_of_products") == -600_000.0


def test_a_probability_of_zero_counts_in_a_mean_and_makes_a_product_zero() -> None:
    turns = logs([[0.5, 0.0]])
    assert math.exp(log_score(turns, "sum_of_means")) == pytest.approx(0.25)
    assert log_score(turns, "product_of_products") == -math.inf


def test_a_turn_of_which_nothing_is_possible_is_zero_and_not_undefined() -> None:
    turns = logs([[0.0, 0.0], [0.5]])
    assert log_score(turns[:1], "sum_of_means") == log_score(turns[:1], "sum_of_sums") == -math.inf
    assert math.exp(log_score(turns, "sum_of_means")) == pytest.approx(0.5)
    assert log_score(turns, "product_of_sums") == -math.inf
    assert TURN_REDUCTIONS["mean"](turns[0]) == -math.inf


def test_what_is_no_product_is_reported_as_the_value_itself() -> None:
    log = math.log(0.25)
    assert {name: reported(log, name) for name in (*DIALOGUE_REDUCTIONS, *TURN_REDUCTIONS)} == {
        **dict.fromkeys(("sum_of_means", "sum_of_sums", "mean_of_means", "mean_of_sums"), pytest.approx(0.25)),
        **dict.fromkeys(("product_of_sums", "product_of_means", "product_of_products", "product"), log),
        **dict.fromkeys(("mean", "sum", "geometric_mean"), pytest.approx(0.25)),
    }


def test_the_first_is_equation_5_4() -> None:
    turns = logs([[0.5, 0.25], [0.125]])
    assert next(iter(dialogue_log_scores(turns).items())) == ("sum_of_means", pytest.approx(math.log(0.5)))
    assert list(dialogue_log_scores(turns)) == list(DIALOGUE_REDUCTIONS)


def test_turns_without_a_token_count_for_nothing() -> None:
    for aggregation in DIALOGUE_REDUCTIONS:
        with_empty = log_score(logs([[0.5], [], [0.25, 0.75]]), aggregation)
        assert with_empty == log_score(logs([[0.5], [0.25, 0.75]]), aggregation)
    with pytest.raises(ValueError, match=r"^no turn has a token$"):
        dialogue_log_scores(logs([[]]))


def test_one_turn_aggregates_by_hand() -> None:
    values = {name: math.exp(reduction(logs([[0.5, 0.25]])[0])) for name, reduction in TURN_REDUCTIONS.items()}
    assert values == pytest.approx({"mean": 0.375, "sum": 0.75, "product": 0.125, "geometric_mean": 0.125**0.5})
