"""The page of a score file: the distribution of scores, and the worst conversations as chats with the score of each turn.

The page holds its data once, as JSON, and its script draws conversations when they are scrolled into view.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from os.path import relpath
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output, parse_json, read_json, write_text
from dialeval_plugin.core.scores import IN_SCOPE, OUT_OF_SCOPE, SHA256, kind_of, meta_file
from dialeval_plugin.core.signature import file_hash
from dialeval_plugin.corpora.rows import is_number, words_of
from dialeval_plugin.corpora.score_files import UNKNOWN
from dialeval_plugin.labels.scores import ScoredRow, ScoredRows, read_scored_rows
from dialeval_plugin.statistics.bootstrap import MIN_CLUSTERS
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.means import mean_interval

from .html import render_page, script_data

MOST_CONVERSATIONS = 10_000
MOST_CHARACTERS = 30_000_000
"""Limit on all texts of a page: a browser opens some 50 MB in a few seconds."""

_ROW = (
    "id",
    "conversation",
    "message",
    "role",
    "source",
    "preceding",
    "text",
    "percentile",
    "unscored",
    "detail",
    "place",
    IN_SCOPE,
)
"""Fields of a row that are neither a scorer's columns nor kept from the source."""
_SHORT = 60
"""Maximum length in characters of the values of a filter field; fields with longer values are notes to read."""
_MOST_BARS = 24
_LINE = re.compile(r"(:\d+)+$")
_CUTS = (0.05, 0.15, 0.3, 0.5, 0.7, 0.9)


class Shown(NamedTuple):
    """Numbers of conversations on the page and in the score file, and whether the file has their texts."""

    n_shown: int
    n_conversations: int
    has_texts: bool


def write_report(
    scores: Path, output: Path, *, column: str | None = None, most: int = MOST_CONVERSATIONS, title: str = ""
) -> Shown:
    """Write the page of a score file to `output`, replacing an earlier one.

    Args:
        scores: output of `dialeval score`, or rows of another tool (`read_scored_rows`).
        output: path that ends in .html.
        column: column of scores to use, by default the main one.
        most: number of conversations on the page, the worst ones; fewer if their texts exceed `MOST_CHARACTERS`.
        title: heading, by default the name of the file.

    Raises:
        InputError: the file is malformed, holds no scores, has several columns and none is chosen, or the page cannot be
            written.
    """
    if output.suffix.lower() not in {".html", ".htm"}:
        raise InputError(f"{output}: a page is written as HTML. End the name in .html.")
    check_output(output, scores, "the page")
    scored = read_scored_rows(scores, column)
    path = meta_file(scores)
    meta = read_json(path) if path.is_file() else {}
    conversations = _worst_first(scored)
    chosen = list(_within_bounds(conversations, most))
    fields = _Fields.of(scored)
    values = [row.score for row in scored.rows]
    estimate = mean_interval(values, clusters=[row.conversation for row in scored.rows])
    percentiles = [_number(row.fields.get("percentile")) for row in scored.rows]
    has_texts = any(row.fields.get("text") or row.fields.get("preceding") for row in scored.rows)
    unscored = Counter(str(row.fields.get("unscored") or UNKNOWN) for row in scored.rows if row.score is None)
    sources = dict.fromkeys(_file_of(row.fields["source"]) for row in scored.rows if row.fields.get("source"))
    kept: list[dict[str, int]] = [{} for _ in fields.kept]
    sign = 1 if scored.orientation == "higher" else -1
    known = sorted(sign * value for value in values if value is not None)
    data = {
        "main": scored.column,
        "level": meta.get("level", "turn"),
        "sign": sign,
        "columns": fields.columns,
        "bars": {"score": _bars(values), "percentile": _bars(percentiles)},
        "cuts": [_short(float(cut)) for cut in np.quantile(known, _CUTS)] if known else [],
        "conversations": [[name, list(_rows(rows, fields, kept, output.parent))] for name, rows in chosen],
        # Filled while the rows above are made.
        "kept": [{"name": name, "values": list(words)} for name, words in zip(fields.kept, kept, strict=True)],
    }
    html = render_page(
        __package__,
        "report",
        {"three": number_text},
        title=title or f"Scores of {scores.name}",
        file=scores,
        scored=scored,
        estimate=estimate,
        least=MIN_CLUSTERS,
        level=data["level"],
        signature=[part.partition(":") for part in (scored.signature or "").split("|") if part],
        unscored=dict(sorted(unscored.items())),
        out_of_scope=Counter(kind_of(str(reason)) for row in scored.rows if (reason := row.fields.get(OUT_OF_SCOPE))),
        left_out=meta.get("left_out"),
        sources=list(sources),
        n_conversations=len(conversations),
        n_shown=len(chosen),
        has_texts=has_texts,
        is_changed=SHA256 in meta and meta[SHA256] != file_hash(scores),
        data=script_data(data),
    )
    write_text(output, html)
    return Shown(len(chosen), len(conversations), has_texts)


def _worst_first(scored: ScoredRows) -> list[tuple[str, list[ScoredRow]]]:
    """Return conversations with their rows, sorted by worst row, then by mean; those without a score come last."""
    conversations: dict[str, list[ScoredRow]] = {}
    for row in scored.rows:
        # Responses to one context, which is the key of their conversation, have entries of their own.
        name = row.id if row.before and row.conversation == "\n".join(row.before) else row.conversation
        conversations.setdefault(name, []).append(row)
    for rows in conversations.values():
        numbers = [_number(row.fields.get("message")) or 0 for row in rows]
        if all(later > earlier for later, earlier in itertools.pairwise(numbers)):
            rows.reverse()  # requests of a log that is listed newest first

    def badness(rows: Sequence[ScoredRow]) -> tuple[float, float]:
        own = [row.score if scored.orientation == "higher" else -row.score for row in rows if row.score is not None]
        return (min(own), sum(own) / len(own)) if own else (math.inf, math.inf)

    return sorted(conversations.items(), key=lambda one: badness(one[1]))


def _within_bounds(conversations: Iterable[tuple[str, list[ScoredRow]]], most: int) -> Iterator[tuple[str, list[ScoredRow]]]:
    n_characters = 0
    for number, (name, rows) in enumerate(conversations):
        n_characters += sum(len(str(value)) for row in rows for value in row.fields.values())
        if number and (number >= most or n_characters > MOST_CHARACTERS):
            return
        yield name, rows


class _Fields(NamedTuple):
    """Names of the fields in addition to those that every row may have."""

    columns: list[str]
    """The scorer's numbers."""
    kept: list[str]
    """Fields to filter conversations by: those that `--keep` took from the source, and short values of others."""
    notes: list[str]
    """Texts to read, such as explanations."""

    @classmethod
    def of(cls, scored: ScoredRows) -> _Fields:
        is_kept: dict[str, bool] = {}
        for row in scored.rows:
            before = True
            for name in row.fields:
                before &= name != scored.column
                # `dialeval score` writes kept fields before the score, and the scorer's columns after it.
                is_kept.setdefault(name, before)
        fields = cls([], [], [])
        for name in (name for name in is_kept if name not in {*_ROW, scored.column}):
            values = [value for row in scored.rows if (value := row.fields.get(name)) not in (None, "")]
            if not values:
                continue
            if is_kept[name]:
                fields.kept.append(name)
            elif all(map(is_number, values)):
                fields.columns.append(name)
            else:
                is_note = name in {"explanation", "reason", OUT_OF_SCOPE} or any(
                    len(word) > _SHORT for one in values for word in words_of(one)
                )
                (fields.notes if is_note else fields.kept).append(name)
        return fields


def _rows(rows: Iterable[ScoredRow], fields: _Fields, kept: Sequence[dict[str, int]], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield `_row` of the rows of a conversation; turns that were shown before, in a log that repeats the history, are not."""
    said: list[Any] = []
    for row in rows:
        cells = _row(row, fields, kept, folder)
        before = cells.get("before", [])
        if said and before[: len(said)] == said:
            cells["before"] = before = before[len(said) :]
        said += [*before, [cells.get("role"), cells.get("text")]]
        yield cells


def _row(row: ScoredRow, fields: _Fields, kept: Sequence[dict[str, int]], folder: Path) -> dict[str, Any]:
    """Return the fields of a row that the page's script reads; missing ones are left out."""
    own, before = row.fields, row.fields.get("preceding")
    if isinstance(before, str):  # a cell of a table
        before = parse_json(before, "preceding") if before.strip() else None
    why = [str(own.get("unscored") or UNKNOWN), str(own.get("detail") or "")] if row.score is None else None
    source = own.get("source")
    cells = {
        "id": row.id,
        "score": _short(row.score),
        "percentile": _short(_number(own.get("percentile"))),
        "why": why,
        "before": [[_text(turn.get("role")), str(turn.get("text", ""))] for turn in before or ()],
        "text": None if own.get("text") is None else str(own["text"]),
        "role": _text(own.get("role")),
        "message": _number(own.get("message")),
        "source": _text(source),
        "link": _link(str(source), folder) if source else None,
        "columns": [_short(_number(own.get(name))) for name in fields.columns],
        "notes": [[name, ", ".join(words)] for name in fields.notes if (words := words_of(own.get(name)))],
        "kept": [
            [known.setdefault(word, len(known)) for word in words_of(own.get(name))]
            for name, known in zip(fields.kept, kept, strict=True)
        ],
    }
    return {name: value for name, value in cells.items() if value is not None and value != []}


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None


def _number(value: Any) -> float | None:
    return float(value) if value is not None and is_number(value) else None


def _short(value: float | None) -> float | None:
    """Round a number to six digits, which are more than the page shows."""
    return None if value is None else float(f"{value:.6g}")


def _file_of(source: Any) -> str:
    return _LINE.sub("", str(source))


def _link(source: str, folder: Path) -> str | None:
    """Return a row's source as a link relative to the page's folder; None if it is neither an address nor a local file."""
    return source if re.match(r"https?://", source, re.IGNORECASE) else _address(_file_of(source), folder)


@cache
def _address(file: str, folder: Path) -> str | None:
    # The system raises an error for a name of thousands of characters.
    with contextlib.suppress(OSError):
        if "\0" not in file and not Path(file).is_absolute() and Path(file).is_file():
            return quote(f"./{relpath(file, folder)}")
    return None


def _bars(values: Iterable[float | None]) -> list[list[float | None]]:
    """Return for each bar both ends, the number of values in it, and the least and greatest value if there are any.

    A few distinct round values, as judges give them, have a bar each.
    """
    known = np.sort([value for value in values if value is not None])
    starts = np.unique(known)
    step = 0.0
    if len(starts) > _MOST_BARS // 2 or (starts != starts.round(2)).any():
        rough = max(float(np.ptp(known)), 1e-9) / _MOST_BARS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        first, last = (math.floor(end / step + 1e-9) for end in (known[0], known[-1]))
        # The best possible score belongs to the last bar and does not begin a new one.
        last -= last > first and math.isclose(last * step, known[-1])
        starts = (np.arange(first, last + 1) * step).round(12)
    places = [0, *np.searchsorted(known, starts[1:]).tolist(), len(known)] if len(known) else []
    own = (known[start:end] for start, end in pairwise(places))
    return [
        [_short(low), _short(low + step), len(one), *(_short(float(end)) for end in (one[[0, -1]] if len(one) else ()))]
        for low, one in zip(starts.tolist(), own, strict=True)
    ]
