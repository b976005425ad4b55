"""What every training is asked for beside its data and its method's own options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import torch
from typing_extensions import Self

from dialeval_plugin.core.errors import InputError

R = TypeVar("R", bound=Any)
Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What a training depends on, apart from its data; a method adds its own.

    Attributes:
        validation_fraction: share of the dialogues that is set aside where no validation data are given.
        seed: of the split, the initial weights, the order and every draw.
        precision: of the forward passes of training; "auto" takes bfloat16, in about half the time, where the GPU or the
            processor has instructions for it. Figures are measured in float32.
    """

    validation_fraction: float = 0.1
    seed: int = 13
    precision: Precision = "auto"

    def resolved(self) -> Self:
        """The same with what "auto" means here, so that a run is not finished on another machine in another precision.

        Raises:
            InputError: there is no such precision.
        """
        return replace(self, precision="bfloat16" if _uses_bfloat16(self.precision) else "float32")


def choose_recipe(recipes: Mapping[str, R], name: str, *, may_be_zero: Sequence[str] = (), **numbers: float | None) -> R:
    """Return a recipe by name, with those of its numbers replaced that are given.

    Args:
        recipes: frozen dataclasses by name.
        name: asked for.
        may_be_zero: names of numbers that need not be positive.
        **numbers: fields of the recipe; None leaves its own.

    Raises:
        InputError: there is none of that name, or a number is out of its range.
    """
    if name not in recipes:
        raise InputError(f"recipe: there is no {name!r}. Choose one of {', '.join(recipes)}.")
    changes = {field: number for field, number in numbers.items() if number is not None}
    for field, number in changes.items():
        if field == "learning_rate" and not 0 < number < 1:
            raise InputError(f"{field}: expected a number between 0 and 1, got {number!r}.")
        if number < 0 or (number == 0 and field not in may_be_zero):
            expected = "0 or more" if field in may_be_zero else "a positive number"
            raise InputError(f"{field}: expected {expected}, got {number!r}.")
    return replace(recipes[name], **changes)


def _uses_bfloat16(precision: Precision) -> bool:
    if precision not in get_args(Precision):
        raise InputError(f"precision: there is no {precision!r}. Choose one of {', '.join(get_args(Precision))}.")
    if precision != "auto":
        return precision == "bfloat16"
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    # Without the instructions bfloat16 is emulated, and slower than float32.
    probe = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX512_BF16", "AMX") and bool(probe and probe())
