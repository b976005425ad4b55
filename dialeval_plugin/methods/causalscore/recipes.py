"""Training recipes of the independence classifiers: `vectors`, `default`, `paper` and `code`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .classifiers import PairLayout, PairTruncation

Filter: TypeAlias = Literal["paper", "code"]

VECTORS = "vectors"
"""Recipe of classifiers over a general evaluator's vectors, which has no settings: see `classifiers.fit_on_vectors`."""
GENERAL = "general"
"""Bundled evaluator for this recipe by default."""


@dataclass(frozen=True, slots=True)
class CausalRecipe:
    """Recipe for training cross-encoders.

    Attributes:
        learning_rate: highest learning rate.
        n_epochs: epochs of the unconditional and the first conditional classifier.
        n_round_epochs: epochs of each self-training round.
        n_rounds: maximum self-training rounds.
        schedule: "linear" rises for `warm_up_steps` and falls to 0; "constant" does neither.
        keep_best: keep the epoch and round with the largest area under the ROC curve on validation, and stop after the first
            round without a gain; otherwise run all rounds and keep the last epoch.
        filter: selection of pseudo-labels, see `self_training.choose`.
        grows: keep a round's pseudo-labels in the training set; otherwise each round has the labelled set and its own.
        conditional_from: start of the conditional classifier, the "backbone" or the trained "unconditional" classifier.
        frozen: share of the lowest layers that are not trained or stored, with the embeddings; 0 for none.
        max_training_tokens: longest text in training; `max_tokens` in scoring.
    """

    name: str
    learning_rate: float = 1e-5
    batch_size: int = 16
    n_epochs: int = 10
    n_round_epochs: int = 10
    n_rounds: int = 10
    schedule: Literal["linear", "constant"] = "linear"
    warm_up_steps: int = 10
    keep_best: bool = True
    filter: Filter = "paper"
    grows: bool = True
    conditional_from: Literal["backbone", "unconditional"] = "backbone"
    frozen: float = 0.0
    layout: PairLayout = "delimited"
    truncate: PairTruncation = "utterances"
    max_training_tokens: int = 256
    max_tokens: int = 256


RECIPES: dict[str, CausalRecipe] = {
    # The paper's with fewer, larger steps, for encoders of MiniLM's size. Conditional rows are few: on DREAM's validation rows
    # the area under the curve is 0.648 after two epochs from the unconditional classifier, and 0.584 from the backbone.
    "default": CausalRecipe(
        "default",
        learning_rate=5e-5,
        n_epochs=4,
        n_round_epochs=1,
        n_rounds=3,
        conditional_from="unconditional",
        frozen=0.5,
    ),
    # Section 4.1 and Algorithm 1: Adam, 1e-5, linear decay after 10 warm-up steps, 10 epochs, batches of 16.
    "paper": CausalRecipe("paper"),
    # The published scripts: batches of 8, constant rate, the last of 3 epochs, 10 rounds of one epoch on the labelled rows and
    # the round's own pseudo-labels, the literal string, 128 tokens in training and 512 in scoring.
    "code": CausalRecipe(
        "code",
        batch_size=8,
        n_epochs=3,
        n_round_epochs=1,
        schedule="constant",
        warm_up_steps=0,
        keep_best=False,
        filter="code",
        grows=False,
        layout="literal",
        truncate="right",
        max_training_tokens=128,
        max_tokens=512,
    ),
}
