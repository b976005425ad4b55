"""Variance components of ratings, and the gain from more raters or conversations (generalizability theory).

A rating is a mean plus independent effects of its system, conversation, response and rater, plus a residual, which includes a
rater's opinion of one response (Cronbach et al. 1972; Brennan 2001). An effect is estimated if the data identify it:
conversations if some have several responses, raters if it is known who gave which rating.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.labels.table import LabelTable
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Counts, Estimate, Resampled
from dialeval_plugin.statistics.rows import canonical_rows, cluster_codes

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
