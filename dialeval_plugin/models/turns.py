"""What one method's model says of single turns, for another method to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.signature import SignatureValue


class EmbeddedTurns(NamedTuple):
    """Vectors of n turns of unit length, (n, width), less what all texts have in common."""

    as_context: np.ndarray
    """Of each turn as what is answered."""
    as_response: np.ndarray
    """Of each turn as the answer."""
    n_tokens: FloatArray
    """Of each turn as a response, special tokens included."""
    is_cut: np.ndarray
    """Whether a turn did not fit into the model's window."""


class TurnEmbedder(Protocol):
    """A scorer that embeds turns."""

    def embedded_turns(self, texts: Sequence[str]) -> EmbeddedTurns:
        """Embed turns, each as the only one of a context and as a response."""

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Among them `window`: how much of a turn is read."""
