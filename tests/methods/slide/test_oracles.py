"""SLIDE's formulas against the authors' own functions and against the transcribed equations (oracles/slide_*.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dialeval_plugin.methods.slide.losses import (
    Parts,
    Triple,
    code_terms,
    contrastive_loss,
    cosine_distance,
    paper_terms,
    ranking_loss,
    triplet_loss,
)
from dialeval_plugin.methods.slide.model import DisentanglingHead

SEPARATIONS = ("separate_positive", "separate_adversarial", "separate_robust")
CLASSES = [f"classify_{kind}_{part}" for kind in ("positive", "adversarial") for part in ("robust", "non_robust")]
CODE_ORDER = ["rank", *SEPARATIONS, "join_non_robust", "rank_robust", *CLASSES]


def oracle(folder: Path, name: str) -> dict[str, Any]:
    return json.loads((folder / f"{name}.json").read_text())


def layer(weights: dict[str, Any], name: str) -> nn.Linear:
    weight, bias = (torch.tensor(weights[f"{name}.{part}"], dtype=torch.float64) for part in ("weight", "bias"))
    linear = nn.Linear(*reversed(weight.shape), dtype=torch.float64)
    linear.load_state_dict({"weight": weight, "bias": bias})
    return linear


@pytest.fixture
def losses(oracles_dir: Path) -> dict[str, Any]:
    return oracle(oracles_dir, "slide_losses")


@pytest.fixture
def vectors(losses: dict[str, Any]) -> Triple:
    """Contexts, positive and adversarial responses after the linear map."""
    linear = layer(losses["weights"], "linear")
    with torch.no_grad():
        return Triple(*(linear(torch.tensor(losses["encoder_embeddings"][key], dtype=torch.float64)) for key in "cpa"))


def halves(vectors: Triple, *, padded: bool) -> Parts:
    def pad(half: torch.Tensor) -> torch.Tensor:
        return torch.cat([half, torch.zeros_like(half)], dim=-1) if padded else half

    positive_non_robust, positive_robust = map(pad, vectors.positive.chunk(2, dim=-1))
    adversarial_non_robust, adversarial_robust = map(pad, vectors.adversarial.chunk(2, dim=-1))
    return Parts(positive_robust, positive_non_robust, adversarial_robust, adversarial_non_robust)


@pytest.mark.parametrize(("padded", "name"), [(True, "code_padded"), (False, "code_unpadded")])
def test_the_notebooks_losses(padded: bool, name: str, losses: dict[str, Any], vectors: Triple) -> None:
    classifier = layer(losses["weights"], "classifier" if padded else "classifier_unpadded")
    parts = halves(vectors, padded=padded)
    with torch.no_grad():
        terms = code_terms(vectors, vectors.context, parts, classifier, rank_robust=padded)

    order = [term for term in CODE_ORDER if padded or term != "rank_robust"]
    expected = [value for _, value in losses[name]["terms"]]
    assert [float(terms[term]) for term in order] == pytest.approx(expected, abs=1e-5)
    assert float(sum(terms.values())) == pytest.approx(losses[name]["total"], abs=1e-5)


def test_the_papers_equations(losses: dict[str, Any], vectors: Triple) -> None:
    expected = losses["paper"]
    parts = halves(vectors, padded=True)
    with torch.no_grad():
        terms = paper_terms(vectors, vectors.context, parts, layer(losses["weights"], "classifier"))
        distances = [
            cosine_distance(parts.positive_robust, parts.positive_non_robust),
            cosine_distance(parts.adversarial_robust, parts.adversarial_non_robust),
            cosine_distance(parts.positive_robust, parts.adversarial_robust),
        ]

    assert float(terms["triplet"]) == pytest.approx(expected["eq1_triplet_cosine_margin_0.5_mean"], abs=1e-6)
    assert float(terms["separate_positive"]) == pytest.approx(expected["eq2_ins_same_pos_mean"], abs=1e-6)
    assert float(terms["separate_adversarial"]) == pytest.approx(expected["eq2_ins_same_neg_mean"], abs=1e-6)
    assert float(terms["separate_robust"]) == pytest.approx(expected["eq2_out_robust_mean"], abs=1e-6)
    for number, distance in enumerate(distances, start=1):
        assert distance.tolist() == pytest.approx(expected[f"d{number}"], abs=1e-6)
    cross_entropies = [float(terms[name]) for name in CLASSES]
    assert cross_entropies == pytest.approx(expected["eq4_cross_entropy_terms[pr,pn,ar,an]"], abs=1e-6)
    assert float(sum(terms.values())) == pytest.approx(expected["eq5_total_with_cross_entropy"], abs=1e-6)


def test_the_triplet_hinge_per_example(losses: dict[str, Any], vectors: Triple) -> None:
    per_example = [float(triplet_loss(*(side[row : row + 1] for side in vectors))) for row in range(5)]

    assert per_example == pytest.approx(losses["paper"]["eq1_per_example"], abs=1e-6)


def test_contrastive_and_ranking_loss_alone(losses: dict[str, Any]) -> None:
    alone = losses["standalone"]
    x, y = (torch.tensor(alone[key], dtype=torch.float64) for key in "xy")
    anchor, positive, negative = (torch.tensor(rows, dtype=torch.float64) for rows in alone["mnrl_in_[anchor,pos,neg]"])

    assert cosine_distance(x, y).tolist() == pytest.approx(alone["cosine_distance"], abs=1e-6)
    assert float(contrastive_loss(x, y, matching=False)) == pytest.approx(alone["label0_mean"], abs=1e-6)
    assert float(contrastive_loss(x, y, matching=True)) == pytest.approx(alone["label1_mean"], abs=1e-6)
    assert float(ranking_loss(anchor, positive, negative)) == pytest.approx(alone["mnrl_scale20_cos"], abs=1e-5)


def test_the_notebooks_scoring_loop(oracles_dir: Path) -> None:
    pipeline = oracle(oracles_dir, "slide_pipeline")
    head = DisentanglingHead(pipeline["H"], "pad", "two_class").double().eval()
    head.linear.load_state_dict(layer(pipeline["weights"], "linear").state_dict())
    head.two_class.load_state_dict(layer(pipeline["weights"], "head").state_dict())

    for case in pipeline["cases"]:
        context, response = (
            torch.tensor([case["in"][name]], dtype=torch.float64) for name in ("context_embedding", "response_embedding")
        )
        with torch.no_grad():
            judgement = head(context, response)
        assert float(judgement.distance) == pytest.approx(case["out"]["distance"], abs=1e-6)
        # The notebook rounds the probability to three decimals (option round3 of the scorer).
        assert round(float(judgement.probability), 3) == pytest.approx(case["out"]["predicted_score"], abs=1e-9)
        assert int(judgement.probability >= 0.5) == case["out"]["predicted"]
