"""What a reader declares of its corpus: what it is, who published it, where its files come from, and how they are read."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import checked, parse_json_prefix, read_text

DATA_DIR_VARIABLE = "DIALEVAL_DATA_DIR"


class GroundedDialogue(NamedTuple):
    """A dialogue with what its speakers were given to talk about."""

    dialogue: Dialogue
    facts: Mapping[str, tuple[str, ...]] = {}
    """Persona lines or the situation, by the speaker whom they describe, as the dialogue's turns name him or her."""
    misleading: tuple[str, ...] = ()
    """Responses that people wrote to look right in the last turn's place; few layouts have them."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Turns of the dialogue, oldest first."""
        return self.dialogue.turns


class RatedDialogue(NamedTuple):
    """A dialogue, rated as a whole or not, and those of its responses that were rated."""

    whole: Dialogue
    responses: tuple[Example, ...]
    """In the order of the dialogue, each with all turns before it as its context."""


class Beginning(NamedTuple):
    """What tells a layout from the others."""

    text: str
    """The file's text from its first visible character on."""
    value: Any
    """The first JSON object; in an array its first element; None where the file begins with neither."""

    @classmethod
    def of(cls, path: Path) -> Beginning:
        """Read it; raises as `read_text`."""
        start = read_text(path).lstrip()
        value = None
        if start.startswith(("{", "[")):
            # What is malformed is named by the layout's own reader.
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
    """A file that can be downloaded and checked, with its place inside the corpus' folder."""

    path: str
    url: str
    sha256: str


class ByHand(NamedTuple):
    """A file that nobody but the user can get, and how."""

    path: str
    how: str


@dataclass(frozen=True, slots=True)
class Publication:
    """Who published a corpus, and where its files are: its entry in `catalogue.json`."""

    name: str
    title: str
    citation: str | None
    homepage: str | None
    sources: tuple[str, ...]
    licence: str
    """As its publishers state it, or "not stated"."""
    files: tuple[RemoteFile, ...] = ()
    by_hand: tuple[ByHand, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the corpus' folder should have."""
        return (*(file.path for file in self.files), *(file.path for file in self.by_hand))


@functools.cache
def publications() -> Mapping[str, Publication]:
    """Return the catalogue by name of the corpus."""
    text = resources.files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")
    entries = checked(json.loads(text), list[Publication], "catalogue.json", advice="Mend it.")
    return {entry.name: entry for entry in entries}


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A published corpus, as its reader declares it. What reads it is None where it has nothing of the kind."""

    name: str
    """Also of its folder, and of its entry in the catalogue."""
    packaged: Path | None = None
    """Its folder, where it is a part of this package."""
    layout: str
    recognises: Callable[[Beginning], bool] = lambda _: False
    """Whether a file is of its layout; no file is of two."""
    qualities: Mapping[Level, tuple[str, ...]] = field(default_factory=dict)
    overall: Mapping[Level, str] = field(default_factory=dict)
    """The quality that stands for overall quality, by level."""
    read_items: Callable[[Path], Sequence[Item]] | None = None
    """Reads what a file has to score, with its ratings."""
    read_dialogues: Callable[[Path], Sequence[Dialogue | GroundedDialogue]] | None = None
    """Reads a file as dialogues without ratings."""
    sets: Mapping[str, Callable[[], Sequence[Item]]] = field(default_factory=dict)
    """Its rated sets by name, each read from the corpus' folder."""
    is_chat: bool = False
    """Hundreds of its dialogues open with the same greetings: each is resampled by itself."""

    @property
    def published(self) -> Publication:
        """Who published it, and where its files are."""
        return publications()[self.name]

    def folder(self) -> Path:
        """Return the corpus' folder: below the one that `DIALEVAL_DATA_DIR` names where it is set, else in the user's cache."""
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
        folder = cache_folder() / self.name
        if not folder.is_dir():
            raise MissingPrerequisite(
                f"corpus {self.name!r}: is not in the cache ({folder}). "
                f"Type `dialeval data fetch {self.name}`, or set {DATA_DIR_VARIABLE} to a folder that has it as {self.name!r}."
            )
        return folder

    def file(self, name: str) -> Path:
        """Return one of its files."""
        path = self.folder() / name
        if not path.is_file():
            raise MissingPrerequisite(f"{path.parent}: has no {path.name}. Type `dialeval data fetch {self.name}`.")
        return path


def cache_folder() -> Path:
    """Return the folder of this user's cache that holds one folder a corpus."""
    import pooch

    return Path(pooch.os_cache("dialeval"))
