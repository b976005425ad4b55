"""VHCR (Park et al. 2018): a latent variable for the whole dialogue, and under it one for each response."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .batches import Batch
from .decoder import Decoder
from .latent import GaussianLayer, Noise, kl_divergence, standard_like
from .layers import Architecture, ContextEncoder, DialogueEncoder, Reconstruction, UtteranceEncoder, WordTable, feed_forward


class VHCR(nn.Module):
    """Variational hierarchical conversation RNN."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        context, latent = architecture.context, architecture.latent
        self.latent_size = latent
        self.words = WordTable(architecture)
        self.encoder = UtteranceEncoder(architecture, bidirectional=True)
        self.dialogue = DialogueEncoder(self.encoder.size, context)
        self.dialogue_posterior = GaussianLayer(self.dialogue.size, context, context, latent=latent)
        self.start = feed_forward(latent, context)
        self.context = ContextEncoder(self.encoder.size + latent, context)
        self.prior = GaussianLayer(context + latent, context, latent=latent)
        self.posterior = GaussianLayer(context + latent + self.encoder.size, context, context, latent=latent)
        self.bridge = feed_forward(context + 2 * latent, architecture.decoder)
        self.decoder = Decoder(architecture)
        self.hidden_utterance = nn.Parameter(torch.zeros(self.encoder.size))
        self.sentence_drop = architecture.sentence_drop

    def forward(self, batch: Batch, noise: Noise | None = None) -> Reconstruction:
        """Reconstruct the responses of `batch`.

        Args:
            batch: dialogues.
            noise: draws the latent variables from their posteriors; that of a dialogue has read all of it, later utterances
                included. Without it they are the means of their priors, and the divergences are 0.
        """
        owners = batch.owners
        utterances = self.encoder(self.words(batch.tokens), batch.lengths)
        if noise is None:
            dialogues = utterances.new_zeros(len(batch.n_responses), self.latent_size)
            dialogue_kl = dialogues.new_zeros(len(dialogues))
        else:
            whole = self.dialogue_posterior(self.dialogue(utterances, batch.n_utterances))
            dialogues, dialogue_kl = whole.draw(noise.dialogues), kl_divergence(whole, standard_like(whole))

        read = torch.cat([self._drop_utterances(utterances[batch.contexts]), dialogues[owners]], dim=-1)
        contexts = self.context(read, batch.n_responses, self.start(dialogues))
        prior = self.prior(contexts, dialogues[owners])
        if noise is None:
            latents, response_kl = prior.mean, contexts.new_zeros(len(contexts))
        else:
            posterior = self.posterior(contexts, dialogues[owners], utterances[batch.responses])
            latents, response_kl = posterior.draw(noise.responses), kl_divergence(posterior, prior)

        initial = self.bridge(torch.cat([contexts, latents, dialogues[owners]], dim=-1))
        losses = self.decoder(initial, batch.tokens[batch.responses], batch.lengths[batch.responses], self.words)
        return Reconstruction(losses, response_kl, dialogue_kl)

    def _drop_utterances(self, utterances: Tensor) -> Tensor:
        """In training hide utterances at random, so that the dialogue's latent variable has to tell of them."""
        if not self.training:
            return utterances
        is_dropped = torch.rand(len(utterances), 1, device=utterances.device) < self.sentence_drop
        return torch.where(is_dropped, self.hidden_utterance, utterances)
