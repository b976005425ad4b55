"""What every training is asked for beside its data and its method's own options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import torch
from torch import nn
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
        """The same with what "auto" means here, so that a run is not finished on another machine in another precision."""
        return replace(self, precision="bfloat16" if _uses_bfloat16(self.precision) else "float32")


def choose_recipe(recipes: Mapping[str, R], name: str, *, may_be_zero: Sequence[str] = (), **numbers: float | None) -> R:
    """Return a recipe by name with the numbers that are given: positive, or 0 where they `may_be_zero`; None leaves its own."""
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


def check_at_least(lowest: int, **numbers: int) -> None:
    """Refuse a number that is lower, by its name."""
    for name, number in numbers.items():
        if number < lowest:
            raise InputError(f"{name}: expected at least {lowest}, got {number}.")


def adamw(*parts: tuple[nn.Module, float]) -> torch.optim.AdamW:
    """Optimise the weights of each part that want a gradient at a learning rate of its own."""
    groups = [{"params": [weight for weight in part.parameters() if weight.requires_grad], "lr": rate} for part, rate in parts]
    return torch.optim.AdamW(groups, weight_decay=0.01, fused=True)


def seconds_of(max_minutes: float | None) -> float:
    """How many seconds a training may take; infinitely many without a limit."""
    if max_minutes is not None and max_minutes <= 0:
        raise InputError(f"max_minutes: expected more than 0, got {max_minutes}.")
    return math.inf if max_minutes is None else 60 * max_minutes


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
