"""Rows of a CSV file with a header, each with the line on which it starts."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_text


def read_csv(path: Path) -> list[Line]:
    """Return the rows as objects of column name to text."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows: list[Line] = []
    names: list[str] = []
    start = 1
    try:
        for cells in reader:
            where, start = f"{path}:{start}", reader.line_num + 1
            if not cells:
                continue
            if not names:
                names = cells
                if doubled := sorted({name for name in names if names.count(name) > 1}):
                    raise InputError(f"{where}: the column {doubled[0]!r} occurs twice. Rename one.")
            elif len(cells) != len(names):
                raise InputError(f"{where}: has {len(cells)} cells, but the header names {len(names)} columns. Mend the row.")
            else:
                rows.append(Line(where, dict(zip(names, cells, strict=True))))
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: is not CSV ({error}). Was the file cut off?") from None
    if not rows:
        raise InputError(f"{path}: has no rows below a header. Give one row a response.")
    return rows


def number_or_none(text: str, where: str) -> float | None:
    """Return the number that a cell holds; None for an empty one.

    Example:
        >>> number_or_none(" 4 ", "line 1"), number_or_none("", "line 2")
        (4.0, None)
    """
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: expected a finite number, got {text!r}. Leave the cell empty where there is none.")
    return number
