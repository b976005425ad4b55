"""Latent variables: normal distributions, their divergence, and the noise by which they are drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .batches import Batch
from .layers import feed_forward

_LEAST_DEVIATION = 1e-4
"""The divergence has a logarithm of the deviations."""


class Gaussian(NamedTuple):
    """A normal distribution with independent components."""

    mean: Tensor
    deviation: Tensor

    def draw(self, noise: Tensor) -> Tensor:
        """What standard normal `noise` becomes (Kingma and Welling 2014)."""
        return self.mean + self.deviation * noise


def standard_like(other: Gaussian) -> Gaussian:
    """The standard normal distribution of the same shape."""
    return Gaussian(torch.zeros_like(other.mean), torch.ones_like(other.deviation))


def kl_divergence(posterior: Gaussian, prior: Gaussian) -> Tensor:
    r"""$D(q \| p)$ in nats, summed over the components: shape of the distributions without their last dimension.

    Formula: $\sum \log(\sigma_p / \sigma_q) + (\sigma_q^2 + (\mu_q - \mu_p)^2) / (2 \sigma_p^2) - 1/2$. At least 0, and 0 only
    where both are the same.
    """
    ratio = (posterior.deviation / prior.deviation) ** 2
    distance = ((posterior.mean - prior.mean) / prior.deviation) ** 2
    return ((ratio + distance - 1 - ratio.log()) / 2).sum(-1)


class GaussianLayer(nn.Module):
    """A normal distribution that depends on a vector, through hidden layers."""

    def __init__(self, *sizes: int, latent: int) -> None:
        super().__init__()
        self.hidden = feed_forward(*sizes)
        self.mean = nn.Linear(sizes[-1], latent)
        self.deviation = nn.Linear(sizes[-1], latent)

    def forward(self, *vectors: Tensor) -> Gaussian:
        """The distribution given the vectors side by side, each (n, its size); both parts are (n, latent)."""
        hidden = self.hidden(torch.cat(vectors, dim=-1))
        return Gaussian(self.mean(hidden), functional.softplus(self.deviation(hidden)) + _LEAST_DEVIATION)


class Noise(NamedTuple):
    """Standard normal numbers that turn posteriors into draws; without them latent variables are at their priors' means."""

    responses: Tensor
    """(responses, latent)."""
    dialogues: Tensor
    """(dialogues, latent)."""

    @classmethod
    def random(cls, batch: Batch, size: int) -> Noise:
        """From torch's global generator, as training wants it."""
        shape = (len(batch.responses), len(batch.n_responses))
        responses, dialogues = (torch.randn(number, size, device=batch.tokens.device) for number in shape)
        return cls(responses, dialogues)

    @classmethod
    def repeated(cls, batch: Batch, size: int, seed: int) -> Noise:
        """The same numbers for every dialogue, so that none depends on what it is scored with: they differ by place only."""
        # numpy draws a number after the other; torch's vectorised draws change with how many are asked for.
        table = np.random.default_rng(seed).standard_normal((1 + max(batch.n_responses), size), dtype=np.float32)
        numbers = torch.from_numpy(table).to(batch.tokens.device)
        places = torch.cat([torch.arange(1, 1 + count) for count in batch.n_responses])
        return cls(numbers[places], numbers[:1].expand(len(batch.n_responses), size))
