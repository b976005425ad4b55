"""From texts to tensors: words and their numbers, the vocabulary that training learns, and batches of dialogues."""

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
"""Name of what `words` does, for signatures."""

PAD, UNKNOWN, START, END = range(4)
N_SPECIAL = 4

_WORD = re.compile(r"\w+|[^\w\s]")
_PLAIN_QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", "´": "'", "“": '"', "”": '"'})


def words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, each mark of punctuation a word of its own.

    Corpora differ in their quotes and in the blanks around punctuation; none of that shall surprise a model.

    Example:
        >>> list(words("I don't know.")) == list(words("I don ’ t know ."))
        True
    """
    plain = unicodedata.normalize("NFKC", text.translate(_PLAIN_QUOTES)).lower()
    return (match[0] for match in _WORD.finditer(plain))


class Encoded(NamedTuple):
    """An utterance as numbers."""

    ids: tuple[int, ...]
    is_cut: bool


class Vocabulary:
    """The words that a model knows, the most frequent first; 0 to 3 are PAD, UNKNOWN, START, END, which no text can spell."""

    def __init__(self, known: Sequence[str]) -> None:
        self.words = tuple(known)
        self._ids = {word: id for id, word in enumerate(self.words, start=N_SPECIAL)}
        if len(self._ids) != len(self.words):
            raise InputError("vocabulary: a word occurs twice. Give each word once.")

    def __len__(self) -> int:
        """Number of rows of the embedding, the four special ones included."""
        return N_SPECIAL + len(self.words)

    @classmethod
    def learn(cls, utterances: Iterable[Iterable[str]], *, max_words: int, min_count: int) -> Vocabulary:
        """Take the most frequent words that occur `min_count` times; equally frequent ones in the order of the alphabet."""
        counts = Counter(word for utterance in utterances for word in utterance)
        frequent = sorted((word for word in counts if counts[word] >= min_count), key=lambda word: (-counts[word], word))
        return cls(frequent[:max_words])

    def encode(self, text: str, *, max_tokens: int) -> Encoded:
        """Return an utterance of at most `max_tokens` numbers, END included."""
        found = list(islice(words(text), max_tokens))
        kept = found[: max_tokens - 1]
        return Encoded((*(self._ids.get(word, UNKNOWN) for word in kept), END), len(kept) < len(found))


EncodedDialogue: TypeAlias = Sequence[Sequence[int]]
"""The utterances of a dialogue, oldest first, each the numbers of its words and END; two utterances at least."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Dialogues, their utterances one under the other.

    Every utterance but a dialogue's first is a response, and the one before it ends its context. Places are rows of `tokens`.

    Attributes:
        tokens: numbers of words, (utterances, longest), PAD behind END.
        lengths: tokens of each utterance, (utterances,); on the processor, where packing wants it.
        contexts: for each response the place of the utterance before it, (responses,).
        responses: its own place, (responses,).
        n_responses: of each dialogue.
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
        """The same with the tokens on `device`."""
        return replace(self, tokens=self.tokens.to(device))


def make_batch(dialogues: Sequence[EncodedDialogue]) -> Batch:
    """Put dialogues together."""
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
