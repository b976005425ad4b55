"""Reader of the development sets of DSTC10 Track 5 (Zhang et al. 2021): `<name>_eval.json`, in the published layout.

A turn-level file is a JSON array of `{dialogue_id, model, context, response, reference, annotations}`, a dialogue-level one of
`{dialogue_id, model, dialog, annotations}`. `dstc10_sets.json` lists the 14 sets with their overall quality and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, did_you_mean
from dialeval_plugin.core.files import Line, checked, read_json
from dialeval_plugin.corpora.corpus import Corpus
from dialeval_plugin.corpora.rows import (
    as_path,
    context_lines,
    facts_of,
    ratings_field,
    read_array,
    row_ids,
    tagged_turn,
    text_field,
    texts_field,
    turns_field,
)


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """One of the 14 sets, with its short name in tables, for example "tu", and that of its file, for example "topical-usr"."""

    code: str
    name: str
    title: str
    url: str
    about: str
    """One sentence on the rated material."""
    files: tuple[str, ...]
    """Possible files of the set in the data folder; the first that exists is read."""
    level: Level
    overall: str | None
    """The quality used as overall quality; None if it is looked up in the file."""
    scale: tuple[float, float] | None
    """Lowest and highest rating of the overall quality."""
    qualities: tuple[str, ...]
    reason: str
    """Reason for the choice of `overall`."""


_FILE = Path(__file__).with_name("dstc10_sets.json")
SETS: Mapping[str, EvaluationSet] = {
    entry.code: entry for entry in checked(read_json(_FILE), list[EvaluationSet], _FILE.name, advice="Mend it.")
}


def find_set(code_or_name: str) -> EvaluationSet:
    """Return the set with this code or name."""
    for entry in SETS.values():
        if code_or_name in {entry.code, entry.name}:
            return entry
    known = ", ".join(f"{entry.code} ({entry.name})" for entry in SETS.values())
    near = did_you_mean(code_or_name, [entry.name for entry in SETS.values()])
    raise InputError(f"{code_or_name!r}: is neither a file nor a DSTC10 set.{near} Known are: {known}.")


def overall_quality(items: Sequence[Item], entry: EvaluationSet | None = None) -> str:
    """Return the quality used as overall quality in `items`.

    It is the one that `entry` names; otherwise the one called "overall" in any spelling; otherwise the only one.
    """
    qualities = list(dict.fromkeys(quality for item in items for quality in item.ratings))
    if entry is not None and entry.overall in qualities:
        return entry.overall
    named = [quality for quality in qualities if quality.casefold() == "overall"]
    if len(named) == 1:
        return named[0]
    if len(qualities) == 1:
        return qualities[0]
    where = entry.name if entry is not None else "overall quality"
    raise InputError(
        f"{where}: none of the qualities stands for overall quality. Name one of: {', '.join(qualities) or 'none'}."
    )


def read(source: str | Path, *, folder: Path | None = None) -> list[Item]:
    """Read a set by its code or name, or any file of the layout by its path.

    Changes by the readers: each turn and response loses the white space around it; `User: ` and `System: ` become the speaker
    if every turn and response of the file has one (fed-turn); persona lines become one fact each, without `your persona:`;
    `_nofact` is no fact. A repeated id gets `#2`, `#3`, ...; a row without one is named after the file and its position, for
    example `humod_00012`.

    Args:
        source: a code or name of `SETS`, or a path. A set's overall ratings must be on its published scale; a path may be any
            file of the layout, so its ratings are not compared with a scale.
        folder: folder of the sets; by default the corpus' own.
    """
    path = as_path(source)
    if path is not None:
        return _read_file(path)
    entry = find_set(str(source))
    folder = folder if folder is not None else CORPUS.folder()
    for name in entry.files:
        if (folder / name).is_file():
            return _read_file(folder / name, entry)
    raise MissingPrerequisite(
        f"{folder}: has no {entry.files[0]} (DSTC10 set {entry.code}). Type `dialeval data fetch dstc10`; if the set is not "
        "among the files that it fetches, get it from https://chateval.org/dstc10 and put it there."
    )


def _read_file(path: Path, entry: EvaluationSet | None = None) -> list[Item]:
    rows = read_array(path)
    ids = row_ids(rows, path.name.partition(".")[0].removesuffix("_eval"), "dialogue_id")
    turns_name = next((name for name in ("dialog", "dialogue") if name in rows[0].value), None)
    level: Level = "turn" if turns_name is None else "dialogue"
    if entry is not None and level != entry.level:
        raise InputError(
            f"{rows[0].where}: {entry.name} is a {entry.level}-level set, but this row is of the {level}-level layout. "
            "Is this another set's file?"
        )
    items: list[Item]
    if turns_name is None:
        items = _examples(rows, ids)
    else:
        items = [
            Dialogue(id, tuple(turns_field(row, turns_name)), _system(row), ratings_field(row, "annotations"))
            for row, id in zip(rows, ids, strict=True)
        ]
    if entry is not None:
        _check_scale(entry, rows, items)
    return items


def _examples(rows: Sequence[Line], ids: Sequence[str]) -> list[Item]:
    texts = [(*context_lines(text_field(row, "context")), text_field(row, "response").strip()) for row in rows]
    tagged = all(tagged_turn(text) for own in texts for text in own)
    turns = [[(tagged_turn(text) if tagged else None) or Turn(text) for text in own] for own in texts]
    return [
        Example(
            id=id,
            context=tuple(context),
            response=response,
            references=tuple(text.strip() for text in texts_field(row, "reference")),
            facts=facts_of(text_field(row, "fact")) if "fact" in row.value else (),
            system=_system(row),
            ratings=ratings_field(row, "annotations"),
        )
        for row, id, (*context, response) in zip(rows, ids, turns, strict=True)
    ]


def _system(row: Line) -> str | None:
    name = next((name for name in ("model", "model_name") if name in row.value), None)
    return text_field(row, name) if name is not None else None


def _check_scale(entry: EvaluationSet, rows: Sequence[Line], items: Sequence[Item]) -> None:
    if entry.scale is None or entry.overall is None:
        return
    low, high = entry.scale
    for row, item in zip(rows, items, strict=True):
        for rater, value in enumerate(item.ratings.get(entry.overall, ())):
            if not low <= value <= high:
                raise InputError(
                    f"{row.where}: annotations[{entry.overall!r}][{rater}]: {value:g} is outside the scale of {entry.name}, "
                    f"{low:g} to {high:g}. To read ratings on another scale, give the file's path."
                )


def _qualities(level: Level) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for entry in SETS.values() if entry.level == level for name in entry.qualities))


CORPUS = Corpus(
    name="dstc10",
    layout="JSON array with `context` or `dialog`, and `annotations`",
    recognises=lambda file: (
        file.is_array
        and (file.has("annotations", "context") or file.has("annotations", "dialog"))
        and (file.has("dialogue_id") or not file.has("system"))
    ),
    qualities={"turn": _qualities("turn"), "dialogue": _qualities("dialogue")},
    read_items=read,
    sets={code: partial(read, code) for code in SETS},
)
