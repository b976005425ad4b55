"""How a language model is trained: from scratch on little hardware, or on from a model that is there."""

from __future__ import annotations

from dataclasses import dataclass

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.training.run import choose_recipe


@dataclass(frozen=True, slots=True)
class LanguageModelRecipe:
    """Sizes and numbers of a training run.

    Attributes:
        n_layers: of a model from scratch, like the next three.
        width: of its hidden states; a head has 64 of them, or all where they are fewer.
        vocabulary: tokens of its byte-level BPE, which is learnt from the training data.
        block: longest row of tokens, and the window of a model from scratch.
        learning_rate: highest; it rises linearly and falls by a cosine.
        warm_up: share of the steps in which it rises.
        batch_size: rows a step.
        patience: epochs without a gain on validation after which training ends.
    """

    name: str
    n_layers: int = 4
    width: int = 256
    vocabulary: int = 4000
    block: int = 256
    n_epochs: int = 3
    learning_rate: float = 1e-3
    warm_up: float = 0.05
    batch_size: int = 16
    patience: int = 2

    @property
    def n_heads(self) -> int:
        """Attention heads of a model from scratch."""
        return max(1, self.width // 64)


RECIPES: dict[str, LanguageModelRecipe] = {
    # From scratch: DailyDialog's 1.4 million tokens three times in about 25 minutes on one core that has bfloat16.
    "small": LanguageModelRecipe("small"),
    # From a model that is there: the thesis saw no gain of three epochs over one.
    "continue": LanguageModelRecipe("continue", n_epochs=1, learning_rate=2e-4),
}


def find_recipe(name: str | None, *, has_backbone: bool, **changes: int | float | None) -> LanguageModelRecipe:
    """Return a recipe with the numbers that are given; without a name "continue" where there is a backbone, else "small"."""
    for field in ("n_layers", "width", "vocabulary"):
        if has_backbone and changes.get(field) is not None:
            raise InputError(f"{field}: the backbone has its own. Leave the option out, or train from scratch.")
    recipe = choose_recipe(RECIPES, name or ("continue" if has_backbone else "small"), may_be_zero=(), **changes)
    if recipe.width % recipe.n_heads:
        raise InputError(f"width: {recipe.width} is no multiple of 64. Give one, or less than 64.")
    return recipe
