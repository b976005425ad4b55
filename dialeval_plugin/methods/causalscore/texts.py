"""From turns and responses to token ids: delimiters, truncation that keeps the response, and the published literal string."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.options import check_value
from dialeval_plugin.models.language_models import check_fast, text_ids

from .aggregation import IntArray

Layout: TypeAlias = Literal["delimited", "literal"]
Truncate: TypeAlias = Literal["utterances", "right"]

CausalWindow: TypeAlias = Annotated[int, Ge(16)]
"""Longest sequence, special tokens included."""
RESPONSE_SHARE = 0.75
"""Part of a window that a long response may take from the utterances before its own end is cut."""


class Rows(NamedTuple):
    """Texts of a classifier, given as indices into a list of distinct texts, with the token ids of the parts."""

    indices: IntArray
    """Shape (rows, 2): utterance and response; or (rows, 3): candidate cause, condition and response."""
    columns: list[dict[int, list[int]]]
    """For each column, index of a text to its token ids."""
    lengths: IntArray
    """Tokens of each row before truncation, special tokens included."""


class RowEncoder:
    """Joins utterances and response into one sequence of `max_tokens` at most, special tokens included.

    Layout "delimited" is the paper's, `[CLS] utterance [SEP] response [SEP]`, with the candidate cause before the condition
    where there are two utterances. Layout "literal" is what the published code makes of the string `u </s> <s> r`: the
    blanks around the special tokens survive, `<s> u_ </s> _ <s> _r </s>`. Special tokens that stand in a text are text:
    whoever writes a turn cannot forge the border of another.

    Truncation "utterances" keeps the response, of which only what exceeds three quarters of the window is cut at its end; the
    utterances share the rest, the longer one cut first, at its beginning. Truncation "right" is the published code's: the
    end of the sequence is cut, so that the response goes first.
    """

    def __init__(self, tokenizer: Any, layout: Layout, truncate: Truncate, max_tokens: int) -> None:
        check_value("causalscore", "layout", layout, Layout)
        check_value("causalscore", "truncate", truncate, Truncate)
        check_value("causalscore", "max_tokens", max_tokens, CausalWindow)
        check_fast(f"tokenizer {type(tokenizer).__name__}", tokenizer)
        first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        last = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        if first is None or last is None:
            raise ModelLoadError(
                f"tokenizer {type(tokenizer).__name__}: has no first or no separating token. Choose an encoder as the backbone."
            )
        self.tokenizer = tokenizer
        self.layout = layout
        self.truncate = truncate
        self.max_tokens = max_tokens
        self._first, self._last = [first], [last]
        self._between = [last] if layout == "delimited" else [last, *text_ids(tokenizer, [" "])[0], first]

    def rows(self, texts: Sequence[str], indices: IntArray) -> Rows:
        """Tokenise each part of `indices`, of shape (rows, 2) or (rows, 3), into `texts` once."""
        n_columns = indices.shape[1]
        columns = []
        for place in range(n_columns):
            used = np.unique(indices[:, place])
            before, after = self._blanks(place, n_columns)
            ids = text_ids(self.tokenizer, [before + texts[index] + after for index in used])
            columns.append(dict(zip(used.tolist(), ids, strict=True)))
        lengths = np.full(len(indices), 2 + (n_columns - 1) * len(self._between), dtype=np.int64)
        for place, column in enumerate(columns):
            table = np.zeros(len(texts), dtype=np.int64)
            table[list(column)] = [len(tokens) for tokens in column.values()]
            lengths += table[indices[:, place]]
        return Rows(indices, columns, lengths)

    def encode(self, rows: Rows, number: int) -> list[int]:
        """Return the token ids of one row."""
        parts = [column[index] for column, index in zip(rows.columns, rows.indices[number].tolist(), strict=True)]
        if rows.lengths[number] > self.max_tokens and self.truncate == "utterances":
            parts = self._fit(parts)
        ids = list(self._first)
        for part in parts[:-1]:
            ids += part
            ids += self._between
        ids += parts[-1]
        return [*ids[: self.max_tokens - 1], *self._last]

    def _fit(self, parts: Sequence[list[int]]) -> list[list[int]]:
        *utterances, response = parts
        room = self.max_tokens - 2 - len(utterances) * len(self._between)
        wanted = sum(map(len, utterances))
        kept = min(len(response), max(room - wanted, int(RESPONSE_SHARE * room)))
        left = room - kept
        # From the shortest on, each may take an equal part of what is left.
        sizes = [0] * len(utterances)
        order = sorted(range(len(utterances)), key=lambda place: len(utterances[place]))
        for number, place in enumerate(order):
            sizes[place] = min(len(utterances[place]), left // (len(order) - number))
            left -= sizes[place]
        cut = [ids[len(ids) - size :] for ids, size in zip(utterances, sizes, strict=True)]
        return [*cut, response[:kept]]

    def _blanks(self, place: int, n_columns: int) -> tuple[str, str]:
        if self.layout == "delimited":
            return "", ""
        return (" " if place else ""), (" " if place < n_columns - 1 else "")
