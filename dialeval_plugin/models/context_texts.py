"""Token ids of turns: separators, truncation, the notebooks' doubled special tokens, and parts of long responses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, is_blank, visible_texts
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scores import BLANK_RESPONSE, NO_TURN, TOO_FEW_TURNS, Unscored
from dialeval_plugin.core.signature import SignatureValue

from .tokenisation import check_fast, text_ids

TextFormat: TypeAlias = Literal["plain", "doubled"]

MAX_RESPONSE_WINDOWS = 8
"""Number of parts of a long response that are read: 62 tokens each, in all nearly 500 tokens or some 350 words."""
MAX_TURN_PARTS = 8
"""Number of parts of a last turn that is too long, some 500 words; its questions are an additional part."""
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?…])\s+|\n+")


class TextIds(NamedTuple):
    """Token ids of a context or a response, and the number of its tokens that were truncated."""

    ids: list[int]
    n_cut: int


class TurnParts(NamedTuple):
    """Texts of the parts of a turn (the turn itself if it fits), and the number of its tokens in none of them."""

    texts: list[str]
    n_cut: int


class ResponseWindows(NamedTuple):
    """Token ids of the parts of a response, a single part for a short one, and the number of its tokens in none of them."""

    parts: list[list[int]]
    n_cut: int


def longest_response(n_windows: int, n_tokens: int) -> str:
    """Describe the longest response that is read whole."""
    return f"{n_windows} parts of {n_tokens} tokens" if n_windows > 1 else f"{n_tokens} tokens"


def turns_to_read(item: Item) -> list[str]:
    """Return the texts of the turns with a visible character, the response last, without speakers' names."""
    return visible_texts(item.turns if isinstance(item, Dialogue) else (*item.context, item.response))


def unread(item: Item) -> Unscored | None:
    """Return the reason why a model of responses, or of turns with context, has nothing to read; None if it has."""
    if isinstance(item, Example) and is_blank(item.response.text):
        return BLANK_RESPONSE
    if len(turns_to_read(item)) > 1:
        return None
    return TOO_FEW_TURNS if isinstance(item, Dialogue) else NO_TURN


def _first_known(*tokens: int | None) -> list[int]:
    return [token for token in tokens if token is not None][:1]


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Converts texts into token ids with a transformers tokenizer.

    A context becomes `[CLS] turn [SEP] turn [SEP]`, without its oldest tokens if it is too long, and a response
    `[CLS] response [SEP]`, without its last tokens. Special tokens in a text (`[SEP]`, `<s>`) are read as text, so that no turn
    can imitate the border of another.

    The text format "doubled" repeats the outer special tokens, as the published notebooks do by writing them out. Both limits
    include special tokens.
    """

    tokenizer: Any
    text_format: TextFormat
    max_context_tokens: int
    max_response_tokens: int

    def __post_init__(self) -> None:
        check_fast(f"tokenizer {type(self.tokenizer).__name__}", self.tokenizer)
        least = len(self._first + self._last) * (2 if self.text_format == "doubled" else 1) + 1
        if (given := min(self.max_context_tokens, self.max_response_tokens)) < least:
            raise InputError(f"window: {given} tokens have no room for a token of a text. Give {least} or more.")

    @property
    def _first(self) -> list[int]:
        return _first_known(self.tokenizer.cls_token_id, self.tokenizer.bos_token_id)

    @property
    def _last(self) -> list[int]:
        return _first_known(self.tokenizer.sep_token_id, self.tokenizer.eos_token_id)

    @property
    def special(self) -> frozenset[int]:
        """Ids of the tokens that surround texts and never occur in them."""
        return frozenset((*self._first, *self._last))

    def contexts(self, contexts: Sequence[Sequence[str]]) -> list[TextIds]:
        """Encode contexts, each a sequence of turns from the oldest to the newest; a context may be empty."""
        # Each once: the turns of a conversation are in the contexts of all its later ones.
        turns = list(dict.fromkeys(turn for context in contexts for turn in context))
        ids = dict(zip(turns, text_ids(self.tokenizer, turns), strict=True))
        encoded = []
        doubled = self.text_format == "doubled"
        opening, closing = self._first * (2 if doubled else 1), self._last * doubled
        room = self.max_context_tokens - len(opening) - len(closing)
        for context in contexts:
            body = [token for turn in context for token in (*ids[turn], *self._last)]
            encoded.append(TextIds([*opening, *body[-room:], *closing], max(0, len(body) - room)))
        return encoded

    def parts_of_turn(self, turn: str) -> TurnParts:
        """Split a turn that is too long for a context, between sentences if possible; a shorter turn is a single part.

        Its questions come first, since a response answers them. If there are more than `MAX_TURN_PARTS` others, the middle is
        left out.
        """
        room = self.max_context_tokens - len(self._first) - len(self._last)
        if len(turn) <= room or len(text_ids(self.tokenizer, [turn])[0]) <= room:
            return TurnParts([turn], 0)
        sentences = _BETWEEN_SENTENCES.split(turn)
        lengths = map(len, text_ids(self.tokenizer, sentences))
        pieces = [
            piece
            for sentence, n_tokens in zip(sentences, lengths, strict=True)
            for piece in ([sentence] if n_tokens <= room else sentence.split())
        ]
        parts: list[str] = []
        left = 0
        for piece, ids in zip(pieces, text_ids(self.tokenizer, pieces), strict=True):
            if not parts or len(ids) > left:
                parts.append("")
                left = room
            parts[-1] += f" {piece}"
            left -= len(ids)
        half = MAX_TURN_PARTS // 2
        read, cut = (parts, []) if len(parts) <= MAX_TURN_PARTS else ([*parts[:half], *parts[-half:]], parts[half:-half])
        questions = " ".join(sentence for sentence in sentences if sentence.endswith("?"))
        # A word that is too long for a part is a part of its own, which loses its beginning.
        n_cut = sum(map(len, text_ids(self.tokenizer, cut))) + sum(
            max(0, len(ids) - room) for ids in text_ids(self.tokenizer, read)
        )
        return TurnParts([text for text in (questions, *read) if text], n_cut)

    def responses(self, responses: Sequence[str]) -> list[list[int]]:
        """Encode responses."""
        return [text.ids for text in self.counted_responses(responses)]

    def counted_responses(self, responses: Sequence[str]) -> list[TextIds]:
        """Encode responses, and count their truncated last tokens."""
        return [TextIds(windows.parts[0], windows.n_cut) for windows in self.response_windows(responses, 1)]

    def response_windows(self, responses: Sequence[str], n_windows: int, *, keep_end: bool = False) -> list[ResponseWindows]:
        """Encode each response in at most `n_windows` parts, each as long as fits.

        With several parts, a response is split between sentences if possible. A response that is too long for all parts loses
        its end or, with `keep_end`, the text before its last part; `keep_end` needs at least two parts.
        """
        times = 2 if self.text_format == "doubled" else 1
        opening, closing = self._first * times, self._last * times
        room = self.max_response_tokens - len(opening) - len(closing)
        windows = []
        for response, ids in zip(responses, text_ids(self.tokenizer, list(responses)), strict=True):
            bodies = [ids]
            if len(ids) > room:
                bodies = [ids[:room], ids[room:]] if n_windows == 1 else self._packed_sentences(response, room)
            read, cut = bodies[:n_windows], bodies[n_windows:]
            if cut and keep_end:
                read[-1], cut[-1] = cut[-1], read[-1]
            windows.append(ResponseWindows([[*opening, *body, *closing] for body in read], sum(map(len, cut))))
        return windows

    def _packed_sentences(self, text: str, room: int) -> list[list[int]]:
        """Token ids of a text in parts of at most `room`, each of as many sentences as fit; longer sentences are split."""
        packed: list[list[int]] = []
        for ids in text_ids(self.tokenizer, _BETWEEN_SENTENCES.split(text)):
            for start in range(0, len(ids), room):
                piece = ids[start : start + room]
                if packed and len(packed[-1]) + len(piece) <= room:
                    packed[-1] += piece
                else:
                    packed.append(piece)
        return packed


class ResponseParts(NamedTuple):
    """The parts of n responses, m in all."""

    ids: list[list[int]]
    """Token ids of the distinct parts."""
    owners: list[int]
    """Index, among the n, of the response of each part."""
    places: list[int]
    """Index in `ids` of each part."""
    starts: np.ndarray
    """Index, among the m, of the first part of each response, of shape (n,)."""

    @classmethod
    def of(cls, windows: Sequence[ResponseWindows], rows: Sequence[int]) -> ResponseParts:
        """Return the parts of the responses `windows[row]`; a row may occur several times."""
        first = np.cumsum([0, *(len(parted.parts) for parted in windows)])
        places = [range(first[row], first[row + 1]) for row in rows]
        return cls(
            [part for parted in windows for part in parted.parts],
            [owner for owner, parted in enumerate(places) for _ in parted],
            [place for parted in places for place in parted],
            np.cumsum([0, *map(len, places)])[:-1],
        )

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the means of the parts' values (m, ...) over each response, (n, ...)."""
        sizes = np.diff([*self.starts, len(values)])
        means: np.ndarray = np.add.reduceat(values, self.starts) / sizes.reshape(-1, *[1] * (values.ndim - 1))
        return means

    def judged(self, values: np.ndarray) -> np.ndarray:
        """Return half the mean plus half the minimum of the parts' values (m,) of each response, (n,).

        One bad part thus lowers the score of a response, however good the others are.
        """
        judged: np.ndarray = (self.mean(values) + np.minimum.reduceat(values, self.starts)) / 2
        return judged


def numbered(texts: Sequence[Any]) -> dict[Any, int]:
    """Number the distinct texts, or other hashable values, in order of first occurrence."""
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


class EmbeddedTurns(NamedTuple):
    """Vectors of n turns at unit length, (n, width), minus the mean direction of all texts."""

    as_context: np.ndarray
    """Vectors of the turns as contexts."""
    as_response: np.ndarray
    """Vectors of the turns as responses."""
    n_tokens: FloatArray
    """Number of tokens of each turn as a response, special tokens included."""
    is_cut: np.ndarray
    """Whether a turn is longer than the model's window."""


class TurnEmbedder(Protocol):
    """A scorer that embeds turns."""

    def embedded_turns(self, texts: Sequence[str]) -> EmbeddedTurns:
        """Embed turns, each both as the only turn of a context and as a response."""

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the fields, among them `window`: how much of a turn is read."""
