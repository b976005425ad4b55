"""What the statistics of this folder ask of their input, before any arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Numbers: TypeAlias = Sequence[float] | npt.NDArray[Any]
OptionalNumbers: TypeAlias = Sequence[float | None] | npt.NDArray[Any]
Labels: TypeAlias = Sequence[Hashable] | npt.NDArray[Any]
Statistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""Takes `weights[r, i]`, how often row or cell i occurs in sample r; returns one value a sample, NaN where it is undefined."""


class Column(NamedTuple):
    """Numbers with gaps."""

    values: FloatArray
    """0 in the gaps; read them through `present` only."""
    present: BoolArray


def numbers(where: str, name: str, values: Numbers) -> FloatArray:
    """Return `values` as an array; InputError names the index of one that is not a finite number."""
    return _column(where, name, values, has_gaps=False).values


def optional_numbers(where: str, name: str, values: OptionalNumbers) -> Column:
    """Return `values`, which may hold None, as an array and a mask; InputError names the index of any other.

    NaN does not stand for "no value": it is refused like infinity, because it is what a failed computation leaves behind.
    """
    return _column(where, name, values, has_gaps=True)


def same_length(where: str, **columns: Sequence[Any] | npt.NDArray[Any] | None) -> None:
    """Check that all columns that are there are as long as the first one; InputError names both lengths."""
    (first, values), *others = ((name, column) for name, column in columns.items() if column is not None)
    for name, other in others:
        if len(other) != len(values):
            raise InputError(f"{where}: {len(values)} {first} but {len(other)} {name}. Give one of each for every row.")


def cluster_codes(where: str, clusters: Labels | None, n: int) -> IntArray:
    """Number the clusters of `n` rows from 0 in the order in which they appear; without `clusters`, each row is its own.

    The order of appearance, not that of a set, so that the numbers are the same in every process. InputError: a label is None,
    NaN or cannot be hashed.
    """
    if clusters is None:
        return np.arange(n, dtype=np.int64)
    if isinstance(clusters, np.ndarray) and clusters.ndim == 1 and clusters.dtype.kind in "iu":
        _, first, numbered = np.unique(clusters, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbered.reshape(-1)]
    codes: dict[Hashable, int] = {}
    for i, label in enumerate(clusters):
        if not isinstance(label, Hashable) or label is None or label != label:  # noqa: PLR0124 - true for NaN only
            raise InputError(f"{where}: clusters[{i}] is {label!r}, which names no cluster. Give a string or an integer.")
        codes.setdefault(label, len(codes))
    return np.array([codes[label] for label in clusters], dtype=np.int64)


def used_codes(where: str, labels: Labels | None, used: IntArray) -> IntArray:
    """Number the clusters of the rows that are used, from 0 without gaps; as `cluster_codes`."""
    codes = None if labels is None else cluster_codes(where, labels, len(labels))[used]
    return cluster_codes(where, codes, len(used))


def check_choice(where: str, name: str, value: object, choices: Iterable[object]) -> None:
    """Check that an option is one of its choices, which InputError lists."""
    if value not in (known := tuple(choices)):
        raise InputError(f"{where}: there is no {name}={value!r}. Choose one of {', '.join(map(str, known))}.")


def rows_by_group(groups: IntArray) -> list[IntArray]:
    """Return the numbers of the rows of each group."""
    if not len(groups):
        return []
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def _column(where: str, name: str, values: Any, *, has_gaps: bool) -> Column:
    # A mask says "no value here" in a way that every numpy function reads differently, or not at all.
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{where}: {name} is a masked array. Give a list with None where there is no value.")
    is_numeric = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiub"
    if is_numeric and np.isfinite(values).all():
        # There is nothing to look for: a million values are checked at once.
        return Column(np.asarray(values, dtype=np.float64), np.ones(len(values), dtype=np.bool_))
    present = np.array([value is not None or not has_gaps for value in values], dtype=np.bool_)
    remedy = "Give None where there is no value." if has_gaps else "Leave the row out."
    filled = np.zeros(len(present))
    for index, value in enumerate(values):
        if present[index]:
            filled[index] = _number(where, name, index, value, remedy)
    return Column(filled, present)


def _number(where: str, name: str, index: int, value: Any, remedy: str) -> float:
    if isinstance(value, (Real, np.bool_)):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
        value = number
    raise InputError(f"{where}: {name}[{index}] is {value!r}, not a finite number. {remedy}")
