"""Texts as tensors: words and their ids, the vocabulary that training learns, and batches of dialogues."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dialeval_plugin.core.errors import InputError

TOKENIZER = "words_1"
"""Name of the algorithm of `words`, for signatures."""

PAD, UNKNOWN, START, END = range(4)
N_SPECIAL = 4

_WORD = re.compile(r"\w+|[^\w\s]")
_PLAIN_QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", "´": "'", "“": '"', "”": '"'})


def words(text: str) -> Iterator[str]:
    """Yield the lower-case words and punctuation marks of a text; the kind of quotes and blanks does not matter.

    Example:
        >>> list(words("I don't know.")) == list(words("I don ’ t know ."))
        True
    """
    plain = unicodedata.normalize("NFKC", text.translate(_PLAIN_QUOTES)).lower()
    return (match[0] for match in _WORD.finditer(plain))


class Encoded(NamedTuple):
    """An utterance as ids of words."""

    ids: tuple[int, ...]
    is_cut: bool


class Vocabulary:
    """The words of a model, the most frequent first; ids 0 to 3 are PAD, UNKNOWN, START and END, which no text contains."""

    def __init__(self, known: Sequence[str]) -> None:
        self.words = tuple(known)
        self._ids = {word: id for id, word in enumerate(self.words, start=N_SPECIAL)}
        if len(self._ids) != len(self.words):
            raise InputError("vocabulary: a word occurs twice. Give each word once.")

    def __len__(self) -> int:
        """Return the number of rows of the embedding, with the four special ones."""
        return N_SPECIAL + len(self.words)

    @classmethod
    def learn(cls, utterances: Iterable[Iterable[str]], *, max_words: int, min_count: int) -> Vocabulary:
        """Return the vocabulary of the most frequent words with at least `min_count` uses; ties are in alphabetical order."""
        counts = Counter(word for utterance in utterances for word in utterance)
        frequent = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
        return cls(frequent[:max_words])

    def encode(self, text: str, *, max_tokens: int) -> Encoded:
        """Return an utterance of at most `max_tokens` ids, END included."""
        found = list(islice(words(text), max_tokens))
        kept = found[: max_tokens - 1]
        return Encoded((*(self._ids.get(word, UNKNOWN) for word in kept), END), len(kept) < len(found))


EncodedDialogue: TypeAlias = Sequence[Sequence[int]]
"""The utterances of a dialogue, at least two, oldest first, each as the ids of its words and END."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The utterances of several dialogues.

    Every utterance but a dialogue's first is a response, and the one before it ends its context. Places are rows of `tokens`.

    Attributes:
        tokens: ids of words, (utterances, longest), PAD after END.
        lengths: tokens of each utterance, (utterances,), on the CPU, as packing requires.
        contexts: place of the utterance before each response, (responses,).
        responses: place of each response, (responses,).
        n_responses: responses of each dialogue.
    """

    tokens: Tensor
    lengths: Tensor
    contexts: Tensor
    responses: Tensor
    n_responses: tuple[int, ...]

    @property
    def n_utterances(self) -> tuple[int, ...]:
        """Utterances of each dialogue."""
        return tuple(number + 1 for number in self.n_responses)

    @property
    def owners(self) -> Tensor:
        """Number of each response's dialogue, (responses,)."""
        return torch.repeat_interleave(torch.tensor(self.n_responses))

    def to(self, device: torch.device) -> Batch:
        """Return the batch with its tokens on `device`."""
        return replace(self, tokens=self.tokens.to(device))


def make_batch(dialogues: Sequence[EncodedDialogue]) -> Batch:
    """Return the batch of these dialogues."""
    utterances = [torch.tensor(utterance) for dialogue in dialogues for utterance in dialogue]
    is_first = torch.tensor([place == 0 for dialogue in dialogues for place in range(len(dialogue))])
    responses = torch.nonzero(~is_first).flatten()
    return Batch(
        tokens=pad_sequence(utterances, batch_first=True, padding_value=float(PAD)),
        lengths=torch.tensor([len(utterance) for utterance in utterances]),
        contexts=responses - 1,
        responses=responses,
        n_responses=tuple(len(dialogue) - 1 for dialogue in dialogues),
    )
