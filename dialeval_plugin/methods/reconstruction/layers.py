"""Common parts of the four models: word table, encoders, decoder, latent variables, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, unpack_sequence

from .vocabulary import PAD, START, UNKNOWN, Batch

_EMBEDDING_DEVIATION = 0.1
"""Small, because the table also gives the logits: with unit variance the first predictions would be far too confident."""
_LEAST_DEVIATION = 1e-4
"""Above 0, because the divergence has a logarithm of the deviations."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes and drop rates; the defaults are the thesis'.

    Attributes:
        n_tokens: rows of the word table, vectors of size `embedding`.
        encoder: size of the utterance encoder's state in each direction.
        dropout: dropout of word vectors and the decoder's states.
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
    """A model's losses on the responses of a batch."""

    losses: Tensor
    """-log p of each token, in nats, (responses, longest); 0 after a response's END."""
    response_kl: Tensor
    """Divergence of posterior and prior of each response's latent variable, in nats, (responses,)."""
    dialogue_kl: Tensor
    """The same for each dialogue's latent variable, (dialogues,)."""


class WordTable(nn.Module):
    """One table of vectors for the inputs of encoder and decoder and the decoder's output (Press and Wolf 2017)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.embedding = nn.Embedding(architecture.n_tokens, architecture.embedding, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=_EMBEDDING_DEVIATION)
        self.bias = nn.Parameter(self.embedding.weight.new_zeros(architecture.n_tokens))
        self.dropout = nn.Dropout(architecture.dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors of tokens, (..., embedding)."""
        vectors: Tensor = self.dropout(self.embedding(tokens))
        return vectors

    def logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of the table's tokens, (..., tokens of the table)."""
        return functional.linear(vectors, self.embedding.weight, self.bias)


class UtteranceEncoder(nn.Module):
    """A GRU over the words of each utterance."""

    def __init__(self, architecture: Architecture, *, bidirectional: bool) -> None:
        super().__init__()
        self.gru = nn.GRU(architecture.embedding, architecture.encoder, batch_first=True, bidirectional=bidirectional)
        self.size = architecture.encoder * (2 if bidirectional else 1)

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Return the last states of both directions, (utterances, size), from vectors (utterances, longest, embedding)."""
        _, last = self.gru(pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False))
        return _side_by_side(last)


class ContextEncoder(nn.Module):
    """A GRU over the utterances of each dialogue."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, size)

    def forward(self, vectors: Tensor, counts: Sequence[int], initial: Tensor | None = None) -> Tensor:
        """Return the state after each utterance, (utterances, size); `counts` are the utterances of each dialogue."""
        states, _ = self.gru(_by_dialogue(vectors, counts), None if initial is None else initial[None])
        return torch.cat(unpack_sequence(states))


class DialogueEncoder(nn.Module):
    """A bidirectional GRU over the utterances of each dialogue."""

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size, size, bidirectional=True)
        self.size = 2 * size

    def forward(self, vectors: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the last states, (dialogues, size); the arguments are those of `ContextEncoder`."""
        _, last = self.gru(_by_dialogue(vectors, counts))
        return _side_by_side(last)


class Decoder(nn.Module):
    """A GRU that starts from a vector of the context and reads the response up to each token."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.gru = nn.GRU(architecture.embedding, architecture.decoder, batch_first=True)
        self.dropout = nn.Dropout(architecture.dropout)
        self.answer = nn.Linear(architecture.decoder, architecture.embedding)
        self.word_drop = architecture.word_drop

    def forward(self, initial: Tensor, tokens: Tensor, lengths: Tensor, table: WordTable) -> Tensor:
        """Return -log p of each token given those before it, in nats, (responses, longest), 0 after END."""
        inputs = self._drop_words(functional.pad(tokens[:, :-1], (1, 0), value=START))
        read, targets = (
            pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False) for values in (table(inputs), tokens)
        )
        states, _ = self.gru(read, initial[None])
        # Packed tokens only: the vocabulary is the widest layer, and half of a padded batch is padding.
        logits = table.logits(self.answer(self.dropout(states.data)))
        losses = functional.cross_entropy(logits, targets.data, reduction="none")
        packed = PackedSequence(losses, states.batch_sizes, states.sorted_indices, states.unsorted_indices)
        return pad_packed_sequence(packed, batch_first=True)[0]

    def _drop_words(self, inputs: Tensor) -> Tensor:
        # In training only, so that the decoder has to use the context.
        if not self.training:
            return inputs
        is_dropped = torch.rand(inputs.shape, device=inputs.device) < self.word_drop
        is_dropped[:, 0] = False
        return inputs.masked_fill(is_dropped, UNKNOWN)


def feed_forward(*sizes: int) -> nn.Sequential:
    """Return linear layers from each size to the next, each followed by tanh."""
    return nn.Sequential(*(layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.Tanh())))


def _by_dialogue(vectors: Tensor, counts: Sequence[int]) -> PackedSequence:
    return pack_sequence(list(torch.split(vectors, list(counts))), enforce_sorted=False)


def _side_by_side(last: Tensor) -> Tensor:
    return last.transpose(0, 1).flatten(1)


def draw(posterior: Normal, noise: Tensor, prior: Normal) -> tuple[Tensor, Tensor]:
    r"""Return the posterior's sample for `noise` (Kingma and Welling 2014), and $D(q \| p)$ in nats, summed over latents."""
    return posterior.mean + posterior.stddev * noise, kl_divergence(posterior, prior).sum(-1)


class GaussianLayer(nn.Module):
    """A normal distribution computed from a vector by hidden layers."""

    def __init__(self, *sizes: int, latent: int) -> None:
        super().__init__()
        self.hidden = feed_forward(*sizes)
        self.mean = nn.Linear(sizes[-1], latent)
        self.deviation = nn.Linear(sizes[-1], latent)

    def forward(self, *vectors: Tensor) -> Normal:
        """Return the distribution (n, latent) given the concatenated vectors, each (n, its size)."""
        hidden = self.hidden(torch.cat(vectors, dim=-1))
        deviation = functional.softplus(self.deviation(hidden)) + _LEAST_DEVIATION
        # NaN leaves a row unscored; torch's validation would raise an error.
        return Normal(self.mean(hidden), deviation, validate_args=False)


class LatentNoise(NamedTuple):
    """Standard normal numbers for samples of posteriors; without them latent variables are the means of their priors."""

    responses: Tensor
    """Numbers for the responses, (responses, latent)."""
    dialogues: Tensor
    """Numbers for the dialogues, (dialogues, latent)."""

    @classmethod
    def random(cls, batch: Batch, size: int) -> LatentNoise:
        """Return numbers from torch's global generator, for training."""
        shape = (len(batch.responses), len(batch.n_responses))
        responses, dialogues = (torch.randn(number, size, device=batch.tokens.device) for number in shape)
        return cls(responses, dialogues)

    @classmethod
    def repeated(cls, batch: Batch, size: int, seed: int) -> LatentNoise:
        """Return the same numbers for every dialogue, which differ by place only, so that scores do not depend on the batch."""
        # numpy draws one number after the other; torch's vectorised draws change with their number.
        table = np.random.default_rng(seed).standard_normal((1 + max(batch.n_responses), size), dtype=np.float32)
        numbers = torch.from_numpy(table).to(batch.tokens.device)
        places = torch.cat([torch.arange(1, 1 + count) for count in batch.n_responses])
        return cls(numbers[places], numbers[:1].expand(len(batch.n_responses), size))
