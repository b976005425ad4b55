"""Scores beside ratings, and weighted samples of them: what every coefficient asks for and counts with.

A coefficient's `…_of_samples` takes columns `x[i]`, `y[i]` and returns a function of `weights[r, i]`, how often pair i occurs
in sample r. It gives one value a sample, NaN where the coefficient is undefined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval_plugin.core.arrays import BoolArray, FloatArray, IntArray, Numbers
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.rows import numbers, same_length

MIN_PAIRS = 3
"""Two pairs give 1 or -1 whatever they are."""


def checked_pairs(where: str, scores: Numbers, ratings: Numbers) -> tuple[FloatArray, FloatArray]:
    """Return scores and ratings as arrays that both vary.

    InputError: lengths differ, or a value is not a finite number. StatisticUndefined: fewer than `MIN_PAIRS` pairs, constant
    scores or constant ratings.
    """
    same_length(where, scores=scores, ratings=ratings)
    x, y = numbers(where, "scores", scores), numbers(where, "ratings", ratings)
    if len(x) < MIN_PAIRS:
        raise StatisticUndefined(
            f"{where}: {len(x)} pairs of score and rating, at least {MIN_PAIRS} are needed. Score and rate more examples."
        )
    for name, values in (("scores", x), ("ratings", y)):
        if values.min() == values.max():
            raise StatisticUndefined(f"{where}: all {len(values)} {name} are {float(values[0])!r}. Give {name} that differ.")
    return x, y


@dataclass(frozen=True, slots=True)
class Ties:
    """The groups of equal values of a column."""

    codes: IntArray
    """Each value's place among the distinct values."""
    order: IntArray
    """Of the rows, by value."""
    starts: IntArray
    """Where in that order each group starts."""

    @classmethod
    def of(cls, values: FloatArray | IntArray) -> Ties:
        """Return the groups of a column of at least one value."""
        codes = np.unique(values, return_inverse=True)[1].reshape(-1)
        order = np.argsort(codes, kind="stable")
        return cls(codes, order, np.flatnonzero(np.diff(codes[order], prepend=-1)))

    def totals(self, weights: FloatArray) -> FloatArray:
        """Return how often each distinct value, in ascending order, occurs in each sample."""
        return np.add.reduceat(weights[:, self.order], self.starts, axis=1)


def is_undefined(groups_x: FloatArray, groups_y: FloatArray) -> BoolArray:
    """Return which samples are too small or have all rows in one group of ties, from `Ties.totals` of both columns."""
    totals = groups_x.sum(axis=1)
    is_constant = (groups_x.max(axis=1) == totals) | (groups_y.max(axis=1) == totals)
    return np.asarray(is_constant | (totals < MIN_PAIRS))


def ratio(products: FloatArray, squares: FloatArray, undefined: BoolArray) -> FloatArray:
    """Return `products / sqrt(squares)` within -1 and 1; NaN where undefined."""
    ratios = products / np.sqrt(np.where(undefined, 1, squares))
    return np.where(undefined, np.nan, np.clip(ratios, -1, 1))
