"""Kendall's tau-b and tau-c: one value, and the values on many weighted samples at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from dialeval_plugin.statistics.checks import FloatArray, IntArray, Numbers

from . import pair_counts
from .pairs import checked_pairs, codes_of, group_totals, is_undefined, ratio


def kendall_b(scores: Numbers, ratings: Numbers) -> float:
    r"""Kendall's tau-b: concordant less discordant pairs of rows, corrected for ties.

    Formula (Kendall 1945): $(C - D) / \sqrt{(n_0 - n_1)(n_0 - n_2)}$ with $n_0 = n(n-1)/2$ pairs of rows, of which $n_1$
    are tied in the scores and $n_2$ in the ratings.
    Range: -1 to 1; with ties the ends are reached only where scores and ratings are tied in the same rows.
    Ties: count neither for nor against, and leave the denominator. Missing values: refused, as in `coefficients.pearson`.
    Undefined: fewer than 3 pairs, constant scores or constant ratings.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: see above.

    Example:
        >>> round(kendall_b([1, 2, 3, 4], [1, 2, 2, 8]), 6)
        0.912871
    """
    x, y = checked_pairs("kendall_b", scores, ratings)
    return float(stats.kendalltau(x, y, variant="b").statistic)


def kendall_c(scores: Numbers, ratings: Numbers) -> float:
    r"""Stuart's tau-c: for a score with many levels beside a rating with few, where tau-b cannot reach 1.

    Formula (Stuart 1953): $2m(C - D) / (n^2(m - 1))$ with m the smaller of the two numbers of distinct values.
    Range: about -1 to 1; the ends are reached where each of m ratings has as many rows, and the ratings never contradict the
    scores. Ties: count neither for nor against, and stay in the denominator. Missing values and undefined: as in `kendall_b`.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: see above.

    Example:
        >>> kendall_c([1, 2, 3, 4], [1, 1, 2, 2]), round(kendall_b([1, 2, 3, 4], [1, 1, 2, 2]), 6)
        (1.0, 0.816497)
    """
    x, y = checked_pairs("kendall_c", scores, ratings)
    return float(stats.kendalltau(x, y, variant="c").statistic)


def kendall_b_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Kendall's tau-b of each weighted sample.

    Over the groups of tied scores, $2(n_0 - n_1) = N^2 - \sum t^2$. Algorithm and cost: see `concordance_of_samples`.

    Example:
        >>> kendall_b_of_samples(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 1.0]), np.array([[1.0, 2, 0], [1, 1, 1]]))
        array([1., 0.])
    """
    totals = weights.sum(axis=1)
    groups_x, groups_y = group_totals(x, weights), group_totals(y, weights)
    squares = (totals**2 - (groups_x**2).sum(axis=1)) * (totals**2 - (groups_y**2).sum(axis=1))
    return ratio(concordance_of_samples(x, y, weights), squares, is_undefined(groups_x, groups_y, totals))


def kendall_c_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Stuart's tau-c of each weighted sample; the levels that count are those that occur in it.

    Example:
        >>> kendall_c_of_samples(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]), np.array([[1.0, 1, 2]]))
        array([1.])
    """
    totals = weights.sum(axis=1)
    groups_x, groups_y = group_totals(x, weights), group_totals(y, weights)
    undefined = is_undefined(groups_x, groups_y, totals)
    n_levels = np.minimum((groups_x > 0).sum(axis=1), (groups_y > 0).sum(axis=1)).astype(np.float64)
    largest = np.where(undefined, 1, totals**2 * (n_levels - 1) / np.maximum(n_levels, 1))
    return np.where(undefined, np.nan, np.clip(concordance_of_samples(x, y, weights) / largest, -1, 1))


def concordance_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Return twice the concordant less the discordant pairs of rows of each weighted sample; exact below $2^{53}$.

    Three algorithms, which agree exactly, for n distinct pairs with the smaller number of levels L:

    - a matrix $A_{ij} = \mathrm{sign}(x_i - x_j)\,\mathrm{sign}(y_i - y_j)$ and $2(C - D) = w^\top A w$, one product for all
      samples, $O(n^2)$ each; up to `pair_counts.MATRIX_LIMIT` pairs;
    - a table of the levels (`pair_counts.pairs_by_table`), $O(nL^2)$ each; few ratings beside many scores;
    - scipy's sort of each sample of N rows, $O(N \log N)$, in memory that grows with N only; many levels of both.

    Example:
        >>> concordance_of_samples(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.array([[1.0, 1.0, 1.0]]))
        array([2.])
    """
    codes_x, codes_y = codes_of(x), codes_of(y)
    if len(x) <= pair_counts.MATRIX_LIMIT:
        return pair_counts.pairs_by_matrix(_sign_products(codes_x, codes_y), weights)
    if codes_x.max() < codes_y.max():
        codes_x, codes_y = codes_y, codes_x
    n_rows, n_columns = int(codes_x.max()) + 1, int(codes_y.max()) + 1
    if n_rows * n_columns > pair_counts.TABLE_LIMIT * len(x):
        return _by_sorting(x, y, weights)
    levels = np.arange(n_columns)
    signs = np.sign(levels[None, :] - levels[:, None]).astype(np.float64)
    return 2 * pair_counts.pairs_by_table(codes_x, codes_y, weights, np.arange(n_rows), signs)


def _sign_products(x: IntArray, y: IntArray) -> npt.NDArray[np.float32]:
    signs = np.ones((len(x), len(x)), dtype=np.float32)
    for codes in (x, y):
        differences = np.subtract.outer(codes.astype(np.float32), codes.astype(np.float32))
        signs *= np.sign(differences, out=differences)
    return signs


def _by_sorting(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    products = np.zeros(len(weights))
    for i, sample in enumerate(weights):
        times = sample.astype(np.int64)
        drawn_x, drawn_y = np.repeat(x, times), np.repeat(y, times)
        squares = [
            float(len(drawn) ** 2 - (np.unique(drawn, return_counts=True)[1] ** 2).sum()) for drawn in (drawn_x, drawn_y)
        ]
        if all(squares):
            tau = stats.kendalltau(drawn_x, drawn_y, variant="b").statistic
            products[i] = np.rint(tau * np.sqrt(squares[0]) * np.sqrt(squares[1]))
    return products
