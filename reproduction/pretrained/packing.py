"""Writing model folders of a few megabytes, see `dialeval_plugin.models.compact`, which reads them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.signature import MANIFEST_FILE, file_hashes
from dialeval_plugin.models.compact import (
    BITS,
    DELTA_FILE,
    HEADER,
    SCALES,
    WEIGHTS_FILE,
    encoder_weights,
    largest_number,
    original_hash,
)
from dialeval_plugin.models.folders import SETTINGS_FILES, resolve, write_manifest

_CLIPPED = [share / 20 for share in range(10, 21)]
"""Scales to choose from, as shares of the one at which a row's largest weight is the largest number."""
_SMALLEST_MATRIX = 16_384
"""Weights that a matrix must have to be stored in few bits: the others together are less than a hundredth of an encoder."""
_FEWEST_COLUMNS = 8
"""Columns that it must have: of fewer, the bytes of a row do not say how many bits a number has."""
_TOKENIZER_FILES = ("tokenizer.json", "vocab.txt")


def pack_model(folder: Path, target: Path, *, base: str, bits: int = 4) -> None:
    """Write a compact copy of a trained model's folder to `target`, `bits` a weight; `base` is what it was trained from.

    A part that is no encoder trained from `base`, such as a language model, is stored in half precision.

    Raises:
        InputError: `target` exists, or `bits` is not in [2, 8].
    """
    if bits not in BITS:
        raise InputError(f"bits: expected 2 to 8, got {bits}.")
    if target.exists():
        raise InputError(f"{target}: exists already. Choose another folder, or delete this one.")
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(".*", "*.safetensors", MANIFEST_FILE))
    start = {name: torch.from_numpy(weight) for name, weight in encoder_weights(resolve(base)).items()}
    # One entry: the order of several would differ from one writing to the next.
    header = {HEADER: to_json({"base": base, "sha256": original_hash(resolve(base))})}
    for path in sorted(folder.rglob("*.safetensors")):
        place, tensors = target / path.relative_to(folder), load_file(str(path))
        if path.name == WEIGHTS_FILE and (changed := _changes(tensors, start, bits)):
            save_file(changed, str(place.with_name(DELTA_FILE)), metadata=header)
            for name in _TOKENIZER_FILES:
                (place.parent / name).unlink(missing_ok=True)
        else:
            save_file({name: _halved(tensor) for name, tensor in tensors.items()}, str(place), metadata={"format": "pt"})
    for path in target.rglob("*.safetensors"):
        # Their writer makes them private.
        path.chmod(0o644)
    for name in SETTINGS_FILES:
        if (target / name).exists():
            settings = {**read_json(target / name), "weights": file_hashes(target, "*.safetensors")}
            write_text(target / name, to_json(settings, indent=2) + "\n")
    write_manifest(target)


def _changes(tensors: Mapping[str, Tensor], start: Mapping[str, Tensor], bits: int) -> dict[str, Tensor]:
    """Tensors to store of a model that was trained from `start`; none if it was trained from another."""
    # A classifier on an encoder has the encoder's names behind a prefix.
    begun = {name: start.get(name, start.get(name.partition(".")[2])) for name in tensors}
    same = {name for name, tensor in tensors.items() if (old := begun[name]) is not None and torch.equal(tensor, old)}
    if not same:
        return {}
    stored = {}
    for name in tensors.keys() - same:
        tensor, old = tensors[name], begun[name]
        if old is None or tensor.dim() != 2 or tensor.numel() < _SMALLEST_MATRIX or tensor.shape[1] < _FEWEST_COLUMNS:
            stored[name] = tensor
        else:
            stored[name], stored[name + SCALES] = _packed(tensor - old, bits)
    return stored


def _packed(matrix: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Rows of numbers, `bits` bits each, uint8 (rows, columns * bits / 8 rounded up), and a scale a row, float32 (rows,).

    A row's scale is that of `_CLIPPED` with the least squared error: most weights are small, and finer steps for them make up
    for a few large ones that are cut.
    """
    largest = matrix.abs().amax(1)
    least, scales = torch.full_like(largest, torch.inf), largest
    for share in _CLIPPED:
        tried = largest * share / largest_number(bits)
        error = (_rounded(matrix, tried, bits) * tried[:, None] - matrix).square().sum(1)
        better = error < least
        least, scales = error.where(better, least), tried.where(better, scales)
    numbers = (_rounded(matrix, scales, bits) + largest_number(bits)).to(torch.uint8).numpy()
    each = np.unpackbits(numbers[:, :, None], axis=2, count=bits, bitorder="little")
    return torch.from_numpy(np.packbits(each.reshape(len(numbers), -1), axis=1, bitorder="little")), scales


def _rounded(matrix: Tensor, scales: Tensor, bits: int) -> Tensor:
    largest = largest_number(bits)
    return (matrix / scales.where(scales > 0, torch.ones(()))[:, None]).round().clamp(-largest, largest)


def _halved(tensor: Tensor) -> Tensor:
    return tensor.half() if tensor.dim() == 2 and tensor.numel() >= _SMALLEST_MATRIX else tensor
