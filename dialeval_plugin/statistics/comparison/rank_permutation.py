"""Whether any two of many metrics agree differently with people: permutation tests of all pairs at once, on ranks.

With m pairs, Holm's correction needs p-values below alpha / m, and a test with n permutations has none below 1 / (n + 1):
thirty metrics are 435 pairs, which takes 9,000 permutations of each. On ranks that stay as they are, the sums behind a
coefficient are linear in what is swapped, so a matrix product makes the permutations of all pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy import stats

from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.canonical import canonical, symmetric
from dialeval_plugin.statistics.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Labels,
    OptionalNumbers,
    cluster_codes,
    optional_numbers,
    same_length,
)

from .significance import EXACT_UNITS, swaps

_ROUNDING = 1e-12
_AT_ONCE = 1000
"""Permutations of one matrix product."""


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

    Example:
        >>> ratings = [1, 2, 3, 4, 5, 6, 7, 8]
        >>> rank_permutation_tests({"same": ratings, "noise": [4, 1, 8, 3, 6, 2, 5, 7]}, ratings)
        {('same', 'noise'): 0.0390625}
    """
    where = "rank_permutation_tests"
    Bootstrap(rounds, seed=seed)
    columns = {name: optional_numbers(where, f"scores[{name!r}]", values) for name, values in scores.items()}
    rated = optional_numbers(where, "ratings", ratings)
    same_length(where, ratings=rated.values, **{f"scores of {name}": column.values for name, column in columns.items()})
    units = cluster_codes(where, clusters, len(rated.values))
    found: dict[tuple[str, str], float | None] = dict.fromkeys(itertools.combinations(scores, 2))
    pairs = {}
    for a, b in found:
        used = columns[a].present & columns[b].present & rated.present
        pair = _pair(columns[a].values[used], columns[b].values[used], rated.values[used], units[used])
        if pair is not None:
            pairs[a, b] = pair
    if pairs and rounds:
        found |= zip(pairs, _p_values(list(pairs.values()), rounds, seed), strict=True)
    return found


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
    content = symmetric(([column] for column in ranks[:2]), ranks[2:])
    order, codes = canonical(content, cluster_codes("rank_permutation_tests", units, len(units)))
    a, b, y = (stats.zscore(values[order]) for values in ranks)
    changes = [np.bincount(codes, weights=change) for change in (b - a, b**2 - a**2, (b - a) * y)]
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
        n_large += (~(np.abs(differences) < np.abs(value_a - value_b) - _ROUNDING)).sum(axis=0)
        n_rounds += len(swapped)
    p_values = n_large / n_rounds if is_exact else (n_large + 1) / (n_rounds + 1)
    return [float(p) for p in p_values]


def _chunks(swapped: Iterator[BoolArray]) -> Iterator[FloatArray]:
    while some := list(itertools.islice(swapped, _AT_ONCE)):
        yield np.array(some, dtype=np.float64)
