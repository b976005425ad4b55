"""Ranks of many metrics: tests between all of them, Holm's correction, and clusters of metrics that no test tells apart.

With m pairs, Holm's correction needs p-values below alpha / m, and a test with n permutations has none below 1 / (n + 1):
thirty metrics are 435 pairs, which takes 9,000 permutations of each. `rank_permutation_tests` makes them: on ranks that stay as
they are, the sums behind a coefficient are linear in what is swapped, so a matrix product makes the permutations of all pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from dialeval_plugin.core.arrays import BoolArray, FloatArray, IntArray, Labels, OptionalNumbers
from dialeval_plugin.core.errors import InputError

from .bootstrap import NO_RESAMPLES, Bootstrap
from .correlation import level_correlations
from .levels import RatingTable, ScoredRatings
from .rows import canonical_rows, cluster_codes, optional_numbers, same_length
from .significance import DEFAULT_MEASURE, EXACT_UNITS, ROUNDING, Comparison, Measure, Paired, permutation_test, swaps

_AT_ONCE = 1000
"""Permutations of one matrix product."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Metrics in rank clusters.

    Attributes:
        ranks: of each metric, from 1; None where its coefficient is undefined.
        comparisons: the test of each two metrics, the first of them named first.
        adjusted: its p-value after Holm's correction; None where it has none.
    """

    ranks: dict[str, int | None]
    comparisons: dict[tuple[str, str], Comparison]
    adjusted: dict[tuple[str, str], float | None]


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    r"""Return p-values corrected for testing more than one hypothesis (Holm 1979).

    Formula: of m p-values in ascending order, the k-th becomes $\max_{j \le k} \min(1, (m - j + 1) p_j)$; comparing these with
    alpha keeps the chance of any false alarm below alpha, whatever the tests have to do with each other.
    Range: 0 to 1, never below the p-value; InputError for another one. Ties: get the same. Missing values: None stays None and
    counts as no test.

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

    Metrics are gone through from the best value down. One that is significantly worse than any metric of the cluster so far
    starts the next cluster; else it belongs to that cluster. So two neighbouring clusters hold a pair that differs
    significantly, but not every pair between them does.
    A pair, in either order, differs if its p-value is at most `alpha`, between 0 and 1; without a p-value it does not. Higher
    values are better; equal ones keep the order given, and a metric without a value has no rank (None).

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
    """Test all pairs of metrics by permutation, correct for their number, and put the metrics in rank clusters.

    A metric's value, by which they are ordered, is that on the rows on which all of them have a score; each pair is tested
    on the rows that both have. `alpha` is the level of significance, after the correction.
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
    has_all = [all(value is not None for value in row) for row in zip(*scores.values(), strict=True)]
    values = {}
    for name, column in scores.items():
        common = [value if is_common else None for value, is_common in zip(column, has_all, strict=True)]
        correlations = level_correlations(
            ScoredRatings(scores=common, **vars(rated)),
            level=measure.level,
            average_by=measure.average_by,
            coefficients=[measure.coefficient],
            bootstrap=NO_RESAMPLES,
        )
        values[name] = correlations[measure.coefficient].value
    return values


def rank_permutation_tests(
    scores: Mapping[str, OptionalNumbers],
    ratings: OptionalNumbers,
    *,
    clusters: Labels | None = None,
    rounds: int = 1000,
    seed: int = 0,
) -> dict[tuple[str, str], float | None]:
    r"""Return a two-sided p-value for each pair of metrics: do their Spearman coefficients differ?

    As `permutation_test` (PERM-BOTH of Deutsch, Dror and Roth 2021), on the two metrics' ranks in place of their standardised
    scores: the ranks of a row are swapped, of all rows of a cluster at once, and Pearson's coefficient with the ratings' ranks
    is taken, which is Spearman's where nothing is swapped. Ranks are not taken anew after a swap; if the metrics were equally
    good, the swapped ones would be distributed as the given ones all the same.
    p-value: $(c + 1)/(n + 1)$ of n swaps, c of which differ at least as much; with `EXACT_UNITS` clusters or fewer all
    $2^u$ swaps are made, the data among them, and it is $c / 2^u$. A swap that leaves a coefficient undefined counts as
    differing as much. Ties: mean ranks. Missing values: a pair is tested on the rows that both metrics and people have.
    Undefined: None, where on these rows a metric or the ratings are constant, or there is one cluster only.
    Cost: for all pairs together, `rounds` x clusters x pairs multiplications. InputError: lengths differ, or a value is neither
    None nor a finite number.
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
    """Two metrics on their common rows, with standardised ranks."""

    n_rows: int
    value_a: float
    value_b: float
    changes: FloatArray
    """For each cluster of these rows, in their canonical order, what its swap adds to metric A's sums of x, x² and xy, and
    takes from B's; shape (units, 3)."""


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
    for swapped in _chunks(swaps(n_units, n_swaps=rounds, seed=seed)):
        x, xx, xy = np.moveaxis((swapped @ changes.reshape(n_units, -1)).reshape(-1, 3, len(n_rows)), 1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            differences = (value_a + xy) / np.sqrt(1 + xx - x**2) - (value_b - xy) / np.sqrt(1 - xx - x**2)
        # A comparison with NaN is false: what is undefined counts as large.
        n_large += (~(np.abs(differences) < np.abs(value_a - value_b) - ROUNDING)).sum(axis=0)
        n_rounds += len(swapped)
    p_values = n_large / n_rounds if is_exact else (n_large + 1) / (n_rounds + 1)
    return [float(p) for p in p_values]


def _chunks(swapped: Iterator[BoolArray]) -> Iterator[FloatArray]:
    while some := list(itertools.islice(swapped, _AT_ONCE)):
        yield np.array(some, dtype=np.float64)
