"""A table for people (terminal, Markdown, LaTeX) and for programs (CSV, JSON), from the same rows.

People get rounded figures, several to a column where they belong together; programs get every value under a name of its own,
unrounded, and null or nothing where there is none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.plain_text import for_markdown, for_spreadsheet, one_line
from dialeval_plugin.statistics.bootstrap import Estimate

Cell: TypeAlias = str | int | float | bool | None
Row: TypeAlias = Mapping[str, Cell]
Format: TypeAlias = Literal["text", "markdown", "csv", "latex", "json"]

SCHEMA_VERSION = 1
FORMATS: tuple[str, ...] = get_args(Format)

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


class Column(NamedTuple):
    """A column for people."""

    title: str
    text: Callable[[Row], str]
    is_number: bool = True
    """Numbers are aligned to the right."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the same names in each, how people are shown them, and what is to be said below."""

    rows: Sequence[Row]
    columns: Sequence[Column]
    notes: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What all rows share; in JSON only."""

    def render(self, format: str) -> str:
        r"""Return the table as text that ends in a line break.

        Raises:
            InputError: there is no such format.

        Example:
            >>> table = Table([{"name": "a_b", "value": 0.5}], [Column("name", lambda row: str(row["name"]), False)])
            >>> print(table.render("latex"), end="")
            \begin{tabular}{l}
            \toprule
            name \\
            \midrule
            a\_b \\
            \bottomrule
            \end{tabular}
        """
        if format not in FORMATS:
            raise InputError(f"--format {format!r}: there is no such format. Choose one of {', '.join(FORMATS)}.")
        if format == "json":
            whole = {"schema_version": SCHEMA_VERSION, **self.settings, "rows": list(self.rows), "notes": list(self.notes)}
            return to_json(whole, indent=2) + "\n"
        if format == "csv":
            return _csv(self.rows)
        lines = [[one_line(column.text(row)) for column in self.columns] for row in self.rows]
        head = [one_line(column.title) for column in self.columns]
        is_number = [column.is_number for column in self.columns]
        render = {"text": _text, "markdown": _markdown, "latex": _latex}[format]
        return render(head, lines, is_number, self.notes)


def figure(value: Cell, decimals: int = 3) -> str:
    """Write a number with a fixed number of decimals; nothing where there is none.

    Example:
        >>> figure(0.12345), figure(-0.0001), figure(None)
        ('0.123', '0.000', '')
    """
    if value is None or isinstance(value, (str, bool)):
        return "" if value is None else str(value)
    # Adding 0 turns the -0.000 of a small negative number into 0.000.
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}"


def spreadsheet_row(row: Row) -> Row:
    """Return a row of a CSV file whose texts are one line each and no formulas; numbers stay numbers."""
    return {name: one_line(for_spreadsheet(cell)) if isinstance(cell, str) else cell for name, cell in row.items()}


def bounds(low: float | None, high: float | None, *, is_rough: bool = False, decimals: int = 3) -> str:
    """Write an interval, with a space before it; nothing where there is none.

    Example:
        >>> bounds(0.1, 0.35), bounds(-0.00001, 0.2, is_rough=True, decimals=2), bounds(None, None)
        (' [0.100, 0.350]', ' [0.00, 0.20, rough]', '')
    """
    if low is None or high is None:
        return ""
    return f" [{figure(low, decimals)}, {figure(high, decimals)}{', rough' if is_rough else ''}]"


def estimate(found: Estimate | None) -> str:
    """Write a statistic with its interval; nothing where nobody computed it."""
    if found is None:
        return ""
    if found.value is None:
        return "undefined"
    return f"{figure(found.value)}{bounds(found.ci_low, found.ci_high, is_rough=found.is_rough)}"


def _csv(rows: Sequence[Row]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(spreadsheet_row(row) for row in rows)
    return stream.getvalue()


def _text(head: Sequence[str], lines: Sequence[Sequence[str]], is_number: Sequence[bool], notes: Sequence[str]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    shown = [_aligned(cells, widths, is_number, "  ").rstrip() for cells in (head, ["-" * width for width in widths], *lines)]
    return "\n".join([*shown, *([""] if notes else []), *notes]) + "\n"


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]], is_number: Sequence[bool], notes: Sequence[str]) -> str:
    rule = ["---:" if number else "---" for number in is_number]
    escaped = [list(map(for_markdown, cells)) for cells in (head, *lines)]
    shown = ["| " + " | ".join(cells) + " |" for cells in (escaped[0], rule, *escaped[1:])]
    return "\n".join([*shown, *(line for note in notes for line in ("", note))]) + "\n"


def _latex(head: Sequence[str], lines: Sequence[Sequence[str]], is_number: Sequence[bool], notes: Sequence[str]) -> str:
    def row(cells: Sequence[str]) -> str:
        return " & ".join(_escaped(cell) for cell in cells) + r" \\"

    alignment = "".join("r" if number else "l" for number in is_number)
    body = [r"\begin{tabular}{" + alignment + "}", r"\toprule", row(head), r"\midrule", *map(row, lines), r"\bottomrule"]
    return "\n".join([*body, r"\end{tabular}", *(f"% {one_line(note)}" for note in notes)]) + "\n"


def _aligned(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool], between: str) -> str:
    padded = (
        cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(cells, widths, is_number, strict=True)
    )
    return between.join(padded)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
