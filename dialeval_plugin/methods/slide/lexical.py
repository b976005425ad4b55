"""A small classifier of what a response shares with its context word by word.

Two vectors that are made apart say little about which words both texts have, and adversarial responses are written around
just that: they take up rare words of the context.
"""

from __future__ import annotations

from torch import Tensor, nn

from dialeval_plugin.models.lexical import FEATURES, RARE, LexicalFeatures, lexical_features, token_rarity

__all__ = ["FEATURES", "RARE", "LexicalClassifier", "lexical_features", "token_rarity"]


class LexicalClassifier(LexicalFeatures):
    """Two logits, adversarial and positive, from `lexical_features`."""

    def __init__(self, vocabulary_size: int, width: int = 64) -> None:
        super().__init__(vocabulary_size)
        self.layers = nn.Sequential(nn.Linear(len(FEATURES), width), nn.GELU(), nn.Linear(width, 2))

    def forward(self, features: Tensor) -> Tensor:
        """Map features of shape (..., len(FEATURES)) to logits of shape (..., 2)."""
        logits: Tensor = self.layers(self.standardised(features))
        return logits
