"""The recipes by which the models are trained: `thesis` and `small`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from dialeval_plugin.training.run import check_at_least, choose_recipe

from .layers import Architecture


@dataclass(frozen=True, slots=True)
class ReconstructionRecipe:
    """How a model is trained; the defaults are the thesis'.

    Attributes:
        sizes: of the layers in place of `Architecture`'s defaults.
        min_count: a rarer word is unknown.
        max_utterances: of a dialogue its first ones are read.
        max_tokens: of an utterance its first ones are read, its end included.
        batch_size: dialogues a step.
        clip: longest gradient.
        annealing_steps: over which the divergences' weight rises from 0 to 1.
        patience: training ends after so many epochs without gain on validation, once the weight is 1.
    """

    name: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    max_words: int = 20_000
    min_count: int = 5
    max_utterances: int = 10
    max_tokens: int = 30
    learning_rate: float = 1e-4
    batch_size: int = 80
    clip: float = 1.0
    n_epochs: int = 30
    annealing_steps: int = 25_000
    patience: int = 3

    def architecture(self, n_tokens: int) -> Architecture:
        """The model's sizes with a vocabulary of `n_tokens`."""
        return Architecture(n_tokens, **self.sizes)


RECIPES: Mapping[str, ReconstructionRecipe] = MappingProxyType(
    {
        "thesis": ReconstructionRecipe("thesis"),
        # For one core: an epoch of DailyDialog takes it two to three minutes (docs/reconstruction.md).
        "small": ReconstructionRecipe(
            "small",
            sizes={"embedding": 128, "encoder": 96, "context": 192, "decoder": 192, "latent": 32},
            max_words=5_000,
            learning_rate=1e-3,
            batch_size=16,
            n_epochs=10,
            annealing_steps=2_000,
            patience=2,
        ),
    }
)


def find_recipe(name: str, *, n_epochs: int | None = None) -> ReconstructionRecipe:
    """Return a recipe by name, with `n_epochs` in place of its own where they are given."""
    recipe = choose_recipe(RECIPES, name)
    if n_epochs is None:
        return recipe
    check_at_least(1, epochs=n_epochs)
    return replace(recipe, n_epochs=n_epochs)
