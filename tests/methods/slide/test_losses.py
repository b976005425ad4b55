"""SLIDE's losses: by hand on vectors whose angles are known, and against the authors' own functions and the equations.

The latter are in golden/slide_{losses,pipeline}.json.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dialeval_plugin.methods.slide.losses import (
    ADVERSARIAL,
    MARGIN,
    NON_ROBUST,
    POSITIVE,
    RANKING_SCALE,
    EmbeddingParts,
    ResponseTriple,
    classification_terms,
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

EAST, NORTH, WEST = [2.0, 0.0], [0.0, 3.0], [-5.0, 0.0]
NORTH_EAST = [1.0, 1.0]
NEAR = 1 - math.sqrt(0.5)
"""Distance of two vectors with 45 degrees between them."""


def rows(*vectors: list[float]) -> Tensor:
    return torch.tensor(vectors, dtype=torch.float64)


class LastColumns(nn.Module):
    """Logits that are three chosen columns of what it is given."""

    def __init__(self, *columns: int) -> None:
        super().__init__()
        self.columns = list(columns)

    def forward(self, given: Tensor) -> Tensor:
        assert given.shape[1] == 4
        return given[:, self.columns]


def test_the_papers_numbers() -> None:
    assert (MARGIN, RANKING_SCALE) == (0.5, 20.0)
    assert (ADVERSARIAL, POSITIVE, NON_ROBUST) == (0, 1, 2)


def test_the_cosine_distance_is_from_0_to_2_over_the_last_dimension_whatever_the_lengths() -> None:
    distance = cosine_distance(rows(EAST, EAST, EAST, EAST), rows(EAST, NORTH_EAST, NORTH, WEST))
    assert distance.tolist() == pytest.approx([0, NEAR, 1, 2])
    a = torch.stack([rows(EAST, NORTH, EAST), rows(EAST, EAST, WEST)])
    b = torch.stack([rows(EAST, EAST, WEST), rows(NORTH, NORTH_EAST, WEST)])
    found = cosine_distance(a, b)
    assert found.shape == (2, 3)
    assert found.flatten().tolist() == pytest.approx([0, 1, 2, 1, NEAR, 0])


@pytest.mark.parametrize(
    ("positive", "adversarial", "margin", "expected"),
    [
        # Nearer by more than the margin costs nothing; by less, what is missing; the wrong way round, the margin on top.
        (EAST, NORTH, 0.5, 0.0),
        (EAST, NORTH_EAST, 0.5, 0.5 - NEAR),
        (NORTH, EAST, 0.5, 1.5),
        (NORTH, NORTH, 0.25, 0.25),
        (EAST, WEST, 3.0, 1.0),
    ],
)
def test_the_triplet_hinge(positive: list[float], adversarial: list[float], margin: float, expected: float) -> None:
    assert float(triplet_loss(rows(EAST), rows(positive), rows(adversarial), margin)) == pytest.approx(expected)
    # It is a mean, with a margin of a half where none is given.
    mean = triplet_loss(rows(EAST, EAST, EAST), rows(NORTH, EAST, NORTH), rows(NORTH, NORTH, EAST))
    assert float(mean) == pytest.approx((0.5 + 0.0 + 1.5) / 3)


@pytest.mark.parametrize("scale", [None, 1.0, 4.0])
def test_the_ranking_loss_finds_the_own_positive_among_all(scale: float | None) -> None:
    context, positive, adversarial = rows(EAST, NORTH), rows(EAST, NORTH_EAST), rows(NORTH, WEST)
    # Cosines with the positives, then with the adversarial responses; the target is the own positive.
    cosines = [[1, math.sqrt(0.5), 0, -1], [0, math.sqrt(0.5), 1, 0]]
    factor = 20.0 if scale is None else scale
    expected = sum(
        math.log(sum(math.exp(factor * cosine) for cosine in row)) - factor * row[number] for number, row in enumerate(cosines)
    )
    given = {} if scale is None else {"scale": scale}
    assert float(ranking_loss(context, positive, adversarial, **given)) == pytest.approx(expected / 2, abs=1e-12)


def test_two_positives_of_one_context_are_not_each_others_negatives() -> None:
    context, positive, wrong = rows(EAST, EAST, NORTH), rows(EAST, NORTH_EAST, NORTH), rows(WEST, WEST)
    found = ranking_loss(context, positive, wrong, scale=1.0, owners=torch.tensor([4, 4, 7]))
    # Similarities of EAST to EAST, NORTH_EAST, NORTH, WEST, WEST are 1, 1/sqrt(2), 0, -1, -1.
    near = math.sqrt(0.5)
    others = 1 + 2 * math.exp(-1)
    expected = (
        math.log(math.exp(1) + others) - 1,
        math.log(math.exp(near) + others) - near,
        math.log(math.exp(1) + 1 + math.exp(near) + 2) - 1,
    )
    assert float(found) == pytest.approx(sum(expected) / 3, abs=1e-12)
    apart = ranking_loss(context, positive, wrong, owners=torch.arange(3))
    assert float(apart) == float(ranking_loss(context, positive, wrong))


@pytest.mark.parametrize(
    ("other", "matching", "expected"),
    [
        (EAST, True, 0.0),
        (NORTH, True, 1.0),
        (WEST, True, 4.0),
        (EAST, False, 0.25),
        (NORTH_EAST, False, (0.5 - NEAR) ** 2),
        (NORTH, False, 0.0),
        (WEST, False, 0.0),
    ],
)
def test_the_contrastive_loss_pulls_or_pushes(other: list[float], matching: bool, expected: float) -> None:
    assert float(contrastive_loss(rows(EAST), rows(other), matching=matching, half=False)) == pytest.approx(expected)
    # The notebooks' half is what is meant where nothing is said.
    assert float(contrastive_loss(rows(EAST), rows(other), matching=matching)) == pytest.approx(expected / 2)


def test_the_contrastive_loss_is_a_mean_with_its_own_margin() -> None:
    apart = contrastive_loss(rows(EAST, EAST), rows(NORTH, EAST), matching=False, margin=3.0, half=False)
    assert float(apart) == pytest.approx((4.0 + 9.0) / 2)
    together = contrastive_loss(rows(EAST, EAST), rows(NORTH, WEST), matching=True, margin=3.0, half=False)
    assert float(together) == pytest.approx((1.0 + 4.0) / 2)


def cross_entropy(logits: list[float], label: int) -> float:
    return math.log(sum(map(math.exp, logits))) - logits[label]


CONTEXT = rows([0.05, 0.25], [0.15, -0.35])


def test_each_part_has_its_class_and_the_classifier_sees_the_context_first() -> None:
    parts = EmbeddingParts(
        positive_robust=rows([0.3, 0.1], [0.2, 0.4]),
        positive_non_robust=rows([-0.5, 0.6], [0.7, -0.8]),
        adversarial_robust=rows([0.9, 1.0], [-1.1, 1.2]),
        adversarial_non_robust=rows([1.3, -1.4], [1.5, 1.6]),
    )
    terms = classification_terms(CONTEXT, parts, LastColumns(1, 2, 3))
    labels = {"positive_robust": 1, "positive_non_robust": 2, "adversarial_robust": 0, "adversarial_non_robust": 2}
    assert list(terms) == [f"classify_{name}" for name in labels] == CLASSES
    for name, label in labels.items():
        given = torch.cat([CONTEXT, getattr(parts, name)], dim=1).tolist()
        expected = sum(cross_entropy(row[1:], label) for row in given) / len(given)
        assert float(terms[f"classify_{name}"]) == pytest.approx(expected), name


def hinge(a: Tensor, b: Tensor) -> float:
    """Mean of max(1/2 - d, 0)²."""
    return float((0.5 - cosine_distance(a, b)).clamp(min=0).square().mean())


@pytest.fixture
def near_parts() -> EmbeddingParts:
    """Parts of which every two are nearer than the margin, each by another angle."""
    angles = {"positive_robust": 0.0, "positive_non_robust": 0.2, "adversarial_robust": 0.5, "adversarial_non_robust": 0.9}
    return EmbeddingParts(**{name: rows(*([math.cos(a + k), math.sin(a + k)] for k in (0, 1))) for name, a in angles.items()})


WHOLE = ResponseTriple(rows(EAST, NORTH), rows(NORTH_EAST, NORTH), rows(EAST, NORTH_EAST))


def test_the_papers_terms(near_parts: EmbeddingParts) -> None:
    terms = {name: float(term) for name, term in paper_terms(WHOLE, CONTEXT, near_parts, LastColumns(0, 1, 3)).items()}
    assert list(terms)[:4] == ["triplet", *SEPARATIONS]
    assert terms["triplet"] == pytest.approx(float(triplet_loss(*WHOLE)))
    distances = {"positive": 1 - math.cos(0.2), "adversarial": 1 - math.cos(0.4), "robust": 1 - math.cos(0.5)}
    for name, distance in distances.items():
        assert terms[f"separate_{name}"] == pytest.approx((0.5 - distance) ** 2)
    halved = paper_terms(WHOLE, CONTEXT, near_parts, LastColumns(0, 1, 3), half=True)
    for name in distances:
        assert float(halved[f"separate_{name}"]) == pytest.approx(terms[f"separate_{name}"] / 2)
    classified = classification_terms(CONTEXT, near_parts, LastColumns(0, 1, 3))
    assert {name: terms[name] for name in classified} == {name: float(term) for name, term in classified.items()}
    assert len(terms) == 8


def test_the_notebooks_terms(near_parts: EmbeddingParts) -> None:
    terms = {name: float(term) for name, term in code_terms(WHOLE, CONTEXT, near_parts, LastColumns(0, 1, 3)).items()}
    assert set(terms) == {*CODE_ORDER}
    assert terms["rank"] == pytest.approx(float(ranking_loss(*WHOLE)))
    ranked = ranking_loss(CONTEXT, near_parts.positive_robust, near_parts.adversarial_robust)
    assert terms["rank_robust"] == pytest.approx(float(ranked))
    assert terms["join_non_robust"] == pytest.approx((1 - math.cos(0.7)) ** 2 / 2)
    assert terms["separate_positive"] == pytest.approx((0.5 - (1 - math.cos(0.2))) ** 2 / 2)
    assert terms["separate_robust"] == pytest.approx(hinge(near_parts.positive_robust, near_parts.adversarial_robust) / 2)
    without = code_terms(WHOLE, CONTEXT, near_parts, LastColumns(0, 1, 3), rank_robust=False)
    assert set(terms) - set(without) == {"rank_robust"}


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
def vectors(losses: dict[str, Any]) -> ResponseTriple:
    """Contexts, positive and adversarial responses after the linear map."""
    linear = layer(losses["weights"], "linear")
    with torch.no_grad():
        return ResponseTriple(*(linear(torch.tensor(losses["encoder_embeddings"][key], dtype=torch.float64)) for key in "cpa"))


def halves(vectors: ResponseTriple, *, padded: bool) -> EmbeddingParts:
    def pad(half: Tensor) -> Tensor:
        return torch.cat([half, torch.zeros_like(half)], dim=-1) if padded else half

    positive_non_robust, positive_robust = map(pad, vectors.positive.chunk(2, dim=-1))
    adversarial_non_robust, adversarial_robust = map(pad, vectors.adversarial.chunk(2, dim=-1))
    return EmbeddingParts(positive_robust, positive_non_robust, adversarial_robust, adversarial_non_robust)


@pytest.mark.parametrize(("padded", "name"), [(True, "code_padded"), (False, "code_unpadded")])
def test_the_notebooks_losses_are_the_authors(padded: bool, name: str, losses: dict[str, Any], vectors: ResponseTriple) -> None:
    classifier = layer(losses["weights"], "classifier" if padded else "classifier_unpadded")
    parts = halves(vectors, padded=padded)
    with torch.no_grad():
        terms = code_terms(vectors, vectors.context, parts, classifier, rank_robust=padded)
    order = [term for term in CODE_ORDER if padded or term != "rank_robust"]
    expected = [value for _, value in losses[name]["terms"]]
    assert [float(terms[term]) for term in order] == pytest.approx(expected, abs=1e-5)
    assert float(sum(terms.values())) == pytest.approx(losses[name]["total"], abs=1e-5)


def test_the_papers_terms_are_its_equations(losses: dict[str, Any], vectors: ResponseTriple) -> None:
    expected = losses["paper"]
    parts = halves(vectors, padded=True)
    with torch.no_grad():
        terms = paper_terms(vectors, vectors.context, parts, layer(losses["weights"], "classifier"))
    found = {name: float(term) for name, term in terms.items()}
    keys = ("eq1_triplet_cosine_margin_0.5_mean", "eq2_ins_same_pos_mean", "eq2_ins_same_neg_mean", "eq2_out_robust_mean")
    for name, key in zip(("triplet", *SEPARATIONS), keys, strict=True):
        assert found[name] == pytest.approx(expected[key], abs=1e-6)
    robust, non_robust, other, other_non_robust = parts
    for number, pair in enumerate(((robust, non_robust), (other, other_non_robust), (robust, other)), start=1):
        assert cosine_distance(*pair).tolist() == pytest.approx(expected[f"d{number}"], abs=1e-6)
    assert [found[name] for name in CLASSES] == pytest.approx(expected["eq4_cross_entropy_terms[pr,pn,ar,an]"], abs=1e-6)
    assert sum(found.values()) == pytest.approx(expected["eq5_total_with_cross_entropy"], abs=1e-6)
    per_example = [float(triplet_loss(*(side[row : row + 1] for side in vectors))) for row in range(5)]
    assert per_example == pytest.approx(expected["eq1_per_example"], abs=1e-6)


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
