"""The tables that `lexical_features` needs, as a part of a torch module."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .lexical import FEATURES, lexical_features, token_rarity


class LexicalFeatures(nn.Module):
    """`lexical_features` with the tables that they need, for a module that reads them.

    The tables (`learn_rarity`, `learn_scale`) are learnt before the module's weights and stored with them.
    """

    rarity: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.register_buffer("rarity", torch.zeros(vocabulary_size))
        self.register_buffer("mean", torch.zeros(len(FEATURES)))
        self.register_buffer("deviation", torch.ones(len(FEATURES)))

    def learn_rarity(self, responses: Iterable[Sequence[int]]) -> None:
        """Learn how rare each token is from the token ids of many responses."""
        self.rarity.copy_(torch.as_tensor(token_rarity(responses, len(self.rarity))))

    def learn_scale(self, features: Tensor) -> None:
        """Learn mean and standard deviation of each feature from training pairs, of shape (n, len(FEATURES)).

        A feature that is the same in all of them keeps its own scale: other pairs may well differ in it.
        """
        self.mean.copy_(features.mean(dim=0))
        deviation = features.std(dim=0, correction=0)
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))

    def features(
        self,
        contexts: Sequence[Sequence[int]],
        owners: Sequence[int] | np.ndarray,
        responses: Sequence[Sequence[int]],
        special: Collection[int],
    ) -> Tensor:
        """Return `lexical_features` as a tensor, on the device of the weights."""
        rarity = self.rarity.double().cpu().numpy()
        return torch.as_tensor(lexical_features(contexts, owners, responses, rarity, special)).to(self.mean)

    def standardised(self, features: Tensor) -> Tensor:
        """Return features, of shape (..., len(FEATURES)), with the mean 0 and the deviation 1 that they have in training."""
        return (features - self.mean) / self.deviation
