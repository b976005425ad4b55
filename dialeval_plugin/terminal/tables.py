"""Tables, drawn in a terminal, plain elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import indent

from .progress import is_terminal

_GAP = 2
"""Characters between columns."""


def print_table(
    plain: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, is_number: Sequence[bool] = (), notes: Sequence[str] = ()
) -> None:
    """Print a table: drawn where stdout is a terminal, else `plain`, for scripts.

    In a narrow terminal a last column of texts is wrapped; other tables continue below, with their first texts repeated.

    Args:
        plain: the whole text, with its last line break.
        head: title of each column.
        rows: cells of each row.
        is_number: whether a column is aligned to the right; by default none.
        notes: lines below the table.
    """
    if not is_terminal(sys.stdout):
        sys.stdout.write(plain)
        return
    from rich.console import Console

    is_number = is_number or [False] * len(head)
    width = shutil.get_terminal_size().columns
    console = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)
    widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(head, *rows, strict=True)]
    for number, places in enumerate(_parts(widths, is_number, console.width)):
        if number:
            console.print()
        console.print(_drawn(places, head, rows, is_number))
    if notes:
        console.print("", *map(_printable, notes), sep="\n")


def print_entries(head: tuple[str, str], entries: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print names, each with its lines indented below, or in a terminal a table with these titles."""
    rows = [(name, "\n".join(lines)) for name, lines in entries]
    print_table("".join(f"{name}\n{indent(lines, ' ' * 4)}\n" for name, lines in rows), head, rows)


def _parts(widths: Sequence[int], is_number: Sequence[bool], width: int) -> list[list[int]]:
    """Return the columns of each part of a table."""
    everything = list(range(len(widths)))
    first = next((place for place in everything if is_number[place]), len(widths))
    if not is_number[-1] or sum(widths) + _GAP * len(widths) <= width:
        return [everything]
    named = everything[:first]
    parts = [[*named]]
    for place in everything[first:]:
        if len(parts[-1]) > len(named) and sum(widths[one] + _GAP for one in [*parts[-1], place]) > width:
            parts.append([*named])
        parts[-1].append(place)
    return parts


def _drawn(places: Sequence[int], head: Sequence[str], rows: Sequence[Sequence[str]], is_number: Sequence[bool]) -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="bold")
    table.leading = int(any("\n" in cell for row in rows for cell in row))
    for place in places:
        table.add_column(
            Text(_printable(head[place])), justify="right" if is_number[place] else "left", overflow="fold", vertical="top"
        )
    for row in rows:
        table.add_row(*(Text(_printable(row[place])) for place in places))
    return table


def _printable(text: str) -> str:
    """Replace characters that the terminal cannot show by their numbers."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
