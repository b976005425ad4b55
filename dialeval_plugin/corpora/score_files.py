"""Reader of evaluators' scores: output of `dialeval score`, any JSON or CSV with ids, and scores published by authors.

- JSON lines or an array of objects, or CSV, with `id` and one column of numbers per evaluator. If `dialeval score` has left
  `FILE.meta.json` next to the file, only its main column is read unless others are requested.
- An object of id to number.

Scores that authors published with their data, for recomputing agreement, include ratings or are in the order of the rated file:

- FED's replication, and GPT-4 on FED: an object of name to list of numbers, in the order of the rated file.
- P(yes) of language models on FED and USR: `{"dialogues": [{dialogue_id, human_annotation, predicted_annotation}], ...}`.
- UniEval on TopicalChat: an array of `{source, system_id, scores: {quality: human}, predict_scores: {quality: number}}`.
- DailyDialog++: an object of `<row><p|r|a><number>` to a number: positive, random negative, adversarial negative.
- GLUE classifiers on TopicalChat (`usr.read_scored`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json, parse_json_prefix, read_json, read_json_lines, read_text
from dialeval_plugin.core.scores import IN_SCOPE, SCHEMA_VERSION, Orientation, meta_file
from dialeval_plugin.core.signature import text_hash

from .columns import Columns, check_columns, names_of
from .exports import check_layout, check_suffix
from .rated_items import RatedItem, rated_rows
from .readers import usr
from .rows import distinct_ids, file_rows, finite, is_table, label_field, number_cell, objects_field, read_array, text_field

UNKNOWN = "unknown"
"""Reason of an unscored row if the file gives none."""

_NULL = "Give null where a row is unscored."
RANDOM = "appropriate, random negatives"
ADVERSARIAL = "appropriate, adversarial negatives"
"""Qualities of DailyDialog++: 1 for the positive responses, 0 for those negatives, and no rating for the others."""

NO_SCORES = frozenset({"message", "percentile", IN_SCOPE, "place"})
"""Columns of numbers that `dialeval score` writes in addition to the scores."""
_MEND = "Mend the file."
_DAILYDIALOG_KEY = re.compile(r"(\d+)([pra])\d+")
_RATED: Mapping[str, dict[str, tuple[float, ...]]] = {
    "p": {RANDOM: (1.0,), ADVERSARIAL: (1.0,)},
    "r": {RANDOM: (0.0,), ADVERSARIAL: ()},
    "a": {RANDOM: (), ADVERSARIAL: (0.0,)},
}


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """The scores of one evaluator, by id; None if a row is unscored, with the reason in `unscored`."""

    evaluator: str
    scores: Mapping[str, float | None]
    unscored: Mapping[str, str]
    source: str
    quality: str | None = None
    """The quality that the scores measure; None if any."""
    orientation: Orientation = "higher"
    is_in_file_order: bool = False
    """Whether the ids are positions in the rated file, from 0."""
    signature: str | None = None


class ScoreFile(NamedTuple):
    """The evaluators of a file, with any ratings in it."""

    columns: list[ScoreColumn]
    ratings: list[RatedItem] | None = None


def read_score_file(
    path: Path, columns: Sequence[str] = (), rating_column: str | None = None, raters: Sequence[str] = ()
) -> ScoreFile:
    """Read the named columns of a file of scores: by default the main one of `dialeval score`, otherwise all with numbers.

    `rating_column` names the column of the human rating, if the file has one; `raters` those of single raters.
    """
    check_suffix(path)
    if is_table(path):
        return _of_rows(path, file_rows(path), columns, rating_column, raters)
    text = read_text(path).lstrip()
    if text.startswith("["):
        rows = read_array(path)
        check_layout(path, rows[0].value)
        if "predict_scores" in rows[0].value:
            return _unieval(path, rows)
        glue = _glue(path) if "responses" in rows[0].value else None
        return glue or _of_rows(path, rows, columns, rating_column, raters)
    if _is_one_object(text):
        return _of_object(path, read_json(path))
    rows = read_json_lines(path)
    check_layout(path, rows[0].value)
    return _of_rows(path, rows, columns, rating_column, raters)


def conversation_of(id: str, before: Sequence[str] | None, *, is_of_turns: bool = True) -> str:
    r"""Return a key of the conversation of a row that names none: the beginning of its id, or its context.

    Example:
        >>> conversation_of("monday:4", ("Hi.",)), conversation_of("0", ("Hi.", "Hello.")), conversation_of("0", None)
        ('monday', 'Hi.\nHello.', '0')
    """
    return (id.rpartition(":")[0] if is_of_turns else "") or "\n".join(before or ()) or id


def turns_before(row: Line) -> list[Line] | None:
    """Return the turns in `preceding`, which `dialeval score --with-text` writes; None if a row has none."""
    value = row.value.get("preceding")
    if isinstance(value, str):
        value = parse_json(value, f"{row.where}: preceding") if value.strip() else None
    if value is None:
        return None
    return objects_field(Line(row.where, {"preceding": value}), "preceding")


def texts_before(row: Line) -> tuple[str, ...] | None:
    """Return the texts of the turns in `preceding`; None if a row has none."""
    turns = turns_before(row)
    return None if turns is None else tuple(text_field(turn, "text") for turn in turns)


def _is_one_object(text: str) -> bool:
    """Whether a JSON file is one object that is not a row."""
    try:
        value, end = parse_json_prefix(text, 0, "")
    except InputError:
        # A damaged file's single object has no end; a damaged line is reported by the reader of lines.
        return "\n" in text.strip() and text.strip().split("\n")[0].rstrip() in {"{", "{}"}
    return isinstance(value, dict) and "id" not in value and not text[end:].strip()


def _of_object(path: Path, value: Mapping[str, Any]) -> ScoreFile:
    check_layout(path, value)
    if isinstance(value.get("dialogues"), list):
        return _probabilities(path, value["dialogues"])
    if value and all(isinstance(scores, list) for scores in value.values()):
        return _in_file_order(path, value)
    if value and all(map(_DAILYDIALOG_KEY.fullmatch, value)):
        return _dailydialog(path, value)
    if not value:
        raise InputError(f"{path}: has no scores. Give one a response.")
    scores = {id: None if score is None else finite(score, f"{path}: {id!r}", _NULL) for id, score in value.items()}
    return ScoreFile([ScoreColumn(path.stem, scores, {id: UNKNOWN for id in value if value[id] is None}, str(path))])


def _of_rows(
    path: Path, rows: Sequence[Line], columns: Sequence[str], rating_column: str | None, raters: Sequence[str]
) -> ScoreFile:
    meta = read_meta(path)
    ids = scored_ids(rows)
    if rating_column and raters:
        raise InputError(f"{path}: --rating-column and --raters both say where the ratings are. Leave one of them out.")
    of_people = [rating_column] if rating_column else list(raters)
    names = list(columns) or ([meta["main"]] if meta else [])
    if not names:
        own = Columns.of(rows, str(path), known=["rating", "ratings", *of_people])
        own.warn(str(path), *(name for names in own.raters.values() for name in names))
        names = own.numbers
    there = names_of(rows)
    if not names:
        raise InputError(f"{path}: no column but {', '.join(there)} is there, and none of them holds numbers. Add scores.")
    check_columns(f"{path}:", [*names, *of_people], there)
    read = []
    for name in names:
        scores = {id: number_cell(row, name) for row, id in zip(rows, ids, strict=True)}
        why = {id: str(row.value.get("unscored") or UNKNOWN) for row, id in zip(rows, ids, strict=True) if scores[id] is None}
        evaluator = path.stem if len(names) == 1 else f"{path.stem}:{name}"
        orientation = cast("Orientation", meta.get("orientation", "higher"))
        read.append(ScoreColumn(evaluator, scores, why, str(path), orientation=orientation, signature=meta.get("signature")))
    return ScoreFile(read, rated_rows(rows, str(path), of_people, raters) if of_people else None)


def scored_ids(rows: Sequence[Line]) -> list[str]:
    """Return the id of each row; InputError: one is missing or repeated."""
    ids = [label_field(row, "id") or "" for row in rows]
    for row, id in zip(rows, ids, strict=True):
        if not id:
            raise InputError(f"{row.where}: has no 'id', a text or a whole number. Give the id of the rated response.")
    distinct_ids(rows, ids, "Give every response one score.")
    return ids


def named_file(source: str | Path) -> tuple[str | None, Path]:
    """Return name and path of NAME=FILE; the name is None if there is none, or a file is called so."""
    name, sign, file = str(source).partition("=")
    return (name, Path(file)) if sign and not Path(source).exists() else (None, Path(source))


def read_meta(path: Path) -> Mapping[str, Any]:
    """Return the metadata that `dialeval score` wrote next to the scores; empty for other files."""
    beside = meta_file(path)
    if not beside.is_file():
        return {}
    meta = read_json(beside)
    if not isinstance(meta, dict) or meta.get("schema_version") != SCHEMA_VERSION or "main" not in meta:
        raise InputError(f"{beside}: is not of a release that this one reads. Score again, or remove the file.")
    return meta


def _in_file_order(path: Path, file: Mapping[str, Any]) -> ScoreFile:
    lengths = {len(values) for values in file.values()}
    if len(lengths) > 1:
        raise InputError(f"{path}: has lists of {min(lengths)} to {max(lengths)} numbers. Give as many for each quality.")
    columns = []
    for name, values in file.items():
        scores = {str(place): finite(value, f"{path}: {name}[{place}]", _MEND) for place, value in enumerate(values)}
        columns.append(ScoreColumn(path.stem, scores, {}, str(path), quality=name, is_in_file_order=True))
    return ScoreFile(columns)


def _probabilities(path: Path, rows: Sequence[Any]) -> ScoreFile:
    level: Level = "dialogue" if path.parent.name == "dialogue_level" else "turn"
    scores: dict[str, float | None] = {}
    ratings = []
    for place, row in enumerate(rows):
        where = f"{path}: dialogues[{place}]"
        for name in ("dialogue_id", "human_annotation", "predicted_annotation"):
            if not isinstance(row, dict) or name not in row:
                raise InputError(f"{where}: has no {name!r}. Is this another file's layout?")
        if row["dialogue_id"] != place:
            raise InputError(
                f"{where}: dialogue_id is {row['dialogue_id']!r}. Rows have to stand in the order of the rated file."
            )
        scores[str(place)] = finite(row["predicted_annotation"], f"{where}: predicted_annotation", _MEND)
        rating = finite(row["human_annotation"], f"{where}: human_annotation", _MEND)
        ratings.append(RatedItem(str(place), {"Overall": (rating,)}, level))
    name = path.stem.removesuffix("_dialogue_metrics")
    return ScoreFile([ScoreColumn(name, scores, {}, str(path), is_in_file_order=True)], ratings)


def _unieval(path: Path, rows: Sequence[Line]) -> ScoreFile:
    first = rows[0].value["predict_scores"]
    qualities = list(first) if isinstance(first, dict) else []
    scores: dict[str, dict[str, float | None]] = {quality: {} for quality in qualities}
    ratings = []
    for place, row in enumerate(rows):
        predicted, human = (row.value.get(name) for name in ("predict_scores", "scores"))
        if not (
            qualities and isinstance(predicted, dict) and isinstance(human, dict)
        ) or not predicted.keys() & human.keys() >= set(qualities):
            raise InputError(
                f"{row.where}: has no 'scores' and 'predict_scores' of {', '.join(qualities) or 'a quality'}. Mend the row."
            )
        for quality in qualities:
            scores[quality][str(place)] = finite(predicted[quality], f"{row.where}: predict_scores[{quality!r}]", _MEND)
        rated = {quality: (finite(human[quality], f"{row.where}: scores[{quality!r}]", _MEND),) for quality in qualities}
        context = text_hash(str(row.value.get("source", "")))
        words = len(str(row.value.get("system_output", "")).split())
        ratings.append(RatedItem(str(place), rated, "turn", context, context, str(row.value.get("system_id", "")), words))
    columns = [
        ScoreColumn(path.stem, scores[quality], {}, str(path), quality=quality, is_in_file_order=True) for quality in qualities
    ]
    return ScoreFile(columns, ratings)


def _dailydialog(path: Path, file: Mapping[str, Any]) -> ScoreFile:
    scores: dict[str, float | None] = {}
    ratings = []
    for key, value in file.items():
        ((row, kind),) = _DAILYDIALOG_KEY.findall(key)
        scores[key] = finite(value, f"{path}: {key!r}", _MEND)
        ratings.append(RatedItem(key, _RATED[kind], "turn", cluster=row, item=row))
    return ScoreFile([ScoreColumn(path.stem, scores, {}, str(path))], ratings)


def _glue(path: Path) -> ScoreFile | None:
    examples, scores = usr.read_scored(path)
    ids = [example.id for example in examples]
    columns = [ScoreColumn(name, dict(zip(ids, values, strict=True)), {}, str(path)) for name, values in scores.items()]
    return ScoreFile(columns, [RatedItem.of(example) for example in examples]) if columns else None
