"""What a method asks of whatever runs its model, and how a user chooses it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.models.tokenisation import JsonTokenizer

VectorArray: TypeAlias = npt.NDArray[np.float32]

ExportedBackend: TypeAlias = Literal["onnx", "openvino", "openvino-int8"]
Backend: TypeAlias = Literal["torch", "onnx", "openvino", "openvino-int8", "auto"]
"""What runs the encoder and the heads. All but "openvino-int8" compute the same to six digits; "auto" is the fastest of those
that are installed."""
Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]
"""In which torch multiplies inside the encoder; float16 on a GPU alone."""


PACKAGES: Mapping[Backend, str] = MappingProxyType(
    {"torch": "torch", "onnx": "onnxruntime", "openvino": "openvino", "openvino-int8": "openvino"}
)
"""What runs a backend."""
_EXACT: tuple[ExportedBackend, ...] = ("openvino", "onnx")
"""Backends that compute what torch does, the faster first (benchmarks/backends.py)."""


def fastest_exact() -> ExportedBackend | None:
    """Return the fastest backend that computes what torch does and is installed; None where torch is alone."""
    return next((backend for backend in _EXACT if importlib.util.find_spec(PACKAGES[backend])), None)


DEFAULT_BACKEND: Backend = (None if importlib.util.find_spec("torch") else fastest_exact()) or "torch"
"""What runs a model where nobody chooses: torch where it is installed."""


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """How a user wants a model run.

    Attributes:
        backend: see `Backend`.
        dtype: see `Precision`; of torch.
        device: of torch; by default a GPU where there is one.
    """

    backend: Backend = "torch"
    dtype: Precision = "float32"
    device: str | None = None


ON_TORCH = RuntimeChoice()
"""What is chosen where nobody chooses."""


class Runtime(Protocol):
    """An encoder and the functions of a head on its vectors; arrays in and out, whatever runs them."""

    @property
    def tokenizer(self) -> JsonTokenizer:
        """What `TextEncoder` needs."""

    @property
    def longest(self) -> int:
        """How many tokens the encoder reads of a text."""

    def embed(self, ids: Sequence[Sequence[int]]) -> VectorArray:
        """Embed texts, given as token ids, in batches of one length; (n, hidden), in the order given."""

    def run(self, function: str, *arrays: np.ndarray) -> tuple[VectorArray, ...]:
        """Call a function of the head, one of its `functions`, with arrays of n rows; what it returns has n rows too."""

    def table(self, name: str) -> np.ndarray:
        """Return a tensor of the head by its name."""

    def signature_fields(self) -> dict[str, SignatureValue]:
        """What of it can move a number; nothing for torch with 32 bits, in which models are trained."""


class VectorCache:
    """Vectors of texts that many rows share, `SIZE` at most: a text that is met again is not embedded again.

    Which texts go through the encoder together moves the last digits of their vectors, so that a run that is to be repeated to
    the byte empties it where it can be interrupted.
    """

    SIZE = 16_384
    """25 MB of MiniLM's vectors."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._vectors: dict[tuple[int, ...], VectorArray] = {}

    def clear(self) -> None:
        """Forget all vectors."""
        self._vectors.clear()

    def embed(self, shared: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> tuple[VectorArray, VectorArray]:
        """Embed texts in one pass, of which those of `shared` are looked up first and kept."""
        keys = [tuple(ids) for ids in shared]
        fresh = [key for key in dict.fromkeys(keys) if key not in self._vectors]
        vectors = self._runtime.embed([*fresh, *others])
        if len(self._vectors) + len(fresh) > self.SIZE:
            self._vectors = {key: self._vectors[key] for key in keys if key in self._vectors}
        self._vectors |= zip(fresh, vectors, strict=False)
        return np.stack([self._vectors[key] for key in keys]), vectors[len(fresh) :]


def unit(vectors: VectorArray) -> VectorArray:
    """Return vectors (n, width) at unit length; one of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: VectorArray = vectors / np.maximum(lengths, 1e-12)
    return scaled
