"""Coefficients of agreement between scores and ratings: one value, and the values on many weighted samples at once.

Each coefficient is a pair of functions. The first takes raw scores and ratings, checks them and asks scipy. The second is
what the bootstrap needs: given distinct pairs `x[i], y[i]` and `weights[r, i]`, how often pair i occurs in sample r, it
returns one value a sample, NaN where the first function would raise `StatisticUndefined`. Both agree to 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from dialeval_plugin.errors import InputError, StatisticUndefined

from .checks import BoolArray, FloatArray, IntArray, Numbers, numbers, same_length

MIN_PAIRS = 3
"""Two pairs give 1 or -1 whatever they are."""

KENDALL_MATRIX_LIMIT = 2500
"""Up to so many distinct pairs, Kendall's tau comes from a matrix of signs (25 MB); above, from one sort a sample."""

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
    x, y = (_unit_scale(values) for values in _checked("pearson", scores, ratings))
    for name, values in (("scores", x), ("ratings", y)):
        mean = values.mean()
        if np.linalg.norm(values - mean) < _ROUNDING * abs(mean):
            raise StatisticUndefined(f"pearson: the {name} differ by rounding error only. Give {name} that differ.")
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
    x, y = _checked("spearman", scores, ratings)
    return float(stats.spearmanr(x, y).statistic)


def kendall_b(scores: Numbers, ratings: Numbers) -> float:
    r"""Kendall's tau-b: concordant less discordant pairs of rows, corrected for ties.

    Formula (Kendall 1945): $(C - D) / \sqrt{(n_0 - n_1)(n_0 - n_2)}$ with $n_0 = n(n-1)/2$ pairs of rows, of which $n_1$
    are tied in the scores and $n_2$ in the ratings.
    Range: -1 to 1; with ties the ends are reached only where scores and ratings are tied in the same rows.
    Ties: count neither for nor against, and leave the denominator. Missing values: refused, as in `pearson`.
    Undefined: fewer than 3 pairs, constant scores or constant ratings.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: see above.

    Example:
        >>> round(kendall_b([1, 2, 3, 4], [1, 2, 2, 8]), 6)
        0.912871
    """
    x, y = _checked("kendall_b", scores, ratings)
    return float(stats.kendalltau(x, y, variant="b").statistic)


def pearson_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's correlation of each weighted sample; two passes, so that an outlier that is not drawn costs no digits.

    Example:
        >>> pearson_of_samples(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1.0]), np.array([[1.0, 2, 0], [1, 1, 1]]))
        array([1., 0.])
    """
    totals = weights.sum(axis=1)
    deviations, is_flat = [], np.zeros(len(weights), dtype=np.bool_)
    with np.errstate(invalid="ignore", divide="ignore"):
        for values in (_unit_scale(x), _unit_scale(y)):
            means = (weights * values).sum(axis=1) / totals
            deviation = values - means[:, None]
            norms = np.sqrt((weights * deviation * deviation).sum(axis=1))
            is_flat |= norms < _ROUNDING * np.abs(means)
            deviations.append(deviation / norms[:, None])
        products = (weights * deviations[0] * deviations[1]).sum(axis=1)
    is_undefined = _is_undefined(_group_totals(x, weights), _group_totals(y, weights), totals)
    return np.where(is_undefined | is_flat, np.nan, np.clip(products, -1, 1))


def spearman_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Spearman's correlation of each weighted sample; exact up to the last division, for ranks are halves of integers.

    Example:
        >>> spearman_of_samples(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 1.0]), np.array([[1.0, 2, 0], [1, 1, 1]]))
        array([1., 0.])
    """
    totals = weights.sum(axis=1)
    groups_x, groups_y = _group_totals(x, weights), _group_totals(y, weights)
    ranks_x, ranks_y = _centred_midranks(groups_x, totals), _centred_midranks(groups_y, totals)
    squares = (groups_x * ranks_x**2).sum(axis=1) * (groups_y * ranks_y**2).sum(axis=1)
    products = (weights * ranks_x[:, _codes(x)] * ranks_y[:, _codes(y)]).sum(axis=1)
    return _ratio(products, squares, _is_undefined(groups_x, groups_y, totals))


def kendall_b_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Kendall's tau-b of each weighted sample.

    With $A_{ij} = \mathrm{sign}(x_i - x_j)\,\mathrm{sign}(y_i - y_j)$, $2(C - D) = w^\top A w$; and over the groups of tied
    scores, $2(n_0 - n_1) = N^2 - \sum t^2$. One matrix product serves all samples, $O(n^2)$ each for n distinct pairs. Above
    `KENDALL_MATRIX_LIMIT` distinct pairs scipy sorts each sample of N rows, $O(N \log N)$, in memory that grows with N only.

    Example:
        >>> kendall_b_of_samples(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 1.0]), np.array([[1.0, 2, 0], [1, 1, 1]]))
        array([1., 0.])
    """
    totals = weights.sum(axis=1)
    groups_x, groups_y = _group_totals(x, weights), _group_totals(y, weights)
    is_undefined = _is_undefined(groups_x, groups_y, totals)
    if len(x) > KENDALL_MATRIX_LIMIT:
        return _kendall_b_one_by_one(x, y, weights, is_undefined)
    signs = _sign_products(_codes(x), _codes(y))
    # Sums of integers: exact in float32 while no sample holds more than 2**24 rows.
    exact = weights.astype(np.float32) if totals.max(initial=0) < 2**24 else weights
    products = (weights * (exact @ signs.astype(exact.dtype, copy=False))).sum(axis=1)
    squares = (totals**2 - (groups_x**2).sum(axis=1)) * (totals**2 - (groups_y**2).sum(axis=1))
    return _ratio(products, squares, is_undefined)


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient by name; one more is added by one more entry in `COEFFICIENTS`."""

    name: str
    of_pairs: Callable[[Numbers, Numbers], float]
    of_samples: Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


COEFFICIENTS: dict[str, Coefficient] = {
    entry.name: entry
    for entry in (
        Coefficient("pearson", pearson, pearson_of_samples),
        Coefficient("spearman", spearman, spearman_of_samples),
        Coefficient("kendall_b", kendall_b, kendall_b_of_samples),
    )
}


def coefficient_named(name: str) -> Coefficient:
    """Return the coefficient `name`.

    Raises:
        InputError: there is none; the message lists those that there are.

    Example:
        >>> coefficient_named("spearman").of_pairs([1, 2, 3], [1, 3, 2])
        0.5
    """
    if name not in COEFFICIENTS:
        raise InputError(f"there is no coefficient {name!r}. Known are: {', '.join(sorted(COEFFICIENTS))}.")
    return COEFFICIENTS[name]


def _checked(where: str, scores: Numbers, ratings: Numbers) -> tuple[FloatArray, FloatArray]:
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


def _unit_scale(values: FloatArray) -> FloatArray:
    """Divide by a power of two, which rounds nothing, so that squares neither overflow nor vanish."""
    scaled: FloatArray = np.ldexp(values, -np.frexp(np.abs(values).max(initial=0))[1])
    return scaled


def _codes(values: FloatArray) -> IntArray:
    """Each value's place among the distinct values."""
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _group_totals(values: FloatArray, weights: FloatArray) -> FloatArray:
    """How often each distinct value, in ascending order, occurs in each sample."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=-np.inf))
    return np.add.reduceat(weights[:, order], starts, axis=1)


def _centred_midranks(groups: FloatArray, totals: FloatArray) -> FloatArray:
    """Mean rank of each group of ties less the mean of all ranks, (N + 1) / 2."""
    return np.cumsum(groups, axis=1) - (groups + totals[:, None]) / 2


def _sign_products(x: IntArray, y: IntArray) -> npt.NDArray[np.float32]:
    signs = np.ones((len(x), len(x)), dtype=np.float32)
    for codes in (x, y):
        differences = np.subtract.outer(codes.astype(np.float32), codes.astype(np.float32))
        signs *= np.sign(differences, out=differences)
    return signs


def _is_undefined(groups_x: FloatArray, groups_y: FloatArray, totals: FloatArray) -> BoolArray:
    """Samples that are too small, or have all rows in one group of ties."""
    is_constant: BoolArray = (groups_x.max(axis=1) == totals) | (groups_y.max(axis=1) == totals)
    return is_constant | (totals < MIN_PAIRS)


def _ratio(products: FloatArray, squares: FloatArray, is_undefined: BoolArray) -> FloatArray:
    ratios = products / np.sqrt(np.where(is_undefined, 1, squares))
    return np.where(is_undefined, np.nan, np.clip(ratios, -1, 1))


def _kendall_b_one_by_one(x: FloatArray, y: FloatArray, weights: FloatArray, is_undefined: BoolArray) -> FloatArray:
    values = np.full(len(weights), np.nan)
    for i in np.flatnonzero(~is_undefined):
        times = weights[i].astype(np.int64)
        values[i] = stats.kendalltau(np.repeat(x, times), np.repeat(y, times), variant="b").statistic
    return values
