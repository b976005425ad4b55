"""Model folders of a few megabytes: where an encoder started from, and what training changed, in a few bits a weight.

A compact folder is a model folder with `DELTA_FILE` in place of `model.safetensors`: by the names of the encoder's tensors, the
differences from the encoder that it was trained from, which the file's header names with its SHA-256. A matrix is stored in
rows of signed numbers of 2 to 8 bits, packed, with one scale a row; what is too small to be worth it is stored as it is, not as
a difference. Weights of heads are halved to float16. Every weight that is read back is the same on every machine to the bit:
the arithmetic is one multiplication and one addition, each rounded by itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked, read_json, to_json, write_text
from dialeval_plugin.core.signature import file_hash, file_hashes

from .folders import SETTINGS_FILES, check_new, resolve, tensor_names

WEIGHTS_FILE = "model.safetensors"
DELTA_FILE = "delta.safetensors"

_HEADER = "encoder"
_SCALES = ":scales"
_BITS = range(2, 9)
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
    if bits not in _BITS:
        raise InputError(f"bits: expected 2 to 8, got {bits}.")
    check_new(target)
    shutil.copytree(folder, target, ignore=shutil.ignore_patterns(".*", "*.safetensors"))
    start = resolve(base) / WEIGHTS_FILE
    # One entry: the order of several would differ from one writing to the next.
    header = {_HEADER: to_json({"base": base, "sha256": file_hash(start)})}
    for path in sorted(folder.rglob("*.safetensors")):
        place, tensors = target / path.relative_to(folder), load_file(str(path))
        if path.name == WEIGHTS_FILE and (changed := _changes(tensors, load_file(str(start)), bits)):
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


def base_of(folder: Path) -> Path | None:
    """Return the folder of the encoder that a compact folder's weights are to be added to; None where it holds them whole.

    Raises:
        MissingPrerequisite: the encoder is not to be had.
        ModelLoadError: the file is damaged, or the encoder there is not the one that training started from.
    """
    path = folder / DELTA_FILE
    if not path.exists():
        return None
    header = _header(path)
    base = resolve(header["base"])
    if file_hash(base / WEIGHTS_FILE) != header["sha256"]:
        raise ModelLoadError(
            f"{path}: belongs to other weights than those of the encoder {header['base']!r} in {base}. "
            "Install the encoder again, or copy the model folder again."
        )
    return base


def restore(model: nn.Module, folder: Path) -> None:
    """Turn the encoder that a compact folder was trained from into the trained one, in place."""
    path, weights = folder / DELTA_FILE, model.state_dict()
    with torch.no_grad():
        for name, stored, scales in _read(path):
            weight = weights.get(name)
            if weight is not None and scales is None and stored.shape == weight.shape:
                weight.copy_(stored)
            elif weight is not None and scales is not None and (numbers := _unpacked(stored, weight.shape)) is not None:
                weight.add_((numbers * scales[:, None]).to(weight.device))
            else:
                raise ModelLoadError(f"{path}: the tensor {name!r} does not fit the encoder. Copy the model folder again.")


def _changes(tensors: Mapping[str, Tensor], start: Mapping[str, Tensor], bits: int) -> dict[str, Tensor]:
    """What to store of a model that was trained from `start`; nothing where it was trained from another."""
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
            stored[name], stored[name + _SCALES] = _packed(tensor - old, bits)
    return stored


def _packed(matrix: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Rows of numbers, `bits` bits each, uint8 (rows, columns * bits / 8 rounded up), and a scale a row, float32 (rows,).

    A row's scale is that of `_CLIPPED` with the least squared error: most weights are small, and finer steps for them make up
    for a few large ones that are cut.
    """
    largest = matrix.abs().amax(1)
    least, scales = torch.full_like(largest, torch.inf), largest
    for share in _CLIPPED:
        tried = largest * share / _largest(bits)
        error = (_rounded(matrix, tried, bits) * tried[:, None] - matrix).square().sum(1)
        better = error < least
        least, scales = error.where(better, least), tried.where(better, scales)
    numbers = (_rounded(matrix, scales, bits) + _largest(bits)).to(torch.uint8).numpy()
    each = np.unpackbits(numbers[:, :, None], axis=2, count=bits, bitorder="little")
    return torch.from_numpy(np.packbits(each.reshape(len(numbers), -1), axis=1, bitorder="little")), scales


def _largest(bits: int) -> int:
    """Of the signed numbers of so many bits; the smallest is its negative, so that rounding is the same on both sides of 0."""
    return (1 << bits - 1) - 1


def _rounded(matrix: Tensor, scales: Tensor, bits: int) -> Tensor:
    largest = _largest(bits)
    return (matrix / scales.where(scales > 0, torch.ones(()))[:, None]).round().clamp(-largest, largest)


def _unpacked(stored: Tensor, shape: Sequence[int]) -> Tensor | None:
    """Return the numbers that `_packed` stored, as floats; None where they are not those of a matrix of this shape."""
    if len(shape) != 2:
        return None
    n_rows, n_columns = shape
    bits = 8 * stored.shape[-1] // n_columns
    if bits not in _BITS or stored.shape != (n_rows, -(-n_columns * bits // 8)):
        return None
    each = np.unpackbits(stored.numpy(), axis=1, count=n_columns * bits, bitorder="little").reshape(n_rows, n_columns, bits)
    return torch.from_numpy(np.packbits(each, axis=2, bitorder="little")[:, :, 0]).float() - _largest(bits)


def _halved(tensor: Tensor) -> Tensor:
    return tensor.half() if tensor.dim() == 2 and tensor.numel() >= _SMALLEST_MATRIX else tensor


class _Base(TypedDict):
    """The encoder that a model was trained from, and the SHA-256 of its weights."""

    base: str
    sha256: str


def _header(path: Path) -> _Base:
    tensor_names(path)
    with safe_open(str(path), framework="pt") as file:
        text = (file.metadata() or {}).get(_HEADER, "null")
    try:
        return checked(json.loads(text), _Base, str(path), advice="Copy the model folder again.")
    except (ValueError, InputError) as error:
        raise ModelLoadError(f"{path}: does not name its encoder. Copy the model folder again.") from error


def _read(path: Path) -> Iterator[tuple[str, Tensor, Tensor | None]]:
    """The stored tensors by name, each with its scales."""
    with safe_open(str(path), framework="pt") as file:
        names = set(file.keys())
        for name in sorted(names):
            if not name.endswith(_SCALES):
                scales = name + _SCALES
                yield name, file.get_tensor(name), file.get_tensor(scales) if scales in names else None
