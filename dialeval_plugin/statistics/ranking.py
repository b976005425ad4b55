"""Ranks of many metrics: tests of all pairs, Holm's correction, and clusters of metrics that tests do not distinguish.

With m pairs, Holm's correction needs p-values below alpha / m, and a test with n permutations has none below 1 / (n + 1):
thirty metrics are 435 pairs, which need 9,000 permutations each. `rank_permutation_tests` makes this feasible: with fixed
ranks, the sums behind a coefficient are linear in the swaps, so one matrix product makes the permutations of all pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import FloatArray, IntArray, Labels, OptionalNumbers
from dialeval_plugin.core.errors import InputError, StatisticUndefined

from .bootstrap import Bootstrap
from .coefficients.by_name import coefficient_named
from .levels import LevelStatistic, RatingTable, rows_of
from .rows import canonical_rows, cluster_codes, optional_numbers, same_length
from .significance import DEFAULT_MEASURE, EXACT_UNITS, ROUNDING, Comparison, Measure, Paired, permutation_test, swaps

_AT_ONCE = 1000
"""Permutations of one matrix product."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Metrics in rank clusters.

    Attributes:
        ranks: rank of each metric, from 1; None if its coefficient is undefined.
        comparisons: test of each pair of metrics, by their names in the order given.
        adjusted: p-value of each pair after Holm's correction; None if there is none.
    """

    ranks: dict[str, int | None]
    comparisons: dict[tuple[str, str], Comparison]
    adjusted: dict[tuple[str, str], float | None]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    r"""Return p-values corrected for multiple tests (Holm 1979).

    Formula: of m p-values in ascending order, the k-th becomes $\max_{j \le k} \min(1, (m - j + 1) p_j)$; comparing these with
    alpha keeps the probability of any false positive below alpha, whatever the dependence of the tests. Range: 0 to 1, never
    below the p-value; others are an InputError. None stays None and does not count as a test.

    Example:
        >>> holm([0.01, None, 0.04, 0.03])
        [0.03, None, 0.06, 0.06]
    """
    for i, p in enumerate(p_values):
        if p is not None and not 0 <= p <= 1:
            raise InputError(f"holm: p_values[{i}] is {p!r}. Give a number from 0 to 1, or None where there is no test.")
    tested = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for k, (p, i) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - k) * p))
        adjusted[i] = highest
    return adjusted


def rank_clusters(
    values: Mapping[str, float | None], p_values: Mapping[tuple[str, str], float | None], *, alpha: float = 0.05
) -> dict[str, int | None]:
    """Return the rank of each metric (the rule of WMT's metrics task, AssignRanks in mt-metrics-eval).

    From the best value down, a metric significantly worse than any metric of the current cluster starts the next cluster. So
    two neighbouring clusters have at least one pair that differs significantly; their other pairs may not. A pair, in either
    order, differs if its p-value is at most `alpha`, in (0, 1); without a p-value it does not. Higher values are better; equal
    ones keep the order given, and a metric without a value has no rank (None).

    Example:
        >>> values = {"bleu": 0.1, "slide": 0.5, "dre": 0.45, "random": None}
        >>> rank_clusters(values, {("slide", "dre"): 0.3, ("slide", "bleu"): 0.01, ("dre", "bleu"): 0.06})
        {'bleu': 2, 'slide': 1, 'dre': 1, 'random': None}
    """
    if not 0 < alpha < 1:
        raise InputError(f"rank_clusters: alpha is {alpha!r}. Give a number between 0 and 1, such as 0.05.")
    ranked = sorted(((value, name) for name, value in values.items() if value is not None), key=lambda pair: -pair[0])
    ranks: dict[str, int | None] = dict.fromkeys(values)
    rank, cluster = 1, list[str]()
    for _, name in ranked:
        p_better = [p_values.get((better, name), p_values.get((name, better))) for better in cluster]
        if any(p is not None and p <= alpha for p in p_better):
            rank, cluster = rank + 1, []
        cluster.append(name)
        ranks[name] = rank
    return ranks


def rank_metrics(
    scores: Mapping[str, OptionalNumbers],
    rated: RatingTable,
    measure: Measure = DEFAULT_MEASURE,
    *,
    alpha: float = 0.05,
    rounds: int = 1000,
    seed: int = 0,
) -> Ranking:
    """Test all pairs of metrics by permutation, correct for their number, and return rank clusters.

    Values are on the rows scored by all; a pair is tested on rows scored by both. `alpha` is the level after correction.
    """
    comparisons = {
        (a, b): permutation_test(
            Paired(scores_a=scores[a], scores_b=scores[b], **vars(rated)), measure, rounds=rounds, seed=seed
        )
        for a, b in itertools.combinations(scores, 2)
    }
    adjusted = dict(zip(comparisons, holm([one.p_value for one in comparisons.values()]), strict=True))
    ranks = rank_clusters(_values_on_common_rows(scores, rated, measure), adjusted, alpha=alpha)
    return Ranking(ranks, comparisons, adjusted)


def _values_on_common_rows(
    scores: Mapping[str, OptionalNumbers], rated: RatingTable, measure: Measure
) -> dict[str, float | None]:
    rows = rows_of("rank_metrics", rated, scores, measure.level, measure.average_by)
    values: dict[str, float | None] = dict.fromkeys(scores)
    for name, x in zip(scores, rows.scores, strict=True):
        with suppress(StatisticUndefined):
            values[name] = LevelStatistic.of(coefficient_named(measure.coefficient), rows, x).value(x).value
    return values


def rank_permutation_tests(
    scores: Mapping[str, OptionalNumbers],
    ratings: OptionalNumbers,
    *,
    clusters: Labels | None = None,
    rounds: int = 1000,
    seed: int = 0,
) -> dict[tuple[str, str], float | None]:
    r"""Return a two-sided p-value for each pair of metrics, for a difference of their Spearman coefficients.

    As `permutation_test` (PERM-BOTH of Deutsch, Dror and Roth 2021), with ranks instead of standardised scores: the ranks of a
    row are swapped, for all rows of a cluster at once, and correlated with the ratings' ranks by Pearson's coefficient, which
    is Spearman's without swaps. Ranks are not computed again after a swap; for equally good metrics, swapped and given ranks
    have the same distribution anyway. p-value: $(c + 1)/(n + 1)$ for n swaps, c of which differ at least as much; with at most
    `EXACT_UNITS` clusters all $2^u$ swaps are made, including the data, and it is $c / 2^u$. A swap with an undefined
    coefficient counts in c. Ties: mean ranks. A pair is tested on the rows with both scores and a rating; its p-value is None
    if a metric or the ratings are constant there, or if there is one cluster only. Cost: `rounds` x clusters x pairs
    multiplications. Raises InputError if lengths differ, or a value is neither None nor finite.
    """
    where = "rank_permutation_tests"
    Bootstrap(rounds, seed=seed)
    columns = {name: optional_numbers(where, f"scores[{name!r}]", values) for name, values in scores.items()}
    rated = optional_numbers(where, "ratings", ratings)
    same_length(where, ratings=rated.values, **{f"scores of {name}": column.values for name, column in columns.items()})
    units = cluster_codes(where, clusters, len(rated.values))
    p_values: dict[tuple[str, str], float | None] = dict.fromkeys(itertools.combinations(scores, 2))
    pairs = {}
    for a, b in p_values:
        used = columns[a].present & columns[b].present & rated.present
        pair = _pair(columns[a].values[used], columns[b].values[used], rated.values[used], units[used])
        if pair is not None:
            pairs[a, b] = pair
    if pairs and rounds:
        p_values |= zip(pairs, _p_values(list(pairs.values()), rounds, seed), strict=True)
    return p_values


class _Pair(NamedTuple):
    n_rows: int
    value_a: float
    value_b: float
    changes: FloatArray
    """Change of metric A's sums of x, x² and xy by the swap of each cluster, in canonical order, and the opposite of B's; shape
    (units, 3)."""


def _pair(a: FloatArray, b: FloatArray, y: FloatArray, units: IntArray) -> _Pair | None:
    if len(np.unique(units)) < 2 or any(np.ptp(values) == 0 for values in (a, b, y)):
        return None
    ranks = [stats.rankdata(values) for values in (a, b, y)]
    metrics = ([column] for column in ranks[:2])
    rows = canonical_rows("rank_permutation_tests", ranks[2:], np.arange(len(y)), units, metrics=metrics)
    a, b, y = (stats.zscore(values[rows.order]) for values in ranks)
    changes = [np.bincount(rows.clusters, weights=change) for change in (b - a, b**2 - a**2, (b - a) * y)]
    return _Pair(len(y), float(np.mean(a * y)), float(np.mean(b * y)), np.column_stack(changes))


def _p_values(pairs: list[_Pair], rounds: int, seed: int) -> list[float]:
    n_units = max(len(pair.changes) for pair in pairs)
    is_exact = n_units <= EXACT_UNITS
    n_rows = np.array([pair.n_rows for pair in pairs])
    value_a, value_b = (np.array([getattr(pair, name) for pair in pairs]) for name in ("value_a", "value_b"))
    changes = np.zeros((n_units, 3, len(pairs)))
    for place, pair in enumerate(pairs):
        changes[: len(pair.changes), :, place] = pair.changes / pair.n_rows
    n_large, n_rounds = np.zeros(len(pairs)), 0
    drawn = swaps(n_units, n_swaps=rounds, seed=seed)
    while some := list(itertools.islice(drawn, _AT_ONCE)):
        swapped = np.array(some, dtype=np.float64)
        x, xx, xy = np.moveaxis((swapped @ changes.reshape(n_units, -1)).reshape(-1, 3, len(n_rows)), 1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            differences = (value_a + xy) / np.sqrt(1 + xx - x**2) - (value_b - xy) / np.sqrt(1 - xx - x**2)
        # Comparisons with NaN are false, so an undefined value counts as large.
        n_large += (~(np.abs(differences) < np.abs(value_a - value_b) - ROUNDING)).sum(axis=0)
        n_rounds += len(swapped)
    p_values = n_large / n_rounds if is_exact else (n_large + 1) / (n_rounds + 1)
    return [float(p) for p in p_values]
