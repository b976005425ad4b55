"""The recipes by which the independence classifiers are trained: `vectors`, `default`, `paper` and `code`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .classifiers import PairLayout, PairTruncation

Filter: TypeAlias = Literal["paper", "code"]

VECTORS = "vectors"
"""The recipe of classifiers over a general evaluator's vectors, which has no numbers to choose: see `vectors.fit`."""
GENERAL = "general"
"""The bundled evaluator, on whose vectors they are fitted where no other is named."""


@dataclass(frozen=True, slots=True)
class CausalRecipe:
    """Recipe for training cross-encoders.

    Attributes:
        learning_rate: its highest value.
        n_epochs: of the unconditional classifier and of the first conditional one.
        n_round_epochs: of each self-training round.
        n_rounds: self-training rounds at most.
        schedule: "linear" rises for `warm_up_steps` and falls to 0; "constant" does neither.
        keep_best: the epoch, and the round, with the largest area under the ROC curve on validation is kept, and the rounds
            end with the first that brings no gain; otherwise all rounds run and the last epoch is kept.
        filter: which pseudo-labels are taken, see `self_training.choose`.
        grows: a round's pseudo-labels stay in the training set; otherwise each round has the labelled set and its own.
        conditional_from: what the conditional classifier starts from, the "backbone" or the trained "unconditional" classifier.
        frozen: share of the layers, the lowest, that stay as the backbone has them, with its embeddings; 0 for nothing. What
            is frozen need not be stored with the model, and there is no backward pass through it.
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
    # The paper's with fewer, larger steps, for encoders of MiniLM's size. Conditional rows are few: with a classifier that
    # has learnt what depends on what to start from, the area under the curve on DREAM's validation rows was 0.648 after two
    # epochs, and 0.584 from the backbone.
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
    # The published scripts: batches of 8, constant rate, 3 epochs of which the last is kept, 10 rounds of one epoch on the
    # labelled rows and the round's own pseudo-labels, the literal string, 128 tokens in training and 512 in scoring.
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
