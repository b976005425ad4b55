"""Choices by scores, and their gains: the best share of rows, the best of several responses, a threshold, a cascade.

In a cascade a small model scores everything, and a large one is called only if the small one is unsure. A threshold is chosen
by the costs of a false pass and a false fail, which are measured on held-out conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, IntArray, Numbers, Statistic
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named

from .bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Counts, Estimate, Resampled, defined, ratio_of_sums
from .levels import ScoredRatings, quantile_bins, rows_of
from .rows import numbers, rows_by_group, same_length

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


UNSURE = 0.5
"""Score at which a small model is least sure: halfway between its worst and its best score."""
STEPS = 20


class CascadePoint(NamedTuple):
    """Cascade that calls the large model if the small one's score is within `half_width` of `UNSURE`."""

    share: float
    """Share of the rows sent to the large model."""
    half_width: float
    value: float
    """Value of the coefficient."""


def cascade_curve(small: Numbers, fused: Numbers, ratings: Numbers) -> list[CascadePoint]:
    """Return Spearman's correlation for shares of calls from 0 to 1, in `STEPS` steps or fewer if scores are tied.

    `small` are scores in [0, 1] without the large model, `fused` with it. Raises InputError if lengths differ or a value is not
    finite, and StatisticUndefined if the coefficient is undefined at some share.

    Example:
        >>> [point.share for point in cascade_curve([0.1, 0.4, 0.6, 0.9], [0.2, 0.1, 0.6, 0.8], [1, 2, 3, 4])]
        [0.0, 0.5, 1.0]
    """
    where = "cascade_curve"
    same_length(where, small=small, fused=fused, ratings=ratings)
    alone, both = numbers(where, "small", small), numbers(where, "fused", fused)
    rated = numbers(where, "ratings", ratings)
    distances = np.abs(alone - UNSURE)
    widths = np.unique(np.quantile(distances, np.linspace(0, 1, STEPS + 1)[1:], method="inverted_cdf"))
    measure = coefficient_named("spearman").of_group
    points = [CascadePoint(0.0, 0.0, measure(alone, rated))]
    for width in widths:
        is_asked = distances <= width
        value = measure(np.where(is_asked, both, alone), rated)
        points.append(CascadePoint(float(is_asked.mean()), float(width), value))
    if not all(np.isfinite(point.value) for point in points):
        raise StatisticUndefined(f"{where}: the coefficient is undefined on some share. Give more rows.")
    return points


def share_that_keeps(curve: Sequence[CascadePoint], part: float) -> CascadePoint:
    """Return the point with the fewest calls from which on every value is at least this `part` of the last one."""
    wanted = part * curve[-1].value
    place = len(curve) - 1
    while place > 0 and curve[place - 1].value >= wanted:
        place -= 1
    return curve[place]


N_FOLDS = 10


class Costs(NamedTuple):
    """Costs of passing a bad answer, and of failing a good one; only their ratio affects the threshold."""

    false_pass: float = 1.0
    false_fail: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Threshold, and its cost on held-out conversations.

    Attributes:
        value: chosen on all rows; a score that reaches it counts as positive. Above all scores, no row passes.
        cost: mean cost per row of thresholds chosen on other conversations.
        constant_cost: mean cost per row of the constant label that is cheaper on other conversations.
        saving: `constant_cost` minus `cost`; if its interval contains 0, the evaluator has not been shown to be useful.
    """

    value: float
    costs: Costs
    cost: Estimate
    constant_cost: Estimate
    saving: Estimate


def chosen_threshold(
    scores: FloatArray, shares: FloatArray, clusters: IntArray, counts: Counts, costs: Costs, bootstrap: Bootstrap
) -> tuple[Threshold, FloatArray]:
    """Return the threshold, and for each row 1 if it passes the threshold chosen without it, else 0.

    Args:
        scores: one per row, higher is better.
        shares: share of people who call the row positive, in [0, 1].
        clusters: number of each row's conversation, from 0.
        counts: counts of the rows, for the estimates.
        costs: two numbers above 0; others are an InputError.
        bootstrap: settings of the intervals; its seed also draws the folds.
    """
    if not min(costs) > 0 or not np.isfinite(costs).all():
        raise InputError(
            f"--cost {costs[0]:g} {costs[1]:g}: expected two numbers above 0, of a false pass and of a false fail."
        )
    n_clusters = int(clusters.max()) + 1
    folds = np.random.default_rng(bootstrap.seed).permutation(np.arange(n_clusters) % N_FOLDS)[clusters]
    passes, always = np.zeros(len(scores)), np.zeros(len(scores))
    for fold in range(min(N_FOLDS, n_clusters)):
        others, held_out = folds != fold, folds == fold
        # With a single conversation there are no others.
        learned = others if others.any() else held_out
        passes[held_out] = scores[held_out] >= _cheapest(scores[learned], shares[learned], costs)
        mean = shares[learned].mean()
        always[held_out] = costs.false_pass * (1 - mean) <= costs.false_fail * mean
    held, constant = (
        costs.false_pass * (1 - shares) * passed + costs.false_fail * shares * (1 - passed) for passed in (passes, always)
    )
    of_cluster = sparse.csr_array((np.ones(len(scores)), (clusters, np.arange(len(scores)))))
    sums = np.asarray(of_cluster @ np.stack([held, constant, np.ones(len(scores))], axis=1))
    cost, constant_cost = (ratio_of_sums(sums, column, 2) for column in (0, 1))
    named = {"cost": cost, "constant_cost": constant_cost, "saving": constant_cost - cost}
    value = _cheapest(scores, shares, costs)
    return Threshold(value=value, costs=costs, **bootstrap.estimates(named, counts)), passes


def _cheapest(scores: FloatArray, shares: FloatArray, costs: Costs) -> float:
    values, codes = np.unique(scores, return_inverse=True)
    positive = np.concatenate([[0], np.bincount(codes, shares).cumsum()])
    negative = np.concatenate([[0], np.bincount(codes, 1 - shares).cumsum()])
    cost = costs.false_fail * positive + costs.false_pass * (negative[-1] - negative)
    ends = np.concatenate([values[:1], (values[:-1] + values[1:]) / 2, [np.nextafter(values[-1], np.inf)]])
    return float(ends[int(np.argmin(np.round(cost, 9)))])
