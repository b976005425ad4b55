"""Tensors of torch: choice of a device, padding of token ids, and safetensors."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import atomic_path

from .texts import CPU_TOKENS, FEATURES, lexical_features, padded, token_rarity

GPU_TOKENS = 65_536
"""Number of tokens per forward pass on a GPU, padding included, for a model without logits of a whole vocabulary."""


def check_device(device: str | None) -> str | None:
    """Return a torch device unchanged if this machine has it; None leaves the choice until a model is opened."""
    if device is None:
        return None
    try:
        # A device that this build of torch does not support fails on first use, with errors of several kinds.
        torch.zeros(1, device=torch.device(device)).cpu()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"device {device!r}: cannot be used here ({first}). Leave the option out, or give 'cpu'.") from None
    return device


def own_gpu() -> str | None:
    """Return the GPU of this process, None if there is none; processes of `accelerate launch` take the GPUs in turn."""
    if not torch.cuda.is_available():
        return None
    return f"cuda:{int(os.environ.get('LOCAL_RANK', '0')) % torch.cuda.device_count()}"


def choose_device(device: str | None) -> str:
    """Return a torch device unchanged; by default `own_gpu`, if there is one."""
    return check_device(device) or own_gpu() or "cpu"


def tokens_at_once(device: torch.device, on_gpu: int = GPU_TOKENS) -> int:
    """Return the largest number of tokens per forward pass."""
    return on_gpu if device.type == "cuda" else CPU_TOKENS


def padded_tensors(rows: Sequence[Sequence[int]], pad: int | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return `texts.padded` as tensors on a device."""
    ids, mask = map(torch.from_numpy, padded(rows, pad))
    if device.type != "cuda":
        return ids.to(device), mask.to(device)
    # From pinned memory the copy runs while the next batch is made.
    return ids.pin_memory().to(device, non_blocking=True), mask.pin_memory().to(device, non_blocking=True)


def save_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    with atomic_path(path) as temporary:
        try:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, str(temporary))
        except SafetensorError as error:
            raise InputError(f"{path}: cannot be written ({error}). The previous file, if any, is unchanged.") from error


def load_weights(module: nn.Module, path: Path) -> None:
    """Load the weights of a safetensors file, which must have exactly those of the module."""
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
    """Refuse a tokenizer with more tokens than the model has word vectors."""
    rows = embedding.weight.shape[0]
    if len(tokenizer) > rows:
        raise ModelLoadError(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, the embedding only {rows} rows. "
            "The tokenizer belongs to another model; copy the folder again."
        )


class LexicalFeatures(nn.Module):
    """Tables for `lexical_features`, as a module.

    The tables (`learn_rarity`, `learn_scale`) are fitted before the module's weights and stored with them.
    """

    rarity: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.register_buffer("rarity", torch.zeros(vocabulary_size))
        self.register_buffer("mean", torch.zeros(len(FEATURES)))
        self.register_buffer("deviation", torch.ones(len(FEATURES)))

    def learn_rarity(self, responses: Iterable[Sequence[int]]) -> None:
        """Fit the rarity of each token on the token ids of many responses."""
        self.rarity.copy_(torch.as_tensor(token_rarity(responses, len(self.rarity))))

    def learn_scale(self, features: Tensor) -> None:
        """Fit mean and standard deviation of each feature on training pairs, of shape (n, len(FEATURES)).

        A feature that is constant in all of them keeps its scale, since it may vary in other pairs.
        """
        self.mean.copy_(features.mean(dim=0))
        deviation = features.std(dim=0, correction=0)
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))

    def features(
        self,
        contexts: Sequence[Sequence[int]],
        owners: Sequence[int] | np.ndarray,
        responses: Sequence[Sequence[int]],
        special: Collection[int],
    ) -> Tensor:
        """Return `lexical_features` as a tensor on the device of the weights."""
        rarity = self.rarity.double().cpu().numpy()
        return torch.as_tensor(lexical_features(contexts, owners, responses, rarity, special)).to(self.mean)

    def standardised(self, features: Tensor) -> Tensor:
        """Return features, of shape (..., len(FEATURES)), scaled to mean 0 and deviation 1 in training."""
        return (features - self.mean) / self.deviation
