"""`Corpus`, the declaration of a corpus: its publication, its readers, its folder and its download.

A corpus is in the folder named by `DIALEVAL_DATA_DIR` if that is set, and otherwise in the user's cache; never in both.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import checked, parse_json_prefix, read_json, read_text
from dialeval_plugin.core.resources import user_cache

DATA_DIR_VARIABLE = "DIALEVAL_DATA_DIR"


class GroundedDialogue(NamedTuple):
    """A dialogue with the facts given to its speakers."""

    dialogue: Dialogue
    facts: Mapping[str, tuple[str, ...]] = {}
    """Persona lines or the situation, by the speaker whom they describe, named as in the dialogue's turns."""
    misleading: tuple[str, ...] = ()
    """Responses written by people to look right in place of the last turn; few layouts have them."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Turns of the dialogue, oldest first."""
        return self.dialogue.turns


class RatedDialogue(NamedTuple):
    """A dialogue, with or without a rating of the whole, and its rated responses."""

    whole: Dialogue
    responses: tuple[Example, ...]
    """Responses in the order of the dialogue, each with all previous turns as its context."""


_FIRST = 1 << 22
"""Number of bytes by which a layout is recognised."""


class FileHead(NamedTuple):
    """The beginning of a file, by which its layout is recognised."""

    text: str
    """The file's text from its first visible character on."""
    value: Any
    """The first JSON object, or the first element of an array; None if the file begins with neither."""

    @classmethod
    def of(cls, path: Path) -> FileHead:
        """Read the first megabytes of a file; raises as `read_text`."""
        start = read_text(path, _FIRST).lstrip()
        value = None
        if start.startswith(("{", "[")):
            # Errors of a malformed file are reported by the layout's own reader.
            with contextlib.suppress(InputError):
                value, _ = parse_json_prefix(start.removeprefix("[").lstrip(), 0, "")
        return cls(start, value)

    @property
    def is_array(self) -> bool:
        """Whether the file is a JSON array."""
        return self.text.startswith("[")

    def has(self, *names: str) -> bool:
        """Whether the first object has all these fields."""
        return isinstance(self.value, dict) and self.value.keys() >= set(names)


class RemoteFile(NamedTuple):
    """A file that can be downloaded and checked, with its path inside the corpus' folder."""

    path: str
    url: str
    sha256: str


class ManualDownload(NamedTuple):
    """A file that only the user can download, and how."""

    path: str
    how: str


class DownloadResult(NamedTuple):
    """A corpus' folder, its files with the right checksum, and those still to be downloaded by hand."""

    folder: Path
    files: tuple[str, ...]
    by_hand: tuple[ManualDownload, ...]


@dataclass(frozen=True, slots=True)
class Publication:
    """Publishers of a corpus and locations of its files: its entry in `catalogue.json`."""

    name: str
    title: str
    citation: str | None
    homepage: str | None
    sources: tuple[str, ...]
    licence: str
    """The licence stated by the publishers, or "not stated"."""
    files: tuple[RemoteFile, ...] = ()
    by_hand: tuple[ManualDownload, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files that the corpus' folder should have."""
        return (*(file.path for file in self.files), *(file.path for file in self.by_hand))

    def download(self, folder: Path) -> DownloadResult:
        """Download the files into `folder`; each is checked before it replaces an earlier one."""
        import pooch

        pooch.get_logger().setLevel(logging.WARNING)
        for file in self.files:
            target = folder / file.path
            try:
                pooch.retrieve(file.url, known_hash=f"sha256:{file.sha256}", fname=target.name, path=target.parent)
            except ValueError as error:
                raise MissingPrerequisite(
                    f"{file.url}: the file has another SHA-256 than the catalogue's {file.sha256}, so it was not kept. "
                    "Try again; if it happens again, the publisher has changed the file."
                ) from error
            except OSError as error:
                raise MissingPrerequisite(
                    f"{file.url}: cannot be downloaded ({type(error).__name__}: {error}). "
                    f"Check the connection, or get the file another way and put it at {target}."
                ) from error
            finally:
                # An empty folder would look like a corpus.
                for emptied in dict.fromkeys((target.parent, folder)):
                    with contextlib.suppress(OSError):
                        emptied.rmdir()
        by_hand = tuple(file for file in self.by_hand if not (folder / file.path).is_file())
        return DownloadResult(folder, tuple(file.path for file in self.files), by_hand)


@functools.cache
def publications() -> Mapping[str, Publication]:
    """Return the catalogue, by corpus name."""
    path = Path(__file__).with_name("catalogue.json")
    return {entry.name: entry for entry in checked(read_json(path), list[Publication], path.name, advice="Mend it.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A published corpus, declared by its reader. A reader is None if the corpus has no data for it."""

    name: str
    """Name of the corpus, its folder, and its entry in the catalogue."""
    packaged: Path | None = None
    """Folder of a corpus inside this package."""
    layout: str
    recognises: Callable[[FileHead], bool] = lambda _: False
    """Whether a file has this layout; no file has two."""
    qualities: Mapping[Level, tuple[str, ...]] = field(default_factory=dict)
    overall: Mapping[Level, str] = field(default_factory=dict)
    """The quality used as overall quality, by level."""
    read_items: Callable[[Path], Sequence[Item]] | None = None
    """Reads the items to score from a file, with their ratings."""
    read_dialogues: Callable[[Path], Sequence[Dialogue | GroundedDialogue]] | None = None
    """Reads a file as dialogues without ratings."""
    sets: Mapping[str, Callable[[], Sequence[Item]]] = field(default_factory=dict)
    """Rated sets by name, each read from the corpus' folder."""
    is_chat: bool = False
    """Whether hundreds of its dialogues open with the same greetings, so that each is resampled separately."""

    @property
    def published(self) -> Publication:
        """Publishers and locations of its files."""
        return publications()[self.name]

    def folder(self) -> Path:
        """Return the corpus' folder: below the one named by `DIALEVAL_DATA_DIR` if it is set, otherwise in the user's cache."""
        if self.packaged is not None:
            return self.packaged
        if value := os.environ.get(DATA_DIR_VARIABLE):
            folder = Path(value).expanduser() / self.name
            if not folder.is_dir():
                raise MissingPrerequisite(
                    f"corpus {self.name!r}: {DATA_DIR_VARIABLE} is {value!r}, which has no folder {self.name!r}. "
                    "Put the corpus there, or unset the variable to use the cache."
                )
            return folder
        folder = user_cache() / self.name
        if not folder.is_dir():
            raise MissingPrerequisite(
                f"corpus {self.name!r}: is not in the cache ({folder}). "
                f"Type `dialeval data fetch {self.name}`, or set {DATA_DIR_VARIABLE} to a folder that has it as {self.name!r}."
            )
        return folder

    def file(self, name: str) -> Path:
        """Return the path of one of its files."""
        path = self.folder() / name
        if not path.is_file():
            raise MissingPrerequisite(f"{path.parent}: has no {path.name}. Type `dialeval data fetch {self.name}`.")
        return path

    def fetch(self) -> DownloadResult:
        """Download the corpus into the user's cache; existing files with the right checksum stay."""
        if self.packaged is not None:
            return DownloadResult(self.packaged, (), ())
        if value := os.environ.get(DATA_DIR_VARIABLE):
            raise InputError(
                f"{DATA_DIR_VARIABLE}: is set to {value!r}, so corpora are read from there and not from the cache. "
                "Unset it before you fetch."
            )
        return self.published.download(user_cache() / self.name)
