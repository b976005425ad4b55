"""Model folders of a few megabytes: where an encoder started from, and what training changed, in a few bits a weight.

A compact folder is a model folder with `DELTA_FILE` in place of `model.safetensors`: by the names of the encoder's tensors, the
differences from the encoder that it was trained from, which the file's header names with its SHA-256. A matrix is stored in
rows of signed numbers of 2 to 8 bits, packed, with one scale a row; what is too small to be worth it is stored as it is, not as
a difference. Weights of heads are halved to float16. Every weight that is read back is the same on every machine to the bit:
the arithmetic is one multiplication and one addition, each rounded by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked
from dialeval_plugin.core.signature import file_hash

from .folders import resolve, tensor_names

WEIGHTS_FILE = "model.safetensors"
DELTA_FILE = "delta.safetensors"

HEADER = "encoder"
SCALES = ":scales"
BITS = range(2, 9)


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


def largest_number(bits: int) -> int:
    """Of the signed numbers of so many bits; the smallest is its negative, so that rounding is the same on both sides of 0."""
    return (1 << bits - 1) - 1


def _unpacked(stored: Tensor, shape: Sequence[int]) -> Tensor | None:
    """Return the numbers that `_packed` stored, as floats; None where they are not those of a matrix of this shape."""
    if len(shape) != 2:
        return None
    n_rows, n_columns = shape
    bits = 8 * stored.shape[-1] // n_columns
    if bits not in BITS or stored.shape != (n_rows, -(-n_columns * bits // 8)):
        return None
    each = np.unpackbits(stored.numpy(), axis=1, count=n_columns * bits, bitorder="little").reshape(n_rows, n_columns, bits)
    return torch.from_numpy(np.packbits(each, axis=2, bitorder="little")[:, :, 0]).float() - largest_number(bits)


class _Base(TypedDict):
    """The encoder that a model was trained from, and the SHA-256 of its weights."""

    base: str
    sha256: str


def _header(path: Path) -> _Base:
    tensor_names(path)
    with safe_open(str(path), framework="pt") as file:
        text = (file.metadata() or {}).get(HEADER, "null")
    try:
        return checked(json.loads(text), _Base, str(path), advice="Copy the model folder again.")
    except (ValueError, InputError) as error:
        raise ModelLoadError(f"{path}: does not name its encoder. Copy the model folder again.") from error


def _read(path: Path) -> Iterator[tuple[str, Tensor, Tensor | None]]:
    """The stored tensors by name, each with its scales."""
    with safe_open(str(path), framework="pt") as file:
        names = set(file.keys())
        for name in sorted(names):
            if not name.endswith(SCALES):
                scales = name + SCALES
                yield name, file.get_tensor(name), file.get_tensor(scales) if scales in names else None
