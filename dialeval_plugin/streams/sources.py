"""What a stream is read from: JSON lines, Parquet, and data sets of Arrow, here or behind a URL that fsspec opens."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from dialeval_plugin.core.dialogue import Example, Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json
from dialeval_plugin.corpora.conversations import Conversation, Reading, RowNames, TurnChoice, read_rows
from dialeval_plugin.corpora.rows import FirstPlaces

LARGE = 100_000_000
"""Bytes of a file of JSON lines from which on it is streamed."""
_JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_PARQUET = ".parquet"
_ROWS_AT_ONCE = 1024
_TEXT_AT_ONCE = 1 << 24
"""Characters of rows that are taken together, at least one row: small files hold large ones, packed."""
_ROWS_UNPACKED = 64
"""Rows of Parquet that are unpacked together, of whatever size."""
_ARROW_FILES = ("state.json", "dataset_dict.json")
"""Of a folder that `datasets` has saved: of one data set, or of several."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the parts of a source; what answers one context, and what is of one conversation, is in one of them.

    Attributes:
        number: from 1.
        of: how many parts there are.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read "1/4"."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise InputError(f"shard {text!r}: expected a number and how many there are, such as 1/4, the first of four.")
        return cls(int(number), int(of))

    @classmethod
    def of_process(cls) -> Shard | None:
        """Return the part of this process where `accelerate launch` or torchrun has started several; else None."""
        rank, n_processes = os.environ.get("RANK"), os.environ.get("WORLD_SIZE", "1")
        if rank is None or n_processes == "1":
            return None
        if not (rank.isdecimal() and n_processes.isdecimal() and int(rank) < int(n_processes)):
            raise InputError(
                f"RANK={rank}, WORLD_SIZE={n_processes}: expected the number of this process, from 0, and how many there are. "
                "Unset both, or start the command by torchrun or accelerate launch, which set them."
            )
        return cls(int(rank) + 1, int(n_processes))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, context: object) -> bool:
        """Whether a row is of this part, by a value whose `repr` says what was said before its response."""
        return int.from_bytes(hashlib.sha256(repr(context).encode()).digest()[:8], "big") % self.of == self.number - 1


class PlacedItem(NamedTuple):
    """What is scored, and its place among all items of the source."""

    place: int
    item: Item


def is_streamed(source: str) -> bool:
    """Whether a source is read row by row: by its name, or, of JSON lines, by its size."""
    if "://" in source or source.endswith((_PARQUET, ".arrow")):
        return True
    path = Path(source)
    if path.is_dir():
        return any((path / name).is_file() for name in _ARROW_FILES)
    return source.endswith(_JSON_LINES) and path.is_file() and path.stat().st_size >= LARGE


@dataclass
class Source:
    """The rows of a file or data set, read anew by each iteration.

    Attributes:
        name: a path or a URL.
        choice: which turns of a conversation are to be scored.
        columns: our names of fields to the rows' own.
        left_out: messages, and parts of them, that are no turns, by kind, of the last iteration.
        n_items: of the last iteration.
        malformed: what is wrong with the first conversations that a message makes unreadable, of the last iteration.
    """

    name: str
    choice: TurnChoice | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    n_items: int = 0
    malformed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Hash of all rows of the last iteration, those of other shards among them, and of how they are read."""
        return self._digest.hexdigest()[:16]

    def items(self, level: Level, shard: Shard | None = None) -> Iterator[PlacedItem | None]:
        """Yield what a scorer of this level takes; None for each item that is not of the shard.

        A row without an id is called after the file and its place. Of a response of another shard no more is read than its
        context.

        Raises:
            InputError: a row is malformed; the message names it. Or the rows are turns, of which a conversation is many. A
                malformed message is an error of its conversation alone, unless no conversation can be read.
        """
        self.left_out.clear()
        self.malformed.clear()
        self._digest = hashlib.sha256(repr((level, self.choice, dict(self.columns))).encode())
        self.n_items = first = 0
        rows, is_table = self._rows()
        reading = Reading(self.left_out, self.malformed, FirstPlaces())
        try:
            while lines := self._next_lines(rows):
                for item in self._items_of(lines, level, shard, first=first, is_table=is_table, reading=reading):
                    yield None if item is None else PlacedItem(self.n_items, item)
                    self.n_items += 1
                first += len(lines)
        except sqlite3.Error as error:
            raise InputError(f"{self.name}: its ids cannot be kept in a temporary file ({error}). Make room.") from error
        if not self.n_items:
            raise InputError(self.malformed[0] if self.malformed else f"{self.name}: has nothing to score.")

    def _next_lines(self, rows: Iterator[Line]) -> list[Line]:
        """Rows that are taken together, as many as the constants of this module say."""
        lines: list[Line] = []
        size = 0
        for line in itertools.islice(rows, _ROWS_AT_ONCE):
            text = repr(line.value)
            self._digest.update(text.encode())
            lines.append(line)
            if (size := size + len(text)) >= _TEXT_AT_ONCE:
                break
        return lines

    def _items_of(
        self, lines: Sequence[Line], level: Level, shard: Shard | None, *, first: int, is_table: bool, reading: Reading
    ) -> Iterator[Item | None]:
        """What rows have to score; None for each item that is not of the shard."""
        self._refuse_turns(lines[0])
        is_own: list[bool] = []

        def is_wanted(context: object) -> bool:
            is_own.append(shard is None or shard.has(context))
            return is_own[-1]

        found = iter(
            read_rows(
                lines,
                reading,
                names=RowNames(PurePosixPath(self.name).name.partition(".")[0], first),
                columns=self.columns,
                choice=self.choice,
                is_table=is_table,
                is_wanted=is_wanted,
            )
        )
        # It was asked for rows with a response each, and for no conversation.
        for is_read in is_own:
            yield cast("Example", next(found)) if is_read else None
        for conversation in cast("Iterator[Conversation]", found):
            is_read = shard is None or shard.has([turn.text for turn in conversation.turns])
            for item in conversation.items(level):
                yield item if is_read else None

    def _refuse_turns(self, line: Line) -> None:
        names = {ours for ours, theirs in self.columns.items() if theirs in line.value} or line.value.keys()
        if {"conversation", "text"} <= names or "role" in names:
            raise InputError(
                f"{line.where}: is one turn, and a stream never has a whole conversation of such rows. "
                "Give a conversation a row, under 'messages', or a file that is read whole (.csv, .json)."
            )

    def _rows(self) -> tuple[Iterator[Line], bool]:
        if Path(self.name).is_dir() or self.name.endswith(".arrow"):
            return _arrow_rows(Path(self.name)), True
        return (_parquet_rows(self.name), True) if self.name.endswith(_PARQUET) else (_json_rows(self.name), False)


def files_of(name: str) -> tuple[Any, str]:
    """Return the file system of fsspec that has a source, and its path there; of a file that is here no letter is a sign."""
    import fsspec

    return (fsspec.filesystem("file"), name) if Path(name).exists() else fsspec.core.url_to_fs(name)


def _json_rows(name: str) -> Iterator[Line]:
    from fsspec.core import OpenFile, get_compression

    kind = get_compression(name, "infer")
    with reading(name), OpenFile(*files_of(name), "rt", kind, encoding="utf-8-sig", newline="\n") as file:
        # Only "\n" ends a record.
        for number, text in enumerate(iter(partial(file.readline, LARGE), ""), start=1):
            where = f"{name}:{number}"
            if len(text) == LARGE:
                raise InputError(f"{where}: holds more than {LARGE // 10**6} MB, the limit of a row. Split it.")
            if not text.strip():
                continue
            value = parse_json(text, where)
            if not isinstance(value, dict):
                raise InputError(f"{where}: expected a JSON object, got {type(value).__name__}.")
            yield Line(where, value)


def _parquet_rows(name: str) -> Iterator[Line]:
    import pyarrow.parquet
    from fsspec.core import OpenFile

    with reading(name), OpenFile(*files_of(name), "rb") as file:
        parquet = pyarrow.parquet.ParquetFile(file)
        yield from _numbered(name, (row for batch in parquet.iter_batches(_ROWS_UNPACKED) for row in batch.to_pylist()))


def _arrow_rows(path: Path) -> Iterator[Line]:
    from datasets import Dataset, load_from_disk

    with reading(str(path)):
        data = Dataset.from_file(str(path)) if path.is_file() else load_from_disk(str(path))
        if not isinstance(data, Dataset):
            raise InputError(f"{path}: holds several data sets ({', '.join(data)}). Name the folder of one of them.")
        yield from _numbered(str(path), iter(data))


def _numbered(name: str, rows: Iterable[Any]) -> Iterator[Line]:
    return (Line(f"{name}: row {number}", row) for number, row in enumerate(rows, start=1))


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Say which source it is that cannot be read."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file.") from None
    except Exception as error:
        # What is behind a URL, or in a damaged file, fails in as many ways as there are libraries.
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{name}: cannot be read ({first}).") from error
