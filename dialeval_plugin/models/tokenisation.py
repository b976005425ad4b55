"""Token ids of texts, from transformers' tokenizers, or from the `tokenizer.json` of an exported model without transformers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from dialeval_plugin.core.errors import ModelLoadError

SPECIAL_TOKENS = ("cls_token_id", "bos_token_id", "sep_token_id", "eos_token_id", "pad_token_id")
"""Ids that stand around texts, by transformers' names; None for one that a tokenizer lacks."""
_REMEMBERED_WORDS = 32_768
"""Some 10 MB of English ones."""


@dataclass(frozen=True, slots=True)
class JsonTokenizer:
    """A tokenizer of the library tokenizers: transformers, which would import torch, is not needed for it."""

    is_fast: ClassVar[bool] = True
    tokenizer: Any
    cls_token_id: int | None
    bos_token_id: int | None
    sep_token_id: int | None
    eos_token_id: int | None
    pad_token_id: int | None
    ids_of_word: Callable[[str], list[int]] | None
    """Of what stands between two spaces, where no token reaches over a space; None of a tokenizer of another kind."""

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
        """Return a copy of a transformers tokenizer; one of these as it is."""
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
        """Tokenise texts with the special tokens that the tokenizer's own template puts around them, `longest` tokens at most.

        The end of a longer one is cut, and the second of its pair says so.
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
    """Return what tokenises words and remembers the latest: ten times as fast as whole texts, since words come again.

    None where a token may reach over a space, or depend on what stands before it.
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
    """Refuse a tokenizer that cannot read special tokens in a text as letters: one that is not fast."""
    if not getattr(tokenizer, "is_fast", False):
        raise ModelLoadError(
            f"{where}: only fast tokenizers (tokenizer.json) are supported. Convert it with transformers' AutoTokenizer."
        )


def text_ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    """Tokenise texts without special tokens; one that stands in a text is text, so no turn can forge the end of another."""
    if not texts:
        return []
    if isinstance(tokenizer, JsonTokenizer):
        return tokenizer.text_ids(texts)
    ids: list[list[int]] = tokenizer(texts, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
    return ids
