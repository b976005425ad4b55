"""Gains in ratings from choosing by scores: keeping the best share of all rows, and the best of several responses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, Statistic
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Counts,
    Estimate,
    Resampled,
    defined,
    ratio_of_sums,
)
from dialeval_plugin.statistics.levels import ScoredRatings, quantile_bins, rows_of
from dialeval_plugin.statistics.rows import rows_by_group

SHARES = (0.1, 0.25, 0.5)
_MAX_LEVELS = 1000
"""Number of score levels above which scores are grouped into bins of equally many rows."""


def quality_of_kept(
    rated: ScoredRatings, shares: Sequence[float] = SHARES, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> dict[str, Estimate]:
    """Return the mean rating of all rows, and of the best-scored share for each of `shares`: the gain from filtering.

    Rows tied at the cut are kept in proportion. The cut is made again on each resample. If ratings are 0 and 1, the mean is the
    precision at the cut, and the recall is returned too. Raises InputError if a share is not in (0, 1]; also as `rows_of`.

    Example:
        >>> ratings = [0, 1, 0, 1, 1, 1] * 4
        >>> found = quality_of_kept(ScoredRatings(scores=[1, 2, 3, 4, 5, 6] * 4, ratings=ratings), [0.5])
        >>> {name: round(one.value, 3) for name, one in found.items()}
        {'mean_of_all': 0.667, 'mean_of_best_50%': 1.0, 'recall_of_best_50%': 0.75}
    """
    if wrong := [share for share in shares if not 0 < share <= 1]:
        raise InputError(f"quality_of_kept: {wrong[0]!r} is no share. Give one above 0 and at most 1.")
    rows = rows_of("quality_of_kept", rated, {"scores": rated.scores}, "turn", "none")
    x, y = rows.scores[0], rows.ratings
    levels, codes = np.unique(quantile_bins(x, _MAX_LEVELS) if len(np.unique(x)) > _MAX_LEVELS else x, return_inverse=True)
    n_levels = len(levels)
    # The highest level first; each has its number of rows and the sum of their ratings.
    of_rows = n_levels - 1 - codes.reshape(-1)
    entries = np.concatenate([np.ones(len(y)), y]), (np.tile(rows.clusters, 2), np.concatenate([of_rows, n_levels + of_rows]))
    sums = sparse.coo_array(entries, shape=(rows.counts.n_clusters, 2 * n_levels)).tocsr()

    def kept(share: float, *, is_recall: bool) -> Statistic:
        @np.errstate(divide="ignore", invalid="ignore")
        def statistic(drawn: FloatArray) -> FloatArray:
            n, total = drawn[:, :n_levels], drawn[:, n_levels:]
            limit = share * n.sum(axis=1, keepdims=True)
            parts = np.clip((limit - (np.cumsum(n, axis=1) - n)) / n, 0, 1)
            gained = np.nansum(parts * total, axis=1)
            return np.asarray(gained / (total.sum(axis=1) if is_recall else limit[:, 0]))

        return statistic

    statistics = {"mean_of_all": kept(1.0, is_recall=False)}
    for share in shares:
        statistics[f"mean_of_best_{100 * share:g}%"] = kept(share, is_recall=False)
        if np.isin(y, (0, 1)).all() and y.any():
            statistics[f"recall_of_best_{100 * share:g}%"] = kept(share, is_recall=True)
    return _estimates("quality_of_kept", {name: Resampled(of, sums) for name, of in statistics.items()}, rows.counts, bootstrap)


def best_of_several(rated: ScoredRatings, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> dict[str, Estimate]:
    """Return the mean rating of each item's best-scored response, of its best-rated one, and of a random one.

    Items with two or more responses have equal weight; of tied scores a random one is chosen. `regret` is the loss compared
    with the best-rated response; its "expanded" interval is that of `Bootstrap.log_scale_interval`. Raises InputError without
    `items`; also as `rows_of`.
    """
    rows = rows_of("best_of_several", rated, {"scores": rated.scores}, "turn", "item")
    x, y, groups = rows.scores[0], rows.ratings, rows.groups
    items = []
    for members in rows_by_group(groups) if groups is not None else ():
        if len(members) > 1:
            own = y[members]
            chosen = float(own[x[members] == x[members].max()].mean())
            items.append((rows.clusters[members[0]], own.mean(), chosen, own.max(), own.max() - chosen, 1.0))
    clusters, *columns = np.array(items).T if items else np.zeros((6, 0))
    sums = np.stack([np.bincount(clusters.astype(np.int64), of, rows.counts.n_clusters) for of in columns], axis=1)

    names = ("random_choice", "highest_score", "best_choice", "regret")
    resampled = {name: ratio_of_sums(sums, column, len(names)) for column, name in enumerate(names)}
    estimates = _estimates("best_of_several", resampled, rows.counts, bootstrap)
    if (value := estimates["regret"].value) is not None and bootstrap.interval == "expanded" and bootstrap.rounds:
        # Most items have none, and few a large one.
        interval = bootstrap.log_scale_interval("regret", resampled["regret"])
        estimates["regret"] = bootstrap.estimate("regret", value, interval, rows.counts)
    return estimates


def _estimates(where: str, resampled: dict[str, Resampled], counts: Counts, bootstrap: Bootstrap) -> dict[str, Estimate]:
    nothing = f"{where}: no rows to choose from. Score and rate more of them."
    return bootstrap.estimates({name: defined(entry, nothing) for name, entry in resampled.items()}, counts)
