"""How the general evaluator is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LOSS_WEIGHTS: Mapping[str, float] = {
    "rank": 1.0,
    "fit": 1.0,
    "fluency": 0.5,
    "specificity": 0.25,
    "knowledge": 0.5,
    "separate": 0.1,
    "words": 1.0,
}
"""Weights of the terms of `objective.loss_terms`. Set by hand: fit is what most ratings are about, specificity is mostly a
matter of length, and "words" trains no weight that another term trains."""


@dataclass(frozen=True, slots=True)
class GeneralRecipe:
    """Everything that moves the weights, apart from data, backbone and seed.

    Attributes:
        max_pairs: responses an epoch at most, drawn from all corpora.
        corpus_exponent: a corpus of n responses has a share in proportion to n to this power: 1 takes corpora as they are,
            0 gives each the same; it never has more than its n.
        n_epochs: passes over so many responses; each draws others where a corpus has more.
        batch_size: responses a step, all of one corpus, so that no style tells a wrong text from a right one.
        n_fit_negatives: wrong texts for the fit of each response, besides those of the batch.
        learning_rate: of the encoder, the highest.
        frozen: share of the encoder's layers, the lowest, that stay as they are, with its embeddings; 0 for nothing.
        head_learning_rate: of maps and classifiers.
        warm_up: share of the steps in which the learning rate rises; it falls linearly afterwards.
        max_context_tokens: last tokens of a context that are read; of a response the first.
        max_validation_pairs: responses for calibration, mixing and the validation figures.
        max_validation_dialogues: dialogues for the weights of coherence.
    """

    max_pairs: int = 120_000
    corpus_exponent: float = 0.5
    n_epochs: int = 1
    batch_size: int = 64
    n_fit_negatives: int = 2
    learning_rate: float = 8e-5
    frozen: float = 1 / 3
    head_learning_rate: float = 5e-4
    warm_up: float = 0.06
    max_context_tokens: int = 96
    max_response_tokens: int = 64
    max_validation_pairs: int = 2000
    max_validation_dialogues: int = 200
    loss_weights: Mapping[str, float] = field(default_factory=lambda: dict(LOSS_WEIGHTS))
