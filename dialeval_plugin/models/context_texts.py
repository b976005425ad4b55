"""From turns to token ids: separators, truncation, the published notebooks' doubled special tokens, and parts of responses.

Long responses are judged in parts: which parts there are to judge, and what is said of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, is_blank, visible_texts
from dialeval_plugin.core.scores import BLANK_RESPONSE, NO_TURN, TOO_FEW_TURNS, Unscored
from dialeval_plugin.core.signature import SignatureValue

from .tokenisation import check_fast, text_ids

TextFormat: TypeAlias = Literal["plain", "doubled"]

MAX_RESPONSE_WINDOWS = 8
"""Parts of a long response that are read: of 62 tokens each nearly 500, some 350 words."""
MAX_TURN_PARTS = 8
"""Parts of a last turn that does not fit, of which its questions are one more: some 500 words."""
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?…])\s+|\n+")


class TextIds(NamedTuple):
    """Token ids of a context or a response, and how many of its tokens were cut off."""

    ids: list[int]
    n_cut: int


class TurnParts(NamedTuple):
    """Texts of the parts of a turn, itself where it fits, and how many of its tokens no part has."""

    texts: list[str]
    n_cut: int


class ResponseWindows(NamedTuple):
    """Token ids of the parts of a response, one part for a short one, and how many of its tokens no part has."""

    parts: list[list[int]]
    n_cut: int


def longest_response(n_windows: int, n_tokens: int) -> str:
    """Say how much of a response is read."""
    return f"{n_windows} parts of {n_tokens} tokens" if n_windows > 1 else f"{n_tokens} tokens"


def turns_to_read(item: Item) -> list[str]:
    """Return the texts of the turns that have a visible character, the response last, without speakers' names."""
    return visible_texts(item.turns if isinstance(item, Dialogue) else (*item.context, item.response))


def unread(item: Item) -> Unscored | None:
    """Why a model that reads a response, or turns, after the turns before has nothing to read; None where it has."""
    if isinstance(item, Example) and is_blank(item.response.text):
        return BLANK_RESPONSE
    if len(turns_to_read(item)) > 1:
        return None
    return TOO_FEW_TURNS if isinstance(item, Dialogue) else NO_TURN


def _first_known(*tokens: int | None) -> list[int]:
    return [token for token in tokens if token is not None][:1]


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Turns texts into token ids with a transformers tokenizer.

    A context becomes `[CLS] turn [SEP] turn [SEP]`, its oldest tokens cut where it is too long, and a response
    `[CLS] response [SEP]`, its end cut. Special tokens that stand in a text (`[SEP]`, `<s>`) are text: whoever writes a turn
    cannot forge the border of another.

    The text format "doubled" repeats the outer special tokens, as the published notebooks do by writing them out. Both limits
    include special tokens.
    """

    tokenizer: Any
    text_format: TextFormat
    max_context_tokens: int
    max_response_tokens: int

    def __post_init__(self) -> None:
        check_fast(f"tokenizer {type(self.tokenizer).__name__}", self.tokenizer)

    @property
    def _first(self) -> list[int]:
        return _first_known(self.tokenizer.cls_token_id, self.tokenizer.bos_token_id)

    @property
    def _last(self) -> list[int]:
        return _first_known(self.tokenizer.sep_token_id, self.tokenizer.eos_token_id)

    @property
    def special(self) -> frozenset[int]:
        """Ids of the tokens that stand around texts and never in them."""
        return frozenset((*self._first, *self._last))

    def contexts(self, contexts: Sequence[Sequence[str]]) -> list[TextIds]:
        """Encode contexts, each a sequence of turns from the oldest to the newest; a context may be empty."""
        # Once each: the turns of a conversation stand in the contexts of all its later ones.
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
        """Part a turn that does not fit into a context, between sentences where it can be; one that does is its only part.

        First come its questions, since they are what is answered. Of more than `MAX_TURN_PARTS` others the middle is left out.
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
        parts, left = [""], room
        for piece, ids in zip(pieces, text_ids(self.tokenizer, pieces), strict=True):
            if len(ids) > left:
                parts.append("")
                left = room
            parts[-1] += f" {piece}"
            left -= len(ids)
        half = MAX_TURN_PARTS // 2
        read, cut = (parts, []) if len(parts) <= MAX_TURN_PARTS else ([*parts[:half], *parts[-half:]], parts[half:-half])
        questions = " ".join(sentence for sentence in sentences if sentence.endswith("?"))
        n_cut = sum(map(len, text_ids(self.tokenizer, cut)))
        return TurnParts([text for text in (questions, *read) if text], n_cut)

    def responses(self, responses: Sequence[str]) -> list[list[int]]:
        """Encode responses, for whoever need not know what was cut."""
        return [text.ids for text in self.counted_responses(responses)]

    def counted_responses(self, responses: Sequence[str]) -> list[TextIds]:
        """Encode responses, and count the tokens at their ends that were cut."""
        return [TextIds(windows.parts[0], windows.n_cut) for windows in self.response_windows(responses, 1)]

    def response_windows(self, responses: Sequence[str], n_windows: int, *, keep_end: bool = False) -> list[ResponseWindows]:
        """Encode each response in `n_windows` parts at most, each as long as fits.

        With more than one a response that is too long for one part is parted between sentences where it can be. What is too
        long for all of them loses its end or, with `keep_end`, what stands before its last part; there have to be two then.
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
    """For each of the m parts the response that it is of, by its number among the n."""
    places: list[int]
    """And its place in `ids`."""
    starts: np.ndarray
    """Where among the m the parts of each response begin, of shape (n,)."""

    @classmethod
    def of(cls, windows: Sequence[ResponseWindows], rows: Sequence[int]) -> ResponseParts:
        """Parts of the responses `windows[row]`, of which one may stand in several rows."""
        first = np.cumsum([0, *(len(parted.parts) for parted in windows)])
        places = [range(first[row], first[row + 1]) for row in rows]
        return cls(
            [part for parted in windows for part in parted.parts],
            [owner for owner, parted in enumerate(places) for _ in parted],
            [place for parted in places for place in parted],
            np.cumsum([0, *map(len, places)])[:-1],
        )

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Means of the parts' values (m, ...) over each response, (n, ...)."""
        sizes = np.diff([*self.starts, len(values)])
        means: np.ndarray = np.add.reduceat(values, self.starts) / sizes.reshape(-1, *[1] * (values.ndim - 1))
        return means

    def judged(self, values: np.ndarray) -> np.ndarray:
        """Half the mean and half the lowest of the parts' values (m,) of each response, (n,).

        One part spoils a response, whatever the others say.
        """
        judged: np.ndarray = (self.mean(values) + np.minimum.reduceat(values, self.starts)) / 2
        return judged


def numbered(texts: Sequence[Any]) -> dict[Any, int]:
    """Number the distinct ones of texts, or of what can be a key, in the order in which they first stand."""
    return {text: number for number, text in enumerate(dict.fromkeys(texts))}


class EmbeddedTurns(NamedTuple):
    """Vectors of n turns of unit length, (n, width), less what all texts have in common."""

    as_context: np.ndarray
    """Of each turn as what is answered."""
    as_response: np.ndarray
    """Of each turn as the answer."""
    n_tokens: FloatArray
    """Of each turn as a response, special tokens included."""
    is_cut: np.ndarray
    """Whether a turn did not fit into the model's window."""


class TurnEmbedder(Protocol):
    """A scorer that embeds turns."""

    def embedded_turns(self, texts: Sequence[str]) -> EmbeddedTurns:
        """Embed turns, each as the only one of a context and as a response."""

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Among them `window`: how much of a turn is read."""
