"""Scores that authors published beside their data, so that the agreement that they print can be computed again.

- FED's replication, and GPT-4 on FED: an object of name to list of numbers, in the order of the rated file.
- P(yes) of language models on FED and USR: `{"dialogues": [{dialogue_id, human_annotation, predicted_annotation}], ...}`.
- UniEval on TopicalChat: an array of `{source, system_id, scores: {quality: human}, predict_scores: {quality: number}}`.
- DailyDialog++: an object of `<row><p|r|a><number>` to a number: positive, random negative, adversarial negative.
- GLUE classifiers on TopicalChat (`usr.read_scored`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_json, read_text
from dialeval_plugin.core.signature import text_hash

from .rated_items import RatedItem, ScoreColumn, ScoreFile
from .readers import usr
from .rows import finite, read_array

RANDOM = "appropriate, random negatives"
ADVERSARIAL = "appropriate, adversarial negatives"
"""Qualities of DailyDialog++: 1 for the positive responses, 0 for those negatives, and no rating for the others."""

_MEND = "Mend the file."
_DAILYDIALOG_KEY = re.compile(r"(\d+)([pra])\d+")
_RATED: Mapping[str, dict[str, tuple[float, ...]]] = {
    "p": {RANDOM: (1.0,), ADVERSARIAL: (1.0,)},
    "r": {RANDOM: (0.0,), ADVERSARIAL: ()},
    "a": {RANDOM: (), ADVERSARIAL: (0.0,)},
}


def read_published(path: Path) -> ScoreFile | None:
    """Read a file of one of the layouts above; None where it is of none."""
    if read_text(path).lstrip().startswith("["):
        rows = read_array(path)
        if "predict_scores" in rows[0].value:
            return _unieval(path, rows)
        return _glue(path) if "responses" in rows[0].value else None
    value = read_json(path)
    if isinstance(value.get("dialogues"), list):
        return _probabilities(path, value)
    if value and all(isinstance(scores, list) for scores in value.values()):
        return _in_file_order(path, value)
    return _dailydialog(path, value) if value and all(map(_DAILYDIALOG_KEY.fullmatch, value)) else None


def _in_file_order(path: Path, file: Mapping[str, Any]) -> ScoreFile:
    lengths = {len(values) for values in file.values()}
    if len(lengths) > 1:
        raise InputError(f"{path}: has lists of {min(lengths)} to {max(lengths)} numbers. Give as many for each quality.")
    columns = []
    for name, values in file.items():
        scores = {str(place): finite(value, f"{path}: {name}[{place}]", _MEND) for place, value in enumerate(values)}
        columns.append(ScoreColumn(path.stem, scores, {}, str(path), quality=name, is_in_file_order=True))
    return ScoreFile(columns)


def _probabilities(path: Path, file: Mapping[str, Any]) -> ScoreFile:
    level: Level = "dialogue" if path.parent.name == "dialogue_level" else "turn"
    scores: dict[str, float | None] = {}
    ratings = []
    for place, row in enumerate(file["dialogues"]):
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
        if (
            not qualities
            or not isinstance(predicted, dict)
            or not isinstance(human, dict)
            or not set(qualities) <= set(predicted) & set(human)
        ):
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
        match = _DAILYDIALOG_KEY.fullmatch(key)
        row, kind = (match[1], match[2]) if match else ("", "p")
        scores[key] = finite(value, f"{path}: {key!r}", _MEND)
        ratings.append(RatedItem(key, _RATED[kind], "turn", cluster=row, item=row))
    return ScoreFile([ScoreColumn(path.stem, scores, {}, str(path))], ratings)


def _glue(path: Path) -> ScoreFile | None:
    found = usr.read_scored(path)
    columns: list[ScoreColumn] = []
    for name, values in found.scores.items():
        scores = {example.id: value for example, value in zip(found.examples, values, strict=True)}
        columns.append(ScoreColumn(name, scores, {}, str(path)))
    return ScoreFile(columns, [RatedItem.of(example) for example in found.examples]) if columns else None
