"""Where the known corpora lie on this machine, and fetching them with checksums.

A corpus is looked for in the folder that `DIALEVAL_DATA_DIR` names if it is set, and in the user's cache otherwise; the two are
never mixed.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.errors import InputError, MissingPrerequisite

from .corpus import DATA_DIR_VARIABLE, ByHand, Corpus, Publication, cache_folder
from .registry import CORPORA, find_corpus


class Status(NamedTuple):
    """Where a corpus is, if it is here, and the files of the catalogue that its folder lacks."""

    corpus: Corpus
    folder: Path | None
    missing: tuple[str, ...]


class Fetched(NamedTuple):
    """A corpus' folder, the files in it that have the right checksum, and those that are still to be got by hand."""

    folder: Path
    files: tuple[str, ...]
    by_hand: tuple[ByHand, ...]


def locate(name: str) -> Path:
    """Return the folder that holds a corpus."""
    return find_corpus(name).folder()


def status() -> list[Status]:
    """Return for each known corpus whether and where it is."""
    found = []
    for corpus in CORPORA.values():
        try:
            folder = corpus.folder()
        except MissingPrerequisite:
            folder = None
        missing = tuple(path for path in corpus.published.paths if folder is None or not (folder / path).is_file())
        found.append(Status(corpus, folder, missing))
    return found


def fetch(name: str) -> Fetched:
    """Download a corpus into the user's cache; files that are there already and have the right checksum stay."""
    corpus = find_corpus(name)
    if corpus.packaged is not None:
        return Fetched(corpus.packaged, (), ())
    if value := os.environ.get(DATA_DIR_VARIABLE):
        raise InputError(
            f"{DATA_DIR_VARIABLE}: is set to {value!r}, so corpora are read from there and not from the cache. "
            "Unset it before you fetch."
        )
    return download(corpus.published, cache_folder() / name)


def download(published: Publication, folder: Path) -> Fetched:
    """Download the files of a corpus into `folder`, each checked before it takes its place."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    for file in published.files:
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
            # An empty folder would pass for a corpus.
            for emptied in dict.fromkeys((target.parent, folder)):
                with contextlib.suppress(OSError):
                    emptied.rmdir()
    fetched = tuple(file.path for file in published.files)
    by_hand = tuple(file for file in published.by_hand if not (folder / file.path).is_file())
    return Fetched(folder, fetched, by_hand)
