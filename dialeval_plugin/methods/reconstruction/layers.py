"""The parts that the four models share: sizes, the word table, recurrent encoders, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, unpack_sequence

from .vocabulary import PAD

_EMBEDDING_DEVIATION = 0.1
"""The table also gives the logits; entries of unit variance would make the first guesses far too sure."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes and drop rates; the defaults are the thesis'.

    Attributes:
        n_tokens: rows of the word table.
        embedding: size of a word's vector.
        encoder: state of the utterance encoder, of each direction.
        context: state of the context encoder.
        decoder: state of the decoder.
        latent: of each latent variable.
        dropout: of words' vectors and of the decoder's states.
        word_drop: share of the decoder's input words that training replaces by UNKNOWN (Bowman et al. 2016).
        sentence_drop: share of the context's utterances that training hides from VHCR's context encoder.
    """

    n_tokens: int
    embedding: int = 500
    encoder: int = 1000
    context: int = 1000
    decoder: int = 1000
    latent: int = 100
    dropout: float = 0.2
    word_drop: float = 0.25
    sentence_drop: float = 0.25


class Reconstruction(NamedTuple):
    """How well a model foresaw the responses of a batch."""

    losses: Tensor
    """-log p of each token, in nats, (responses, longest); 0 behind a response's END."""
    response_kl: Tensor
    """Divergence of posterior and prior of each response's latent variable, in nats, (responses,)."""
    dialogue_kl: Tensor
    """The same of each dialogue's latent variable, (dialogues,)."""

    @classmethod
    def without_latents(cls, losses: Tensor, n_dialogues: int) -> Reconstruction:
        """The result of a model that has no latent variable."""
        return cls(losses, losses.new_zeros(len(losses)), losses.new_zeros(n_dialogues))


class WordTable(nn.Module):
    """One table of vectors for what the encoder reads, what the decoder reads and what it answers (Press and Wolf 2017)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.embedding = nn.Embedding(architecture.n_tokens, architecture.embedding, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=_EMBEDDING_DEVIATION)
        self.bias = nn.Parameter(self.embedding.weight.new_zeros(architecture.n_tokens))
        self.dropout = nn.Dropout(architecture.dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors of tokens, (..., embedding)."""
        vectors: Tensor = self.dropout(self.embedding(tokens))
        return vectors

    def logits(self, vectors: Tensor) -> Tensor:
        """How well each token of the table fits, (..., tokens of the table)."""
        return functional.linear(vectors, self.embedding.weight, self.bias)


class UtteranceEncoder(nn.Module):
    """A GRU over the words of each utterance."""

    def __init__(self, architecture: Architecture, *, bidirectional: bool) -> None:
        super().__init__()
        self.gru = nn.GRU(architecture.embedding, architecture.encoder, batch_first=True, bidirectional=bidirectional)
        self.size = architecture.encoder * (2 if bidirectional else 1)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """The last states, both directions side by side.

        Args:
            vectors: of words, (utterances, longest, embedding).
            lengths: words of each utterance, (utterances,), on the processor.

        Returns:
            (utterances, size).
        """
        _, last = self.gru(pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False))
        states: Tensor = last.transpose(0, 1).flatten(1)
        return states


class ContextEncoder(nn.Module):
    """A GRU over the utterances of each dialogue."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, size)

    def forward(self, vectors: Tensor, counts: Sequence[int], initial: Tensor | None = None) -> Tensor:
        """The state after each utterance.

        Args:
            vectors: of utterances, dialogue by dialogue, (utterances, input size).
            counts: utterances of each dialogue.
            initial: state before the first one, (dialogues, size); 0 where there is none.

        Returns:
            (utterances, size).
        """
        packed = pack_sequence(list(torch.split(vectors, list(counts))), enforce_sorted=False)
        states, _ = self.gru(packed, None if initial is None else initial[None])
        return torch.cat(unpack_sequence(states))


class DialogueEncoder(nn.Module):
    """A GRU of both directions over the utterances of each dialogue, of which the last states count."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, size, bidirectional=True)
        self.size = 2 * size

    def forward(self, vectors: Tensor, counts: Sequence[int]) -> Tensor:
        """One vector a dialogue, (dialogues, size); for the arguments see `ContextEncoder`."""
        _, last = self.gru(pack_sequence(list(torch.split(vectors, list(counts))), enforce_sorted=False))
        states: Tensor = last.transpose(0, 1).flatten(1)
        return states


def feed_forward(*sizes: int) -> nn.Sequential:
    """Linear maps from each size to the next, each followed by tanh."""
    return nn.Sequential(*(layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.Tanh())))
