"""Manifests of model folders (their files with hashes), licences, and writing of folders whole or not at all.

A folder is refused if a file of its manifest is missing or changed. Other files in it are ignored: they are neither copied nor
uploaded.
"""

from __future__ import annotations

import contextlib
import filecmp
import glob
import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from threading import Event
from types import MappingProxyType
from typing import Any, NamedTuple

from safetensors import SafetensorError
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, read_json, to_json, write_text
from dialeval_plugin.core.resources import pretrained_path
from dialeval_plugin.core.signature import EXPORTS, MANIFEST_FILE, PROVENANCE_FILE, file_hash, file_hashes

COMMERCIAL = "DIALEVAL_COMMERCIAL"
"""Environment variable: 1 for open weights only, 0 for any without a warning; `--commercial` sets it to 1."""

_OPEN = "-open"
"""Suffix of the name of a model trained by another model's recipe on data that allow commercial use."""

CARD = "README.md"
"""Model card; its owner may change it, so it is copied with the model but is in no manifest."""
MODEL_FILES = ("*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", f"{EXPORTS}/*/*")
"""Patterns of the files that a manifest may name."""
RECORDED: Mapping[str, str] = {
    "assistant": "c17863e42ce6d9cb714b87c6c7e75312c8956beaf7e1e38c2d5560f68b37bdaa",
    "assistant-open": "955ee59ca81f90f2dee3cc643d2240140828263af665e8e465e7e432116a9bcc",
    "causalscore": "c0a7eb3b5aa946719e7749b9e7dd94830d62125ae08668b42e86dadbf1d4366f",
    "general": "fd414b29390fc6bc4f65c5b00d418dfda61045ef2e6e7f307e0300c36451ba68",
    "general-open": "f55c0fe5285e33c46755e42fb94d4a52f495fadc787cad0705154a60f67e4650",
    "language-model": "b5fdfb5f8259bcda4def8ebf0ef7bcca1ab99c053c699b69cd8fa15e02f5afb8",
    "slide": "6f097bb0588bb696cdd5d1fb462fc9172ec2883e7aa7c57d23b1c80ab05e5618",
}
"""SHA-256 of the manifest of each bundled model, which cannot be changed by writing into the model's folder."""
_COPY_AGAIN = "Copy the folder again."

logger = logging.getLogger(__name__)
_is_said = Event()


class _Manifest(TypedDict):
    files: dict[str, str]


class _Settings(TypedDict):
    """The fields of a settings file that concern the folder's files."""

    training: dict[str, Any]
    weights: dict[str, str]


def write_manifest(folder: Path, coming: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write the manifest of all files in a model folder and of the `coming` ones; to change a single file see `changing`."""
    _write(folder, {**_unlisted(folder), **coming})


def _unlisted(folder: Path) -> dict[str, str]:
    """Hashes of the files whose names a manifest may have."""
    return {name: hash for name, hash in file_hashes(folder).items() if _may_belong(name)}


def _write(folder: Path, files: Mapping[str, str]) -> None:
    write_text(folder / MANIFEST_FILE, to_json({"files": dict(sorted(files.items()))}, indent=1) + "\n")


def listed(folder: Path) -> dict[str, str] | None:
    """Return the manifest of a model folder, hashes by names; None if the folder is older than manifests."""
    path = folder / MANIFEST_FILE
    if not path.exists():
        return None
    files = checked_model_file(path, _Manifest)["files"]
    for name in files:
        # The folder may be from a stranger, and the files that it names are copied and uploaded.
        if not _may_belong(name):
            raise ModelLoadError(f"{path}: names {name!r}, which is no file of a model. {_COPY_AGAIN}")
    return files


def _may_belong(name: str) -> bool:
    place = PurePosixPath(name)
    is_inside = not place.is_absolute() and not any(part.startswith(".") for part in place.parts)
    return is_inside and name != MANIFEST_FILE and any(map(place.match, MODEL_FILES))


@contextlib.contextmanager
def changing(folder: Path, name: str) -> Iterator[None]:
    """Let the block rewrite a file of a model folder; the folder can be opened at every moment."""
    others = listed(folder)
    if others is None:
        yield  # A run's folder, which has no manifest yet.
        return
    others.pop(name, None)
    _write(folder, others)
    yield
    _write(folder, {**others, name: file_hash(folder / name)})


def check_files(settings: Path) -> None:
    """Refuse a model folder, given by its settings file, with a missing or changed file."""
    folder = settings.parent
    if (files := listed(folder)) is None:
        raise ModelLoadError(f"{folder / MANIFEST_FILE}: there is no such file. {_COPY_AGAIN}")
    expected = {**files, **checked_model_file(settings, _Settings)["weights"]}
    weights = {path.relative_to(folder).as_posix() for path in folder.rglob("*.safetensors") if path.is_file()}
    for name in sorted({*expected, *filter(_may_belong, weights)}):
        check_file(folder / name, expected.get(name), _COPY_AGAIN)


def check_file(path: Path, expected: str | None, remedy: str) -> None:
    """Refuse a missing file, or one with another hash."""
    if not path.is_file():
        raise ModelLoadError(f"{path}: there is no such file. {remedy}")
    if file_hash(path) != expected:
        raise ModelLoadError(f"{path}: is damaged or was changed. {remedy}")


def recorded(settings: Path) -> str | None:
    """Return the recorded hash of a bundled model's manifest, given its settings file; None for other models."""
    own = file_hash(settings)
    names = (name for name in RECORDED if (listed(pretrained_path() / name) or {}).get(settings.name) == own)
    return next((RECORDED[name] for name in names), None)


def of_model(folder: Path) -> list[str]:
    """Return the names of the files that are copied with a model: those of its manifest, the manifest itself, and the card."""
    return [name for name in (*(listed(folder) or ()), MANIFEST_FILE, CARD) if (folder / name).is_file()]


@contextlib.contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that is renamed to `folder` when the block ends, or removed if it fails.

    An existing model of that name is kept, and is no error if it is equal: its command was killed at the very end. The caller
    is the `sole_process` at `folder`; unfinished folders of killed processes are removed first.

    Raises:
        InputError: something else is at `folder`.
    """
    other = InputError(f"{folder}: exists already. Choose another folder, or delete this one.")
    if folder.exists() and (not (files := listed(folder)) or files != _unlisted(folder)):
        raise other
    start = f".{folder.name[:50]}."
    for left in folder.parent.glob(f"{glob.escape(start)}{'?' * 16}.part"):
        shutil.rmtree(left, ignore_errors=True)
    made = folder.with_name(f"{start}{secrets.token_hex(8)}.part")
    made.mkdir(parents=True)
    try:
        yield made
        if not folder.exists():
            made.rename(folder)
        elif not _is_same(folder, made):
            raise other
    except SafetensorError as error:
        raise ModelLoadError(f"{folder}: cannot be written ({error}). Make room, and repeat the command.") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_same(one: Path, other: Path) -> bool:
    files, expected = ({path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} for folder in (one, other))
    return files == expected and not any(filecmp.cmpfiles(one, other, expected, shallow=False)[1:])


class Licence(NamedTuple):
    """The terms of a model's training data, and whether all of them allow commercial use."""

    terms: str
    is_open: bool


def licence_of(folder: Path) -> Licence | None:
    """Return the licence of one of our models or a copy of it; None if none is recorded."""
    path = folder / PROVENANCE_FILE
    stated = read_json(path) if path.is_file() else None
    if not isinstance(stated, dict) or not isinstance(stated.get("commercial_use"), bool):
        return None
    return Licence(str(stated.get("licence")), stated["commercial_use"])


def is_commercial() -> bool | None:
    """Whether only open weights may be used; None if the user has not decided."""
    value = os.environ.get(COMMERCIAL, "")
    if value not in ("", "0", "1"):
        raise InputError(f"{COMMERCIAL}={value!r}: is neither 1 nor 0. Set it to 1 for weights that allow commercial use.")
    return value == "1" if value else None


def chosen(name: str) -> str:
    """Return the packaged model to use for `name`: the open one of its recipe if only open weights may be used."""
    return name + _OPEN if is_commercial() and (pretrained_path() / (name + _OPEN)).is_dir() else name


def check_use(folder: Path) -> None:
    """Refuse a model whose data forbid commercial use if only open weights may be used; warn once if the user has not decided.

    The warning appears once per process; models without a recorded licence are not checked.
    """
    licence, wanted = licence_of(folder), is_commercial()
    if licence is None or licence.is_open or wanted is False:
        return
    name = folder.name if folder.parent == pretrained_path() else str(folder)
    every = sorted(path.name for path in pretrained_path().glob(f"*{_OPEN}"))
    free = [one for one in every if one == folder.name + _OPEN] or every
    if wanted:
        raise InputError(
            f"{name}: its training data ({licence.terms}) forbid commercial use, and --commercial or {COMMERCIAL}=1 asks for "
            f"open weights. Take {' or '.join(free)}, or a model trained on data of yours."
        )
    if not _is_said.is_set():
        _is_said.set()
        logger.warning(
            "%s: its training data forbid commercial use; those of %s allow it. --commercial or %s=1 takes open weights alone, "
            "%s=0 hides this line.",
            *(name, " and ".join(free), COMMERCIAL, COMMERCIAL),
        )
