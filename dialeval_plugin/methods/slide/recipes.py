"""The three training recipes of a small model: `paper`, `code` and `default`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dialeval_plugin.models.context_texts import MAX_RESPONSE_WINDOWS
from dialeval_plugin.training.run import check_at_least

from .judging import SmallModelConfig

StageKind: TypeAlias = Literal["contrast", "disentangle", "classify", "lexical", "rank", "joint"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One training stage.

    Attributes:
        kind: "contrast" trains the encoder on triples; "disentangle" the head on frozen vectors; "classify" the two-class
            layer on frozen robust parts; "lexical" the lexical classifier alone; "rank" the encoder on contexts that have
            positive responses only; "joint" encoder and head together, on both kinds of contexts.
        learning_rate: learning rate of the encoder, or of the head if the encoder is frozen.
        batch_size: triples, vectors or contexts per step.
        head_learning_rate: learning rate of the head if both are trained.
        warm_up: share of the steps in which the learning rate rises; it falls linearly afterwards.
    """

    kind: StageKind
    n_epochs: int
    learning_rate: float
    batch_size: int
    head_learning_rate: float = 0.0
    warm_up: float = 0.06


@dataclass(frozen=True, slots=True)
class SlideRecipe:
    """Construction and training of a small model.

    Attributes:
        terms: "paper" for the terms of equations 1-5, "code" for those of the published notebooks.
        stages: in order; each starts from the best epoch of the previous one.
        unrelated: use random negatives too. They extend the range of distances, and the thresholds accept
            `training.ACCEPTED` of the positive responses instead of balancing these against adversarial ones.
    """

    config: SmallModelConfig
    terms: Literal["paper", "code"]
    stages: tuple[Stage, ...]
    unrelated: bool = False

    def with_epochs(self, n_epochs: int | None) -> SlideRecipe:
        """Return this recipe with `n_epochs` in every stage."""
        if n_epochs is None:
            return self
        check_at_least(1, epochs=n_epochs)
        return replace(self, stages=tuple(replace(stage, n_epochs=n_epochs) for stage in self.stages))


RECIPES: dict[str, SlideRecipe] = {
    # Equations 1-5: triplet hinge on cosine distance, s_p from the classifier of equation 4. The paper does not name the
    # optimiser; learning rate and batch size are those of DRE and the notebooks.
    "paper": SlideRecipe(
        config=SmallModelConfig("paper", split="pad", probability_from="three_class"),
        terms="paper",
        stages=(
            Stage("contrast", n_epochs=10, learning_rate=2e-5, batch_size=32),
            Stage("disentangle", n_epochs=30, learning_rate=1e-3, batch_size=1024),
        ),
    ),
    # The published notebooks: ranking loss, doubled special tokens, a separate two-class layer on frozen robust parts.
    "code": SlideRecipe(
        config=SmallModelConfig(
            "code",
            split="pad",
            probability_from="two_class",
            text_format="doubled",
            max_context_tokens=256,
            max_response_tokens=128,
        ),
        terms="code",
        stages=(
            Stage("contrast", n_epochs=10, learning_rate=2e-5, batch_size=32),
            Stage("disentangle", n_epochs=30, learning_rate=2e-5, batch_size=32),
            Stage("classify", n_epochs=30, learning_rate=1e-5, batch_size=1024),
        ),
    ),
    # Our own, chosen on validation contexts (reproduction/pretrained): first relevance, from contexts with positives only, then
    # everything together.
    "default": SlideRecipe(
        config=SmallModelConfig(
            "default",
            split="full_width",
            probability_from="interaction+lexical+cosine",
            max_response_windows=MAX_RESPONSE_WINDOWS,
        ),
        terms="paper",
        stages=(
            Stage("lexical", n_epochs=30, learning_rate=3e-3, batch_size=256),
            Stage("rank", n_epochs=2, learning_rate=8e-5, batch_size=64, head_learning_rate=5e-4),
            Stage("joint", n_epochs=3, learning_rate=8e-5, batch_size=20, head_learning_rate=5e-4),
        ),
        unrelated=True,
    ),
}
