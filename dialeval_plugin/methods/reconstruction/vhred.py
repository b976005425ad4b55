"""VHRED (Serban et al. 2017): HRED with a latent variable for each response."""

from __future__ import annotations

import torch
from torch import nn

from .batches import Batch
from .decoder import Decoder
from .latent import GaussianLayer, Noise, kl_divergence
from .layers import Architecture, ContextEncoder, Reconstruction, UtteranceEncoder, WordTable, feed_forward


class VHRED(nn.Module):
    """Hierarchical latent variable encoder-decoder."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        context, latent = architecture.context, architecture.latent
        self.latent_size = latent
        self.words = WordTable(architecture)
        self.encoder = UtteranceEncoder(architecture, bidirectional=True)
        self.context = ContextEncoder(self.encoder.size, context)
        self.prior = GaussianLayer(context, context, context, latent=latent)
        self.posterior = GaussianLayer(context + self.encoder.size, context, context, latent=latent)
        self.bridge = feed_forward(context + latent, architecture.decoder)
        self.decoder = Decoder(architecture)

    def forward(self, batch: Batch, noise: Noise | None = None) -> Reconstruction:
        """Reconstruct the responses of `batch`.

        Args:
            batch: dialogues.
            noise: draws each response's latent variable from its posterior, which has read the response; without it the
                variable is the mean of its prior, which has read the context only, and the divergences are 0.
        """
        utterances = self.encoder(self.words(batch.tokens), batch.lengths)
        contexts = self.context(utterances[batch.contexts], batch.n_responses)
        prior = self.prior(contexts)
        if noise is None:
            latents, kl = prior.mean, contexts.new_zeros(len(contexts))
        else:
            posterior = self.posterior(contexts, utterances[batch.responses])
            latents, kl = posterior.draw(noise.responses), kl_divergence(posterior, prior)
        initial = self.bridge(torch.cat([contexts, latents], dim=-1))
        losses = self.decoder(initial, batch.tokens[batch.responses], batch.lengths[batch.responses], self.words)
        return Reconstruction(losses, kl, kl.new_zeros(len(batch.n_responses)))
