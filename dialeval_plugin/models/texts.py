"""Token ids of texts and turns, their batches, and the words that a response shares with its context.

The ids are from transformers' tokenizers, or without transformers from the `tokenizer.json` of an exported model.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, is_blank, visible_texts
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.scores import BLANK_RESPONSE, NO_TURN, TOO_FEW_TURNS, Unscored
from dialeval_plugin.core.signature import SignatureValue

SPECIAL_TOKENS = ("cls_token_id", "bos_token_id", "sep_token_id", "eos_token_id", "pad_token_id")
"""Special tokens by transformers' names; the id is None if a tokenizer does not have one."""
_REMEMBERED_WORDS = 32_768
"""Size of the cache of words, some 10 MB of English ones."""


@dataclass(frozen=True, slots=True)
class JsonTokenizer:
    """A tokenizer of the library tokenizers, without transformers, which would import torch."""

    is_fast: ClassVar[bool] = True
    tokenizer: Any
    cls_token_id: int | None
    bos_token_id: int | None
    sep_token_id: int | None
    eos_token_id: int | None
    pad_token_id: int | None
    ids_of_word: Callable[[str], list[int]] | None
    """Tokenises the text between two spaces; None if the tokenizer has tokens that cross spaces."""

    @classmethod
    def read(cls, path: Path, special_tokens: Mapping[str, int | None]) -> JsonTokenizer:
        """Open a `tokenizer.json`; `special_tokens` has an id for each of `SPECIAL_TOKENS`."""
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing more precise
            raise ModelLoadError(f"{path}: is no tokenizer ({error}). Export the model again.") from error
        return cls._reading_all(tokenizer, special_tokens)

    @classmethod
    def of(cls, tokenizer: Any) -> JsonTokenizer:
        """Return a copy of a transformers tokenizer; a `JsonTokenizer` is returned unchanged."""
        from tokenizers import Tokenizer

        if isinstance(tokenizer, JsonTokenizer):
            return tokenizer
        check_fast(f"tokenizer {type(tokenizer).__name__}", tokenizer)
        own = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        return cls._reading_all(own, {name: getattr(tokenizer, name) for name in SPECIAL_TOKENS})

    @classmethod
    def _reading_all(cls, tokenizer: Any, special_tokens: Mapping[str, int | None]) -> JsonTokenizer:
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(tokenizer, **special_tokens, ids_of_word=_remembered_words(tokenizer))

    def text_ids(self, texts: list[str]) -> list[list[int]]:
        """See the function `text_ids`."""
        if self.ids_of_word is not None:
            return [list(chain.from_iterable(map(self.ids_of_word, text.split(" ")))) for text in texts]
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def whole_ids(self, texts: list[str], longest: int) -> list[tuple[list[int], bool]]:
        """Tokenise texts with the special tokens of the tokenizer's template, at most `longest` tokens each.

        The second value of a pair says whether the end of the text was truncated.
        """
        texts_ids = [(encoding.ids, False) for encoding in self.tokenizer.encode_batch_fast(texts)]
        long = [place for place, (ids, _) in enumerate(texts_ids) if len(ids) > longest]
        if long:
            self.tokenizer.enable_truncation(longest)
            for place, encoding in zip(long, self.tokenizer.encode_batch_fast([texts[place] for place in long]), strict=True):
                texts_ids[place] = encoding.ids, True
            self.tokenizer.no_truncation()
        return texts_ids


def _remembered_words(tokenizer: Any) -> Callable[[str], list[int]] | None:
    """Cached tokenisation of words, ten times as fast as that of whole texts, since words recur.

    None if a token may cross a space, or depend on the text before it.
    """
    kinds = [type(part).__name__ for part in (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.model)]
    added = tokenizer.get_added_tokens_decoder().values()
    if kinds != ["BertNormalizer", "BertPreTokenizer", "WordPiece"] or not all(token.special for token in added):
        return None

    @functools.lru_cache(_REMEMBERED_WORDS)
    def ids_of_word(word: str) -> list[int]:
        ids: list[int] = tokenizer.encode(word, add_special_tokens=False).ids
        return ids

    return ids_of_word


def check_fast(where: Path | str, tokenizer: Any) -> None:
    """Refuse a tokenizer that is not fast: it cannot read special tokens in a text as text."""
    if not getattr(tokenizer, "is_fast", False):
        raise ModelLoadError(
            f"{where}: only fast tokenizers (tokenizer.json) are supported. Convert it with transformers' AutoTokenizer."
        )


def text_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Tokenise texts without special tokens; those in a text are read as text, so that no turn imitates another's end."""
    if not texts:
        return []
    if isinstance(tokenizer, JsonTokenizer):
        return tokenizer.text_ids(texts)
    ids: list[list[int]] = tokenizer(texts, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
    return ids


CPU_TOKENS = 512
"""Number of tokens of a forward pass on a processor, padding included: enough to use it fully, few enough for its cache and
for memory. With a vocabulary of 50,000 their logits take 100 MB."""


def length_batches(lengths: Sequence[int], tokens: int | None = None, *, rows: int | None = None) -> Iterator[list[int]]:
    """Yield indices of rows in batches of about one length, the longest first; rows of equal length keep their order.

    A batch has at most `rows` rows, and at most `tokens` tokens with padding unless it is a single row. The largest batch comes
    first, so that a lack of memory shows at once.

    Example:
        >>> list(length_batches([3, 1, 2, 1], 4))
        [[0], [2, 1], [3]]
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        fitting = len(order) if tokens is None else max(1, tokens // longest)
        size = min(fitting, rows or fitting)
        yield order[start : start + size]
        start += size


def padded(rows: Sequence[Sequence[int]], pad: int | None) -> tuple[IntArray, IntArray]:
    """Return token ids padded on the right, and a mask that is 0 on padding; both of shape (rows, longest row)."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.full(mask.shape, pad or 0, dtype=np.int64)
    ids[mask.astype(bool)] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids, mask


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


FEATURES = (
    "response_tokens",
    "response_types",
    "mean_rarity",
    "largest_rarity",
    "rarity",
    "rare_tokens",
    "shared_rarity",
    "largest_shared_rarity",
    "share_of_rarity",
    "share_of_tokens",
    "shared_type_rarity",
    "rare_shared_tokens",
    "last_turn_rarity",
    "largest_last_turn_rarity",
    "last_turn_share_of_rarity",
    "last_turn_share_of_tokens",
    "context_tokens",
    "context_turns",
    "last_turn_tokens",
    "covered_context_rarity",
)
"""Columns of `lexical_features`. Rarity is the inverse document frequency of a token, summed unless stated otherwise.

Vectors of two separately encoded texts reveal little about shared words, and adversarial responses are written to repeat rare
words of the context. Counting is exact where vectors are vague, and costs little compared with the encoder.
"""
RARE = 4.0
"""Lowest rarity of a rare token: fewer than one in 55 responses have it."""


def token_rarity(responses: Iterable[Collection[int]], vocabulary_size: int) -> np.ndarray:
    """Return log((1 + n) / (1 + number of responses that have the token)) for every token, of shape (vocabulary_size,)."""
    frequency, n = np.zeros(vocabulary_size), 0
    for response in responses:
        frequency[list(set(response))] += 1
        n += 1
    return np.asarray(np.log((1 + n) / (1 + frequency)))


class _Tokens:
    """Tokens of many texts in one array, each with the index of its text."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        self.lengths = np.array([len(text) for text in texts], dtype=np.int64)
        self.tokens = np.fromiter(chain.from_iterable(texts), dtype=np.int64, count=self.lengths.sum())
        self.owners = np.repeat(np.arange(len(texts)), self.lengths)

    def distinct(self, size: int) -> np.ndarray:
        """Codes text * size + token of the distinct tokens of each text; ascending."""
        return np.unique(self.owners * size + self.tokens)


def lexical_features(
    contexts: Sequence[Sequence[int]],
    owners: Sequence[int] | np.ndarray,
    responses: Sequence[Sequence[int]],
    rarity: np.ndarray,
    special: Collection[int],
) -> np.ndarray:
    """Return the features of n responses in their contexts, all given as token ids, of shape (n, len(FEATURES)).

    Each turn of a context ends with one of the tokens `special`, which never occur in a text; `owners` has the index of each
    response's context.
    """
    n, size, of = len(responses), len(rarity), np.asarray(owners, dtype=np.int64)
    turns = [_split(context, special) for context in contexts]
    context = _Tokens([[token for turn in turn_list for token in turn] for turn_list in turns])
    last = _Tokens([turn_list[-1] for turn_list in turns])
    response = _Tokens([[token for token in ids if token not in special] for ids in responses])
    n_turns = np.array([len(turn_list) if any(turn_list) else 0 for turn_list in turns])
    context_types, last_types = context.distinct(size), last.distinct(size)
    context_rarity = np.bincount(context_types // size, weights=rarity[context_types % size], minlength=len(contexts))

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(response.owners, weights=values, minlength=n)

    def largest(values: np.ndarray) -> np.ndarray:
        highest = np.zeros(n)
        np.maximum.at(highest, response.owners, values)
        return highest

    weight, in_context = rarity[response.tokens], of[response.owners] * size + response.tokens
    shared, in_last = np.isin(in_context, context_types), np.isin(in_context, last_types)
    tokens, all_rarity = np.maximum(response.lengths, 1), total(weight)
    types = response.distinct(size)
    shared_types = types[np.isin(of[types // size] * size + types % size, context_types)]
    shared_type_rarity = np.bincount(shared_types // size, weights=rarity[shared_types % size], minlength=n)
    return np.stack(
        [
            response.lengths,
            np.bincount(types // size, minlength=n),
            all_rarity / tokens,
            largest(weight),
            all_rarity,
            total(weight > RARE),
            total(weight * shared),
            largest(weight * shared),
            total(weight * shared) / (all_rarity + 1),
            total(shared) / tokens,
            shared_type_rarity,
            total(shared & (weight > RARE)),
            total(weight * in_last),
            largest(weight * in_last),
            total(weight * in_last) / (all_rarity + 1),
            total(in_last) / tokens,
            context.lengths[of],
            n_turns[of],
            last.lengths[of],
            shared_type_rarity / (context_rarity[of] + 1),
        ],
        axis=1,
    )


def _split(context: Sequence[int], special: Collection[int]) -> list[list[int]]:
    """Turns of a context, at least one, which may be empty."""
    turns: list[list[int]] = [[]]
    for token in context:
        if token not in special:
            turns[-1].append(token)
        elif turns[-1]:
            turns.append([])
    return turns[:-1] if len(turns) > 1 and not turns[-1] else turns
