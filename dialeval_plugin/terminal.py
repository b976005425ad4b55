"""Progress on stderr, a bar in a terminal, elsewhere a plain line now and then; tables on stdout; and escaping of texts.

Names from other people's files could be formulas in spreadsheets, or links and images in Markdown.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterable, Sequence
from textwrap import indent
from typing import Any, TextIO

import tqdm

SECONDS_BETWEEN_LINES = 10.0
"""Least time between two lines; lines of a long run are further apart."""
_GAP = 2
"""Characters between columns."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Line ends and control characters, also those of the writing direction.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether `stream` is a terminal that can move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress(tqdm.tqdm):  # type: ignore[misc]  # tqdm is not typed
    """A bar of tqdm that leaves nothing behind; where stderr is no terminal, lines in its place.

    The first line comes after ten seconds. A run that took longer than that ends with a line on how long it took.
    """

    monitor_interval = 0  # no thread that watches the bars

    def __init__(self, iterable: Any = None, desc: str | None = None, total: float | None = None, **options: Any) -> None:
        self._is_drawn = is_terminal(sys.stderr)
        if not self._is_drawn:
            options |= {"mininterval": SECONDS_BETWEEN_LINES, "delay": SECONDS_BETWEEN_LINES}
        super().__init__(iterable, desc, total, leave=False, miniters=1, **options)
        if not self._is_drawn:
            self._instances.discard(self)  # `say` need not clear it

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        """Draw the bar, or write a line."""
        if self._is_drawn:
            return super().display(msg, pos)
        if self.n == self.total:
            return True  # `close` says so
        elapsed = self.format_dict["elapsed"]
        self.mininterval = max(SECONDS_BETWEEN_LINES, elapsed / 10)
        text = f"{self._text()}, {self.format_interval(elapsed)}"
        if self.total and self.n > self.initial:
            left = elapsed * (self.total - self.n) / (self.n - self.initial)
            text += f", about {self.format_interval(left)} left"
        say(text)
        return True

    def close(self) -> None:
        """Remove the bar."""
        if getattr(self, "disable", True):
            return
        elapsed = self.format_dict["elapsed"]
        if self._is_drawn:
            super().close()
        self.disable = True
        if elapsed >= SECONDS_BETWEEN_LINES:
            say(f"{self._text()}, {self.format_interval(elapsed)}")

    def _text(self) -> str:
        of, share = (f" of {self.total:,}", f" ({100 * self.n / self.total:.0f} %)") if self.total else ("", "")
        unit = "" if self.unit == "it" else f" {self.unit}s"
        return f"{self.desc.removesuffix(': ') or 'working'}: {self.n:,}{of}{unit}{share}"


# A thread may have been drawing a bar when the process was forked; the child would wait for tqdm's lock for ever.
os.register_at_fork(after_in_child=lambda: Progress.set_lock(threading.RLock()))


def say(line: str) -> None:
    """Write a line to stderr, above a bar that is drawn there."""
    Progress.write(line, file=sys.stderr)


class LogHandler(logging.StreamHandler):  # type: ignore[type-arg]  # no generic class before Python 3.11
    """Write records to stderr, above a bar that is drawn there."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        with Progress.external_write_mode(file=self.stream):
            super().emit(record)


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
        sys.stdout.write(printable(plain))
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
        console.print("", *map(printable, notes), sep="\n")


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
            Text(printable(head[place])), justify="right" if is_number[place] else "left", overflow="fold", vertical="top"
        )
    for row in rows:
        table.add_row(*(Text(printable(row[place])) for place in places))
    return table


def printable(text: str) -> str:
    """Return a text with numbers for the characters that the terminal cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def for_spreadsheet(cell: str) -> str:
    """Return `cell`, with an apostrophe in front if it is a formula (OWASP), or one behind apostrophes.

    Example:
        >>> for_spreadsheet("=HYPERLINK(1)"), for_spreadsheet(" @SUM(1)"), for_spreadsheet("'+1"), for_spreadsheet("So = what?")
        ("'=HYPERLINK(1)", "' @SUM(1)", "''+1", 'So = what?')
    """
    bare = cell.lstrip("'")
    return f"'{cell}" if bare.startswith(_FORMULA_STARTS) or bare.lstrip().startswith(_FORMULA_STARTS) else cell


def from_spreadsheet(cell: str) -> str:
    """Return the text of a cell that `for_spreadsheet` made.

    Example:
        >>> from_spreadsheet("'+49"), from_spreadsheet("'tis")
        ('+49', "'tis")
    """
    return cell[1:] if for_spreadsheet(cell[1:]) == cell else cell


def one_line(cell: str) -> str:
    r"""Return `cell` with blanks in place of line breaks and control characters.

    Example:
        >>> one_line("a\nb")
        'a b'
    """
    return _CONTROL.sub(" ", cell)


def for_markdown(cell: str) -> str:
    r"""Return `cell` escaped for a cell of a Markdown table: without links, images and HTML.

    Example:
        >>> print(for_markdown("![x](http://y) | 0.5 [0.4, 0.6]"))
        ![x]\(http\://y) \| 0.5 [0.4, 0.6]
    """
    text = one_line(cell).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    # Addresses become links without brackets too.
    return text.replace("](", "]\\(").replace("://", "\\://").replace("www.", "www\\.")
