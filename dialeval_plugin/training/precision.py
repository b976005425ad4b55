"""Whether training computes in bfloat16, which takes about half the time where the processor has instructions for it."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch

from dialeval_plugin.core.errors import InputError

Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]


def uses_bfloat16(precision: Precision) -> bool:
    """Whether the forward passes of training run in bfloat16; "auto" asks the GPU, or the processor.

    Raises:
        InputError: there is no such precision.
    """
    if precision not in get_args(Precision):
        raise InputError(f"precision: there is no {precision!r}. Choose one of {', '.join(get_args(Precision))}.")
    if precision != "auto":
        return precision == "bfloat16"
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    return torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX512_BF16", "AMX") and _has_bfloat16()


def _has_bfloat16() -> bool:
    """Without the instructions bfloat16 is emulated, and slower than float32."""
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(probe and probe())
