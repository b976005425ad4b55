"""Tables for people (terminal, Markdown, LaTeX) and for programs (CSV, JSON) from the same rows.

People see rounded figures, some combined in a column; programs get every value unrounded, and null or empty if missing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

from dialeval_plugin.core.errors import unknown_name
from dialeval_plugin.core.files import to_json
from dialeval_plugin.statistics.estimates import interval_text, number_text
from dialeval_plugin.terminal import for_markdown, for_spreadsheet, one_line, print_table

if TYPE_CHECKING:
    from dialeval_plugin.statistics.bootstrap import Estimate

CellValue: TypeAlias = str | int | float | bool | None
TableRow: TypeAlias = Mapping[str, CellValue]
Format: TypeAlias = Literal["text", "markdown", "csv", "latex", "json"]

SCHEMA_VERSION = 1
FORMATS: tuple[str, ...] = get_args(Format)

_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}"},
    }
)


class TableColumn(NamedTuple):
    """Column of a table for people."""

    title: str
    text: Callable[[TableRow], str]
    is_number: bool = True
    """Whether the column is aligned to the right."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with equal names, the columns shown to people, and notes below the table."""

    rows: Sequence[TableRow]
    columns: Sequence[TableColumn]
    notes: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that all rows share; only in JSON."""

    def render(self, format: str) -> str:
        r"""Return the table as text that ends in a line break; raises InputError for an unknown format.

        Example:
            >>> table = Table([{"name": "a_b", "value": 0.5}], [named_column("name", is_number=False)])
            >>> table.render("markdown")
            '| name |\n| --- |\n| a_b |\n'
        """
        if format not in FORMATS:
            raise unknown_name(f"--format {format!r}: there is no such format", format, FORMATS)
        if format == "json":
            whole = {"schema_version": SCHEMA_VERSION, **self.settings, "rows": list(self.rows), "notes": list(self.notes)}
            return to_json(whole, indent=2) + "\n"
        if format == "csv":
            return csv_text(self.rows, list(self.rows[0]) if self.rows else [])
        head, lines, is_number = self.cells()
        if format == "markdown":
            return "\n\n".join([markdown_table(head, lines, is_number), *self.notes]) + "\n"
        return (_text if format == "text" else _latex)(head, lines, is_number, self.notes)

    def cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Return titles, rows of cells, and whether each column has numbers, as shown to people."""
        lines = [[one_line(column.text(row)) for column in self.columns] for row in self.rows]
        return [one_line(column.title) for column in self.columns], lines, [column.is_number for column in self.columns]

    def print(self) -> None:
        """Print the table: with borders in a terminal, else like `render("text")`."""
        head, lines, is_number = self.cells()
        print_table(self.render("text"), head, lines, is_number=is_number, notes=self.notes)


def named_column(name: str, decimals: int = 3, *, title: str | None = None, is_number: bool = True) -> TableColumn:
    """Return a column with the values of one name, numbers with a fixed number of decimals."""
    return TableColumn(title or name, lambda row: figure(row[name], decimals), is_number)


def text_column(name: str) -> TableColumn:
    """Return a column with the texts of one name."""
    return named_column(name, is_number=False)


def interval_column(title: str, value: str, prefix: str, decimals: int = 3, *, missing: str = "undefined") -> TableColumn:
    """Return a column "value [low, high]" from `value` and from `ci_low`, `ci_high` and `is_rough` with a prefix."""

    def text(row: TableRow) -> str:
        if row[value] is None:
            return missing
        number, low, high = (cast("float | None", row[name]) for name in (value, f"{prefix}ci_low", f"{prefix}ci_high"))
        return interval_text(number, low, high, decimals, is_rough=bool(row.get(f"{prefix}is_rough")))

    return TableColumn(title, text)


def estimated(title: str, prefix: str = "") -> tuple[TableColumn, TableColumn]:
    """Return the columns of an estimate and its interval, whose names in the rows of `figures` begin with `prefix`."""

    def interval(row: TableRow) -> str:
        if row[f"{prefix}ci_low"] is None:
            return ""
        low, high = (number_text(float(row[f"{prefix}{end}"] or 0)) for end in ("ci_low", "ci_high"))
        return f"{low} to {high}{', rough' if row[f'{prefix}is_rough'] else ''}"

    return named_column(f"{prefix}value", title=title), TableColumn("95 % interval", interval)


ESTIMATED = estimated("mean")
COUNTS = (
    TableColumn("scored", lambda row: f"{row['n_scored']}/{row['n_total']}"),
    named_column("n_clusters", title="conversations", decimals=0),
)
"""Columns of the counts that `figures` returns."""


def figures(estimate: Estimate, prefix: str = "") -> dict[str, Any]:
    """Return the fields of a table row for an estimate."""
    names = ("value", "ci_low", "ci_high", "is_rough", "n_scored", "n_total", "n_clusters")
    return {f"{prefix}{name}": getattr(estimate, name) for name in names}


def figure(value: CellValue, decimals: int = 3) -> str:
    """Format a number with a fixed number of decimals; text stays unchanged.

    Example:
        >>> figure(0.12345), figure("undefined"), figure(None)
        ('0.123', 'undefined', '')
    """
    return str(value) if isinstance(value, (str, bool)) else number_text(value, decimals)


def csv_text(rows: Iterable[TableRow], names: Sequence[str]) -> str:
    """Return CSV whose texts are one line each and never formulas; numbers stay numbers, missing values are empty."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {name: one_line(for_spreadsheet(cell)) if isinstance(cell, str) else cell for name, cell in row.items()}
        )
    return stream.getvalue()


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], is_number: Sequence[bool] | None = None) -> str:
    """Return a Markdown table without a final line break; cells are escaped, columns of numbers aligned to the right."""
    rule = ["---:" if number else "---" for number in is_number or [False] * len(head)]
    lines = [list(map(for_markdown, head)), rule, *(list(map(for_markdown, row)) for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _text(head: Sequence[str], lines: Sequence[Sequence[str]], is_number: Sequence[bool], notes: Sequence[str]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]

    def aligned(cells: Sequence[str]) -> str:
        columns = zip(cells, widths, is_number, strict=True)
        return "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in columns).rstrip()

    aligned_lines = [aligned(cells) for cells in (head, ["-" * width for width in widths], *lines)]
    return "\n".join([*aligned_lines, *([""] if notes else []), *notes]) + "\n"


def _latex(head: Sequence[str], lines: Sequence[Sequence[str]], is_number: Sequence[bool], notes: Sequence[str]) -> str:
    def row(cells: Sequence[str]) -> str:
        return " & ".join(re.sub(r"(?<![\w.-])-(?=\d)", "$-$", cell.translate(_LATEX)) for cell in cells) + r" \\"

    alignment = "".join("r" if number else "l" for number in is_number)
    body = [r"\begin{tabular}{" + alignment + "}", r"\toprule", row(head), r"\midrule", *map(row, lines), r"\bottomrule"]
    return "\n".join([*body, r"\end{tabular}", *(f"% {one_line(note)}" for note in notes)]) + "\n"
