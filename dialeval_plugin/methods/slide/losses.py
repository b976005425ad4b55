"""Training losses of SLIDE's small model, as functions on embeddings (Zhao et al. 2024, equations 1-5).

The printed equations have norms and call them cosine distance or similarity; the published notebooks use the cosine
distance throughout, a ranking loss instead of the triplet hinge, and five terms more than equation 5. Every function here
takes the cosine distance 1 - cos, in [0, 2]: with a similarity, the hinge of equation 2 would have the opposite effect.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

MARGIN = 0.5
"""Margin of the hinges: 0.5 in DRE, the same authors' next paper; the SLIDE paper gives none."""
RANKING_SCALE = 20.0
"""Inverse temperature of the ranking loss, the default of sentence-transformers and the notebooks."""
ADVERSARIAL, POSITIVE, NON_ROBUST = 0, 1, 2
"""Classes of equation 4: robust part of an adversarial response, of a positive one, any non-robust part."""


class EmbeddingParts(NamedTuple):
    """Robust and non-robust parts of positive and adversarial responses, each of shape (batch, width)."""

    positive_robust: Tensor
    positive_non_robust: Tensor
    adversarial_robust: Tensor
    adversarial_non_robust: Tensor


def cosine_distance(a: Tensor, b: Tensor) -> Tensor:
    """Return 1 - cos(a, b) over the last dimension, in [0, 2]."""
    return 1 - functional.cosine_similarity(a, b, dim=-1)


def triplet_loss(context: Tensor, positive: Tensor, adversarial: Tensor, margin: float = MARGIN) -> Tensor:
    """Mean of max(d(c, p) - d(c, a) + margin, 0): equation 1 with d the cosine distance, of vectors (batch, width)."""
    return functional.relu(cosine_distance(context, positive) - cosine_distance(context, adversarial) + margin).mean()


def ranking_loss(
    context: Tensor,
    positive: Tensor,
    adversarial: Tensor,
    scale: float = RANKING_SCALE,
    owners: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of each context's positive response among all positive and adversarial ones of the batch.

    This is sentence-transformers' MultipleNegativesRankingLoss with one hard negative, on embeddings. Rows with equal numbers
    in `owners` share a context: their positives are not each other's negatives.
    """
    candidates = functional.normalize(torch.cat([positive, adversarial]), dim=-1)
    similarities = functional.normalize(context, dim=-1) @ candidates.T
    if owners is not None:
        also_fits = (owners[:, None] == owners).fill_diagonal_(False)
        similarities[:, : len(positive)].masked_fill_(also_fits, -torch.inf)
    return functional.cross_entropy(scale * similarities, torch.arange(len(context), device=context.device))


def contrastive_loss(a: Tensor, b: Tensor, *, matching: bool, margin: float = MARGIN, half: bool = True) -> Tensor:
    """Mean of d² for a `matching` pair (z), of max(margin - d, 0)² for a pair to be separated: equation 2.

    Vectors are (batch, width). The notebooks multiply by 1/2 (`half`), the equation as printed does not.
    """
    distance = cosine_distance(a, b)
    loss = (distance**2 if matching else functional.relu(margin - distance) ** 2).mean()
    return 0.5 * loss if half else loss


def classification_terms(context: Tensor, parts: EmbeddingParts, classifier: nn.Module) -> dict[str, Tensor]:
    """Cross-entropy of the four parts against their class (equation 4, read as cross-entropy).

    The printed sum_i y_i p_i, with class numbers as y, has its minimum at "always class 0", whatever the input.
    """
    terms = {}
    for (name, part), label in zip(parts._asdict().items(), (POSITIVE, NON_ROBUST, ADVERSARIAL, NON_ROBUST), strict=True):
        target = torch.full((len(part),), label, device=part.device)
        terms[f"classify_{name}"] = functional.cross_entropy(classifier(torch.cat([context, part], dim=-1)), target)
    return terms


class ResponseTriple(NamedTuple):
    """Vectors of a context, a positive and an adversarial response, each of shape (batch, width)."""

    context: Tensor
    positive: Tensor
    adversarial: Tensor


def paper_terms(
    whole: ResponseTriple, context: Tensor, parts: EmbeddingParts, classifier: nn.Module, *, half: bool = False
) -> dict[str, Tensor]:
    """Return the terms of equation 5 by name; their sum is the loss.

    Equation 1 compares the vectors of `whole`. The classifier maps contexts and parts, (batch, 2 * width), to three logits.
    """
    return {
        "triplet": triplet_loss(*whole),
        "separate_positive": contrastive_loss(parts.positive_robust, parts.positive_non_robust, matching=False, half=half),
        "separate_adversarial": contrastive_loss(
            parts.adversarial_robust, parts.adversarial_non_robust, matching=False, half=half
        ),
        "separate_robust": contrastive_loss(parts.positive_robust, parts.adversarial_robust, matching=False, half=half),
        **classification_terms(context, parts, classifier),
    }


def code_terms(
    whole: ResponseTriple, context: Tensor, parts: EmbeddingParts, classifier: nn.Module, *, rank_robust: bool = True
) -> dict[str, Tensor]:
    """Return the terms of the published notebooks by name; their sum is the loss.

    They replace the triplet hinge of equation 5 by a ranking loss, and add a term that pulls the two non-robust parts together
    and, if the halves are padded to the context's width (`rank_robust`), a ranking of the robust parts. Arguments as in
    `paper_terms`.
    """
    terms = paper_terms(whole, context, parts, classifier, half=True)
    del terms["triplet"]
    terms["rank"] = ranking_loss(*whole)
    terms["join_non_robust"] = contrastive_loss(parts.positive_non_robust, parts.adversarial_non_robust, matching=True)
    if rank_robust:
        terms["rank_robust"] = ranking_loss(context, parts.positive_robust, parts.adversarial_robust)
    return terms
