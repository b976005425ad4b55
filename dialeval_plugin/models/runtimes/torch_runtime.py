"""The torch runtime, with which models are trained, on a processor or a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.models.encoders import Encoder, embed, transformer_of
from dialeval_plugin.models.texts import JsonTokenizer

from .runtime import Precision, VectorArray


class Head(Protocol):
    """A module on top of an encoder."""

    @property
    def functions(self) -> dict[str, tuple[int, ...]]:
        """Return the names of its methods on tensors of n rows, each with the widths of its arguments."""


class TorchRuntime:
    """An encoder and a head, which may be trained further."""

    def __init__(self, encoder: Encoder, head: nn.Module | None = None, dtype: Precision = "float32") -> None:
        self.encoder, self.head = encoder, head
        # transformers' tokenizer takes twice as long.
        self.tokenizer = JsonTokenizer.of(encoder.tokenizer)
        self._dtype: torch.dtype = getattr(torch, dtype)
        if dtype != "float32":
            _check_precision(dtype, encoder.device)

    @property
    def longest(self) -> int:
        """See `Runtime`."""
        return self.encoder.get_max_seq_length() or int(transformer_of(self.encoder).config.max_position_embeddings)

    def embed(self, ids: Sequence[Sequence[int]]) -> VectorArray:
        """See `Runtime`."""
        is_lower = self._dtype != torch.float32
        with torch.inference_mode(), torch.autocast(self.encoder.device.type, self._dtype, enabled=is_lower):
            return _to_array(embed(self.encoder, ids))

    def run(self, function: str, *arrays: np.ndarray) -> tuple[VectorArray, ...]:
        """See `Runtime`."""
        with torch.inference_mode():
            results = getattr(self.head, function)(*(self._to_tensor(array) for array in arrays))
        return tuple(map(_to_array, results))

    def table(self, name: str) -> np.ndarray:
        """See `Runtime`."""
        if self.head is None:
            raise KeyError(name)
        array: np.ndarray = attrgetter(name)(self.head).detach().cpu().numpy()
        return array

    def signature_fields(self) -> dict[str, SignatureValue]:
        """See `Runtime`."""
        return {} if self._dtype == torch.float32 else {"dtype": str(self._dtype).removeprefix("torch.")}

    def _to_tensor(self, array: np.ndarray) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float32, device=self.encoder.device)


def _to_array(tensor: Tensor) -> VectorArray:
    array: VectorArray = tensor.float().cpu().numpy()
    return array


def _check_precision(dtype: Precision, device: torch.device) -> None:
    """Refuse a precision that the device only emulates, which is slower than 32 bits."""
    if device.type == "cuda":
        if dtype == "bfloat16" and not torch.cuda.is_bf16_supported():
            raise InputError("dtype='bfloat16': this GPU has no such instructions. Give dtype='float16'.")
    elif dtype == "float16":
        raise InputError("dtype='float16': is for a GPU. Give dtype='bfloat16', or leave it out.")
    elif not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        raise InputError("dtype='bfloat16': this processor has no such instructions. Leave it out.")
