"""Which corpora are known, where they lie on this machine, and fetching them with checksums.

The catalogue is data, `catalogue.json`. A corpus is looked for in the folder that `DIALEVAL_DATA_DIR` names if it is set, and
in the user's cache otherwise; the two are never mixed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.errors import InputError, MissingPrerequisite

from . import mini

DATA_DIR_VARIABLE = "DIALEVAL_DATA_DIR"


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that can be downloaded and checked."""

    path: str
    """Place inside the corpus' folder."""
    url: str
    sha256: str
    bytes: int


class ByHand(NamedTuple):
    """A file that nobody but the user can get, and how."""

    path: str
    how: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """One entry of the catalogue."""

    name: str
    title: str
    homepage: str | None
    sources: tuple[str, ...]
    licence: str
    """As its publishers state it, or "not stated"."""
    files: tuple[RemoteFile, ...]
    by_hand: tuple[ByHand, ...]


class Status(NamedTuple):
    """What `dialeval data list` shows of a corpus."""

    corpus: Corpus
    folder: Path | None
    """Where it is; None where it is not."""
    missing: tuple[str, ...]
    """Files of the catalogue that the folder lacks."""


class Fetched(NamedTuple):
    """What `fetch` did."""

    folder: Path
    files: tuple[str, ...]
    """Files that are now in the folder and have the right checksum."""
    by_hand: tuple[ByHand, ...]
    """Files that are still to be got by hand."""


def load_catalogue() -> dict[str, Corpus]:
    """Return the known corpora by name."""
    text = resources.files(__package__).joinpath("catalogue.json").read_text(encoding="utf-8")
    corpora = (
        Corpus(
            name=entry["name"],
            title=entry["title"],
            homepage=entry["homepage"],
            sources=tuple(entry["sources"]),
            licence=entry["licence"],
            files=tuple(RemoteFile(**file) for file in entry["files"]),
            by_hand=tuple(ByHand(**file) for file in entry["by_hand"]),
        )
        for entry in json.loads(text)
    )
    return {corpus.name: corpus for corpus in corpora}


def find_corpus(name: str) -> Corpus:
    """Return the corpus `name`.

    Raises:
        InputError: there is none; the message lists all.
    """
    catalogue = load_catalogue()
    if name not in catalogue:
        raise InputError(f"there is no corpus {name!r}. Known are: {', '.join(catalogue)}.")
    return catalogue[name]


def locate(name: str) -> Path:
    """Return the folder that holds a corpus.

    Raises:
        InputError: the corpus is unknown.
        MissingPrerequisite: it is not on this machine; the message says what to type.
    """
    corpus = find_corpus(name)
    if corpus.name == "mini":
        return mini.folder()
    if value := os.environ.get(DATA_DIR_VARIABLE):
        folder = Path(value).expanduser() / name
        if not folder.is_dir():
            raise MissingPrerequisite(
                f"corpus {name!r}: {DATA_DIR_VARIABLE} is {value!r}, which has no folder {name!r}. "
                "Put the corpus there, or unset the variable to use the cache."
            )
        return folder
    folder = cache_folder() / name
    if not folder.is_dir():
        raise MissingPrerequisite(
            f"corpus {name!r}: is not in the cache ({folder}). "
            f"Type `dialeval data fetch {name}`, or set {DATA_DIR_VARIABLE} to a folder that has it as {name!r}."
        )
    return folder


def status() -> list[Status]:
    """Return for each known corpus whether and where it is."""
    found = []
    for corpus in load_catalogue().values():
        try:
            folder = locate(corpus.name)
        except MissingPrerequisite:
            folder = None
        expected = [file.path for file in corpus.files] + [file.path for file in corpus.by_hand]
        missing = tuple(path for path in expected if folder is None or not (folder / path).is_file())
        found.append(Status(corpus, folder, missing))
    return found


def fetch(name: str) -> Fetched:
    """Download a corpus into the user's cache; files that are there already and have the right checksum stay.

    Raises:
        InputError: the corpus is unknown, or `DIALEVAL_DATA_DIR` is set, so that the cache would not be read.
        MissingPrerequisite: as `download`.
    """
    corpus = find_corpus(name)
    if corpus.name == "mini":
        return Fetched(mini.folder(), (), ())
    if value := os.environ.get(DATA_DIR_VARIABLE):
        raise InputError(
            f"{DATA_DIR_VARIABLE}: is set to {value!r}, so corpora are read from there and not from the cache. "
            "Unset it before you fetch."
        )
    return download(corpus, cache_folder() / name)


def download(corpus: Corpus, folder: Path) -> Fetched:
    """Download the files of `corpus` into `folder`, each checked before it takes its place.

    Raises:
        MissingPrerequisite: a file cannot be had, or is not the one that the catalogue knows. Files that were complete
            before stay; nothing is left of the failed one.
    """
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    for file in corpus.files:
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
            _remove_empty(target.parent, folder)
    fetched = tuple(file.path for file in corpus.files)
    by_hand = tuple(file for file in corpus.by_hand if not (folder / file.path).is_file())
    return Fetched(folder, fetched, by_hand)


def cache_folder() -> Path:
    """Return the folder of this user's cache that holds one folder a corpus."""
    import pooch

    return Path(pooch.os_cache("dialeval"))


def _remove_empty(inner: Path, outer: Path) -> None:
    """Remove `inner` and its parents up to `outer` where they are empty: an empty folder would pass for a corpus."""
    for folder in dict.fromkeys((inner, outer)):
        with contextlib.suppress(OSError):
            folder.rmdir()
