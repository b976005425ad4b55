"""The decoder that all four models share: how probable it finds each token of a response."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from .layers import Architecture, WordTable
from .vocabulary import START, UNKNOWN


class Decoder(nn.Module):
    """A GRU that starts from what the context says and reads the response up to each token."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.gru = nn.GRU(architecture.embedding, architecture.decoder, batch_first=True)
        self.dropout = nn.Dropout(architecture.dropout)
        self.answer = nn.Linear(architecture.decoder, architecture.embedding)
        self.word_drop = architecture.word_drop

    def forward(self, initial: Tensor, tokens: Tensor, lengths: Tensor, table: WordTable) -> Tensor:
        """Cross-entropy of each token given those before it.

        Args:
            initial: states before the first token, (responses, decoder).
            tokens: the responses, (responses, longest).
            lengths: tokens of each, END included, (responses,), on the processor.
            table: of words.

        Returns:
            -log p in nats, (responses, longest), 0 behind END.
        """
        inputs = self._drop_words(functional.pad(tokens[:, :-1], (1, 0), value=START))
        read, said = (
            pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False) for values in (table(inputs), tokens)
        )
        states, _ = self.gru(read, initial[None])
        # Of packed tokens only: the vocabulary is the widest layer, and half of a padded batch is padding.
        logits = table.logits(self.answer(self.dropout(states.data)))
        losses = functional.cross_entropy(logits, said.data, reduction="none")
        packed = PackedSequence(losses, states.batch_sizes, states.sorted_indices, states.unsorted_indices)
        return pad_packed_sequence(packed, batch_first=True)[0]

    def _drop_words(self, inputs: Tensor) -> Tensor:
        """In training replace words at random, so that the decoder has to listen to the context."""
        if not self.training:
            return inputs
        is_dropped = torch.rand(inputs.shape, device=inputs.device) < self.word_drop
        is_dropped[:, 0] = False
        return inputs.masked_fill(is_dropped, UNKNOWN)
