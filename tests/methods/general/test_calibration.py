"""Fits after training: the centres that relevance takes off, and the mixture of the qualities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch.nn import functional

from dialeval_plugin.methods.general.judging import GeneralInput
from dialeval_plugin.methods.general.model import TrainedGeneral
from dialeval_plugin.methods.general.signals import HEADS, NEGATIVES, QUALITIES
from dialeval_plugin.methods.general.training import REAL, RELEVANCE_WEIGHT, equal_mixture, fit_mixing
from dialeval_plugin.models.encoders import embed

TRIPLES: list[GeneralInput] = [
    (("Where were you?",), "At the market.", ()),
    (("Where were you?",), "In town, why?", ()),
    (("Any plans?", "None yet."), "Come with us.", ()),
]


def test_the_centres_are_the_mean_directions_of_distinct_contexts_and_responses(tiny_general: Path) -> None:
    model = TrainedGeneral.load(str(tiny_general), device="cpu").model
    model.centre(TRIPLES)
    with torch.inference_mode():
        for texts, of, centre in (
            (model.texts.contexts([TRIPLES[0][0], TRIPLES[2][0]]), model.head.context, model.head.context_centre),
            (model.texts.counted_responses([triple[1] for triple in TRIPLES]), model.head.robust, model.head.response_centre),
        ):
            directions = functional.normalize(of(embed(model.encoder, [text.ids for text in texts])), dim=-1)
            assert torch.allclose(centre, directions.mean(0), atol=1e-6)


def test_relevance_is_the_cosine_of_what_is_left_without_the_centres(tiny_general: Path) -> None:
    head = TrainedGeneral.load(str(tiny_general), device="cpu").model.head
    width = head.context_centre.shape[0]
    shared, own, other = torch.eye(width)[:3]
    with torch.inference_mode():
        head.context_centre.copy_(0.5 * shared)
        head.response_centre.copy_(0.5 * shared)
    near = functional.normalize(shared + own, dim=-1)
    # All three have most of their direction in common with every other text; only one shares anything besides.
    far = functional.normalize(shared + other, dim=-1)
    contexts, responses = near.expand(2, -1), torch.stack([3 * near, 3 * far])
    with torch.inference_mode():
        found = head.centred_cosine(contexts, responses)
    rest = 2**-0.5 - 0.5
    assert found.tolist() == pytest.approx([1, rest**2 / (rest**2 + 0.5)], abs=1e-6)


def rows(number: int = 12_000) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Log odds of real responses, which are higher by one, and of all kinds of wrong ones; no facts."""
    generator = np.random.default_rng(7)
    kinds = np.array([REAL, *(kind for head in HEADS[:-1] for kind in NEGATIVES[head])])[np.arange(number) % 12]
    log_odds = {name: generator.normal(size=number) + (kinds == REAL) for name in QUALITIES}
    return {**log_odds, "knowledge": np.full(number, np.nan)}, kinds


def test_relevance_has_its_weight_beside_those_of_the_heads_and_the_score_stays_a_probability() -> None:
    log_odds, kinds = rows()
    every = np.ones(len(kinds), dtype=bool)
    heads, mixing = fit_mixing(log_odds, kinds, every, HEADS), fit_mixing(log_odds, kinds, every)
    assert "relevance" not in heads.plain
    assert mixing.with_facts is None
    scale = mixing.plain["fit"] / heads.plain["fit"]
    assert mixing.plain["relevance"] == pytest.approx(scale * RELEVANCE_WEIGHT)
    assert mixing.plain["fluency"] == pytest.approx(scale * heads.plain["fluency"])
    shares = equal_mixture(kinds)
    said = float(np.average(expit(mixing.log_odds(log_odds)), weights=shares))
    assert said == pytest.approx(float(np.average(kinds == REAL, weights=shares)), abs=1e-3)
