"""HRED (Serban et al. 2016): an encoder of utterances, an encoder of the dialogue up to each of them, a decoder."""

from __future__ import annotations

from torch import nn

from .batches import Batch
from .decoder import Decoder
from .latent import Noise
from .layers import Architecture, ContextEncoder, Reconstruction, UtteranceEncoder, WordTable, feed_forward


class HRED(nn.Module):
    """Hierarchical recurrent encoder-decoder."""

    latent_size = 0

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.words = WordTable(architecture)
        self.encoder = UtteranceEncoder(architecture, bidirectional=True)
        self.context = ContextEncoder(self.encoder.size, architecture.context)
        self.bridge = feed_forward(architecture.context, architecture.decoder)
        self.decoder = Decoder(architecture)

    def forward(self, batch: Batch, noise: Noise | None = None) -> Reconstruction:
        """Reconstruct the responses of `batch`; there is no latent variable that `noise` could draw."""
        utterances = self.encoder(self.words(batch.tokens[batch.contexts]), batch.lengths[batch.contexts])
        contexts = self.context(utterances, batch.n_responses)
        initial = self.bridge(contexts)
        losses = self.decoder(initial, batch.tokens[batch.responses], batch.lengths[batch.responses], self.words)
        return Reconstruction.without_latents(losses, len(batch.n_responses))
