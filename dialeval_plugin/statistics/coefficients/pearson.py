"""Pearson's and Spearman's correlation: one value, and the values on many weighted samples at once."""

from __future__ import annotations

import numpy as np
from scipy import stats

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.checks import FloatArray, Numbers

from .pairs import MIN_PAIRS, checked_pairs, codes_of, group_totals, is_undefined, ratio

_ROUNDING = float(np.finfo(np.float64).eps ** 0.75)
"""A spread below this part of the mean is rounding error; scipy's own threshold for a warning."""


def pearson(scores: Numbers, ratings: Numbers) -> float:
    r"""Pearson's product-moment correlation.

    Formula: $\sum (x-\bar x)(y-\bar y) / \sqrt{\sum (x-\bar x)^2 \sum (y-\bar y)^2}$.
    Range: -1 (falling line) to 1 (rising line); 0 says that no line fits, not that the two are independent.
    Ties: need no care. Missing values: refused; `correlation.correlate` leaves them out and counts them.
    Undefined: fewer than 3 pairs, or scores or ratings that are constant or differ by rounding error only.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: see above.

    Example:
        >>> round(pearson([1, 2, 3, 4], [1, 2, 3, 8]), 6)
        0.9135
    """
    return pearson_of_varying("pearson", *checked_pairs("pearson", scores, ratings))


def pearson_of_varying(where: str, x: FloatArray, y: FloatArray) -> float:
    """Pearson's correlation of scores and ratings that `checked_pairs` has let pass.

    Raises:
        StatisticUndefined: they differ by rounding error only.

    Example:
        >>> round(pearson_of_varying("pearson", np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0])), 6)
        0.866025
    """
    x, y = unit_scale(x), unit_scale(y)
    for name, values in (("scores", x), ("ratings", y)):
        mean = values.mean()
        if np.linalg.norm(values - mean) < _ROUNDING * abs(mean):
            raise StatisticUndefined(f"{where}: the {name} differ by rounding error only. Give {name} that differ.")
    return float(stats.pearsonr(x, y).statistic)


def spearman(scores: Numbers, ratings: Numbers) -> float:
    r"""Spearman's rank correlation: Pearson's correlation of the ranks.

    Range: -1 (one falls whenever the other rises) to 1 (both rise together).
    Ties: get the mean of the ranks that they take up. Missing values: refused, as in `pearson`.
    Undefined: fewer than 3 pairs, constant scores or constant ratings.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: see above.

    Example:
        >>> round(spearman([1, 2, 3, 4], [1, 2, 2, 8]), 6)
        0.948683
    """
    x, y = checked_pairs("spearman", scores, ratings)
    return float(stats.spearmanr(x, y).statistic)


def pearson_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's correlation of each weighted sample; two passes, so that an outlier that is not drawn costs no digits.

    Example:
        >>> pearson_of_samples(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1.0]), np.array([[1.0, 2, 0], [1, 1, 1]]))
        array([1., 0.])
    """
    totals = weights.sum(axis=1)
    deviations, is_flat = [], np.zeros(len(weights), dtype=np.bool_)
    with np.errstate(invalid="ignore", divide="ignore"):
        for values in (unit_scale(x), unit_scale(y)):
            means = (weights * values).sum(axis=1) / totals
            deviation = values - means[:, None]
            norms = np.sqrt((weights * deviation * deviation).sum(axis=1))
            is_flat |= norms < _ROUNDING * np.abs(means)
            deviations.append(deviation / norms[:, None])
        products = (weights * deviations[0] * deviations[1]).sum(axis=1)
    undefined = is_undefined(group_totals(x, weights), group_totals(y, weights), totals)
    return np.where(undefined | is_flat, np.nan, np.clip(products, -1, 1))


def pearson_of_moments(moments: FloatArray) -> FloatArray:
    """Pearson's correlation of samples from their rows, sums, squares and products; for what is centred and on one scale.

    One pass over what each cluster adds, for data too large for `pearson_of_samples`. It loses digits where one outlier
    dwarfs all other rows.

    Args:
        moments: `moments[r]` of sample r: n, and the sums of x, y, x * x, y * y and x * y.

    Example:
        >>> pearson_of_moments(np.array([[3.0, 0.0, 0.0, 2.0, 2.0, 1.0], [2.0, 0.0, 0.0, 2.0, 2.0, 1.0]]))
        array([0.5, nan])
    """
    n, x, y, xx, yy, xy = moments.T
    with np.errstate(invalid="ignore", divide="ignore"):
        spread_x, spread_y = xx - x * x / n, yy - y * y / n
        undefined = ~(n >= MIN_PAIRS) | (spread_x <= _ROUNDING**2 * xx) | (spread_y <= _ROUNDING**2 * yy)
        return ratio(xy - x * y / n, spread_x * spread_y, undefined)


def spearman_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Spearman's correlation of each weighted sample; exact up to the last division, for ranks are halves of integers.

    Example:
        >>> spearman_of_samples(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 1.0]), np.array([[1.0, 2, 0], [1, 1, 1]]))
        array([1., 0.])
    """
    totals = weights.sum(axis=1)
    groups_x, groups_y = group_totals(x, weights), group_totals(y, weights)
    ranks_x, ranks_y = _centred_midranks(groups_x, totals), _centred_midranks(groups_y, totals)
    squares = (groups_x * ranks_x**2).sum(axis=1) * (groups_y * ranks_y**2).sum(axis=1)
    products = (weights * ranks_x[:, codes_of(x)] * ranks_y[:, codes_of(y)]).sum(axis=1)
    return ratio(products, squares, is_undefined(groups_x, groups_y, totals))


def unit_scale(values: FloatArray) -> FloatArray:
    """Divide by a power of two, which rounds nothing, so that squares neither overflow nor vanish.

    Example:
        >>> unit_scale(np.array([3.0, -6.0]))
        array([ 0.375, -0.75 ])
    """
    scaled: FloatArray = np.ldexp(values, -np.frexp(np.abs(values).max(initial=0))[1])
    return scaled


def _centred_midranks(groups: FloatArray, totals: FloatArray) -> FloatArray:
    """Mean rank of each group of ties less the mean of all ranks, (N + 1) / 2."""
    return np.cumsum(groups, axis=1) - (groups + totals[:, None]) / 2
