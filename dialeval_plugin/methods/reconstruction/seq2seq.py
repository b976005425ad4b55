"""Seq2Seq (Vinyals and Le 2015): a response depends on the utterance before it, and on nothing else."""

from __future__ import annotations

from torch import nn

from .batches import Batch
from .decoder import Decoder
from .latent import Noise
from .layers import Architecture, Reconstruction, UtteranceEncoder, WordTable, feed_forward


class Seq2Seq(nn.Module):
    """Encoder of one direction, decoder."""

    latent_size = 0

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.words = WordTable(architecture)
        self.encoder = UtteranceEncoder(architecture, bidirectional=False)
        self.bridge = feed_forward(self.encoder.size, architecture.decoder)
        self.decoder = Decoder(architecture)

    def forward(self, batch: Batch, noise: Noise | None = None) -> Reconstruction:
        """Reconstruct the responses of `batch`; there is no latent variable that `noise` could draw."""
        contexts = self.encoder(self.words(batch.tokens[batch.contexts]), batch.lengths[batch.contexts])
        initial = self.bridge(contexts)
        losses = self.decoder(initial, batch.tokens[batch.responses], batch.lengths[batch.responses], self.words)
        return Reconstruction.without_latents(losses, len(batch.n_responses))
