"""Several raters of a row: aggregation to one rating, and the human ceiling.

The ceiling is the agreement among people by the coefficient that a metric is compared by. It is not a bound: a metric compared
with the mean of all raters can do better than one of them. A row with fewer than two ratings is left out and counted as
unscored. Range and ties: those of the coefficient. Parts (raters or splits) with an undefined coefficient, such as a rater of
two rows, are not averaged; without any defined part the ceiling is undefined. InputError: a rating is neither None nor finite,
lengths differ, or the coefficient is unknown.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import BoolArray, FloatArray, IntArray, Labels, OptionalNumbers, Statistic
from dialeval_plugin.core.errors import unknown_name
from dialeval_plugin.statistics.bootstrap import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Computed,
    Counts,
    Estimate,
    Resampled,
    rows_by_cell,
)
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named
from dialeval_plugin.statistics.levels import MAX_CELLS, binned
from dialeval_plugin.statistics.rows import CheckedColumn, canonical_rows, distinct_rows, optional_numbers, same_length

Raters: TypeAlias = Sequence[OptionalNumbers] | FloatArray
"""Ratings of each row, one per rater; None for a rater who left the row out, NaN in an array of rows and raters."""

_Part: TypeAlias = tuple[IntArray, FloatArray, FloatArray]
"""Row numbers, and the two ratings of each row to compare."""

MIN_RATERS = 2
N_SPLITS = 20
"""Number of random splits averaged in a split-half ceiling."""


def without_furthest(values: Sequence[float]) -> float:
    """Return the mean without the rater furthest from the mean of all, the first for ties; a single rater stays.

    Mehri and Eskenazi (2020) clean FED in this way.
    """
    if len(values) == 1:
        return float(values[0])
    centre = statistics.fmean(values)
    furthest = max(range(len(values)), key=lambda rater: abs(values[rater] - centre))
    return statistics.fmean([value for rater, value in enumerate(values) if rater != furthest])


AGGREGATIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "without_furthest": without_furthest,
    "minimum": min,
    "maximum": max,
}
"""Aggregations of several ratings into one, by name."""


def aggregate(raters: Sequence[Sequence[float]], how: str = "mean") -> list[float | None]:
    """Return one rating per row, None for an unrated row; raises InputError if `how` is not in `AGGREGATIONS`.

    Example:
        >>> aggregate([[4, 5], [], [1, 1, 4]], "median")
        [4.5, None, 1.0]
    """
    if how not in AGGREGATIONS:
        raise unknown_name(f"there is no way {how!r} to make one rating of several", how, AGGREGATIONS)
    return [float(AGGREGATIONS[how](values)) if len(values) else None for values in raters]


def by_place(labels: FloatArray) -> FloatArray:
    """Return the labels of rows and raters, NaN if missing, by their place in the row if no row has labels of all raters.

    With more raters than labels of a row nobody labelled all rows, and few rows are left for each person.
    """
    width = int((~np.isnan(labels)).sum(axis=1).max(initial=0))
    order = np.argsort(np.isnan(labels), axis=1, kind="stable")[:, :width]
    return np.take_along_axis(labels, order, axis=1) if labels.shape[1] > width else labels


def leave_one_rater_out(
    raters: Raters, *, coefficient: str = "spearman", clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the mean coefficient between one rater and the mean of the row's other raters.

    The k-th position of every row is left out in turn: a person if raters are in the same order in all rows, else any rater.

    Example:
        >>> raters = [[1, 1, 2], [2, 2, 2], [4, 3, 3], [5, 4], [1, 2], [3, 5, 4], [3], [5, 5, 4]]
        >>> found = leave_one_rater_out(raters, bootstrap=Bootstrap(rounds=0))
        >>> round(found.value, 3), found.n_unscored
        (0.842, 1)
    """
    table = rater_table("leave_one_rater_out", raters, clusters, has_places=True)
    parts = []
    for place in range(table.values.shape[1]):
        others = table.present.copy()
        others[:, place] = False
        rows = np.flatnonzero(table.present[:, place])
        parts.append((rows, table.values[rows, place], _mean(table.values, others)[rows]))
    return _ceiling("leave_one_rater_out", table, parts, coefficient, bootstrap)


class InPlaceOfRaters(NamedTuple):
    """Agreement with the other raters, of an evaluator in place of each rater, and of that rater."""

    evaluator: Estimate
    person: Estimate
    """Agreement of the raters on the same rows, see `leave_one_rater_out`."""
    difference: Estimate
    """Evaluator minus person on the same resamples: effects shared by both do not widen its interval."""
    pilot: Resampled | None = None
    """Resampled difference, for planning; None if it is undefined."""


def in_place_of_raters(
    scores: FloatArray,
    raters: FloatArray,
    *,
    coefficient: str = "spearman",
    clusters: Labels | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> InPlaceOfRaters:
    """Return an evaluator's agreement, in place of one rater, with the mean of the row's other raters.

    `scores` has one score per row, and `raters[row, rater]` the ratings; NaN if missing. Each figure is a mean over the raters
    for whom it is defined for both the evaluator and the rater. Rows without a score are left out and counted.
    """
    where, entry = "in_place_of_raters", coefficient_named(coefficient)
    same_length(where, scores=scores, raters=raters, clusters=clusters)
    is_scored, present = ~np.isnan(scores), ~np.isnan(raters)
    is_rated = present.sum(axis=1) >= MIN_RATERS
    used, values = np.flatnonzero(is_scored & is_rated), np.where(present, raters, 0)
    rows = canonical_rows(where, [scores, *present.T.astype(np.int64), *values.T], used, clusters)
    scores, values, present = scores[rows.order], values[rows.order], present[rows.order]
    parts: dict[str, list[tuple[float, Statistic, slice]]] = {"evaluator": [], "person": []}
    sums: list[Any] = []
    for place in range(raters.shape[1]):
        own, others = np.flatnonzero(present[:, place]), present.copy()
        others[:, place] = False
        y = _mean(values, others)[own]
        sides = {"evaluator": scores[own], "person": values[own, place]}
        if not all(math.isfinite(entry.of_group(x, y)) for x in sides.values()):
            continue
        for name, x in sides.items():
            cells, of_cells = distinct_rows(x, y)
            if len(of_cells[0]) > MAX_CELLS:
                cells, of_cells = distinct_rows(*binned(x, y))
            n = len(of_cells[0])
            start = sum(one.shape[1] for one in sums)
            sums.append(sparse.coo_array((np.ones(len(own)), (rows.clusters[own], cells)), (rows.n_clusters, n)).tocsr())
            parts[name].append((entry.of_group(x, y), entry.of_samples(*of_cells), slice(start, start + n)))
    n_rated = int(is_rated.sum())
    counts = Counts(len(is_rated), len(used), rows.n_clusters, n_rated - len(used), len(is_rated) - n_rated)
    if not sums:
        why = f"{where}: {coefficient} is undefined on {len(used)} scored rows with {MIN_RATERS} raters. Have more rows rated."
        for name, same in (("scores", scores), ("ratings", values[present])):
            if len(same) and not np.ptp(same):
                why = f"{coefficient}: all {len(same)} {name} are {same[0]}. Give {name} that differ."
        undefined = bootstrap.estimates(dict.fromkeys((*parts, "difference"), why), counts)
        return InPlaceOfRaters(**undefined, pilot=None)
    joined, resampled = sparse.hstack(sums, format="csr"), dict[str, Resampled]()
    value_of = {name: statistics.fmean(one for one, _, _ in of) for name, of in parts.items()}
    for name, of in parts.items():
        approximate = Resampled(partial(_mean_of_parts, of), joined)
        # Bins approximate the rows of a large set, so their value may differ slightly.
        resampled[name] = approximate._replace(shift=value_of[name] - approximate.value)
    drawn = bootstrap.on_resamples(resampled)
    value_of["difference"] = value_of["evaluator"] - value_of["person"]
    resampled["difference"] = pilot = resampled["evaluator"] - resampled["person"]
    drawn["difference"] = drawn["evaluator"] - drawn["person"]
    estimates = {
        name: bootstrap.estimate(name, value_of[name], bootstrap.interval_on_resamples(name, drawn[name], one), counts)
        for name, one in resampled.items()
    }
    return InPlaceOfRaters(**estimates, pilot=pilot)


def _mean_of_parts(parts: Sequence[tuple[float, Statistic, slice]], drawn: FloatArray) -> FloatArray:
    return np.asarray(np.mean([statistic(drawn[:, own]) for _, statistic, own in parts], axis=0))


def split_half(
    raters: Raters, *, coefficient: str = "spearman", clusters: Labels | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return the mean coefficient between the means of two halves of each row's raters, over `N_SPLITS` random splits.

    With an odd number of raters, one half has one more. Half of the raters agree less than all would. `bootstrap.seed` also
    draws the splits, which are the same in all resamples and do not depend on the order of rows or raters, or on the clusters.
    """
    table = rater_table("split_half", raters, clusters, has_places=False)
    generator = np.random.default_rng(bootstrap.seed)
    n_raters = table.present.sum(axis=1, keepdims=True)
    parts = []
    for _ in range(N_SPLITS):
        keys = np.where(table.present, generator.random(table.values.shape), np.inf)
        in_first = table.present & (keys.argsort(axis=1).argsort(axis=1) < n_raters // 2)
        halves = _mean(table.values, in_first), _mean(table.values, table.present & ~in_first)
        parts.append((np.arange(len(table.values)), *halves))
    return _ceiling("split_half", table, parts, coefficient, bootstrap)


@dataclass(frozen=True, slots=True)
class RaterTable:
    """Rows with two or more ratings, one column per position, in canonical order."""

    values: FloatArray
    """Ratings, 0 if missing."""
    present: BoolArray
    clusters: IntArray
    counts: Counts
    order: IntArray
    """Row numbers among all rows."""


def rater_table(
    where: str, raters: Raters, clusters: Labels | None, *, has_places: bool, scores: CheckedColumn | None = None
) -> RaterTable:
    """Return the table; without `has_places` ratings of a row are sorted. Rows without one of `scores` are left out."""
    same_length(where, raters=raters, clusters=clusters)
    if isinstance(raters, np.ndarray):
        present = ~np.isnan(raters)
        values = np.where(present, raters, 0)
    else:
        columns = [optional_numbers(where, f"raters[{row}]", row_ratings) for row, row_ratings in enumerate(raters)]
        width = max((len(column.values) for column in columns), default=0)
        values, present = np.zeros((len(columns), width)), np.zeros((len(columns), width), dtype=np.bool_)
        for row, column in enumerate(columns):
            values[row, : len(column.values)] = column.values
            present[row, : len(column.values)] = column.present
    if not has_places:
        width = int(present.sum(axis=1).max(initial=0))
        values = np.sort(np.where(present, values, np.inf), axis=1)[:, :width]
        present = np.isfinite(values)
        values = np.where(present, values, 0)
    is_scored = np.True_ if scores is None else scores.present
    used = np.flatnonzero((present.sum(axis=1) >= MIN_RATERS) & is_scored)
    content = [present.sum(axis=1), *present.T, *values.T, *([] if scores is None else [scores.values])]
    rows = canonical_rows(where, content, used, clusters)
    counts = Counts(len(values), len(used), rows.n_clusters, len(values) - len(used))
    return RaterTable(values[rows.order], present[rows.order], rows.clusters, counts, rows.order)


def _mean(values: FloatArray, chosen: BoolArray) -> FloatArray:
    return np.asarray(np.where(chosen, values, 0).sum(axis=1) / np.maximum(1, chosen.sum(axis=1)))


def _ceiling(where: str, table: RaterTable, parts: list[_Part], name: str, bootstrap: Bootstrap) -> Estimate:
    coefficient = coefficient_named(name)
    calibrated = [(coefficient.calibrated(x, y), rows, x, y) for rows, x, y in parts]
    values = np.array([one.of_group(x, y) for one, _, x, y in calibrated])
    defined = np.isfinite(values)
    statistics = [(rows, one.of_samples(x, y)) for one, rows, x, y in itertools.compress(calibrated, defined)]

    def of_samples(weights: FloatArray) -> FloatArray:
        return np.asarray(np.mean([statistic(weights[:, rows]) for rows, statistic in statistics], axis=0))

    counts = table.counts
    if statistics:
        resampled = Resampled(of_samples, rows_by_cell(np.arange(counts.n_scored), table.clusters))
        computed: Computed = float(np.mean(values[defined])), resampled
    elif counts.n_scored:
        computed = f"{where}: {name} is undefined on {counts.n_scored} rows with {MIN_RATERS} raters. Have more rows rated."
    else:
        computed = f"{where}: none of {counts.n_total} rows has {MIN_RATERS} raters or more. Have rows rated by several people."
    return bootstrap.estimates({name: computed}, counts)[name]
