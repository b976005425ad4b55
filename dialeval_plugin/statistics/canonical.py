"""Rows and clusters in an order of their own: who hands them in, in which order and under which names, moves no digit.

A bootstrap draws the k-th cluster and a permutation test swaps it, so which cluster is the k-th has to follow from the data
alone. Clusters are ordered by what their rows hold. Those that hold the same can be exchanged without changing anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .checks import FloatArray, IntArray, Labels, cluster_codes, used_codes

Columns = Sequence[FloatArray | IntArray]


class Canonical(NamedTuple):
    """Rows by what they hold, and the clusters of the rows in that order, numbered by what they hold."""

    order: IntArray
    """Numbers of the rows; sorted by the columns, and where these are equal by cluster."""
    clusters: IntArray
    """One for each row in that order, from 0."""
    groups: IntArray | None = None
    """The same of the groups, in the order in which they appear, where rows have some."""

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.clusters.max(initial=-1)) + 1


def canonical(columns: Columns, clusters: IntArray, groups: IntArray | None = None) -> Canonical:
    """Return the order of rows by what they hold in one column or more, without NaN, and of their clusters.

    Rows that hold the same are told apart by what else is in their cluster and group (such as their system), as far as needed
    (colour refinement). Clusters and groups are numbered from 0 without gaps.
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
    """Return the order of those rows of `columns`, and of the columns of `metrics`, that are used: their numbers among all.

    `clusters` and `groups` are labels of all rows. No metric is preferred to another, see `symmetric`.
    """
    beside, *compared = ([column[used] for column in of] for of in (columns, *metrics))
    group_codes = None if groups is None else used_codes(where, groups, used)
    rows = canonical(symmetric(compared, beside), used_codes(where, clusters, used), group_codes)
    return rows._replace(order=used[rows.order])


def symmetric(metrics: Iterable[Columns], beside: Columns) -> list[FloatArray | IntArray]:
    """Return the columns of metrics, with those beside them, in an order that does not tell who is called the first.

    So that a test of B against A makes the same draws as one of A against B.
    """

    def content(columns: Columns) -> list[list[float]]:
        order = np.lexsort([*columns[::-1], *beside[::-1]])
        return [column[order].tolist() for column in columns]

    return [*beside, *(column for columns in sorted(metrics, key=content) for column in columns)]


def _distinct(columns: Columns) -> IntArray:
    """Number each row by its place among the distinct rows."""
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        is_new[1:] |= column[order][1:] != column[order][:-1]
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(is_new)
    return codes


def _ranks(groups: IntArray, codes: IntArray) -> IntArray:
    """For each row the rank of its group among the distinct groups, by the sorted codes of the group's rows."""
    sizes = np.bincount(groups)
    if len(sizes) == len(groups):
        return codes
    # Big-endian integers compare as their bytes do.
    content = codes[np.lexsort((codes, groups))].astype(">i8").tobytes()
    ends = (8 * np.cumsum(sizes)).tolist()
    keys = [content[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    rank = {key: place for place, key in enumerate(sorted(set(keys)))}
    return np.array([rank[key] for key in keys], dtype=np.int64)[groups]
