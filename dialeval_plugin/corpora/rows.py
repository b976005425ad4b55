"""Checked access to the rows of published files, JSON and CSV: each error names the file, the line and the field."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.conversations.files import delimiter_of, open_rows, table_rows, value_rows
from dialeval_plugin.conversations.record import id_text
from dialeval_plugin.core.dialogue import Turn, check_text, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json, read_text, to_json
from dialeval_plugin.terminal import from_spreadsheet

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""Pattern of a number; Python's `float` accepts more: 4_0 as 40, and infinity."""
MISSING = frozenset({"n/a", "na", "#n/a", "nan", "none", "null", "nil", "-", "--", "?", "inf", "-inf", "infinity"}) | {
    *("#ref!", "#div/0!", "#value!", "#name?", "#num!", "#null!"),  # of a spreadsheet
}
"""Words used in place of a number; they raise an error in a column of numbers."""
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
# "10:15 is too late." has no speaker; "M:Okay." has one, though its blank is missing.
_SPEAKER = re.compile(r"(?!\d+:\d)([^:]{1,40}):\s*")
_TAG = re.compile(r"(User|System):(?: |$)")
_PERSONA = "your persona:"
_NO_FACT = "_nofact"


def read_array(path: Path) -> list[Line]:
    """Return the objects of a JSON array, each with the line on which it starts."""
    text = read_text(path)
    if not text.lstrip().startswith("["):
        raise InputError(f"{path}:1: expected a JSON array of objects. Is this another file's layout?")
    return list(value_rows(text, str(path), is_log=False))


def read_csv(path: Path, delimiter: str = ",") -> list[Line]:
    """Return the rows of a table, see `table_rows`; numbers with decimal commas get points.

    Decimal commas are possible only if cells are not separated by commas.
    """
    text = read_text(path)
    rows = list(table_rows(io.StringIO(text, newline=""), str(path), delimiter))
    if delimiter_of(text.lstrip("\n").partition("\n")[0], delimiter) != "," or text.startswith("sep="):
        _set_decimal_points(rows)
    return rows


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name, compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix in (".csv", ".tsv")


def file_rows(path: Path) -> list[Line]:
    """Return the rows of a table or of Parquet, or the objects of a JSON file."""
    if is_table(path):
        return list(with_id(read_csv(path, "\t" if ".tsv" in path.name.lower() else ",")))
    rows = list(with_id(open_rows(str(path), is_log=False).lines))
    if not rows:
        raise InputError(f"{path}: has no rows. Give some.")
    return rows


def with_id(rows: Iterable[Line]) -> Iterator[Line]:
    """Yield rows; a field that the first one calls "ID", or "Id " as in a spreadsheet, is `id`.

    Ids in what `dialeval label` wrote, which has a column "drawn", are as they are outside of a spreadsheet.
    """
    lines = iter(rows)
    if (first := next(lines, None)) is None:
        return
    spelled = [name for name in first.value if str(name).strip().casefold() == "id"]
    is_usual = len(spelled) != 1 or spelled == ["id"]
    for line in itertools.chain([first], lines):
        renamed = line.value if is_usual else {"id" if name in spelled else name: cell for name, cell in line.value.items()}
        if "drawn" in renamed and isinstance(id := renamed.get("id"), str):
            renamed = {**renamed, "id": from_spreadsheet(id)}
        yield Line(line.where, renamed)


def _set_decimal_points(rows: Sequence[Line]) -> None:
    for name in rows[0].value:
        cells = [row.value[name] for row in rows]
        pointed = [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]
        is_of_numbers = all(is_number(cell) or cell.strip().lower() in {"", *MISSING} for cell in pointed)
        if pointed != cells and is_of_numbers and not any("." in cell for cell in cells):
            for row, cell in zip(rows, pointed, strict=True):
                row.value[name] = cell


def is_number(value: Any) -> bool:
    """Whether a JSON value, or the text of a cell, is a number."""
    if isinstance(value, str):
        return _NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def words_of(value: Any) -> list[str]:
    """Return the values of a field as in JSON, texts as they are; one per entry of a list, which in a table's cell is JSON."""
    if isinstance(value, str) and value.startswith("["):
        with contextlib.suppress(InputError):
            value = parse_json(value, "")
    if isinstance(value, list):
        return [word for one in value for word in words_of(one)]
    if value in (None, ""):
        return []
    return [to_json(value) if isinstance(value, (bool, dict)) else str(value)]


def number_or_none(text: str, where: str) -> float | None:
    """Return the number in a cell; None for an empty one."""
    if not text.strip():
        return None
    number = float(text) if is_number(text) else math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: expected a finite number, got {text!r}. Leave the cell empty where there is none.")
    return number


def number_cell(row: Line, name: str) -> float | None:
    """Return the number in field `name`, a JSON value or a cell; None if there is none."""
    value, where = row.value.get(name), f"{row.where}: {name}"
    if isinstance(value, str):
        return number_or_none(value, where)
    return None if value is None else finite(value, where, "Give null where there is none.")


def require(row: Line, *names: str, advice: str = "Is this another file's layout?") -> None:
    """Check that the row has the fields `names`, whatever their values."""
    for name in names:
        if name not in row.value:
            raise InputError(f"{row.where}: has no {name!r}. {advice}")


def text_field(row: Line, name: str) -> str:
    """Return the string in field `name`."""
    return check_text(_field(row, name), f"{row.where}: {name}")


def texts_field(row: Line, name: str) -> tuple[str, ...]:
    """Return the strings of the list in field `name`; () if the row has no such field."""
    values = row.value.get(name, [])
    if not isinstance(values, list):
        raise InputError(f"{row.where}: {name}: expected a list of strings, got {values!r} ({type(values).__name__}).")
    return tuple(check_text(value, f"{row.where}: {name}[{index}]") for index, value in enumerate(values))


def objects_field(row: Line, name: str) -> list[Line]:
    """Return the objects of the list in field `name`, each with its location."""
    values = row.value.get(name)
    if not isinstance(values, list):
        raise InputError(f"{row.where}: {name}: expected a list of objects, got {values!r:.80}. Is this another file's layout?")
    return [as_object(value, f"{row.where}: {name}[{index}]") for index, value in enumerate(values)]


def as_object(value: Any, where: str) -> Line:
    """Return a JSON object with its location."""
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected an object, got {value!r:.80}.")
    return Line(where, value)


def turns_field(row: Line, name: str, *, speaker: str = "speaker", text: str = "text") -> list[Turn]:
    """Return the turns of the list in field `name`, including blank ones; `speaker` and `text` are field names of a turn."""
    return [Turn(text_field(turn, text).strip(), text_field(turn, speaker)) for turn in objects_field(row, name)]


def visible_turns(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Return the turns with a visible character."""
    return tuple(turn for turn in turns if not is_blank(turn.text))


def id_field(row: Line, *names: str) -> str | None:
    """Return the row's identifier as a string, from the first of `names` that it has; None if it has none."""
    for name in names:
        if name in row.value:
            return id_text(row.value[name], f"{row.where}: {name}")
    return None


def row_ids(rows: Sequence[Line], stem: str, *names: str) -> list[str]:
    """Return one id per row, all different: for a row without one, `stem` and its number, for example `humod_00012`."""
    given = [id_field(row, *names) for row in rows]
    return unique_ids([f"{stem}_{index:05d}" if id is None else id for index, id in enumerate(given)])


def label_field(row: Line, name: str) -> str | None:
    """Return the label in field `name` as a string; None if it is missing or empty."""
    return id_field(row, name) or None if row.value.get(name) is not None else None


def ratings_field(row: Line, name: str) -> dict[str, tuple[float, ...]]:
    """Return the rater values by quality from the object of lists in field `name`; an empty list stays empty."""
    annotations = _field(row, name)
    if not isinstance(annotations, dict):
        raise InputError(f"{row.where}: {name}: expected an object of quality names and lists, got {annotations!r}.")
    ratings = {}
    for quality, values in annotations.items():
        where = f"{row.where}: {name}[{quality!r}]"
        if not isinstance(values, list):
            raise InputError(f"{where}: expected the list of the raters' numbers, got {values!r}.")
        ratings[quality] = finite_numbers(values, where)
    return ratings


def finite_numbers(values: Sequence[Any], where: str) -> tuple[float, ...]:
    """Return the numbers of a quality's raters; an InputError names one that is not finite."""
    advice = "Leave out what a rater did not answer."
    return tuple(finite(value, f"{where}[{rater}]", advice) for rater, value in enumerate(values))


def finite(value: Any, where: str, advice: str) -> float:
    """Return a finite number; any other value is an InputError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{where}: expected a finite number, got {value!r}. {advice}")
    return float(value)


def split_speaker(text: str) -> tuple[str | None, str]:
    """Return speaker and text of a turn that is published as `W: text`; the speaker is None if there is none.

    Example:
        >>> split_speaker("W: At 10:15, I think."), split_speaker("10:15 is too late.")
        (('W', 'At 10:15, I think.'), (None, '10:15 is too late.'))
    """
    stripped = text.strip()
    match = _SPEAKER.match(stripped)
    return (match[1], stripped[match.end() :]) if match else (None, stripped)


def spoken_turn(text: str) -> Turn:
    """Return the turn published as `W: text`, or as a text alone."""
    speaker, spoken = split_speaker(text)
    return Turn(spoken, speaker)


def tagged_turn(text: str) -> Turn | None:
    """Return the turn published as `User: text` or `System: text`; None if it has neither prefix."""
    stripped = text.strip()
    match = _TAG.match(stripped)
    return Turn(stripped[match.end() :].strip(), match[1]) if match else None


def context_lines(context: str) -> tuple[str, ...]:
    """Return the turns of a context that is published as one text, one turn per line; () if it is blank."""
    return tuple(line.strip() for line in context.strip().split("\n")) if context.strip() else ()


def facts_of(text: str) -> tuple[str, ...]:
    """Return each persona line of a text of facts, any other text whole, and () for an empty text or `_nofact`.

    Example:
        >>> facts_of("your persona: I walk. "), facts_of("Tea is a plant."), facts_of("_nofact")
        (('I walk.',), ('Tea is a plant.',), ())
    """
    stripped = text.strip()
    lines = context_lines(text)
    if lines and all(line.startswith(_PERSONA) for line in lines):
        return tuple(line.removeprefix(_PERSONA).strip() for line in lines)
    return () if stripped in {"", _NO_FACT} else (stripped,)


def as_path(source: str | Path) -> Path | None:
    """Return a source as a path; None if it is the name of a set, which has neither a dot nor a slash."""
    return Path(source) if isinstance(source, Path) or any(mark in source for mark in "./\\") else None


def distinct_ids(rows: Sequence[Line], ids: Sequence[str], advice: str) -> None:
    """Check that no two rows have one id."""
    first: dict[str, str] = {}
    for row, id in zip(rows, ids, strict=True):
        other = first.setdefault(id, row.where)
        if other != row.where:
            raise InputError(f"{row.where}: the id {id!r} is also that of {other}. {advice}")


def unique_ids(ids: Sequence[str]) -> list[str]:
    """Return `ids` with repeated ones marked `#2`, `#3`, ... in the order given."""
    taken = set(ids)
    seen: Counter[str] = Counter()
    unique = []
    for id in ids:
        seen[id] += 1
        name = id
        while seen[id] > 1 and (name := f"{id}#{seen[id]}") in taken:
            seen[id] += 1
        taken.add(name)
        unique.append(name)
    return unique


def _field(row: Line, name: str) -> Any:
    if name not in row.value:
        known = ", ".join(map(repr, row.value)) or "nothing"
        raise InputError(f"{row.where}: has no {name!r}, only {known}. Is this another file's layout?")
    return row.value[name]
