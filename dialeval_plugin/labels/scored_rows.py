"""Reader of one column of scores, numbers or pass and fail, with all other fields of their rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.core.scores import Orientation
from dialeval_plugin.corpora.columns import Columns, check_columns, conversation_column, names_of
from dialeval_plugin.corpora.rows import file_rows, label_field
from dialeval_plugin.corpora.score_files import NO_SCORES, conversation_of, read_meta, scored_ids, texts_before

from .reading import label_columns
from .scales import Cells

_SPEECH = frozenset(
    {"messages", "conversations", "turns", "dialogue", "dialog", "context", "response", "content", "text", "value", "prompt"}
    | {"chosen", "rejected", "question", "answer", "conversation_a", "input", "output"}
)
"""Fields of a file to be scored."""


class ScoredRow(NamedTuple):
    """A row of a file of scores.

    Attributes:
        conversation: key of the conversation, see `conversation_of`.
        score: the main score, None if the row is unscored.
        before: turns since the last row of the conversation, or all turns before a single response; None if the file does not
            have them (`dialeval score --with-text`).
        fields: all fields of the row, as in the file.
    """

    id: str
    conversation: str
    score: float | None
    before: tuple[str, ...] | None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The rows of a file of scores with one column of them; `signature` is None if `dialeval score` did not write the file."""

    name: str
    column: str
    rows: Sequence[ScoredRow]
    orientation: Orientation = "higher"
    signature: str | None = None


def read_scored_rows(path: Path, column: str | None = None) -> ScoredRows:
    """Read the rows of a file of scores (.jsonl, .json, .csv, .tsv, .parquet), with the named column or the main one.

    Raises:
        InputError: the file is malformed, has no such column, or has several without a choice of one.
    """
    return scored_rows_of(file_rows(path), str(path), column, read_meta(path))


def find_scored_rows(path: Path, column: str | None = None) -> ScoredRows | None:
    """Read as `read_scored_rows`; return None for a file to be scored: it has no ids, or has texts with them."""
    if read_meta(path):
        return read_scored_rows(path, column)
    try:
        rows = file_rows(path)
    except InputError:
        return None  # the reader of logs reports the error
    head = rows[0].value
    is_said = not head.keys().isdisjoint(_SPEECH) and "preceding" not in head
    return None if is_said or "id" not in head else scored_rows_of(rows, str(path), column)


def scored_rows_of(
    rows: Sequence[Line], source: str, column: str | None = None, meta: Mapping[str, Any] = MappingProxyType({})
) -> ScoredRows:
    """Return rows of scores with one column of them; for `meta` see `read_meta`, and raises as `read_scored_rows`."""
    ids, there = scored_ids(rows), names_of(rows)
    if column is None and meta.get("mean") is None and len(meta.get("judges", ())) > 1:
        judges = list(meta["judges"])
        raise InputError(
            f"{source}: scores of {' and '.join(judges)} have no common scale. Choose one with --column {judges[0]}."
        )
    main = column or meta.get("main") or ("score" if "score" in there else None) or _only_column(rows, source)
    check_columns(f"{source}:", [main], there)
    cells = _cells(rows, main)
    if (odd := cells.odd_word()) is not None:
        advice = "Leave the cell empty where there is no score."
        raise InputError(f"{odd}: expected numbers alone, or words of one pair alone, such as pass and fail. {advice}")
    values, _ = cells.on_scale(source)
    is_of_turns, named = meta.get("level") != "dialogue", conversation_column(rows, source)
    scored = []
    for row, id, value in zip(rows, ids, values.tolist(), strict=True):
        before = texts_before(row)
        conversation = (named and label_field(row, named)) or conversation_of(id, before, is_of_turns=is_of_turns)
        scored.append(ScoredRow(id, conversation, None if math.isnan(value) else value, before, row.value))
    return ScoredRows(source, main, scored, cast("Orientation", meta.get("orientation", "higher")), meta.get("signature"))


def _cells(rows: Sequence[Line], name: str) -> Cells:
    cells = Cells(name)
    for row in rows:
        cells.add(row.value.get(name), row.where)
    return cells


def _only_column(rows: Sequence[Line], source: str) -> str:
    """Return the only column of numbers or, without any, of pass and fail."""
    numbers = [name for name in Columns.of(rows, source).numbers if name not in NO_SCORES]
    words = [] if numbers else label_columns(rows, source).numbers
    there = numbers or [name for name in words if _cells(rows, name).odd_word() is None]
    if len(there) != 1:
        problem = "no scores. Give what `dialeval score` wrote, or rows with an id and a number, or pass and fail"
        if there:
            problem = f"several columns of {'numbers' if numbers else 'verdicts'}: {', '.join(there)}. Name one with --column"
        raise InputError(f"{source}: has {problem}.")
    return there[0]
