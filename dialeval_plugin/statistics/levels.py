"""Levels at which scores are compared with ratings: rows, systems, or the average of groups (as in mt-metrics-eval)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, OptionalNumbers, Statistic
from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.coefficients.by_name import Coefficient
from dialeval_plugin.statistics.coefficients.pearson import MIN_PAIRS, moments, pearson_of_moments

from .bootstrap import Counts, Resampled, ratio_of_sums, rows_by_cell
from .rows import canonical_rows, check_choice, distinct_rows, optional_numbers, rows_by_group, same_length

LevelOrSystem: TypeAlias = Literal["turn", "dialogue", "system"]
"""Kind of row; for "system", rows are averaged by system before the comparison."""
AverageBy: TypeAlias = Literal["none", "system", "item"]
"""One coefficient over all rows, or the mean of one per system, or per context that several systems answer."""
TiedGroups: TypeAlias = Literal["zero", "skip"]
"""Treatment of groups in which people differ and all scores are equal: 0 (0.5 for auroc), or left out."""
Range: TypeAlias = tuple[float, float]

MAX_CELLS = 2**14
"""Largest number of distinct rows with exact resamples; with more, see `binned`."""

_FEW_LEVELS = 256


@dataclass(frozen=True, kw_only=True)
class RatingTable:
    """Human ratings, one row per response or dialogue.

    Attributes:
        ratings: one aggregated rating per row; None if unrated.
        clusters: label of the dialogue or context; rows of one are resampled together. Without it, rows are independent.
        systems: label of the system that wrote the response; needed for `level="system"` and `average_by="system"`.
        items: label of the context, shared by the responses of all systems; needed for `average_by="item"`.
    """

    ratings: OptionalNumbers
    clusters: Labels | None = None
    systems: Labels | None = None
    items: Labels | None = None


@dataclass(frozen=True, kw_only=True)
class ScoredRatings(RatingTable):
    """A metric's scores with ratings; None for an unscored row."""

    scores: OptionalNumbers


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with a rating and a score of each metric, in an order determined by their content."""

    scores: list[FloatArray]
    """Scores of each metric."""
    ratings: FloatArray
    clusters: IntArray
    groups: IntArray | None
    """Number of the system or item, from 0; None if all rows are taken together."""
    level: LevelOrSystem
    counts: Counts
    n_out_of_range: int
    tied_groups: TiedGroups
    average_by: AverageBy


class LevelValue(NamedTuple):
    """Coefficient at a level, with the number of groups behind it."""

    value: float
    n_groups: int | None = None
    """Number of groups averaged or systems compared."""
    n_undefined_groups: int = 0
    """Groups left out because no scores could have a value there: too few rows, or equal ratings."""
    n_tied_groups: int = 0
    """Groups in which only the scores are all equal."""


def rows_of(
    where: str,
    rated: RatingTable,
    scores: Mapping[str, OptionalNumbers],
    level: LevelOrSystem,
    average_by: AverageBy,
    within_range: Range | None = None,
    tied_groups: TiedGroups = "zero",
) -> Rows:
    """Return the rows that count for the scores of one or more metrics.

    Raises InputError if lengths differ, a value is neither None nor finite, or an option is unknown or lacks its labels.
    """
    check_choice(where, "tied_groups", tied_groups, get_args(TiedGroups))
    labels = _grouping(where, rated, level, average_by)
    columns: dict[str, Any] = {name: getattr(rated, name) for name in ("ratings", "clusters", "systems", "items")}
    same_length(where, **{**scores, **columns})
    if within_range is not None and not within_range[0] <= within_range[1]:
        raise InputError(f"{where}: within_range is {within_range!r}. Give the lowest and the highest rating that count.")
    scored = [optional_numbers(where, name, values) for name, values in scores.items()]
    ratings = optional_numbers(where, "ratings", rated.ratings)
    low, high = within_range or (-np.inf, np.inf)
    in_range = ratings.present & (ratings.values >= low) & (ratings.values <= high)
    is_scored = np.logical_and.reduce([column.present for column in scored])
    used = np.flatnonzero(is_scored & in_range)
    metrics = ([column.values] for column in scored)
    rows = canonical_rows(where, [ratings.values], used, rated.clusters, metrics=metrics, groups=labels)
    n_unscored, n_unrated = int((in_range & ~is_scored).sum()), int((~ratings.present).sum())
    return Rows(
        [column.values[rows.order] for column in scored],
        ratings.values[rows.order],
        rows.clusters,
        rows.groups,
        level,
        Counts(len(in_range), len(used), rows.n_clusters, n_unscored, n_unrated),
        n_out_of_range=int((ratings.present & ~in_range).sum()),
        tied_groups=tied_groups,
        average_by=average_by,
    )


def _grouping(where: str, rated: RatingTable, level: LevelOrSystem, average_by: AverageBy) -> Labels | None:
    check_choice(where, "level", level, get_args(LevelOrSystem))
    check_choice(where, "average_by", average_by, get_args(AverageBy))
    if level == "system" and average_by != "none":
        raise InputError(f"{where}: level='system' has one row a system, nothing to average. Give average_by='none'.")
    needed = "system" if level == "system" else average_by
    if needed == "none":
        return None
    labels = rated.systems if needed == "system" else rated.items
    if labels is None:
        option = "level='system'" if level == "system" else f"average_by={average_by!r}"
        raise InputError(f"{where}: {option} needs to know the {needed} of each row. Give `{needed}s`.")
    return labels


@dataclass(frozen=True, slots=True)
class LevelStatistic:
    """Calibrated coefficient at a level, for any scores of the same rated rows."""

    coefficient: Coefficient
    rows: Rows

    @classmethod
    def of(cls, coefficient: Coefficient, rows: Rows, x: FloatArray) -> LevelStatistic:
        """Return a coefficient at the level of the rows, with its epsilon chosen on scores x."""
        y, groups = rows.ratings, rows.groups
        is_given = rows.level == "system" if coefficient.groups == "system" else rows.average_by == coefficient.groups
        if coefficient.of_groups is not None and not is_given:
            coefficient.of_pairs(x, y)  # raises
        if rows.level == "system" and groups is not None and len(groups):
            x, y, groups = _group_means(groups, x), _group_means(groups, y), None
        return cls(coefficient.calibrated(x, y, groups), rows)

    def value(self, x: FloatArray) -> LevelValue:
        """Return the coefficient of scores x; raises StatisticUndefined if it, or its value in every group, is undefined."""
        y, groups = self.rows.ratings, self.rows.groups
        if groups is not None and self.coefficient.of_groups is not None:
            return LevelValue(self.resampled(x).value, int(groups.max(initial=-1)) + 1)
        if groups is None or not len(x):
            return LevelValue(self.coefficient.of_pairs(x, y))
        if self.rows.level == "system":
            means_x, means_y = _group_means(groups, x), _group_means(groups, y)
            return LevelValue(self.coefficient.of_pairs(means_x, means_y), len(means_x))
        values, n_tied = self._group_values(groups, x)
        n_left_out = int(np.isnan(values).sum())
        if n_left_out == len(values):
            why = f"undefined in all {len(values)} groups, which have fewer than {MIN_PAIRS} rows or no differences"
            raise StatisticUndefined(f"{self.coefficient.name}: {why}. Give more rows a group.")
        n_skipped = n_tied if self.rows.tied_groups == "skip" else 0
        return LevelValue(float(np.nanmean(values)), len(values) - n_left_out, n_left_out - n_skipped, n_tied)

    def resampled(self, x: FloatArray) -> Resampled:
        """Return the input of the bootstrap; above `MAX_CELLS` distinct rows, from bins."""
        groups, clusters = self.rows.groups, self.rows.clusters
        if groups is None:
            return self._of_rows(x)
        if self.coefficient.of_groups is not None:
            return self.coefficient.of_groups(x, self.rows.ratings, clusters, groups)
        if self.rows.level == "system":
            return self._of_systems(groups, x)
        cluster_of_group = np.zeros(int(groups.max()) + 1, dtype=np.int64)
        cluster_of_group[groups] = clusters
        is_whole = (cluster_of_group[groups] == clusters).all()
        return self._of_whole_groups(cluster_of_group, self._group_values(groups, x)[0]) if is_whole else self._of_rows(x)

    def _group_values(self, groups: IntArray, x: FloatArray) -> tuple[FloatArray, int]:
        """Return the value of each group, NaN if undefined, and the number of groups in which only the scores are tied."""
        of_group, y, members = self.coefficient.of_group, self.rows.ratings, rows_by_group(groups)
        values = np.array([of_group(x[rows], y[rows]) for rows in members])
        # If even ratings with themselves are undefined, no scores can be defined.
        undefined = [(place, y[members[place]]) for place in np.flatnonzero(np.isnan(values)).tolist()]
        tied = [place for place, own in undefined if not np.isnan(of_group(own, own))]
        if self.rows.tied_groups == "zero":
            values[tied] = self.coefficient.of_tied_scores
        return values, len(tied)

    def _of_whole_groups(self, cluster_of_group: IntArray, values: FloatArray) -> Resampled:
        """Each group belongs to one cluster, so it is drawn whole, and as often as its cluster."""
        defined = ~np.isnan(values)
        of_group = (values[defined], np.ones(defined.sum()))
        sums = [np.bincount(cluster_of_group[defined], of, self.rows.counts.n_clusters) for of in of_group]
        return ratio_of_sums(np.stack(sums, axis=1))

    def _of_rows(self, x: FloatArray) -> Resampled:
        y, clusters = self.rows.ratings, self.rows.clusters
        groups = np.zeros(len(x), dtype=np.int64) if self.rows.groups is None else self.rows.groups
        cells, (cells_x, cells_y, cells_group) = distinct_rows(x, y, groups)
        if len(cells_x) <= MAX_CELLS:
            return Resampled(self._of_weights(cells_x, cells_y, cells_group), rows_by_cell(cells, clusters))
        if self.rows.groups is None and self.coefficient.name in {"pearson", "point_biserial"}:
            sums = [np.bincount(clusters, column) for column in moments(x, y).T]
            return Resampled(pearson_of_moments, np.stack(sums, axis=1))
        binned_x, binned_y = binned(x, y)
        cells, (cells_x, cells_y, cells_group) = distinct_rows(binned_x, binned_y, groups)
        statistic = self._of_weights(cells_x, cells_y, cells_group)
        of_bins = float(statistic(np.bincount(cells).astype(np.float64)[None, :])[0])
        n_bins = len(np.unique(binned_x)), len(np.unique(binned_y))
        return Resampled(statistic, rows_by_cell(cells, clusters), self.value(x).value - of_bins, n_bins)

    def _of_weights(self, x: FloatArray, y: FloatArray, groups: FloatArray) -> Statistic:
        if self.rows.groups is None:
            return self.coefficient.of_samples(x, y)
        members = rows_by_group(groups.astype(np.int64))
        skips_ties = self.rows.tied_groups == "skip"
        statistics = [self.coefficient.of_group_samples(x[rows], y[rows], skips_ties=skips_ties) for rows in members]

        @np.errstate(invalid="ignore")
        def mean(weights: FloatArray) -> FloatArray:
            values = np.array([of(weights[:, rows]) for of, rows in zip(statistics, members, strict=True)])
            return np.asarray(np.nansum(values, axis=0) / (~np.isnan(values)).sum(axis=0))

        return mean

    def _of_systems(self, systems: IntArray, x: FloatArray) -> Resampled:
        n = int(systems.max()) + 1
        columns = np.concatenate([systems, systems + n, systems + 2 * n])
        entries = (np.concatenate([np.ones(len(x)), x, self.rows.ratings]), (np.tile(self.rows.clusters, 3), columns))
        sums = sparse.coo_array(entries, shape=(self.rows.counts.n_clusters, 3 * n)).tocsr()

        def statistic(drawn: FloatArray) -> FloatArray:
            values = np.full(len(drawn), np.nan)
            for i, (count, total_x, total_y) in enumerate(drawn.reshape(len(drawn), 3, n)):
                has_rows = count > 0
                if has_rows.any():
                    means = (total[has_rows] / count[has_rows] for total in (total_x, total_y))
                    values[i] = self.coefficient.of_samples(*means)(np.ones((1, has_rows.sum())))[0]
            return values

        return Resampled(statistic, sums, range=(self.coefficient.lowest, 1.0))


def binned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return scores and ratings in few bins, with at most `MAX_CELLS` pairs.

    Bins have equally many rows, as far as ties allow, and the mean of their rows as value. Ratings with at most 256 levels are
    not binned. Bins make it feasible to resample a million rows; the interval is shifted to the value on all rows, so binning
    changes only its width: with K bins by about 1/K for Kendall's tau, and 1/K^2 for Spearman's rho.
    """
    n_x, n_y = (len(np.unique(values)) for values in (x, y))
    if n_y <= _FEW_LEVELS:
        return quantile_bins(x, MAX_CELLS // n_y), y
    if n_x <= _FEW_LEVELS:
        return x, quantile_bins(y, MAX_CELLS // n_x)
    n_bins = int(MAX_CELLS**0.5)
    return quantile_bins(x, n_bins), quantile_bins(y, n_bins)


def quantile_bins(values: FloatArray, n_bins: int) -> FloatArray:
    """Return values in at most `n_bins` bins of equally many rows, as far as ties allow, each at the mean of its rows."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = np.cumsum(counts) - counts / 2
    bin_of_level = np.unique((middles * n_bins / len(values)).astype(np.int64), return_inverse=True)[1].reshape(-1)
    bins = bin_of_level[codes.reshape(-1)]
    return _group_means(bins, values)[bins]


def _group_means(groups: IntArray, values: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(groups, values) / np.bincount(groups))
