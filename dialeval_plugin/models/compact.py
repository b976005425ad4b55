"""Model folders of a few megabytes: the name of the original encoder, and the changes of training in a few bits per weight.

A compact folder has `DELTA_FILE` instead of `model.safetensors`: differences from the encoder that its header names with its
SHA-256. A matrix is stored as rows of packed signed integers of 2 to 8 bits, with one scale per row; small tensors are stored
unpacked, not as differences. Weights of heads are float16. The bundled encoder has `ROUNDED_FILE` instead: rows of 16 bits.

The restored weights are equal to the bit on every machine. Only numpy is used, so that torch is not needed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked
from dialeval_plugin.core.signature import file_hash

from .folders import resolve, tensor_names

WEIGHTS_FILE = "model.safetensors"
DELTA_FILE = "delta.safetensors"
ROUNDED_FILE = "rounded.safetensors"

HEADER = "encoder"
SCALES = ":scales"
BITS = range(2, 9)


def original_hash(folder: Path) -> str:
    """Return the SHA-256 of an encoder's weights; for rounded weights, that of the original ones."""
    path = folder / ROUNDED_FILE
    return _header(path)["sha256"] if path.exists() else file_hash(folder / WEIGHTS_FILE)


def base_of(folder: Path) -> Path | None:
    """Return the folder of the encoder whose weights a compact folder changes; None if the folder has whole weights."""
    path = folder / DELTA_FILE
    if not path.exists():
        return None
    header = _header(path)
    base = resolve(header["base"])
    if original_hash(base) != header["sha256"]:
        raise ModelLoadError(
            f"{path}: belongs to other weights than those of the encoder {header['base']!r} in {base}. "
            "Install the encoder again, or copy the model folder again."
        )
    return base


class Change(NamedTuple):
    """The change of one of the encoder's weights in training."""

    name: str
    array: np.ndarray
    """Array of the weight's shape."""
    is_difference: bool
    """Whether the array is added to the weight; otherwise it replaces the weight."""


def changes(folder: Path, shapes: Mapping[str, Sequence[int]]) -> Iterator[Change]:
    """Yield the changes in training of the original encoder, whose weights have these shapes.

    Raises:
        ModelLoadError: a tensor is not in the encoder.
    """
    path = folder / DELTA_FILE
    for name, stored, scales in _read(path):
        shape = tuple(shapes.get(name, ()))
        if name in shapes and scales is None and stored.shape == shape:
            yield Change(name, stored, is_difference=False)
        elif scales is not None and (numbers := _unpacked(stored, shape)) is not None:
            yield Change(name, numbers * scales[:, None], is_difference=True)
        else:
            raise ModelLoadError(f"{path}: the tensor {name!r} does not fit the encoder. Copy the model folder again.")


def encoder_weights(folder: Path) -> dict[str, np.ndarray]:
    """Return the weights of an encoder's folder or a compact folder, by their names in the encoder."""
    if (path := folder / ROUNDED_FILE).exists():
        tensor_names(path)
        return {name: stored if scales is None else stored * scales[:, None] for name, stored, scales in _read(path)}
    if (base := base_of(folder)) is None:
        return read_tensors(folder / WEIGHTS_FILE)
    weights = encoder_weights(base)
    for name, array, is_difference in changes(folder, {name: weight.shape for name, weight in weights.items()}):
        if is_difference:
            weights[name] += array
        else:
            weights[name] = array
    return weights


@contextlib.contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """Yield a folder that the hosts can open: `folder`, or a temporary copy of it whose weights are not rounded."""
    if not (folder / ROUNDED_FILE).exists():
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="dialeval-", ignore_cleanup_errors=True) as place:
        copy = Path(place, folder.name)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(ROUNDED_FILE))
        save_file(encoder_weights(folder), copy / WEIGHTS_FILE, metadata={"format": "pt"})
        yield copy


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Read a whole safetensors file."""
    tensor_names(path)
    return {name: stored for name, stored, _ in _read(path)}


def largest_number(bits: int) -> int:
    """Return the largest integer in `bits` bits; its negative is the smallest, so that rounding is symmetric around 0."""
    return (1 << bits - 1) - 1


def _unpacked(stored: np.ndarray, shape: Sequence[int]) -> np.ndarray | None:
    """Unpack stored numbers, as floats; None if they are not a matrix of this shape."""
    if len(shape) != 2:
        return None
    n_rows, n_columns = shape
    bits = 8 * stored.shape[-1] // n_columns
    if bits not in BITS or stored.shape != (n_rows, -(-n_columns * bits // 8)):
        return None
    # Eight numbers take `bits` bytes: shifting them out of one 64-bit word is ten times as fast as unpacking single bits.
    n_groups = -(-n_columns // 8)
    words = np.zeros((n_rows, n_groups, 8), dtype=np.uint8)
    groups = np.zeros((n_rows, n_groups * bits), dtype=np.uint8)
    groups[:, : stored.shape[1]] = stored
    words[:, :, :bits] = groups.reshape(n_rows, n_groups, bits)
    shifted = words.view("<u8") >> np.arange(0, 8 * bits, bits, dtype=np.uint64)
    numbers = (shifted & np.uint64((1 << bits) - 1)).astype(np.float32).reshape(n_rows, -1)[:, :n_columns]
    difference: np.ndarray = numbers - largest_number(bits)
    return difference


class _Base(TypedDict):
    """The original encoder of a model, and the SHA-256 of its weights."""

    base: str
    sha256: str


def _header(path: Path) -> _Base:
    tensor_names(path)
    with safe_open(str(path), framework="np") as file:
        text = (file.metadata() or {}).get(HEADER, "null")
    try:
        return checked(json.loads(text), _Base, str(path), advice="Copy the model folder again.")
    except (ValueError, InputError) as error:
        raise ModelLoadError(f"{path}: does not name its encoder. Copy the model folder again.") from error


def _read(path: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
    """Yield the stored tensors by name, each with its scales."""
    with safe_open(str(path), framework="np") as file:
        names = set(file.keys())
        for name in sorted(names):
            if not name.endswith(SCALES):
                scales = name + SCALES
                yield name, file.get_tensor(name), file.get_tensor(scales) if scales in names else None
