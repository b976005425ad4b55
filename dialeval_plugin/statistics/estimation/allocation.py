"""Which rows people should label next, so that the true mean has the narrowest interval for so many labels."""

from __future__ import annotations

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError

from .sample import score_strata

_PRIOR = 2
"""Labels that a stratum's spread is taken to rest on before it has any: of rates one of each kind, else the spread of all."""
_LEAST = 2
"""Labels that each stratum gets, where it has as many rows."""


def allocate(sizes: IntArray, given: IntArray, spreads: FloatArray, n_next: int) -> IntArray:
    """Return how many of `n_next` labels go to each stratum (Neyman 1934).

    All labels, given and new, shall be in proportion to the stratum's rows and the spread of its labels, as far as it has rows
    left. All arrays have shape (strata,).

    Example:
        >>> allocate(np.array([800, 200]), np.array([10, 10]), np.array([0.3, 0.5]), 20)
        array([18,  2])
    """
    weights = sizes * np.maximum(spreads, 1e-9)
    found = np.zeros(len(sizes), dtype=np.int64)
    # One at a time to where one more label lowers the variance most, which is the same and never overdraws.
    for _ in range(min(n_next, int((sizes - given).sum()))):
        has = given + found
        is_short = has < np.minimum(_LEAST, sizes)
        gain = np.where(has > 0, weights**2 / np.maximum(has * (has + 1), 1), np.inf)
        gain = np.where(is_short, np.inf, gain)
        found[np.argmax(np.where(has < sizes, gain, -1.0))] += 1
    return found


def next_rows(scores: FloatArray, labels: FloatArray, n_next: int, *, is_rate: bool | None, seed: int = 0) -> IntArray:
    """Return the numbers of the rows to label next, in random order: drawn at random within each of the `score_strata`.

    Args:
        scores: of shape (rows,); NaN where a row has none, which is never drawn.
        labels: of shape (rows,), as in `Sample`; rows with one are not drawn again.
        n_next: how many.
        is_rate: whether labels are shares of "pass"; None where there are none yet.
        seed: of the draw.

    Raises:
        InputError: there are no such rows left.
    """
    scored = np.flatnonzero(~np.isnan(scores))
    strata, label = score_strata(scores[scored]), labels[scored]
    is_labelled = ~np.isnan(label)
    if is_labelled.all():
        raise InputError(f"label: all {len(scored)} scored rows are labelled. There is nothing left to label.")
    sizes = np.bincount(strata)
    given = np.bincount(strata[is_labelled], minlength=len(sizes))
    new = allocate(sizes, given, _spreads(strata[is_labelled], label[is_labelled], len(sizes), is_rate=is_rate), n_next)
    generator = np.random.default_rng(seed)
    drawn = [
        generator.choice(np.flatnonzero((strata == stratum) & ~is_labelled), size=n, replace=False)
        for stratum, n in enumerate(new.tolist())
    ]
    return np.asarray(scored[generator.permutation(np.concatenate(drawn))])


def _spreads(strata: IntArray, labels: FloatArray, n_strata: int, *, is_rate: bool | None) -> FloatArray:
    """Standard deviation of the labels of each stratum, the same for all where there are no labels."""
    if is_rate is None or not len(labels):
        return np.ones(n_strata)
    n = np.bincount(strata, minlength=n_strata)
    total = np.bincount(strata, weights=labels, minlength=n_strata)
    if is_rate:
        rate = (total + _PRIOR / 2) / (n + _PRIOR)
        return np.sqrt(rate * (1 - rate))
    squares = np.bincount(strata, weights=(labels - (total / np.maximum(n, 1))[strata]) ** 2, minlength=n_strata)
    return np.asarray(np.sqrt((squares + _PRIOR * labels.var()) / (n + _PRIOR)))
