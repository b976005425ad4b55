"""Reader of human labels of responses or conversations, as words or numbers, from a file, a set, a data frame or Python rows.

A row is a response, or one person's labels of it (with a column `rater`): `id`, the labels, and optionally `conversation` (or
`dialogue`, ...), `system`, `item`, and the texts, `context` and `response`. Labels are in one column, in columns named after
people (`annotator_1`) or given by `raters`, or in a list or an object of lists by quality (`labels`, `ratings`). Exports of
labelling tools are read as described in `corpora.exports`, and a set by its name, such as "fed".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Any, TypedDict

import numpy as np
from typing_extensions import Unpack

from dialeval_plugin.conversations.files import open_rows
from dialeval_plugin.conversations.reading import given_rows
from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line, parse_json
from dialeval_plugin.corpora.columns import Columns, check_columns, names_of
from dialeval_plugin.corpora.corpus import FileHead
from dialeval_plugin.corpora.exports import check_suffix, export_of, person_rows, user_rows
from dialeval_plugin.corpora.rated_items import RatedItem, of_level, read_rated_items
from dialeval_plugin.corpora.registry import identify
from dialeval_plugin.corpora.rows import file_rows, is_number, is_table, with_id
from dialeval_plugin.corpora.score_files import conversation_of
from dialeval_plugin.terminal import one_line

from .table import MAX_CATEGORIES, Cells, LabelTable, known_labels

_NESTED = ("labels", "label", "ratings", "rating")
"""Field names in a JSON row for the labels of several people."""
_LONGEST_WORD = 40
_MIN_ROWS = 2
"""Minimum number of rows for telling what their words mean."""
_ROWS_SEEN = 1000
_CONTEXT = ("context", "preceding", "prompt", "question", "input")
_RESPONSE = ("response", "text", "answer", "output", "completion")


class LabelOptions(TypedDict, total=False):
    """Options of `read_labels`.

    Attributes:
        quality: column, or quality, of the labels; by default the only one, or the one called `label` or overall.
        raters: columns of single people.
        order: the labels in ascending order, if they have one.
        positive: the labels that count as pass, separated by commas, unless they are a usual pair (pass and fail, ...).
        level: level of the rows, if a set has ratings of responses and of dialogues.
    """

    quality: str | None
    raters: Sequence[str]
    order: Sequence[str]
    positive: str | None
    level: Level | None


def read_labels(source: str | Path, **options: Unpack[LabelOptions]) -> LabelTable:
    """Read the labels of one quality from a file (.csv, .tsv, .json, .jsonl, .parquet, .xlsx), or from a set by its name.

    Raises:
        InputError: the file is malformed, or can be read in two ways; the message names the option that settles it.
        MissingPrerequisite: a set is not on this machine, or openpyxl, which reads a workbook, is not installed.
    """
    rows = _own_rows(Path(source))
    if rows is None:
        return _of_items(read_rated_items(str(source)), str(source), **options)
    return _of_rows(rows, str(source), **options)


def has_words(source: str | Path, quality: str | None = None, raters: Sequence[str] = ()) -> bool:
    """Whether a file's labels are words, judged by its first rows: in the requested columns, or if no column holds numbers."""
    rows = _own_rows(Path(source), only_first=True)
    if rows is None or len(rows) < _MIN_ROWS:
        return False
    if any(isinstance(row.value.get(name), (list, dict)) for row in rows for name in _NESTED):
        cells = (cell for row in rows for name in _NESTED for cell in _cells(row.value.get(name), quality))
        return any(isinstance(cell, (str, bool)) and not is_number(cell) for cell in cells)
    numbers, read = Columns.of(rows, str(source), raters), label_columns(rows, str(source), raters)
    of_people = [*raters, *(name for names in read.raters.values() for name in names)]
    words = _words(rows)
    if not words.isdisjoint([quality] if quality is not None else of_people or ["label"]):
        return True
    return not (numbers.numbers or numbers.raters) and not words.isdisjoint(read.numbers)


def _cells(given: Any, quality: str | None) -> Iterator[Any]:
    """Yield the labels in a list, or an object of lists by quality."""
    for value in given.values() if isinstance(given, dict) and quality is None else [given]:
        said = value.get(quality) if isinstance(value, dict) else value
        yield from said if isinstance(said, list) else [said]


def _own_rows(path: Path, *, only_first: bool = False) -> list[Line] | None:
    """Return the rows of a user's file, or only the first ones; None for a set, or for a file of a published set."""
    if not path.exists():
        return None
    if path.suffix.lower() in {".xlsx", ".parquet", ".arrow"}:
        return person_rows(file_rows(path), str(path))
    check_suffix(path)
    is_own = is_table(path) or export_of(FileHead.of(path).value) is not None or identify(path) is None
    if not is_own:
        return None
    if not only_first:
        return user_rows(path)
    return person_rows(list(islice(with_id(open_rows(str(path), is_log=False).lines), _ROWS_SEEN)), str(path), is_logged=False)


def labels_from(labels: Any, **options: Unpack[LabelOptions]) -> LabelTable:
    """Return labels from a `LabelTable`, a file or a set, a pandas data frame, rows, or an object of id to labels.

    Raises:
        InputError: as `read_labels`, or an option is unknown, or is a text in place of a list.
    """
    known = LabelOptions.__annotations__
    if unknown := [name for name in options if name not in known]:
        raise unknown_name(f"labels: there is no option {unknown[0]!r}", unknown[0], known)
    for name in ("raters", "order"):
        if isinstance(options.get(name), str):
            raise InputError(f"{name}: expected a list of names, as ['anna', 'ben'], got {options[name]!r}.")
    if isinstance(labels, LabelTable):
        return labels
    if isinstance(labels, (str, Path)):
        return read_labels(labels, **options)
    return _of_rows(person_rows(rows_from(labels, "labels", "label"), "labels"), "labels", **options)


def rows_from(given: Any, what: str, column: str) -> list[Line]:
    """Return the rows of a frame, a list of objects, or an object of id to value; InputError: there are none."""
    if isinstance(given, Mapping) and not any(hasattr(one, "column_names") for one in given.values()):
        given = [{"id": id, column: value} for id, value in given.items()]
    elif hasattr(given, "notna") and hasattr(given, "columns"):
        given = given.astype(object).where(given.notna(), None)
    rows = list(with_id(given_rows(given).lines))
    if not rows:
        raise InputError(f"{what}: has no rows. Give one a response.")
    return rows


def label_columns(rows: Sequence[Line], source: str, known: Collection[str] = ()) -> Columns:
    """Classify columns; a column of words that are categories is treated like one of numbers."""
    words = _words(rows)
    shadow = [
        Line(row.where, {name: 0 if name in words and cell not in {None, ""} else cell for name, cell in row.value.items()})
        if words
        else row
        for row in rows
    ]
    return Columns.of(shadow, source, known)


def _words(rows: Sequence[Line]) -> set[str]:
    return {name for name in names_of(rows) if _is_of_categories(rows, name)}


def _is_of_categories(rows: Sequence[Line], name: str) -> bool:
    cells = [row.value.get(name) for row in rows]
    if not all(issubclass(kind, (str, bool, int, float, NoneType)) for kind in {*map(type, cells)}):
        return False
    counts = Counter[str]()
    for cell, n in Counter(str(cell) for cell in cells if cell is not None).items():
        if word := cell.strip().casefold():
            counts[word] += n
    if not counts or all(is_number(word) for word in counts):
        return False
    is_few = len(counts) <= max(5, min(MAX_CATEGORIES, counts.total() // 2))
    return is_few and all(len(word) <= _LONGEST_WORD for word in counts)


def chosen_columns(
    columns: Columns, source: str, quality: str | None, names: Collection[str], option: str
) -> tuple[str, list[str]]:
    """Return the requested quality, or the only one, with its columns."""
    there = {**{name: [name] for name in columns.numbers}, **columns.raters}
    if quality is not None:
        match = next((name for name in there if name.casefold() == quality.casefold()), None)
        if match is None and quality not in names:
            raise unknown_name(f"{option} {quality!r}: {source} has no such column", quality, sorted({*there, *names}))
        return quality, there[match] if match is not None else [quality]
    columns.refuse_unclear(source, f"the quality with {option}")
    named = [name for name in there if name.casefold() in {"label", "overall"}] or list(columns.raters) or list(there)
    if len(named) != 1:
        what = "labels" if option == "--quality" else "scores"
        if named:
            people = ", or those of people with --raters NAME,NAME" if option == "--quality" else ""
            raise InputError(
                f"{source}: several columns may hold the {what}: {', '.join(named)}. Name one with {option}{people}."
            )
        raise InputError(f"{source}: no column holds {what}. It has: {', '.join(names)}. Name one with {option}.")
    return named[0], there[named[0]]


def _of_rows(
    rows: Sequence[Line],
    source: str,
    *,
    quality: str | None = None,
    raters: Sequence[str] = (),
    order: Sequence[str] = (),
    positive: str | None = None,
    level: Level | None = None,  # only for sets
) -> LabelTable:
    names = names_of(rows)
    check_columns(f"--raters: {source}", raters, names)
    nested = [name for name in _NESTED if any(isinstance(row.value.get(name), (list, dict)) for row in rows)]
    columns = label_columns(rows, source, [*raters, *nested])
    if raters:
        quality, of_people = quality or "label", list(raters)
    elif nested:
        quality, of_people = _nested_quality(rows, nested[0], source, quality), nested[:1]
    else:
        quality, of_people = chosen_columns(columns, source, quality, names, "--quality")
    is_nested = of_people == nested[:1]
    cells, places = Cells(quality), dict[tuple[int, int], None]()
    ids, people = dict[str, int](), dict[str, int]()
    first: list[Line] = []
    for number, row in enumerate(rows):
        id = columns.label(row, "id") or (str(number) if "id" not in names and {*_CONTEXT} & {*names} else None)
        if not id:
            raise InputError(f"{row.where}: has no 'id'. Name the response that is labelled, as its scores do.")
        if id not in ids:
            first.append(row)
        place, person = ids.setdefault(id, len(ids)), columns.label(row, "rater")
        for name, cell in _given(row, of_people, quality, is_nested=is_nested):
            rater = name if person is None else person if len(of_people) == 1 and not is_nested else f"{person} {name}"
            at = place, people.setdefault(rater, len(people))
            if at in places:
                who = "" if person is None else f" by {person!r}"
                raise InputError(
                    f"{row.where}: the id {id!r} occurs twice{who}. Give every response its own, "
                    "and each person's labels a name in a column 'rater'."
                )
            places[at] = None
            cells.add(cell, row.where)
    values, scale = cells.on_scale(source, order, positive)
    labels = np.full((len(ids), len(people)), np.nan)
    at_row, at_rater = np.array(list(places), dtype=np.int64).reshape(-1, 2).T
    labels[at_row, at_rater] = values
    if not len(values) or np.isnan(values).all():
        raise InputError(f"{source}: {quality}: no row has a label. Name the column of the labels with --quality.")
    texts = [texts_of(row) for row in first] if {*_CONTEXT, *_RESPONSE} & {*names} else [("", "")] * len(first)
    has_texts = any(response for _, response in texts)
    conversations = [
        columns.label(row, "cluster") or conversation_of(id, [context] if context else None)
        for id, row, (context, _) in zip(ids, first, texts, strict=True)
    ]
    return LabelTable(
        source=source,
        ids=list(ids),
        labels=labels,
        scale=scale,
        raters=tuple(people),
        clusters=None if conversations == list(ids) and "cluster" not in columns.labels else conversations,
        systems=known_labels([columns.label(row, "system") for row in first]),
        items=known_labels(
            [columns.label(row, "item") or context or None for row, (context, _) in zip(first, texts, strict=True)]
        ),
        quality=quality,
        texts=texts if has_texts else None,
        has_people=not is_nested,
        drawn="; ".join(sorted({str(row.value["drawn"]) for row in first if row.value.get("drawn")})) or None,
    )


def _nested_quality(rows: Sequence[Line], name: str, source: str, quality: str | None) -> str:
    there = dict.fromkeys(key for row in rows if isinstance(given := row.value.get(name), dict) for key in given)
    if not there:
        return quality or name.rstrip("s")
    chosen, _ = chosen_columns(Columns({}, list(there), {}, [], []), source, quality, there, "--quality")
    return str(next(name for name in there if name.casefold() == chosen.casefold()))


def _given(row: Line, columns: Sequence[str], quality: str, *, is_nested: bool) -> Iterator[tuple[str, Any]]:
    for name in columns:
        given = row.value.get(name)
        if isinstance(given, dict):
            given = given.get(quality)
        if not is_nested:
            yield name, given
            continue
        people = given if isinstance(given, list) else [given]
        yield from ((f"rater {place}", cell) for place, cell in enumerate(people, start=1))


def texts_of(row: Line) -> tuple[str, str]:
    """Return the texts before a row and its own, one turn per line; empty if it has no texts."""
    context, response = (
        next((row.value[name] for name in names if row.value.get(name)), "") for names in (_CONTEXT, _RESPONSE)
    )
    return _said(context, row.where), _said(response, row.where)


def _said(value: Any, where: str) -> str:
    """Return the turns of a text, a list of texts, or of messages, one per line; lines within a turn become one."""
    if isinstance(value, str) and value.startswith(('["', "[{")):
        value = parse_json(value, where)
    if isinstance(value, list):
        said = (one.get("text") or one.get("content") or "" if isinstance(one, dict) else one for one in value)
        return "\n".join(one_line(str(one)) for one in said)
    return str(value)


def _of_items(items: Sequence[RatedItem], source: str, **options: Unpack[LabelOptions]) -> LabelTable:
    # Commands whose rows are of one level by their scores have no option for it.
    remedy = () if "level" in options else ("Give a file with the ratings of one of them.",)
    items = of_level(items, options.get("level"), source, *remedy)
    if options.get("raters"):
        raise InputError(f"--raters: {source} is a published set, whose raters have no columns. Leave it out.")
    rows = []
    for item in items:
        labels = {"cluster": item.cluster, "item": item.item, "system": item.system}
        texts = {"context": list(item.turns[:-1]), "response": item.turns[-1] if item.turns else ""}
        ratings = {quality: list(values) for quality, values in item.ratings.items()}
        rows.append(Line(f"{source}: {item.id}", {"id": item.id, "ratings": ratings, **labels, **texts}))
    return replace(_of_rows(rows, source, **options), is_of_dialogues=items[0].level == "dialogue")
