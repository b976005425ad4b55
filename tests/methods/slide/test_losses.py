"""SLIDE's losses on vectors whose angles are known, worked by hand: no oracle file is needed."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from dialeval_plugin.methods.slide.losses import (
    ADVERSARIAL,
    MARGIN,
    NON_ROBUST,
    POSITIVE,
    RANKING_SCALE,
    Parts,
    Triple,
    classification_terms,
    code_terms,
    contrastive_loss,
    cosine_distance,
    paper_terms,
    ranking_loss,
    triplet_loss,
)

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


def test_the_cosine_distance_is_from_0_to_2_whatever_the_lengths() -> None:
    distance = cosine_distance(rows(EAST, EAST, EAST, EAST), rows(EAST, NORTH_EAST, NORTH, WEST))
    assert distance.tolist() == pytest.approx([0, NEAR, 1, 2])


def test_the_cosine_distance_is_over_the_last_dimension() -> None:
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
    found = triplet_loss(rows(EAST), rows(positive), rows(adversarial), margin)
    assert float(found) == pytest.approx(expected)


def test_the_triplet_hinge_is_a_mean_with_a_margin_of_a_half() -> None:
    found = triplet_loss(rows(EAST, EAST, EAST), rows(NORTH, EAST, NORTH), rows(NORTH, NORTH, EAST))
    assert float(found) == pytest.approx((0.5 + 0.0 + 1.5) / 3)


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
    found = contrastive_loss(rows(EAST), rows(other), matching=matching, half=False)
    assert float(found) == pytest.approx(expected)
    # The notebooks' half is what is meant where nothing is said.
    assert float(contrastive_loss(rows(EAST), rows(other), matching=matching)) == pytest.approx(expected / 2)


def test_the_contrastive_loss_is_a_mean_with_its_own_margin() -> None:
    apart = contrastive_loss(rows(EAST, EAST), rows(NORTH, EAST), matching=False, margin=3.0, half=False)
    assert float(apart) == pytest.approx((4.0 + 9.0) / 2)
    together = contrastive_loss(rows(EAST, EAST), rows(NORTH, WEST), matching=True, margin=3.0, half=False)
    assert float(together) == pytest.approx((1.0 + 4.0) / 2)


def cross_entropy(logits: list[float], label: int) -> float:
    return math.log(sum(map(math.exp, logits))) - logits[label]


def parts_of() -> Parts:
    return Parts(
        positive_robust=rows([0.3, 0.1], [0.2, 0.4]),
        positive_non_robust=rows([-0.5, 0.6], [0.7, -0.8]),
        adversarial_robust=rows([0.9, 1.0], [-1.1, 1.2]),
        adversarial_non_robust=rows([1.3, -1.4], [1.5, 1.6]),
    )


CONTEXT = rows([0.05, 0.25], [0.15, -0.35])


def test_each_part_has_its_class_and_the_classifier_sees_the_context_first() -> None:
    parts = parts_of()
    terms = classification_terms(CONTEXT, parts, LastColumns(1, 2, 3))
    labels = {"positive_robust": 1, "positive_non_robust": 2, "adversarial_robust": 0, "adversarial_non_robust": 2}
    assert list(terms) == [f"classify_{name}" for name in labels]
    for name, label in labels.items():
        given = torch.cat([CONTEXT, getattr(parts, name)], dim=1).tolist()
        expected = sum(cross_entropy(row[1:], label) for row in given) / len(given)
        assert float(terms[f"classify_{name}"]) == pytest.approx(expected), name


def hinge(a: Tensor, b: Tensor) -> float:
    """Mean of max(1/2 - d, 0)²."""
    return float((0.5 - cosine_distance(a, b)).clamp(min=0).square().mean())


@pytest.fixture
def near_parts() -> Parts:
    """Parts of which every two are nearer than the margin, each by another angle."""
    angles = {"positive_robust": 0.0, "positive_non_robust": 0.2, "adversarial_robust": 0.5, "adversarial_non_robust": 0.9}
    return Parts(**{name: rows(*([math.cos(a + k), math.sin(a + k)] for k in (0, 1))) for name, a in angles.items()})


WHOLE = Triple(rows(EAST, NORTH), rows(NORTH_EAST, NORTH), rows(EAST, NORTH_EAST))


def test_the_papers_terms(near_parts: Parts) -> None:
    terms = {name: float(term) for name, term in paper_terms(WHOLE, CONTEXT, near_parts, LastColumns(0, 1, 3)).items()}
    assert list(terms)[:4] == ["triplet", "separate_positive", "separate_adversarial", "separate_robust"]
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


def test_the_notebooks_terms(near_parts: Parts) -> None:
    terms = {name: float(term) for name, term in code_terms(WHOLE, CONTEXT, near_parts, LastColumns(0, 1, 3)).items()}
    assert set(terms) == {
        "rank",
        "rank_robust",
        "join_non_robust",
        "separate_positive",
        "separate_adversarial",
        "separate_robust",
        "classify_positive_robust",
        "classify_positive_non_robust",
        "classify_adversarial_robust",
        "classify_adversarial_non_robust",
    }
    assert terms["rank"] == pytest.approx(float(ranking_loss(*WHOLE)))
    ranked = ranking_loss(CONTEXT, near_parts.positive_robust, near_parts.adversarial_robust)
    assert terms["rank_robust"] == pytest.approx(float(ranked))
    assert terms["join_non_robust"] == pytest.approx((1 - math.cos(0.7)) ** 2 / 2)
    assert terms["separate_positive"] == pytest.approx((0.5 - (1 - math.cos(0.2))) ** 2 / 2)
    assert terms["separate_robust"] == pytest.approx(hinge(near_parts.positive_robust, near_parts.adversarial_robust) / 2)
    without = code_terms(WHOLE, CONTEXT, near_parts, LastColumns(0, 1, 3), rank_robust=False)
    assert set(terms) - set(without) == {"rank_robust"}
