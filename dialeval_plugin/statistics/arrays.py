"""What columns of numbers and labels are called, as they come in and as the statistics hold them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.arrays import FloatArray

BoolArray: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = Sequence[float] | npt.NDArray[Any]
OptionalNumbers: TypeAlias = Sequence[float | None] | npt.NDArray[Any]
Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any]
Statistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""Takes `weights[r, i]`, how often row or cell i occurs in sample r; returns one value a sample, NaN where it is undefined."""
