"""Tensors of torch: on which device, of rows of token ids, and from and to safetensors."""

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

from .batching import CPU_TOKENS, padded
from .lexical import FEATURES, lexical_features, token_rarity

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


class LexicalFeatures(nn.Module):
    """`lexical_features` with the tables that they need, for a module that reads them.

    The tables (`learn_rarity`, `learn_scale`) are learnt before the module's weights and stored with them.
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
        """Learn how rare each token is from the token ids of many responses."""
        self.rarity.copy_(torch.as_tensor(token_rarity(responses, len(self.rarity))))

    def learn_scale(self, features: Tensor) -> None:
        """Learn mean and standard deviation of each feature from training pairs, of shape (n, len(FEATURES)).

        A feature that is the same in all of them keeps its own scale: other pairs may well differ in it.
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
        """Return `lexical_features` as a tensor, on the device of the weights."""
        rarity = self.rarity.double().cpu().numpy()
        return torch.as_tensor(lexical_features(contexts, owners, responses, rarity, special)).to(self.mean)

    def standardised(self, features: Tensor) -> Tensor:
        """Return features, of shape (..., len(FEATURES)), with the mean 0 and the deviation 1 that they have in training."""
        return (features - self.mean) / self.deviation
