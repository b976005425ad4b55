"""Token ids of texts, and their batches: rows of similar length, padded.

The ids are from transformers' tokenizers, or without transformers from the `tokenizer.json` of an exported model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dialeval_plugin.core.arrays import IntArray
from dialeval_plugin.core.errors import ModelLoadError

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
