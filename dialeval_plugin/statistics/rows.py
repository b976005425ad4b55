"""Rows as the statistics use them: checked, numbered, and in canonical order.

The order and names of rows and clusters in the input do not affect any result. A bootstrap draws the k-th cluster and a
permutation test swaps it, so the numbering of clusters has to follow from the data alone: clusters are ordered by the content
of their rows, and clusters with equal content are interchangeable.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.arrays import BoolArray, FloatArray, IntArray, Labels, Numbers, OptionalNumbers
from dialeval_plugin.core.errors import InputError, unknown_name

Columns: TypeAlias = Sequence[FloatArray | IntArray]


class CheckedColumn(NamedTuple):
    """Numbers with gaps."""

    values: FloatArray
    """0 in the gaps; read them through `present` only."""
    present: BoolArray


def numbers(where: str, name: str, values: Numbers) -> FloatArray:
    """Return `values` as an array; an InputError names the index of one that is not a finite number."""
    return _column(where, name, values, has_gaps=False).values


def optional_numbers(where: str, name: str, values: OptionalNumbers) -> CheckedColumn:
    """Return `values` as an array and a mask of those that are not None; an InputError names the index of a non-finite one."""
    return _column(where, name, values, has_gaps=True)


def same_length(where: str, /, **columns: Sequence[Any] | npt.NDArray[Any] | None) -> None:
    """Raise InputError, with both lengths, unless all given columns have the length of the first."""
    (first, values), *others = ((name, column) for name, column in columns.items() if column is not None)
    for name, other in others:
        if len(other) != len(values):
            raise InputError(f"{where}: {len(values)} {first} but {len(other)} {name}. Give one of each for every row.")


def cluster_codes(where: str, clusters: Labels | None, n: int) -> IntArray:
    """Number the clusters of `n` rows from 0 in order of appearance; without `clusters`, each row is its own.

    Raises InputError if a label is None, NaN or not hashable.
    """
    if clusters is None:
        return np.arange(n, dtype=np.int64)
    if isinstance(clusters, np.ndarray) and clusters.ndim == 1 and clusters.dtype.kind in "iu":
        _, first, numbered = np.unique(clusters, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbered.reshape(-1)]
    # Strings need no check one by one, which matters for a million rows.
    for i, label in enumerate(clusters) if {*map(type, clusters)} != {str} else ():
        if not isinstance(label, Hashable) or label is None or label != label:  # noqa: PLR0124 - true for NaN only
            raise InputError(f"{where}: clusters[{i}] is {label!r}, which names no cluster. Give a string or an integer.")
    codes = {label: code for code, label in enumerate(dict.fromkeys(clusters))}
    return np.fromiter(map(codes.__getitem__, clusters), dtype=np.int64, count=len(clusters))


def used_codes(where: str, labels: Labels | None, used: IntArray) -> IntArray:
    """Number the clusters of the used rows from 0 without gaps; as `cluster_codes`."""
    codes = None if labels is None else cluster_codes(where, labels, len(labels))[used]
    return cluster_codes(where, codes, len(used))


def check_choice(where: str, name: str, value: object, choices: Iterable[object]) -> None:
    """Raise InputError, with the choices, unless an option is one of them."""
    if value not in (known := tuple(choices)):
        raise unknown_name(f"{where}: there is no {name}={value!r}", value, map(str, known))


def rows_by_group(groups: IntArray) -> list[IntArray]:
    """Return the row numbers of each group."""
    if not len(groups):
        return []
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def distinct_rows(*columns: Any) -> tuple[IntArray, tuple[FloatArray, ...]]:
    """Return the cell number of each row, and the columns of the distinct cells, so that ties cost nothing."""
    cells = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        levels, codes = np.unique(column, return_inverse=True)
        cells = np.unique(cells * max(1, len(levels)) + codes.reshape(-1), return_inverse=True)[1].reshape(-1)
    first = np.unique(cells, return_index=True)[1]
    return cells, tuple(np.asarray(column, dtype=np.float64)[first] for column in columns)


class Canonical(NamedTuple):
    """Rows in canonical order, and their clusters, numbered by content."""

    order: IntArray
    """Row numbers; sorted by the columns, and for equal rows by cluster."""
    clusters: IntArray
    """Cluster of each row in that order, from 0."""
    groups: IntArray | None = None
    """Group of each row in that order, from 0 by appearance; None without groups."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.clusters.max(initial=-1)) + 1


def canonical(columns: Columns, clusters: IntArray, groups: IntArray | None = None) -> Canonical:
    """Return the order of rows, and of their clusters, by the content of one or more columns without NaN.

    Equal rows are distinguished by the other rows of their cluster and group (such as their system), as far as needed (colour
    refinement). Clusters and groups are numbered from 0 without gaps.
    """
    codes = _distinct(columns)
    partitions = [clusters] if groups is None else [clusters, groups]
    while True:
        refined = _distinct([codes, *(_ranks(of, codes) for of in partitions)])
        if refined.max(initial=0) == codes.max(initial=0):
            break
        codes = refined
    _, first = np.unique(clusters, return_index=True)
    places = np.empty(len(first), dtype=np.int64)
    places[np.argsort(_ranks(clusters, codes)[first], kind="stable")] = np.arange(len(first))
    order = np.lexsort((places[clusters], codes))
    groups = None if groups is None else cluster_codes("canonical", groups[order], len(order))
    return Canonical(order, places[clusters][order], groups)


def canonical_rows(
    where: str,
    columns: Columns,
    used: IntArray,
    clusters: Labels | None,
    *,
    metrics: Iterable[Columns] = (),
    groups: Labels | None = None,
) -> Canonical:
    """Return the canonical order of the used rows, as numbers among all rows; the order of `metrics` has no effect."""
    shared, *compared = ([column[used] for column in of] for of in (columns, *metrics))
    group_codes = None if groups is None else used_codes(where, groups, used)
    rows = canonical(symmetric(compared, shared), used_codes(where, clusters, used), group_codes)
    return rows._replace(order=used[rows.order])


def symmetric(metrics: Iterable[Columns], shared: Columns) -> list[FloatArray | IntArray]:
    """Return the shared columns, then those of the metrics in an order independent of the input: A - B draws as B - A."""

    def content(columns: Columns) -> list[list[float]]:
        order = np.lexsort([*columns[::-1], *shared[::-1]])
        return [column[order].tolist() for column in columns]

    return [*shared, *(column for columns in sorted(metrics, key=content) for column in columns)]


def _column(where: str, name: str, values: Any, *, has_gaps: bool) -> CheckedColumn:
    # numpy functions treat masks differently, or ignore them.
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{where}: {name} is a masked array. Give a list with None where there is no value.")
    is_numeric = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "fiub"
    if is_numeric and np.isfinite(values).all():
        # A valid array needs no check by row, which matters for a million values.
        return CheckedColumn(np.asarray(values, dtype=np.float64), np.ones(len(values), dtype=np.bool_))
    present = np.array([value is not None or not has_gaps for value in values], dtype=np.bool_)
    remedy = "Give None where there is no value." if has_gaps else "Leave the row out."
    filled = np.zeros(len(present))
    for index, value in enumerate(values):
        if present[index]:
            filled[index] = _number(where, name, index, value, remedy)
    return CheckedColumn(filled, present)


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


def _distinct(columns: Columns) -> IntArray:
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        is_new[1:] |= column[order][1:] != column[order][:-1]
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(is_new)
    return codes


def _ranks(groups: IntArray, codes: IntArray) -> IntArray:
    """Return for each row the rank of its group among the distinct groups, by the sorted codes of the group's rows."""
    sizes = np.bincount(groups)
    if len(sizes) == len(groups):
        return codes
    # Big-endian integers sort like their bytes.
    content = codes[np.lexsort((codes, groups))].astype(">i8").tobytes()
    ends = (8 * np.cumsum(sizes)).tolist()
    keys = [content[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    rank = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([rank[key] for key in keys], dtype=np.int64)[groups]
