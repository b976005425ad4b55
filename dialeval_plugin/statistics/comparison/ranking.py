"""Ranks of metrics from tests between all of them: Holm's correction, and clusters of metrics that no test tells apart."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES
from dialeval_plugin.statistics.checks import OptionalNumbers
from dialeval_plugin.statistics.correlation import level_correlations
from dialeval_plugin.statistics.levels import Rated

from .significance import DEFAULT_MEASURE, Comparison, Measure, Paired, permutation_test


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
    alpha: float


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
    rated: Rated,
    measure: Measure = DEFAULT_MEASURE,
    *,
    alpha: float = 0.05,
    rounds: int = 1000,
    seed: int = 0,
) -> Ranking:
    """Test all pairs of metrics by permutation, correct for their number, and put the metrics in rank clusters.

    A metric's value, by which they are ordered, is that on the rows on which all of them have a score; each pair is tested
    on the rows that both have. Of `rated` the scores are not read. `alpha` is the level of significance, after the correction.

    Example:
        >>> ratings = [1, 2, 3, 4, 5, 6, 7, 8]
        >>> scores = {"same": ratings, "noise": [4, 1, 8, 3, 6, 2, 5, 7]}
        >>> rank_metrics(scores, Rated(scores=[], ratings=ratings)).ranks
        {'same': 1, 'noise': 2}
    """
    labels = {"clusters": rated.clusters, "systems": rated.systems, "items": rated.items}
    comparisons = {}
    for a, b in itertools.combinations(scores, 2):
        paired = Paired(scores_a=scores[a], scores_b=scores[b], ratings=rated.ratings, **labels)
        comparisons[a, b] = permutation_test(paired, measure, rounds=rounds, seed=seed)
    adjusted = dict(zip(comparisons, holm([one.p_value for one in comparisons.values()]), strict=True))
    ranks = rank_clusters(_values_on_common_rows(scores, rated, measure), adjusted, alpha=alpha)
    return Ranking(ranks, comparisons, adjusted, alpha)


def _values_on_common_rows(scores: Mapping[str, OptionalNumbers], rated: Rated, measure: Measure) -> dict[str, float | None]:
    has_all = [all(value is not None for value in row) for row in zip(*scores.values(), strict=True)]
    values = {}
    for name, column in scores.items():
        common = [value if is_common else None for value, is_common in zip(column, has_all, strict=True)]
        found = level_correlations(
            replace(rated, scores=common),
            level=measure.level,
            average_by=measure.average_by,
            coefficients=[measure.coefficient],
            bootstrap=NO_RESAMPLES,
        )
        values[name] = found[measure.coefficient].value
    return values
