"""Types of the arrays of numbers and labels that pass between modules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = Sequence[float] | npt.NDArray[Any]
OptionalNumbers: TypeAlias = Sequence[float | None] | npt.NDArray[Any]
Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any]
Statistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""Function of `weights[r, i]`, how often row or cell i occurs in sample r; returns one value per sample, NaN if undefined."""
