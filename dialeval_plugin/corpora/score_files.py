"""Reads the scores of evaluators: what `dialeval score` writes, any JSON or CSV with ids, and published layouts.

- JSON lines or an array of objects, or CSV, with `id` and one column of numbers an evaluator. Where `dialeval score` has left
  `FILE.meta.json` beside the file, only its main column is read unless others are asked for.
- An object of id to number.
- The layouts of `published_scores`, which bring ratings of their own or are in the order of the file that was rated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json_prefix, read_json, read_json_lines, read_text
from dialeval_plugin.core.scores import SCHEMA_VERSION, Orientation

from .published_scores import read_published
from .rated_items import LABELS, RatedItem, ScoreColumn, ScoreFile, check_ids, labels_of
from .rows import distinct_ids, finite, label_field, number_or_none, read_array, read_csv

UNKNOWN = "unknown"
"""Reason of an unscored row where the file gives none."""

_NULL = "Give null where a row is unscored."
_NO_SCORES = frozenset({*LABELS, "unscored", "detail", "rating", "ratings"})


def read_score_file(path: Path, columns: Sequence[str] = (), rating_column: str | None = None) -> ScoreFile:
    """Read the named columns of a file of scores: by default the main one of `dialeval score`, else all that hold numbers.

    `rating_column` names the column that holds the human rating, where the file has one.
    """
    if path.suffix == ".csv":
        return _of_rows(path, read_csv(path), columns, rating_column)
    text = read_text(path).lstrip()
    if text.startswith("["):
        return read_published(path) or _of_rows(path, read_array(path), columns, rating_column)
    if _is_one_object(text):
        value = read_json(path)
        return read_published(path) or ScoreFile([_of_object(path, value)])
    return _of_rows(path, read_json_lines(path), columns, rating_column)


def _is_one_object(text: str) -> bool:
    """Whether a JSON file is one object that is not a row of its own."""
    try:
        value, end = parse_json_prefix(text, 0, "")
    except InputError:
        # The one object of a damaged file ends nowhere; a damaged line is named by the reader of lines.
        return "\n" in text.strip() and text.strip().split("\n")[0].rstrip() in {"{", "{}"}
    return isinstance(value, dict) and "id" not in value and not text[end:].strip()


def _of_object(path: Path, value: Mapping[str, Any]) -> ScoreColumn:
    scores: dict[str, float | None] = {}
    for id, score in value.items():
        scores[id] = None if score is None else finite(score, f"{path}: {id!r}", _NULL)
    if not scores:
        raise InputError(f"{path}: has no scores. Give one a response.")
    return ScoreColumn(path.stem, scores, {id: UNKNOWN for id, score in scores.items() if score is None}, str(path))


def _of_rows(path: Path, rows: Sequence[Line], columns: Sequence[str], rating_column: str | None) -> ScoreFile:
    meta = _meta(path)
    ids = _ids(rows)
    names = list(columns) or ([meta["main"]] if meta else _number_columns(rows, rating_column))
    if not names:
        raise InputError(
            f"{path}: no column but {', '.join(rows[0].value)} is there, and none of them holds numbers. Add scores."
        )
    for name in [*names, *([rating_column] if rating_column else [])]:
        if name not in rows[0].value:
            raise InputError(f"{rows[0].where}: has no column {name!r}. It has: {', '.join(rows[0].value)}.")
    read = [_column(path, rows, ids, name, meta, is_alone=len(names) == 1) for name in names]
    return ScoreFile(read, _rated(path, rows, ids, rating_column) if rating_column else None)


def _column(
    path: Path, rows: Sequence[Line], ids: Sequence[str], name: str, meta: Mapping[str, Any], *, is_alone: bool
) -> ScoreColumn:
    scores: dict[str, float | None] = {}
    unscored: dict[str, str] = {}
    for row, id in zip(rows, ids, strict=True):
        scores[id] = _cell(row, name)
        if scores[id] is None:
            unscored[id] = str(row.value.get("unscored") or UNKNOWN)
    return ScoreColumn(
        evaluator=path.stem if is_alone else f"{path.stem}:{name}",
        scores=scores,
        unscored=unscored,
        source=str(path),
        orientation=cast("Orientation", meta.get("orientation", "higher")),
        signature=meta.get("signature"),
    )


def _rated(path: Path, rows: Sequence[Line], ids: Sequence[str], name: str) -> list[RatedItem]:
    items = []
    for row, id in zip(rows, ids, strict=True):
        rating = _cell(row, name)
        items.append(RatedItem(id, {name: () if rating is None else (rating,)}, "turn", *labels_of(row)))
    check_ids(items, str(path))
    return items


def _ids(rows: Sequence[Line]) -> list[str]:
    ids = [label_field(row, "id") or "" for row in rows]
    for row, id in zip(rows, ids, strict=True):
        if not id:
            raise InputError(f"{row.where}: has no 'id', a text or a whole number. Give the id of the rated response.")
    distinct_ids(rows, ids, "Give every response one score.")
    return ids


def _number_columns(rows: Sequence[Line], rating_column: str | None) -> list[str]:
    names = [name for name in rows[0].value if name not in _NO_SCORES and name != rating_column]
    return [name for name in names if _holds_numbers(rows, name)]


def _holds_numbers(rows: Sequence[Line], name: str) -> bool:
    """Whether the first cell that is not empty is a number: what stands below has to be one too, then."""
    value = next((row.value[name] for row in rows if row.value.get(name) not in (None, "")), None)
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(row: Line, name: str) -> float | None:
    value = row.value.get(name)
    where = f"{row.where}: {name}"
    if isinstance(value, str):
        return number_or_none(value, where)
    return None if value is None else finite(value, where, _NULL)


def _meta(path: Path) -> Mapping[str, Any]:
    """What `dialeval score` wrote beside the scores; nothing where the file is from elsewhere."""
    beside = path.with_name(path.name + ".meta.json")
    if not beside.is_file():
        return {}
    meta = read_json(beside)
    if not isinstance(meta, dict) or meta.get("schema_version") != SCHEMA_VERSION or "main" not in meta:
        raise InputError(f"{beside}: is not of a release that this one reads. Score again, or remove the file.")
    return meta
