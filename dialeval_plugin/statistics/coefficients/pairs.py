"""Pairs of score and rating, and weighted samples of them: what every coefficient asks for and counts with.

A sample is a row of `weights[r, i]`, how often pair i of the arrays `x[i], y[i]` occurs in sample r.
"""

from __future__ import annotations

import numpy as np

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.checks import BoolArray, FloatArray, IntArray, Numbers, numbers, same_length

MIN_PAIRS = 3
"""Two pairs give 1 or -1 whatever they are."""


def checked_pairs(where: str, scores: Numbers, ratings: Numbers, min_pairs: int = MIN_PAIRS) -> tuple[FloatArray, FloatArray]:
    """Return scores and ratings as arrays that both vary.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: fewer than `min_pairs` pairs, constant scores or constant ratings.

    Example:
        >>> checked_pairs("pearson", [1, 2, 3], [1, 1, 2])
        (array([1., 2., 3.]), array([1., 1., 2.]))
    """
    same_length(where, scores=scores, ratings=ratings)
    x, y = numbers(where, "scores", scores), numbers(where, "ratings", ratings)
    if len(x) < min_pairs:
        raise StatisticUndefined(
            f"{where}: {len(x)} pairs of score and rating, at least {min_pairs} are needed. Score and rate more examples."
        )
    for name, values in (("scores", x), ("ratings", y)):
        if values.min() == values.max():
            raise StatisticUndefined(f"{where}: all {len(values)} {name} are {float(values[0])!r}. Give {name} that differ.")
    return x, y


def codes_of(values: FloatArray) -> IntArray:
    """Return each value's place among the distinct values.

    Example:
        >>> codes_of(np.array([0.5, -1.0, 0.5]))
        array([1, 0, 1])
    """
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def group_totals(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return how often each distinct value, in ascending order, occurs in each sample.

    Example:
        >>> group_totals(np.array([2.0, 1.0, 2.0]), np.array([[1.0, 2.0, 1.0]]))
        array([[2., 2.]])
    """
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=-np.inf))
    return np.add.reduceat(weights[:, order], starts, axis=1)


def is_undefined(groups_x: FloatArray, groups_y: FloatArray, totals: FloatArray) -> BoolArray:
    """Return which samples are too small, or have all rows in one group of ties.

    Example:
        >>> is_undefined(np.array([[3.0, 0.0], [2.0, 1.0]]), np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([3.0, 3.0]))
        array([ True, False])
    """
    is_constant: BoolArray = (groups_x.max(axis=1) == totals) | (groups_y.max(axis=1) == totals)
    return is_constant | (totals < MIN_PAIRS)


def ratio(products: FloatArray, squares: FloatArray, undefined: BoolArray) -> FloatArray:
    """Return `products / sqrt(squares)` within -1 and 1; NaN where undefined.

    Example:
        >>> ratio(np.array([1.0, 0.0]), np.array([4.0, 0.0]), np.array([False, True]))
        array([0.5, nan])
    """
    ratios = products / np.sqrt(np.where(undefined, 1, squares))
    return np.where(undefined, np.nan, np.clip(ratios, -1, 1))
