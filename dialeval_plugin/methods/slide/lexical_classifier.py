"""A small classifier of the words that a response shares with its context."""

from __future__ import annotations

from torch import Tensor, nn

from dialeval_plugin.models.lexical import FEATURES, LexicalFeatures


class LexicalClassifier(LexicalFeatures):
    """Two logits, adversarial and positive, from `lexical_features`."""

    def __init__(self, vocabulary_size: int, width: int = 64) -> None:
        super().__init__(vocabulary_size)
        self.layers = nn.Sequential(nn.Linear(len(FEATURES), width), nn.GELU(), nn.Linear(width, 2))

    def forward(self, features: Tensor) -> Tensor:
        """Map features of shape (..., len(FEATURES)) to logits of shape (..., 2)."""
        logits: Tensor = self.layers(self.standardised(features))
        return logits
