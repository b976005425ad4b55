"""Tensors of torch: on which device, of rows of token ids, and from and to safetensors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import atomic_path

from .batching import CPU_TOKENS, padded

GPU_TOKENS = 65_536
"""Tokens of one forward pass on a GPU, padding included, for a model without logits of a whole vocabulary."""


def check_device(device: str | None) -> str | None:
    """Return a torch device that this machine has as it was given; None leaves the choice to who opens a model."""
    if device is None:
        return None
    try:
        # What a build of torch lacks shows when something is put there, and in more than one way.
        torch.zeros(1, device=torch.device(device)).cpu()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"device {device!r}: cannot be used here ({first}). Leave the option out, or give 'cpu'.") from None
    return device


def own_gpu() -> str | None:
    """Return the GPU of this process: those of `accelerate launch` take them in turn. None where there is none."""
    if not torch.cuda.is_available():
        return None
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"


def choose_device(device: str | None) -> str:
    """Return a torch device as it was given; by default `own_gpu`, if there is one."""
    return check_device(device) or own_gpu() or "cpu"


def tokens_at_once(device: torch.device, on_gpu: int = GPU_TOKENS) -> int:
    """How many tokens one forward pass may have."""
    return on_gpu if device.type == "cuda" else CPU_TOKENS


def padded_tensors(rows: Sequence[Sequence[int]], pad: int | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return what `batching.padded` does, on a device."""
    ids, mask = map(torch.from_numpy, padded(rows, pad))
    if device.type != "cuda":
        return ids.to(device), mask.to(device)
    # From pinned memory the copy goes on while the next batch is made.
    return ids.pin_memory().to(device, non_blocking=True), mask.pin_memory().to(device, non_blocking=True)


def save_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    with atomic_path(path) as temporary:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, str(temporary))
        except SafetensorError as error:
            raise InputError(f"{path}: cannot be written ({error}). The previous file, if any, is unchanged.") from error


def load_weights(module: nn.Module, path: Path) -> None:
    """Give a module the weights of a safetensors file, all of them and no other."""
    try:
        tensors = load_file(str(path))
    except FileNotFoundError:
        raise ModelLoadError(f"{path}: there is no such file. Copy the model folder again.") from None
    except Exception as error:  # safetensors raises its own untyped errors on damaged files
        raise ModelLoadError(f"{path}: is damaged ({error}). Copy the model folder again.") from error
    expected = module.state_dict()
    if strange := sorted(set(tensors) - set(expected)):
        raise ModelLoadError(f"{path}: the tensor {strange[0]!r} is not the model's. Copy the model folder again.")
    for name, tensor in expected.items():
        if name not in tensors:
            raise ModelLoadError(f"{path}: the tensor {name!r} is missing. Copy the model folder again.")
        if tensors[name].shape != tensor.shape:
            raise ModelLoadError(
                f"{path}: the tensor {name!r} has shape {tuple(tensors[name].shape)}, expected {tuple(tensor.shape)}. "
                "Copy the model folder again."
            )
    module.load_state_dict(tensors)


def check_vocabulary(folder: Path, tokenizer: Sized, embedding: nn.Embedding) -> None:
    """Refuse a tokenizer that has more tokens than the model has word vectors."""
    rows = embedding.weight.shape[0]
    if len(tokenizer) > rows:
        raise ModelLoadError(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, the embedding only {rows} rows. "
            "The tokenizer belongs to another model; copy the folder again."
        )
