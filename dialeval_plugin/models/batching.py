"""Rows of token ids as batches of one length: which rows go together, and the tensors that they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

CPU_TOKENS = 512
"""Tokens of one forward pass on a processor, padding included: enough to fill it, few enough for its cache and for memory.
With a vocabulary of 50,000 they make 100 MB of logits."""
GPU_TOKENS = 65_536
"""On a GPU, for a model without logits of a whole vocabulary."""


def tokens_at_once(device: torch.device, on_gpu: int = GPU_TOKENS) -> int:
    """How many tokens one forward pass may have."""
    return on_gpu if device.type == "cuda" else CPU_TOKENS


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


def padded(rows: Sequence[Sequence[int]], pad: int | None, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rows of token ids, padded on the right, and the mask of what is no padding; both of shape (rows, longest row)."""
    length = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad or 0] * (length - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows], device=device)
    return ids, mask
