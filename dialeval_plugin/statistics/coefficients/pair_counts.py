"""Counting pairs of rows in many weighted samples at once, or in one large sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dialeval_plugin.statistics.checks import FloatArray, IntArray

from .pairs import group_totals

MATRIX_LIMIT = 2500
"""Up to so many distinct pairs of score and rating, a matrix with a field for each two of them is small (25 MB)."""

TABLE_LIMIT = 16
"""A table of the levels of scores and ratings is small where it has at most so many fields a distinct pair."""

_FIELDS_AT_ONCE = 2_000_000
"""Fields of the tables that are held at once (16 MB)."""


def pairs_by_matrix(values: npt.NDArray[np.float32], weights: FloatArray) -> FloatArray:
    r"""Return $w^\top V w$ of each sample, for V of small integers: one product for all samples, $O(n^2)$ each.

    Exact below $2^{53}$: the inner sums are of integers, which float32 holds while no sample has more than $2^{24}$ rows.

    Example:
        >>> pairs_by_matrix(np.array([[0, 1], [1, 0]], dtype=np.float32), np.array([[2.0, 3.0]]))
        array([12.])
    """
    dtype: npt.DTypeLike = np.float32 if weights.sum(axis=1).max(initial=0) < 2**24 else np.float64
    halves = weights.astype(dtype, copy=False) @ values.astype(dtype, copy=False)
    products: FloatArray = (weights * halves).sum(axis=1)
    return products


def pairs_by_table(x: IntArray, y: IntArray, weights: FloatArray, first: IntArray, values: FloatArray) -> FloatArray:
    r"""Return the sum of `values[y[j], y[i]]` over all pairs of rows with `x[j] < first[x[i]]`, of each sample.

    Cumulative sums run through a table of the levels: $O(K L^2)$ each for K levels of x and L of y.

    Args:
        x: codes of one column, from 0, one a distinct pair.
        y: codes of the other one, of which there are few.
        weights: how often each distinct pair occurs in each sample.
        first: for each level of x, how many of the lowest levels count as below it.
        values: what a pair of rows adds, by the level of y of the lower and of the higher one.

    Example:
        >>> is_rising = np.array([[0.0, 1.0], [0.0, 0.0]])
        >>> pairs_by_table(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([[2.0, 3.0, 5.0]]), np.array([0, 1]), is_rising)
        array([6.])
    """
    n_rows, n_columns = int(x.max()) + 1, int(y.max()) + 1
    fields = x * n_columns + y
    places = np.unique(fields)
    sums = np.empty(len(weights))
    at_once = max(1, _FIELDS_AT_ONCE // (n_rows * n_columns))
    for start in range(0, len(weights), at_once):
        some = weights[start : start + at_once]
        flat = np.zeros((len(some), n_rows * n_columns))
        flat[:, places] = group_totals(fields.astype(np.float64), some)
        table = flat.reshape(-1, n_rows, n_columns)
        below = np.concatenate([np.zeros((len(some), 1, n_columns)), np.cumsum(table, axis=1)], axis=1)[:, first]
        sums[start : start + at_once] = np.einsum("rxl,rxl->r", table, below @ values)
    return sums


def count_smaller(codes: IntArray, ends: IntArray, values: IntArray) -> IntArray:
    r"""Return for each i how many of `codes[: ends[i]]` are smaller than `values[i]`.

    A wavelet matrix (Claude, Navarro and Ordóñez 2015), one pass a bit: $O(n \log L)$ for codes from 0 to L - 1.

    Example:
        >>> count_smaller(np.array([2, 0, 1, 0]), np.array([4, 3, 0]), np.array([2, 1, 3]))
        array([3, 1, 0])
    """
    low, high = np.zeros_like(ends), ends
    found = np.zeros_like(ends)
    n_bits = max(int(codes.max(initial=0)), int(values.max(initial=0))).bit_length()
    for bit in reversed(range(n_bits)):
        is_one = (codes >> bit) & 1 == 1
        zeros_before = np.concatenate([[0], np.cumsum(~is_one)])
        goes_right = (values >> bit) & 1 == 1
        zeros_low, zeros_high = zeros_before[low], zeros_before[high]
        found += np.where(goes_right, zeros_high - zeros_low, 0)
        low = np.where(goes_right, zeros_before[-1] + low - zeros_low, zeros_low)
        high = np.where(goes_right, zeros_before[-1] + high - zeros_high, zeros_high)
        codes = np.concatenate([codes[~is_one], codes[is_one]])
    return found
