"""The interface of a model's runtime, and the user's choice of one."""

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
"""Runtime of the encoder and the heads. All but "openvino-int8" agree to six digits; "auto" is the fastest of those that are
installed."""
Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]
"""Precision of torch's multiplications in the encoder; float16 only on a GPU."""


PACKAGES: Mapping[Backend, str] = MappingProxyType(
    {"torch": "torch", "onnx": "onnxruntime", "openvino": "openvino", "openvino-int8": "openvino"}
)
"""Packages that run a backend."""
_EXACT: tuple[ExportedBackend, ...] = ("openvino", "onnx")
"""Backends that agree with torch, the faster first (benchmarks/backends.py)."""


def fastest_exact() -> ExportedBackend | None:
    """Return the fastest installed backend that agrees with torch; None if there is only torch."""
    return next((backend for backend in _EXACT if importlib.util.find_spec(PACKAGES[backend])), None)


DEFAULT_BACKEND: Backend = (None if importlib.util.find_spec("torch") else fastest_exact()) or "torch"
"""Default backend: torch if it is installed."""


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """A user's choice of a runtime.

    Attributes:
        backend: see `Backend`.
        dtype: precision of torch, see `Precision`.
        device: device of torch; by default a GPU if there is one.
    """

    backend: Backend = "torch"
    dtype: Precision = "float32"
    device: str | None = None


ON_TORCH = RuntimeChoice()
"""The default choice."""


class Runtime(Protocol):
    """An encoder and the functions of a head on its vectors, as functions of arrays, independent of the library."""

    @property
    def tokenizer(self) -> JsonTokenizer:
        """Tokenizer for `TextEncoder`."""

    @property
    def longest(self) -> int:
        """Number of tokens of a text that the encoder reads."""

    def embed(self, ids: Sequence[Sequence[int]]) -> VectorArray:
        """Embed texts, given as token ids, in batches of one length; (n, hidden), in the order given."""

    def run(self, function: str, *arrays: np.ndarray) -> tuple[VectorArray, ...]:
        """Call one of the head's `functions` on arrays of n rows; its results have n rows too."""

    def table(self, name: str) -> np.ndarray:
        """Return a tensor of the head by its name."""

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return the fields that affect a score; none for torch in float32, the precision of training."""


class VectorCache:
    """A cache of at most `SIZE` vectors of texts that many rows share.

    The last digits of a vector depend on the texts in its batch, so a run that must be repeatable to the byte clears the cache
    wherever it may be interrupted.
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
        """Embed texts in one pass; vectors of `shared` are cached."""
        keys = [tuple(ids) for ids in shared]
        fresh = [key for key in dict.fromkeys(keys) if key not in self._vectors]
        vectors = self._runtime.embed([*fresh, *others])
        if len(self._vectors) + len(fresh) > self.SIZE:
            self._vectors = {key: self._vectors[key] for key in keys if key in self._vectors}
        self._vectors |= zip(fresh, vectors, strict=False)
        return np.stack([self._vectors[key] for key in keys]), vectors[len(fresh) :]


def unit(vectors: VectorArray) -> VectorArray:
    """Return vectors (n, width) at unit length; zero vectors are unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: VectorArray = vectors / np.maximum(lengths, 1e-12)
    return scaled
