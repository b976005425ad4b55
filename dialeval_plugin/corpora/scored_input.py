"""`Source`, the input of a scorer: a file, a folder, a data set, a URL, standard input, or a Python object."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from dialeval_plugin.conversations.files import SUFFIXES, Rows, has_known_suffix, is_data_set, members_of, open_rows
from dialeval_plugin.conversations.reading import given_rows, is_conversation, is_message_row, read_rows
from dialeval_plugin.conversations.record import Conversation, FirstPlaces, Reading, ReadingOptions
from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level
from dialeval_plugin.core.errors import InputError, NothingToScore
from dialeval_plugin.core.files import Line, check_name, read_json
from dialeval_plugin.core.scores import meta_file

from .registry import published_items

_PUBLISHED = ("", ".json", ".jsonl", ".csv", ".txt", ".gz")
LARGE = 100_000_000
"""Size in bytes from which a file is not checked for a published corpus."""
_NUMBERED = re.compile(r"message_(\d+)\.json")
_UNFINISHED = re.compile(r".+\.(jsonl|csv|parquet)\.(blocks|shards)")
"""Folder of the finished parts of a run, next to its output, which may be in the folder that it scores."""
_KEPT_TEXT = 1 << 24
"""Characters of rows that are kept in memory once they are read, for the next iteration."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number`, from 1, of `of` parts; responses to one context, and rows of one conversation, are in the same part."""

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
        """Return the part of this process if `accelerate launch` or torchrun has started several; otherwise None."""
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
        """Whether a row is in this part, by a value whose `repr` identifies the turns before its response."""
        return int.from_bytes(hashlib.sha256(repr(context).encode()).digest()[:8], "big") % self.of == self.number - 1


class PlacedItem(NamedTuple):
    """An item, and its position among all items of the source, including other shards'."""

    place: int
    item: Item


def is_streamed(source: str) -> bool:
    """Whether a source is read row by row: by its name or, for JSON lines, by its size."""
    if "://" in source or source.endswith((".parquet", ".arrow")) or (Path(source).is_dir() and is_data_set(Path(source))):
        return True
    path = Path(source)
    return ".jsonl" in path.name and path.is_file() and path.stat().st_size >= LARGE


@dataclass
class Source:
    """An input: a file, a folder of them, a data set, a URL, `-`, or a Python object.

    Each iteration reads it again, unless it is small and an earlier one has read all of it.

    Attributes:
        name: a path or a URL; for an object, its name in errors.
        options: the user's reading options.
        given: the object; None if the source is named.
        level: level of the items to read from a published file that has both; with None it is not scored.
        reading: counts of the last iteration; `n_items` is the number of items.
    """

    name: str
    options: ReadingOptions = field(default_factory=ReadingOptions)
    given: Any = None
    level: Level | None = None
    reading: Reading = field(default_factory=Reading)
    n_items: int = 0
    _digest: Any = field(default_factory=hashlib.sha256, init=False)
    _n_characters: int = field(default=0, init=False)
    _kept: tuple[object, Sequence[Conversation | Item | None]] = field(default=(None, ()), init=False)
    _copy: Any = field(default=None, init=False)

    @property
    def digest(self) -> str:
        """Hash of all rows of the last iteration, including other shards', and of the reading options."""
        return str(self._digest.hexdigest()[:16])

    def conversations(
        self, is_wanted: Callable[[object], bool] | None = None, *, is_scored: bool = False
    ) -> Iterator[Conversation | Item | None]:
        """Yield the conversations or items of the source; None for a response that is not wanted, see `read_rows`.

        Raises:
            InputError: a row is malformed; the message names it. A malformed message is an error of its conversation alone,
                unless no conversation can be read. With `is_scored`, a published file has responses and whole dialogues, and
                `level` is None.
        """
        check_name(self.name)
        key = (is_wanted, is_scored, self.level)
        if self._kept[0] == key:
            yield from self._kept[1]
            return
        self.reading = Reading(self.options, leaves_out_malformed=self.given is None)
        self._digest, self._n_characters = hashlib.sha256(repr(self.options).encode()), 0
        n_read, read = 0, []
        try:
            for one in self._all(is_wanted, is_scored=is_scored):
                n_read += 1
                self._check_whole()
                read.append(one)
                if self._n_characters > _KEPT_TEXT:
                    read.clear()
                yield one
            self._check_whole()
        except sqlite3.Error as error:
            raise InputError(f"{self.name}: its ids cannot be kept in a temporary file ({error}). Make room.") from error
        if self.reading.malformed and not n_read:
            raise InputError(self.reading.malformed[0])
        if self.given is None and len(read) == n_read:
            self._kept = key, read

    def _check_whole(self) -> None:
        if self.options.strict and (self.reading.left_out or self.reading.passed_over):
            raise InputError(f"{self.name}: {self.reading.remarks().strip()}. Without --strict the rest is read.")

    def items(self, level: Level, shard: Shard | None = None) -> Iterator[PlacedItem]:
        """Yield the items for a scorer of this level, only those of the shard if one is given.

        A row without an id is named after the file and its position. For a response of another shard only the context is read.

        Raises:
            InputError: as `conversations`, or there is nothing to score.
        """
        self.n_items = 0
        for one in self.conversations(None if shard is None else shard.has, is_scored=True):
            is_own = one is not None
            if isinstance(one, Conversation):
                is_own = shard is None or shard.has([turn.text for turn in one.turns])
            for item in one.items(level) if isinstance(one, Conversation) else [one]:
                if item is not None and is_own:
                    yield PlacedItem(self.n_items, item)
                self.n_items += 1
        if not self.n_items:
            silent = self.reading.remarks().strip().replace("\n", "; ")
            turns = "turns='all'" if self.given is not None else "--turns all"
            advice = f"Call the assistant 'assistant', or choose the turns by {turns}." if silent else "Give a row or more."
            raise NothingToScore(f"{self.name}: has nothing to score ({silent or 'it is empty'}). {advice}")

    def read(self, level: Level) -> list[Item]:
        """Return all items for a scorer of this level, in the order of the files; raises as `items`."""
        return [placed.item for placed in self.items(level)]

    def _all(self, is_wanted: Callable[[object], bool] | None, *, is_scored: bool) -> Iterator[Conversation | Item | None]:
        if self.given is not None:
            yield from self._read(given_rows(self.given), is_wanted)
            return
        path = Path(self._spooled())
        if (path.is_dir() and not is_data_set(path)) or members_of(path):
            yield from self._folder(path, is_wanted)
            return
        if _may_be_published(path) and (items := published_items(path, self.options)) is not None:
            for item in self._of_level(items) if is_scored else items:
                self._hash(item)
                yield item
            return
        if not self.options.columns and _is_scores(path):
            raise InputError(
                f"{self.name}: is a file of scores. Give the conversations, or name the columns of its texts by --columns."
            )
        rows = open_rows(self.name if "://" in self.name else str(path), called=self.name, layout=self.options.layout)
        self.reading.stem = "stdin" if self.name == "-" else PurePosixPath(self.name).name.partition(".")[0]
        yield from self._read(rows, is_wanted)

    def _of_level(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items of the wanted level, of a published file that has responses and whole dialogues."""
        dialogues = [item for item in items if isinstance(item, Dialogue)]
        responses = [item for item in items if isinstance(item, Example)]
        if not (dialogues and responses):
            return items
        if self.level is None:
            raise InputError(
                f"{self.name}: has {len(responses)} responses and {len(dialogues)} whole dialogues. Choose with --option "
                "level=turn or --option level=dialogue."
            )
        is_of_turns = self.level == "turn"
        others = f"{len(dialogues)} whole dialogues" if is_of_turns else f"{len(responses)} responses"
        self.reading.passed_over.append(f"not of {self.level} level, left out: {others}")
        return responses if is_of_turns else dialogues

    def _spooled(self) -> str:
        """The file to read: for standard input and pipes, which can be read only once, a temporary copy."""
        is_pipe = self.name == "-" or Path(self.name).is_fifo()
        if is_pipe and self._copy is None:
            self._copy = tempfile.NamedTemporaryFile()  # noqa: SIM115 # it lasts as long as the source
            with contextlib.nullcontext(sys.stdin.buffer) if self.name == "-" else Path(self.name).open("rb") as pipe:
                shutil.copyfileobj(pipe, self._copy)
            self._copy.flush()
        return str(self._copy.name) if is_pipe else self.name

    def _read(self, rows: Rows, is_wanted: Callable[[object], bool] | None) -> Iterator[Conversation | Example | None]:
        def hashed() -> Iterator[Line]:
            for line in rows.lines:
                self._hash(line.value)
                yield line

        return read_rows(rows._replace(lines=hashed()), self.reading, is_wanted)

    def _hash(self, row: object) -> None:
        text = repr(row)
        self._n_characters += len(text)
        self._digest.update(text.encode("utf-8", "surrogatepass"))

    def _folder(self, folder: Path, is_wanted: Callable[[object], bool] | None) -> Iterator[Conversation | Item | None]:
        """Yield the items of the files below a folder or in a ZIP file, named after file and conversation."""
        n_read = 0
        read = set[Path]()
        for address, file in _files_in(folder):
            if file in read:
                continue
            if _is_scores(file):
                self.reading.passed_over.append(f"scores, left out: {file}")
                continue
            name = file.relative_to(folder)
            is_known = has_known_suffix(file.name, self.options.layout)
            rows = _rows_of_log(address, str(file), self.options) if is_known else None
            if rows is None:
                self.reading.passed_over.append(f"no conversations, left out: {file}")
                continue
            if file.is_file() and (messages := _messages_of_folder(file)) is not None:
                read.update(messages)
                rows, name = Rows(line for one in messages for line in open_rows(str(one)).lines), name.parent
            n_read += 1
            self._digest.update(name.as_posix().encode())
            self.reading.places, self.reading.below = FirstPlaces(), f"{name.as_posix()}/"  # ids begin with the file
            for one in self._read(rows, is_wanted):
                yield None if one is None else _below(name.as_posix(), one)
        if not n_read:
            raise InputError(
                f"{self.name}: is a folder without conversations. Give a folder of files ({', '.join(SUFFIXES)}) with "
                "'messages', 'conversations' or 'turns', or name the columns of its tables by --columns, or the layout of its "
                "texts by --layout."
            )


def files_below(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted, without hidden ones and the parts of unfinished runs."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return [file for file in files if not any(map(_is_passed, file.relative_to(folder).parts))]


def _files_in(folder: Path) -> list[tuple[str, Path]]:
    """Return the address and the path of each file below a folder, also of those in ZIP files, or in such a file itself."""
    files = files_below(folder) if folder.is_dir() else [folder]
    within = {file: members_of(file) for file in files}
    return [
        one
        for file in files
        for one in [(f"zip://{name}::{file}", file / name) for name in within[file]] or [(str(file), file)]
    ]


def _is_passed(part: str) -> bool:
    return part.startswith(".") or _UNFINISHED.fullmatch(part) is not None


def _is_scores(file: Path) -> bool:
    """Whether `dialeval score` wrote a file."""
    beside = meta_file(file)
    with contextlib.suppress(InputError):
        return beside.is_file() and "signature" in read_json(beside)
    return False


def _messages_of_folder(file: Path) -> list[Path] | None:
    """Return the files of a conversation with a message each, as of Strands, in their order; None if it is no such file."""
    if not _NUMBERED.fullmatch(file.name) or not is_message_row(next(open_rows(str(file)).lines).value):
        return None
    files = ((_NUMBERED.fullmatch(one.name), one) for one in file.parent.iterdir())
    return [one for _, one in sorted((int(match[1]), one) for match, one in files if match)]


def _below(file: str, one: Conversation | Example) -> Conversation | Example:
    """Return the same item with its file in its name."""
    if isinstance(one, Conversation) or one.origin is None:
        return replace(one, id=f"{file}/{one.id}")
    origin = one.origin._replace(conversation=f"{file}/{one.origin.conversation}")
    return replace(one, id=f"{file}/{one.id}", origin=origin)


def _may_be_published(path: Path) -> bool:
    """Whether a file may belong to a published corpus: not large, and JSON, CSV or text, gzipped or not."""
    return path.is_file() and path.stat().st_size < LARGE and path.suffix.lower() in _PUBLISHED


def _rows_of_log(address: str, name: str, options: ReadingOptions) -> Rows | None:
    """Return the rows of a file in a folder; None if its beginning is of another kind. An error further on is raised."""
    rows = open_rows(address, called=name, layout=options.layout)
    try:
        first = next(rows.lines)
    except (InputError, StopIteration):
        return None
    value = first.value
    names = set(options.columns.values())
    is_log = value.keys() >= names if names else is_conversation(value, is_table=rows.is_table)
    return rows._replace(lines=itertools.chain([first], rows.lines)) if is_log or options.layout else None
