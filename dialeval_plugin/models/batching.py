"""Rows of token ids as batches of one length: which rows go together, and the arrays that they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dialeval_plugin.core.arrays import IntArray

CPU_TOKENS = 512
"""Tokens of one forward pass on a processor, padding included: enough to fill it, few enough for its cache and for memory.
With a vocabulary of 50,000 they make 100 MB of logits."""


def length_batches(lengths: Sequence[int], tokens: int | None = None, *, rows: int | None = None) -> Iterator[list[int]]:
    """Yield the places of rows in batches of about one length, the longest first; equal lengths keep their order.

    What does not fit into memory fails at once that way. A batch has at most `rows`, and `tokens`, padding included, but one
    row at least.

    Example:
        >>> list(length_batches([3, 1, 2, 1], 4))
        [[0], [2, 1], [3]]
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        fitting = len(order) if tokens is None else max(1, tokens // longest)
        size = min(fitting, rows or fitting)
        yield order[start : start + size]
        start += size


def padded(rows: Sequence[Sequence[int]], pad: int | None) -> tuple[IntArray, IntArray]:
    """Return rows of token ids, padded on the right, and the mask of what is no padding; both of shape (rows, longest row)."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.full(mask.shape, pad or 0, dtype=np.int64)
    ids[mask.astype(bool)] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids, mask
