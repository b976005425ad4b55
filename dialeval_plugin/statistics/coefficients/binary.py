"""How well scores tell two kinds of rows apart: point-biserial correlation and area under the ROC curve."""

from __future__ import annotations

import numpy as np
from scipy import stats

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.checks import FloatArray, Numbers

from .kendall import concordance_of_samples
from .pairs import checked_pairs, group_totals, is_undefined
from .pearson import pearson_of_samples, pearson_of_varying

N_KINDS = 2
"""Ratings that a binary coefficient takes: the lower and the higher one."""


def point_biserial(scores: Numbers, ratings: Numbers) -> float:
    r"""Point-biserial correlation: Pearson's, with ratings of two values.

    Formula (Lev 1949): $(\bar x_1 - \bar x_0)\sqrt{n_1 n_0} / (n s_x)$, with 1 for the higher rating.
    Range: -1 to 1; the ends are reached only where the scores have two values as well. Ties: need no care.
    Missing values: refused, as in `pearson`. Undefined: as for `pearson`, and where there are more than two different ratings.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: see above.

    Example:
        >>> round(point_biserial([0.1, 0.4, 0.3, 0.9], [0, 0, 1, 1]), 6)
        0.593732
    """
    return pearson_of_varying("point_biserial", *_checked("point_biserial", scores, ratings))


def auroc(scores: Numbers, ratings: Numbers) -> float:
    r"""Area under the ROC curve: how often a row of the higher rating has the higher score (Hanley and McNeil 1982).

    Formula: $(C + T/2) / (n_1 n_0)$ over the pairs of one row of each rating, C of them in the right order, T tied; this is
    Mann and Whitney's U by $n_1 n_0$.
    Range: 0 (always wrong) to 1 (always right); 0.5 is a coin flip. Ties: count one half. Missing values: refused, as in
    `pearson`. Undefined: fewer than 3 rows, constant scores, or other than two different ratings.

    Raises:
        InputError: lengths differ, or a value is not a finite number.
        StatisticUndefined: see above.

    Example:
        >>> auroc([0.1, 0.4, 0.3, 0.9], [0, 0, 1, 1])
        0.75
    """
    x, y = _checked("auroc", scores, ratings)
    is_higher = y == y.max()
    return float(stats.mannwhitneyu(x[is_higher], x[~is_higher]).statistic / (is_higher.sum() * (~is_higher).sum()))


def point_biserial_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Point-biserial correlation of each weighted sample.

    Example:
        >>> point_biserial_of_samples(np.array([1.0, 2.0, 1.0]), np.array([0.0, 1.0, 1.0]), np.array([[1.0, 2.0, 0.0]]))
        array([1.])
    """
    values: FloatArray = np.where(_n_kinds(y, weights) == N_KINDS, pearson_of_samples(x, y, weights), np.nan)
    return values


def auroc_of_samples(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    r"""Area under the ROC curve of each weighted sample, $1/2 + (C - D) / (2 n_1 n_0)$; see `concordance_of_samples`.

    Example:
        >>> auroc_of_samples(np.array([1.0, 2.0, 1.0]), np.array([0.0, 1.0, 1.0]), np.array([[1.0, 1.0, 1.0]]))
        array([0.75])
    """
    totals = weights.sum(axis=1)
    groups_x, groups_y = group_totals(x, weights), group_totals(y, weights)
    undefined = is_undefined(groups_x, groups_y, totals) | ((groups_y > 0).sum(axis=1) != N_KINDS)
    twice_n1_n0 = np.where(undefined, 1, totals**2 - (groups_y**2).sum(axis=1))
    values: FloatArray = np.where(undefined, np.nan, 0.5 + concordance_of_samples(x, y, weights) / (2 * twice_n1_n0))
    return values


def _n_kinds(y: FloatArray, weights: FloatArray) -> FloatArray:
    kinds: FloatArray = (group_totals(y, weights) > 0).sum(axis=1).astype(np.float64)
    return kinds


def _checked(where: str, scores: Numbers, ratings: Numbers) -> tuple[FloatArray, FloatArray]:
    x, y = checked_pairs(where, scores, ratings)
    if (n_kinds := len(np.unique(y))) != N_KINDS:
        raise StatisticUndefined(f"{where}: {n_kinds} different ratings, exactly 2 are needed. Give ratings of two values.")
    return x, y
