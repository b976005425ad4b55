r"""Reliability of ratings, which limits the correlation of any metric with them.

A metric gives an item one score, so it can predict only what all ratings of the item share. The intraclass correlation is that
share of their variance, and its square root is the highest expected Pearson correlation of a metric with them: $\rho(s, x) =
\rho(s, t) \sqrt{\mathrm{ICC}} \le \sqrt{\mathrm{ICC}}$ for ratings x with expectation t (Spearman 1904). One sample may exceed
it by chance.

Variance components are the gain from more raters or conversations (generalizability theory). A rating is a mean plus
independent effects of its system, conversation, response and rater, plus a residual, which includes a rater's opinion of one
response (Cronbach et al. 1972; Brennan 2001). An effect is estimated if the data identify it: conversations if some have
several responses, raters if it is known who gave which rating.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, OptionalNumbers, Statistic
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.labels.table import LabelTable
from dialeval_plugin.statistics.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Computed,
    Counts,
    Estimate,
    Resampled,
    defined,
    rows_by_cell,
)
from dialeval_plugin.statistics.coefficients.pearson import moments, pearson_of_moments
from dialeval_plugin.statistics.means import mean_interval
from dialeval_plugin.statistics.rows import canonical_rows, cluster_codes, optional_numbers, rows_by_group, same_length

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


SOURCES = ("systems", "conversations", "responses", "raters", "residual")
_OF_CLUSTER = ("conversations", "responses")
"""Effects whose levels belong to one cluster."""


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """Variance of one rating by source.

    Attributes:
        of: component of each identifiable source of `SOURCES`; negative estimates become 0. Intervals generalise to other
            conversations of the same systems and raters.
        n_raters: ratings per response (harmonic mean); `n_responses` per conversation, `n_conversations` per system.
    """

    of: Mapping[str, Estimate]
    n_raters: float
    n_responses: float
    n_conversations: float

    def variance(self, *sources: str) -> float:
        """Return the sum of components; those not identifiable count as 0."""
        return math.fsum(self.of[source].value or 0.0 for source in sources if source in self.of)

    def reliability(self, n_raters: float) -> float:
        """Return the share of the variance of means of `n_raters` ratings between responses: dependability, in [0, 1]."""
        true, error = self.variance(*SOURCES[:3]), self.variance(*SOURCES[3:])
        return true / (true + error / n_raters)

    def standard_error(self, n_conversations: float, n_raters: float) -> float:
        """Return the standard error of a system's mean compared with systems of the same raters, whose severity cancels out."""
        of_response = self.variance("responses") + self.variance("residual") / n_raters
        return math.sqrt((self.variance("conversations") + of_response / self.n_responses) / n_conversations)

    def worth_of_raters(self, more: int) -> float:
        """Return the number of conversations per system that reduce its error as much as `more` raters per response."""
        errors = [self.standard_error(self.n_conversations, self.n_raters + extra) for extra in (0, more)]
        return self.n_conversations * ((errors[0] / errors[1]) ** 2 - 1) if errors[1] else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return {**vars(self), "of": {source: one.to_dict() for source, one in self.of.items()}}


def variance_components(table: LabelTable, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> VarianceComponents:
    r"""Return the variance components of ratings on an interval scale, by Henderson's method 1 (1953).

    For each effect f with levels i, $T_f = \sum_i y_{i.}^2 / n_i$; for the mean, $T_\mu = y_{..}^2 / N$. The differences $T_f -
    T_\mu$ and $\sum y^2 - T_\mu$ are equated with their expectations, which are linear in the components: $E T_f = N \mu^2 +
    \sum_g \sigma_g^2 \sum_{ij} n_{ij}^2 / n_i + L_f \sigma^2$ for L levels. On balanced data this is the analysis of variance.
    Ratings may be missing. "expanded" intervals of conversations, responses and the residual, whose number of levels grows with
    the data, are those of `Bootstrap.log_scale_interval`. Raises StatisticUndefined if no two rows have two ratings, all
    ratings are equal, or effects are not identifiable.

    Example:
        >>> from dialeval_plugin.labels.table import Scale
        >>> ratings = np.array([[9.0, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
        >>> table = LabelTable(source="", ids=list("abcdef"), labels=ratings, scale=Scale("interval"), raters=tuple("wxyz"))
        >>> found = variance_components(table, bootstrap=Bootstrap(rounds=0))
        >>> [(name, round(one.value, 2)) for name, one in found.of.items()], round(found.reliability(1), 2)
        ([('responses', 2.56), ('raters', 5.24), ('residual', 1.02)], 0.29)
    """
    where = "variance_components"
    used, ratings = np.flatnonzero(table.n_labels > 0), table.labels[~np.isnan(table.labels)]
    n_rows = len(used)
    if len(ratings) - n_rows < 2 or not np.ptp(ratings):
        raise StatisticUndefined(f"{where}: {n_rows} rows have {len(ratings)} ratings, or all the same. Have rows rated twice.")
    columns = [*map(np.nan_to_num, table.labels.T), *np.isnan(table.labels).T.astype(np.int64)]
    rows = canonical_rows(where, columns, used, table.clusters)
    labels = table.labels[rows.order]
    row, rater = np.nonzero(~np.isnan(labels))
    values = labels[row, rater]
    codes = {"conversations": rows.clusters[row], "responses": row}
    if table.systems is not None:
        codes["systems"] = cluster_codes(where, table.systems, len(table.ids))[rows.order][row]
    if table.has_people:
        codes["raters"] = rater
    n_levels = {name: len(np.unique(of)) for name, of in codes.items()}
    names = [name for name in SOURCES if name in codes and 1 < n_levels[name] < (n_rows if name != "responses" else len(row))]
    if not names:
        raise StatisticUndefined(f"{where}: no effect has two levels. Have two rows rated twice, or more.")
    components = _Components({name: codes[name] for name in names}, values - values.mean(), rows.clusters[row])
    resampled = {
        name: Resampled(lambda drawn, place=place: components.of(drawn)[:, place], components.sums)  # type: ignore[misc]
        for place, name in enumerate([*names, "residual"])
    }
    # Estimates below 0 are those of components near 0.
    value_of = {name: max(0.0, one.value) for name, one in resampled.items()}
    if any(math.isnan(one.value) for one in resampled.values()):
        raise StatisticUndefined(f"{where}: effects of {', '.join(names)} cannot be told apart. Have more rows rated twice.")
    counts = Counts(len(table.ids), n_rows, rows.n_clusters, len(table.ids) - n_rows)
    # A context answered by several systems is a conversation of each.
    n_conversations = len(np.unique(codes.get("systems", 0 * row) * rows.n_clusters + codes["conversations"]))
    n_raters, n_responses = n_rows / float((1 / table.n_labels[rows.order]).sum()), n_rows / n_conversations
    estimates = bootstrap.estimates({name: (value_of[name], one.at_least(0)) for name, one in resampled.items()}, counts)
    if bootstrap.interval == "expanded" and bootstrap.rounds:
        of_response = value_of["residual"] / n_raters
        errors = {"residual": 0.0, "responses": of_response}
        errors["conversations"] = (value_of.get("responses", 0.0) + of_response) / n_responses
        for name in errors.keys() & resampled.keys():
            interval = bootstrap.log_scale_interval(name, resampled[name], errors[name])
            estimates[name] = bootstrap.estimate(name, value_of[name], interval, counts)
    return VarianceComponents(
        of=estimates,
        n_raters=n_raters,
        n_responses=n_responses,
        n_conversations=n_conversations / n_levels.get("systems", 1),
    )


class _Components:
    """Components on draws of clusters; `sums` has the addends of each cluster."""

    def __init__(self, codes: Mapping[str, IntArray], values: FloatArray, clusters: IntArray) -> None:
        self.codes, self.places = codes, dict[tuple[str, ...], slice]()
        blocks, n = list[Any](), len(values)

        def add(key: tuple[str, ...], ratings: IntArray, weights: Any, columns: Any = 0, width: int = 1) -> None:
            places = clusters[ratings], np.broadcast_to(columns, len(ratings))
            start = sum(block.shape[1] for block in blocks)
            self.places[key] = slice(start, start + width)
            blocks.append(sparse.coo_array((weights, places), shape=(int(clusters.max()) + 1, width)))

        for name, weights in {"n": np.ones(n), "total": values, "squares": values**2}.items():
            add((name,), np.arange(n), weights)
        for name, of in codes.items():
            _, first, level, sizes = np.unique(of, return_index=True, return_inverse=True, return_counts=True)
            if name in _OF_CLUSTER:
                add((name, "levels"), first, np.ones(len(first)))
                add((name, "total"), first, np.bincount(level, weights=values) ** 2 / sizes)
                add((name, "mean"), first, sizes**2.0)
            else:
                add((name, "n"), np.arange(n), np.ones(n), level, len(sizes))
                add((name, "total"), np.arange(n), values, level, len(sizes))
            for other in (other for other in codes if other != name):
                width = int(codes[other].max()) + 1
                cells = level * width + codes[other]
                _, first, counts = np.unique(cells, return_index=True, return_counts=True)
                if name in _OF_CLUSTER:
                    add((name, other), first, counts**2 / sizes[level[first]])
                elif other in _OF_CLUSTER:
                    add((name, other), first, counts**2.0, level[first], len(sizes))
                else:
                    add((name, other), np.arange(n), np.ones(n), cells, len(sizes) * width)
        self.sums = sparse.hstack(blocks, format="csr")

    @np.errstate(invalid="ignore", divide="ignore")
    def of(self, drawn: FloatArray) -> FloatArray:
        """Return one row of components per draw, the residual last, also below 0; NaN if they are not identifiable."""
        sums = {key: drawn[:, place] for key, place in self.places.items()}
        n, total, squares = (sums[name,][:, 0] for name in ("n", "total", "squares"))
        size = len(self.codes) + 1
        expected, squares_of = np.empty((len(drawn), size, size)), np.empty((len(drawn), size))
        of_mean = [(sums[name, "mean"] if name in _OF_CLUSTER else sums[name, "n"] ** 2).sum(axis=1) / n for name in self.codes]
        for i, name in enumerate(self.codes):
            is_within = name in _OF_CLUSTER
            sizes = np.ones((len(drawn), 1)) if is_within else np.maximum(sums[name, "n"], 1)
            levels = sums[name, "levels"] if is_within else sums[name, "n"] > 0
            squares_of[:, i] = (sums[name, "total"] if is_within else sums[name, "total"] ** 2 / sizes).sum(
                axis=1
            ) - total**2 / n
            expected[:, i, -1] = levels.sum(axis=1) - 1
            for j, other in enumerate(self.codes):
                counts = n[:, None] if i == j else sums[name, other]
                if i != j and not is_within and other not in _OF_CLUSTER:
                    counts = (counts.reshape(len(drawn), sizes.shape[1], -1) ** 2).sum(axis=2)
                expected[:, i, j] = (counts / (1 if i == j else sizes)).sum(axis=1) - of_mean[j]
        expected[:, -1, :-1] = n[:, None] - np.stack(of_mean, axis=1)
        expected[:, -1, -1] = n - 1
        squares_of[:, -1] = squares - total**2 / n
        # A draw without ratings divides by 0, and numpy computes no condition number of NaN.
        is_singular = ~np.isfinite(expected).all(axis=(1, 2))
        expected[is_singular] = np.eye(size)
        is_singular |= np.linalg.cond(expected) > 1e10
        expected[is_singular] = np.eye(size)
        solved = np.linalg.solve(expected, squares_of[:, :, None])[:, :, 0]
        return np.where(is_singular[:, None], np.nan, solved)
