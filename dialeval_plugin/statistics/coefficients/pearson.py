"""Pearson's correlation, and two special cases: Spearman's, of ranks, and point-biserial, with two rating values.

Missing values are an InputError; `correlation.correlate` leaves them out and counts them. StatisticUndefined is raised for
fewer than 3 pairs, constant scores or ratings, and the cases that a function names.

A function `..._of_samples` takes columns `x[i]`, `y[i]` and returns a function of `weights[r, i]`, the number of times that
pair i occurs in sample r: one value per sample, NaN if the coefficient is undefined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import BoolArray, FloatArray, IntArray, Numbers, Statistic
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.rows import numbers, same_length

MIN_PAIRS = 3
"""Two pairs always give 1 or -1."""


def checked_pairs(where: str, scores: Numbers, ratings: Numbers) -> tuple[FloatArray, FloatArray]:
    """Return scores and ratings as arrays that both vary.

    InputError: lengths differ or a value is not finite. StatisticUndefined: fewer than `MIN_PAIRS` pairs, or one is constant.
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
    """Groups of equal values of a column."""

    codes: IntArray
    """Index of each value among the distinct values."""
    order: IntArray
    """Order of the rows by value."""
    starts: IntArray
    """Start of each group in that order."""

    @classmethod
    def of(cls, values: FloatArray | IntArray) -> Ties:
        """Return the groups of a column with at least one value."""
        codes = np.unique(values, return_inverse=True)[1].reshape(-1)
        order = np.argsort(codes, kind="stable")
        return cls(codes, order, np.flatnonzero(np.diff(codes[order], prepend=-1)))

    def totals(self, weights: FloatArray) -> FloatArray:
        """Return how often each distinct value, in ascending order, occurs in each sample."""
        return np.add.reduceat(weights[:, self.order], self.starts, axis=1)


def is_undefined(groups_x: FloatArray, groups_y: FloatArray) -> BoolArray:
    """Return which samples are too small or have one group of ties only, from `Ties.totals` of both columns."""
    totals = groups_x.sum(axis=1)
    is_constant = (groups_x.max(axis=1) == totals) | (groups_y.max(axis=1) == totals)
    return np.asarray(is_constant | (totals < MIN_PAIRS))


def ratio(products: FloatArray, squares: FloatArray, undefined: BoolArray) -> FloatArray:
    """Return `products / sqrt(squares)` in [-1, 1]; NaN if undefined."""
    ratios = products / np.sqrt(np.where(undefined, 1, squares))
    return np.where(undefined, np.nan, np.clip(ratios, -1, 1))


_ROUNDING = float(np.finfo(np.float64).eps ** 0.75)
"""Spread, relative to the mean, below which it is rounding error; scipy warns at the same threshold."""


def pearson(scores: Numbers, ratings: Numbers) -> float:
    r"""Pearson's product-moment correlation.

    Formula: $\sum (x-\bar x)(y-\bar y) / \sqrt{\sum (x-\bar x)^2 \sum (y-\bar y)^2}$. Range: -1 (falling line) to 1 (rising
    line). Also undefined if scores or ratings differ by rounding error only.

    Example:
        >>> round(pearson([1, 2, 3, 4], [1, 2, 3, 8]), 6)
        0.9135
    """
    return _pearson("pearson", *checked_pairs("pearson", scores, ratings))


def spearman(scores: Numbers, ratings: Numbers) -> float:
    """Spearman's rank correlation: Pearson's correlation of the ranks, mean ranks for ties. Range: -1 to 1.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 2, 2, 8]), 6)
        0.948683
    """
    x, y = checked_pairs("spearman", scores, ratings)
    return float(stats.spearmanr(x, y).statistic)


def point_biserial(scores: Numbers, ratings: Numbers) -> float:
    r"""Point-biserial correlation: Pearson's, with two rating values.

    Formula (Lev 1949): $(\bar x_1 - \bar x_0)\sqrt{n_1 n_0} / (n s_x)$, with 1 for the higher rating. Range: -1 to 1. Also
    undefined unless there are exactly two different ratings, and as for `pearson`.

    Example:
        >>> round(point_biserial([0.1, 0.4, 0.3, 0.9], [0, 0, 1, 1]), 6)
        0.593732
    """
    x, y = checked_pairs("point_biserial", scores, ratings)
    check_two_kinds("point_biserial", y)
    return _pearson("point_biserial", x, y)


def check_two_kinds(where: str, ratings: FloatArray) -> None:
    """Raise StatisticUndefined unless there are exactly two different ratings."""
    if (n_kinds := len(np.unique(ratings))) != 2:
        raise StatisticUndefined(f"{where}: {n_kinds} different ratings, exactly 2 are needed. Give ratings of two values.")


def _pearson(where: str, x: FloatArray, y: FloatArray) -> float:
    x, y = unit_scale(x), unit_scale(y)
    for name, values in (("scores", x), ("ratings", y)):
        mean = values.mean()
        if np.linalg.norm(values - mean) < _ROUNDING * abs(mean):
            raise StatisticUndefined(f"{where}: the {name} differ by rounding error only. Give {name} that differ.")
    return float(stats.pearsonr(x, y).statistic)


def pearson_of_samples(x: FloatArray, y: FloatArray) -> Statistic:
    """Pearson's correlation of weighted samples, in two passes: outliers that are not drawn cost no precision."""
    columns, ties = (unit_scale(x), unit_scale(y)), (Ties.of(x), Ties.of(y))

    def statistic(weights: FloatArray) -> FloatArray:
        totals = weights.sum(axis=1)
        deviations, is_flat = [], np.zeros(len(weights), dtype=np.bool_)
        with np.errstate(invalid="ignore", divide="ignore"):
            for values in columns:
                means = (weights * values).sum(axis=1) / totals
                deviation = values - means[:, None]
                norms = np.sqrt((weights * deviation * deviation).sum(axis=1))
                is_flat |= norms < _ROUNDING * np.abs(means)
                deviations.append(deviation / norms[:, None])
            products = (weights * deviations[0] * deviations[1]).sum(axis=1)
        undefined = is_undefined(*(tied.totals(weights) for tied in ties))
        return np.where(undefined | is_flat, np.nan, np.clip(products, -1, 1))

    return statistic


def point_biserial_of_samples(x: FloatArray, y: FloatArray) -> Statistic:
    """Point-biserial correlation of weighted samples."""
    of_samples, ratings = pearson_of_samples(x, y), Ties.of(y)

    def statistic(weights: FloatArray) -> FloatArray:
        has_two_kinds = (ratings.totals(weights) > 0).sum(axis=1) == 2
        return np.where(has_two_kinds, of_samples(weights), np.nan)

    return statistic


def spearman_of_samples(x: FloatArray, y: FloatArray) -> Statistic:
    """Spearman's correlation of weighted samples; exact up to the last division, because ranks are halves of integers."""
    ties_x, ties_y = Ties.of(x), Ties.of(y)

    def statistic(weights: FloatArray) -> FloatArray:
        groups_x, groups_y = ties_x.totals(weights), ties_y.totals(weights)
        ranks_x, ranks_y = _centred_midranks(groups_x), _centred_midranks(groups_y)
        squares = (groups_x * ranks_x**2).sum(axis=1) * (groups_y * ranks_y**2).sum(axis=1)
        products = (weights * ranks_x[:, ties_x.codes] * ranks_y[:, ties_y.codes]).sum(axis=1)
        return ratio(products, squares, is_undefined(groups_x, groups_y))

    return statistic


def _centred_midranks(groups: FloatArray) -> FloatArray:
    """Return the mean rank of each group of ties minus the mean of all ranks, (N + 1) / 2."""
    return np.asarray(np.cumsum(groups, axis=1) - (groups + groups.sum(axis=1, keepdims=True)) / 2)


def moments(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the addends of each pair to the sums of `pearson_of_moments`, shape (pairs, 6)."""
    x, y = (values - values.mean() for values in (unit_scale(x), unit_scale(y)))
    return np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)


@np.errstate(invalid="ignore", divide="ignore")
def pearson_of_moments(sums: FloatArray) -> FloatArray:
    """Pearson's correlation of samples from `sums[r]` of their `moments`: one pass, for large data."""
    n, x, y, xx, yy, xy = sums.T
    spread_x, spread_y = xx - x * x / n, yy - y * y / n
    is_flat = (spread_x <= _ROUNDING**2 * xx) | (spread_y <= _ROUNDING**2 * yy)
    return ratio(xy - x * y / n, spread_x * spread_y, is_flat | ~(n >= MIN_PAIRS))


def unit_scale(values: FloatArray) -> FloatArray:
    """Divide by a power of two, which is exact, so that squares neither overflow nor underflow."""
    return np.asarray(np.ldexp(values, -np.frexp(np.abs(values).max(initial=0))[1]))
