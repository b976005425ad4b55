r"""Reliability of ratings, which limits the correlation of any metric with them.

A metric gives an item one score, so it can predict only what all ratings of the item share. The intraclass correlation is that
share of their variance, and its square root is the highest expected Pearson correlation of a metric with them: $\rho(s, x) =
\rho(s, t) \sqrt{\mathrm{ICC}} \le \sqrt{\mathrm{ICC}}$ for ratings x with expectation t (Spearman 1904). One sample may exceed
it by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, OptionalNumbers, Statistic
from dialeval_plugin.statistics.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Computed,
    Estimate,
    Resampled,
    defined,
    rows_by_cell,
)
from dialeval_plugin.statistics.coefficients.pearson import moments, pearson_of_moments
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.statistics.rows import cluster_codes, optional_numbers, rows_by_group, same_length

from .raters import MIN_RATERS, Raters, RaterTable, rater_table


class Reliability(NamedTuple):
    """Share of the variance of ratings that is between the rated items."""

    of_one: Estimate
    """Reliability of single ratings: ICC(1,1)."""
    of_mean: Estimate
    """Reliability of the means of `n_raters` ratings: ICC(1,k)."""
    n_raters: float | None
    """Ratings per item, or the effective number if they differ; None without any item with two ratings."""

    @property
    def ceiling_of_one(self) -> Estimate:
        """Highest expected Pearson correlation of a metric with single ratings, in [0, 1]."""
        return _ceiling(self.of_one)

    @property
    def ceiling_of_mean(self) -> Estimate:
        """Highest expected Pearson correlation of a metric with the means of each item's ratings, in [0, 1]."""
        return _ceiling(self.of_mean)


class RepeatedItems(NamedTuple):
    """Pairs of rated rows with equal text."""

    n_pairs: int
    n_apart: int
    """Number of pairs whose ratings differ by more than half of the range of all ratings."""


def intraclass_correlation(
    raters: Raters, *, clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Reliability:
    r"""Return the share of the variance of ratings that is between items (one per row), whoever gave which rating.

    Formula: with the mean squares B between and W within the rows of a one-way analysis of variance (Shrout and Fleiss 1979),
    $\mathrm{ICC}(1,1) = (B - W) / (B + (k - 1) W)$ and $\mathrm{ICC}(1,k) = (B - W) / B$. For N rows with $n_i$ ratings, M in
    all, $k = (M - \sum n_i^2 / M) / (N - 1)$ (Donner 1986), which is the number of ratings per row if it is constant. Range: 1
    if all ratings of a row are equal; about 0 if the rows do not matter; if ratings of one row differ more than those of
    different rows, down to $-1 / (k - 1)$ for single ratings, and unlimited for means. Ratings of a row have to be independent
    given the row: several given on one occasion, such as the votes on one comparison of two responses, should be summed to one
    rating. A row with fewer than two ratings is left out and counted as unscored. Undefined: fewer than two rows are left, or
    all ratings are equal; for means also if the means of all rows are equal. Raises InputError if a rating is neither None nor
    finite, or lengths differ.

    Example:
        >>> judges = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
        >>> found = intraclass_correlation(judges, bootstrap=Bootstrap(rounds=0))
        >>> round(found.of_one.value, 3), round(found.of_mean.value, 3), round(found.ceiling_of_mean.value, 3), found.n_raters
        (0.166, 0.443, 0.665, 4.0)
    """
    where = "intraclass_correlation"
    table = rater_table(where, raters, clusters, has_places=False)
    statistics: dict[str, Statistic] = {"reliability_of_one": _of_one, "reliability_of_mean": _of_mean}
    if table.counts.n_scored < 2:
        why = f"{table.counts.n_scored} of {table.counts.n_total} rows have {MIN_RATERS} ratings or more"
        computed: dict[str, Computed] = dict.fromkeys(
            statistics, f"{where}: {why}. Give the single ratings of two rows or more, not their mean."
        )
        n_raters = None
    else:
        sums = rows_by_cell(np.arange(table.counts.n_scored), table.clusters) @ _row_sums(table)
        n_raters = float(_mean_squares(sums.sum(axis=0, keepdims=True)).n_raters[0])
        computed = {}
        for name, statistic in statistics.items():
            same = "ratings" if name == "reliability_of_one" else "means of the rows"
            reason = f"{where}: all {same} are the same. Have rows rated that differ."
            computed[name] = defined(Resampled(statistic, sums), reason)
    estimates = bootstrap.estimates(computed, table.counts)
    return Reliability(estimates["reliability_of_one"], estimates["reliability_of_mean"], n_raters)


def disattenuated_correlation(
    scores: OptionalNumbers, raters: Raters, *, clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    r"""Return Pearson's correlation of scores with the means of ratings, divided by its ceiling.

    Formula: $r / \sqrt{\mathrm{ICC}(1,k)}$ over rows with a score and two ratings: the correlation with ratings without error
    (Spearman 1904). Correlation and ceiling are resampled together. Range: -1 to 1 in expectation; a sample may exceed it.
    Undefined if the ceiling is 0 or the correlation is undefined. Raises as `intraclass_correlation`.
    """
    where = "disattenuated_correlation"
    same_length(where, scores=scores, raters=raters)
    column = optional_numbers(where, "scores", scores)
    table = rater_table(where, raters, clusters, has_places=False, scores=column)
    reason = f"{where}: the ratings have no ceiling above 0, or nothing differs. Have more rows rated twice."
    computed: Computed = reason
    if table.counts.n_scored > 1:
        pairs = moments(column.values[table.order], table.values.sum(axis=1) / table.present.sum(axis=1))
        sums = rows_by_cell(np.arange(table.counts.n_scored), table.clusters) @ np.hstack([pairs, _row_sums(table)])
        computed = defined(Resampled(partial(_share_of_ceiling, pairs.shape[1]), sums), reason)
    return bootstrap.estimates({where: computed}, table.counts)[where]


@np.errstate(invalid="ignore", divide="ignore")
def _share_of_ceiling(width: int, sums: FloatArray) -> FloatArray:
    reliability = _of_mean(sums[:, width:])
    return np.asarray(pearson_of_moments(sums[:, :width]) / np.sqrt(np.where(reliability > 0, reliability, np.nan)))


class _MeanSquares(NamedTuple):
    between: FloatArray
    within: FloatArray
    n_raters: FloatArray


def _row_sums(table: RaterTable) -> FloatArray:
    n_ratings = table.present.sum(axis=1)
    # Relative to any one rating: if all are equal, the sums of squares are then exactly 0.
    values = np.where(table.present, table.values - table.values[0, 0], 0)
    total = values.sum(axis=1)
    return np.column_stack(
        [np.ones(len(values)), n_ratings, n_ratings**2, total, total**2 / n_ratings, (values**2).sum(axis=1)]
    )


@np.errstate(invalid="ignore", divide="ignore")
def _mean_squares(sums: FloatArray) -> _MeanSquares:
    n_rows, n_ratings, n_squared, total, of_rows, of_ratings = sums.T
    between = (of_rows - total**2 / n_ratings) / (n_rows - 1)
    within = np.maximum(0, of_ratings - of_rows) / (n_ratings - n_rows)
    # Rounding errors must not become a denominator.
    between = np.where(between > 1e-12 * within, between, 0)
    return _MeanSquares(between, within, (n_ratings - n_squared / n_ratings) / (n_rows - 1))


@np.errstate(invalid="ignore", divide="ignore")
def _of_one(sums: FloatArray) -> FloatArray:
    between, within, n_raters = _mean_squares(sums)
    return (between - within) / (between + (n_raters - 1) * within)


@np.errstate(invalid="ignore", divide="ignore")
def _of_mean(sums: FloatArray) -> FloatArray:
    between, within, _ = _mean_squares(sums)
    return np.where(between > 0, (between - within) / between, np.nan)


def _ceiling(reliability: Estimate) -> Estimate:
    """Return the root of a reliability, 0 if negative, and likewise of its interval, which a monotonic function preserves."""
    value, low, high = (
        None if end is None else math.sqrt(max(0.0, end))
        for end in (reliability.value, reliability.ci_low, reliability.ci_high)
    )
    name = reliability.name.replace("reliability", "ceiling")
    return replace(reliability, name=name, value=value, ci_low=low, ci_high=high)


def quality_agreement(
    ratings: Mapping[str, OptionalNumbers], clusters: Labels, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> dict[str, Estimate]:
    """Return for each quality how often, of two rows of a cluster, it prefers the one preferred by another quality.

    `ratings` has one rating per row and quality; all other qualities are pooled. Pairs that either quality rates equally, or
    does not rate, are left out; counts are of pairs, once for each other quality. Range: 0 to 1; 0.5 for unrelated qualities.
    Undefined without pairs. Raises InputError if lengths differ, a rating is neither None nor finite, or a label names no
    cluster.
    """
    where = "quality_agreement"
    same_length(where, clusters=clusters, **ratings)
    codes = cluster_codes(where, clusters, len(clusters))
    first, second = _pairs_within(codes)
    preferred = {}
    for quality, column in ratings.items():
        values, present = optional_numbers(where, f"ratings[{quality!r}]", column)
        preferred[quality] = np.where(present[first] & present[second], np.sign(values[first] - values[second]), 0)
    agreements = {}
    for quality, of_quality in preferred.items():
        others = [of_quality * of_other for other, of_other in preferred.items() if other != quality]
        same = np.concatenate(others or [np.empty(0)])
        labels = np.tile(codes[first], len(others))
        agreement = mean_interval(same[same != 0] > 0, clusters=labels[same != 0], bootstrap=bootstrap)
        reason = agreement.reason
        if agreement.value is None:
            reason = f"{where}: no two rows of one cluster differ by {quality!r} and another quality. Have more rated."
        agreements[quality] = replace(agreement, name=where, reason=reason)
    return agreements


def repeated_items(ratings: OptionalNumbers, texts: Labels) -> RepeatedItems:
    """Return the number of pairs of rows with equal text, and how many of them have opposite ratings.

    `ratings` may have None. InputError: lengths differ, a rating is neither None nor finite, or a text is None.
    """
    where = "repeated_items"
    same_length(where, ratings=ratings, texts=texts)
    values, present = optional_numbers(where, "ratings", ratings)
    rated = values[present]
    first, second = _pairs_within(cluster_codes(where, texts, len(texts))[present])
    half = (rated.max(initial=-math.inf) - rated.min(initial=math.inf)) / 2
    is_apart = np.abs(rated[first] - rated[second]) > half
    return RepeatedItems(len(first), int(is_apart.sum()))


def _pairs_within(groups: IntArray) -> tuple[IntArray, IntArray]:
    pairs = [rows[np.array(np.triu_indices(len(rows), 1))] for rows in rows_by_group(groups)]
    first, second = np.concatenate([np.empty((2, 0), dtype=np.int64), *pairs], axis=1)
    return first, second
