"""The formulas of chapter 7 against the oracle: the authors' functions on stub models, and the equations transcribed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from dialeval_plugin.methods.breakdown.calibration import ScoreRange, learn_range
from dialeval_plugin.methods.breakdown.data import IGNORED, Key, TokenNoise
from dialeval_plugin.methods.breakdown.detectors import (
    ConfidenceHead,
    LikelihoodRatio,
    MaxProbability,
    Odin,
    TokenPositions,
    decomposed_logits,
)
from dialeval_plugin.methods.breakdown.training import LanguageModelTrainer, token_losses
from tests.refusals import refusal

TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def oracle(oracles_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((oracles_dir / "ood_scores.json").read_text(encoding="utf-8"))
    return found


def test_odin_divides_the_heads_and_takes_the_means_of_the_oracle(oracle: dict[str, Any]) -> None:
    odin = oracle["odin"]
    given = {name: torch.tensor(value, dtype=torch.float64) for name, value in odin["in"].items()}
    h = given["hidden"] @ given["w_h[vocab,embd]"].T
    head = ConfidenceHead(given["w_g"].shape[1]).double()
    head.linear.load_state_dict({"weight": given["w_g"], "bias": given["b_g"]})
    with torch.no_grad():
        g = head(given["hidden"])
    f = decomposed_logits(h, g)
    assert g.tolist() == pytest.approx(odin["authors_g_per_position"], abs=TOLERANCE)
    assert h.amax(-1).tolist() == pytest.approx(odin["authors_h_max_per_position"], abs=TOLERANCE)
    assert f.flatten().tolist() == pytest.approx(np.ravel(odin["f=h/g"]).tolist(), abs=TOLERANCE)
    start, *_, last = odin["response_positions"]
    places = TokenPositions(start, last + 1)
    scores = {name: Odin.scores(np.array(values)[None], places) for name, values in (("h_max", h.amax(-1)), ("g", g))}
    for name, found in scores.items():
        assert found["mean"] == pytest.approx(odin[f"mean_{name}_response"], abs=TOLERANCE)
        assert found["all"] == pytest.approx(odin[f"mean_{name}_all"], abs=TOLERANCE)


def test_the_loss_of_odin_is_the_authors_cross_entropy_of_h_over_g(oracle: dict[str, Any]) -> None:
    odin = oracle["odin"]
    logits = torch.tensor(odin["f=h/g"])[None]
    # The oracle's labels stand at the place that predicts them; here a label stands at its own place.
    labels = torch.tensor([[IGNORED, *(IGNORED if label == -1 else label for label in odin["in"]["labels"][:-1])]])
    found = token_losses(logits, labels)
    assert int(found.n_tokens) == 4
    assert float(found.sums / found.n_tokens) == pytest.approx(odin["authors_lm_loss"], abs=1e-5)


def test_both_heads_of_odin_learn() -> None:
    torch.manual_seed(0)
    head, output = ConfidenceHead(4), torch.nn.Linear(4, 7, bias=False)
    features = torch.randn(1, 5, 4)
    losses = token_losses(decomposed_logits(output(features), head(features)), torch.tensor([[1, 2, 3, 4, 5]]))
    losses.sums.sum().backward()
    for parameter in (output.weight, head.linear.weight, head.linear.bias):
        assert parameter.grad is not None
        assert float(parameter.grad.abs().sum()) > 0


@pytest.mark.parametrize("number", range(6))
def test_likelihood_ratio_and_maximum_probability_equal_the_oracle(oracle: dict[str, Any], number: int) -> None:
    given, expected = (oracle["llr_and_max_prob"][number][name] for name in ("in", "out"))
    semantic, background = (
        torch.tensor(given[f"logits_{name}"], dtype=torch.float64).log_softmax(-1) for name in ("semantic", "background")
    )
    ids = given["ids"]
    # The place of the last token of the context predicts the first one of the response.
    start = next(place for place, label in enumerate(given["labels"]) if label != -1)
    places = TokenPositions(start, len(ids) - 1)
    difference = (semantic - background).numpy()
    next_token = difference[np.arange(len(ids)), [*ids[1:], 0]]
    maximum = MaxProbability.scores(semantic.amax(-1).numpy()[None], places)
    ratio = LikelihoodRatio.scores(np.stack([next_token, difference[:, -1]]), places)
    for found, name in (
        (semantic.amax(-1).exp().tolist(), "authors_max_prob_per_position"),
        (maximum["mean"], "max_prob_mean_response"),
        (maximum["all"], "max_prob_mean_all"),
        (maximum["logsum"], "max_prob_log_sum_response"),
        (next_token[places.response].tolist(), "llr_per_token"),
        (ratio["sum"], "llr_sum_response"),
        (ratio["mean"], "llr_mean_response"),
    ):
        assert found == pytest.approx(expected[name], abs=TOLERANCE), name
    # The authors' function ran in float32.
    assert ratio["code_bug"] == pytest.approx(expected["authors_llr"], rel=TOLERANCE)


@pytest.mark.parametrize("name", ["max_prob_mean_response", "llr_sum_response"])
def test_the_normalisation_equals_the_oracle(oracle: dict[str, Any], name: str) -> None:
    expected = oracle["normalisation"]
    short = "max_prob" if name.startswith("max") else "llr"
    inverted = expected["7.12_breakdown_score" if short == "max_prob" else "llr_7.12_breakdown_score"]
    normalised = expected[f"{name}_7.11"]
    # Any increasing line has the same 7.11: what the oracle's scores were before it is not in the file.
    scores = [3 * value - 1 for value in normalised]
    extremes = learn_range(scores)
    assert [extremes.normalise(score) for score in scores] == pytest.approx(normalised, abs=TOLERANCE)
    assert [extremes.breakdown(score) for score in scores] == pytest.approx(inverted, abs=TOLERANCE)


def test_a_score_beyond_the_calibration_counts_as_its_end() -> None:
    extremes = ScoreRange(1.0, 3.0)
    assert [extremes.breakdown(score) for score in (0.0, 1.0, 1.5, 3.0, 9.0)] == [1.0, 1.0, 0.75, 0.0, 0.0]


@pytest.mark.parametrize("scores", [[], [0.3], [0.3, 0.3], [0.3, float("nan")]])
def test_one_value_has_no_range(scores: list[float]) -> None:
    finite = [score for score in scores if not math.isnan(score)]
    assert refusal(learn_range, scores) == (
        f"calibration: {len(finite)} responses have {len(set(finite))} different scores, two are needed. Give more dialogues."
    )


def test_noise_comes_at_its_rate_and_leaves_special_tokens_alone() -> None:
    ids = np.tile(np.arange(50), 2000)
    noise = TokenNoise(0.15, np.arange(3, 50), seed=0)
    noisy = noise.apply(ids, Key(0, 0))
    special = ids < 3
    assert (noisy[special] == ids[special]).all()
    # A token in 47 is replaced by itself.
    assert float(np.mean(noisy[~special] != ids[~special])) == pytest.approx(0.15 * 46 / 47, abs=0.005)
    assert set(noisy.tolist()) == set(range(50))
    assert (noisy == noise.apply(ids, Key(0, 0))).all()


def test_the_loss_of_two_processes_is_that_of_all_their_tokens() -> None:
    """The mean over processes of their means weighed a token of a short batch more."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 6, 9, generator=generator)
    labels = torch.randint(9, (4, 6), generator=generator)
    labels[2:, 3:] = IGNORED
    parts = [(logits[:2], labels[:2]), (logits[2:], labels[2:])]
    counted = [token_losses(*part).n_tokens.sum() for part in parts]

    def loss(part: tuple[torch.Tensor, torch.Tensor], n_processes: int) -> torch.Tensor:
        trainer = object.__new__(LanguageModelTrainer)
        mean = torch.stack(counted).double().mean()
        trainer.accelerator = SimpleNamespace(num_processes=n_processes, reduce=lambda *_: mean)
        model = Mock(training=True, return_value=SimpleNamespace(logits=part[0]))
        found: torch.Tensor = trainer.compute_loss(model, {"input_ids": part[1], "labels": part[1]})
        return found

    together = torch.stack([loss(part, 2) for part in parts]).mean()
    assert together.item() == pytest.approx(loss((logits, labels), 1).item(), rel=1e-6)
