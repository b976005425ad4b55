"""Tables: drawn in a terminal, plain elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import indent

from .progress import is_terminal

_GAP = 2
"""Columns of a terminal between those of a table."""


def print_table(
    plain: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, is_number: Sequence[bool] = (), notes: Sequence[str] = ()
) -> None:
    """Print a table: `plain`, which scripts read, or the same drawn, where stdout is a terminal.

    Nothing is cut where it is narrow: a last column of texts is broken between words, other tables are continued below, with
    the texts that they begin with in front again.

    Args:
        plain: the whole, with its last line break.
        head: title of each column.
        rows: its cells.
        is_number: whether a column is aligned to the right; by default none.
        notes: said below.
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
    """Print names, each with the lines about it indented below; where stdout is a terminal, a drawn table with these titles."""
    rows = [(name, "\n".join(lines)) for name, lines in entries]
    print_table("".join(f"{name}\n{indent(lines, ' ' * 4)}\n" for name, lines in rows), head, rows)


def _parts(widths: Sequence[int], is_number: Sequence[bool], width: int) -> list[list[int]]:
    """Which columns stand side by side."""
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
    # A blank line between rows of several lines.
    table.leading = int(any("\n" in cell for row in rows for cell in row))
    for place in places:
        # Between words where it can; no sign is left out.
        table.add_column(
            Text(_printable(head[place])), justify="right" if is_number[place] else "left", overflow="fold", vertical="top"
        )
    for row in rows:
        table.add_row(*(Text(_printable(row[place])) for place in places))
    return table


def _printable(text: str) -> str:
    """A terminal that has no sign for a character gets its number."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
