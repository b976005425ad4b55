"""Batches of token id rows: which rows go together, and the padded arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dialeval_plugin.core.arrays import IntArray

CPU_TOKENS = 512
"""Number of tokens of a forward pass on a processor, padding included: enough to use it fully, few enough for its cache and
for memory. With a vocabulary of 50,000 their logits take 100 MB."""


def length_batches(lengths: Sequence[int], tokens: int | None = None, *, rows: int | None = None) -> Iterator[list[int]]:
    """Yield indices of rows in batches of about one length, the longest first; rows of equal length keep their order.

    A batch has at most `rows` rows, and at most `tokens` tokens with padding unless it is a single row. The largest batch comes
    first, so that a lack of memory shows at once.

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
    """Return token ids padded on the right, and a mask that is 0 on padding; both of shape (rows, longest row)."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.full(mask.shape, pad or 0, dtype=np.int64)
    ids[mask.astype(bool)] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids, mask
