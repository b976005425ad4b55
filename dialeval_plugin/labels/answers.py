"""Rows for people to label: a table to fill in, and a file to which each answer is added when it is given."""

from __future__ import annotations

import csv
import io
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import TableLines, read_text, write_text
from dialeval_plugin.terminal import for_spreadsheet, from_spreadsheet

DRAWN = "drawn"
"""Column that says how rows were drawn, used by `estimate` for weights; it reveals nothing about a row's score."""
_ANSWERS = ("id", "rater", "label", DRAWN)


class RowToLabel(NamedTuple):
    """A row without its score: `before` holds the turns before `text`, as (role, text)."""

    id: str
    before: Sequence[tuple[str, str]]
    role: str
    text: str


def write_table_to_fill(path: Path, rows: Sequence[RowToLabel], drawn: str) -> None:
    """Write a CSV of the rows with an empty column `label`."""
    has_texts = any(row.text or row.before for row in rows)
    columns = ["id", *(["context", "response"] if has_texts else []), "label", DRAWN]
    lines = []
    for row in rows:
        context = "\n".join(f"{role}: {text}" if role else text for role, text in row.before)
        texts = [for_spreadsheet(context), for_spreadsheet(row.text)] if has_texts else []
        lines.append([for_spreadsheet(row.id), *texts, "", drawn])
    write_text(path, _csv([columns, *lines]))


class AnswerFile:
    """The answers of all raters to some rows, by id, in a CSV with one line per answer."""

    def __init__(self, path: Path, drawn: str) -> None:
        """Open an existing file to continue it, or create one; InputError: the file holds something else."""
        self._path, self._drawn, self._lock = path, drawn, threading.Lock()
        self.given: dict[tuple[str, str], str] = {}
        if path.exists():
            self.given = dict(self._read())
        self._rewrite()

    def add(self, rater: str, id: str, label: str) -> None:
        """Write an answer before returning; a second one to the same row replaces the first."""
        rater = rater_name(rater)
        with self._lock:
            is_new = (rater, id) not in self.given
            self.given[rater, id] = label
            if not is_new:
                self._rewrite()
                return
            with self._path.open("a", encoding="utf-8", newline="") as file:
                file.write(_csv([self._line(rater, id, label)]))
                file.flush()
                os.fsync(file.fileno())

    def _line(self, rater: str, id: str, label: str) -> list[str]:
        return [for_spreadsheet(id), rater, label, self._drawn]

    def _read(self) -> Iterator[tuple[tuple[str, str], str]]:
        text = read_text(self._path)
        head, *lines = list(csv.reader(io.StringIO(text))) or [[]]
        # A line left incomplete by a power failure is no answer: its receipt was never confirmed.
        if lines and not text.endswith("\n") and lines[-1][len(_ANSWERS) - 1 :] != [self._drawn]:
            del lines[-1]
        if tuple(head) != _ANSWERS or any(len(line) != len(_ANSWERS) or line[-1] != self._drawn for line in lines):
            raise InputError(
                f"{self._path}: holds something else than answers to these rows. Choose another --output, or give the labels "
                "that are there by --labels."
            )
        for id, rater, label, _ in lines:
            yield (rater, from_spreadsheet(id)), label

    def _rewrite(self) -> None:
        lines = [self._line(rater, id, label) for (rater, id), label in self.given.items()]
        write_text(self._path, _csv([_ANSWERS, *lines]))


def rater_name(name: str) -> str:
    """Return the name of a rater as it is in the file, where it is no formula."""
    return for_spreadsheet(name.strip())


def _csv(rows: Sequence[Sequence[str]]) -> str:
    stream = io.StringIO()
    csv.writer(TableLines(stream)).writerows(rows)
    return stream.getvalue()
