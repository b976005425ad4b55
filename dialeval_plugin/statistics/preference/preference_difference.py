"""Whether two metrics agree differently with people who compared responses: the difference, with a paired interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate, Interval, Statistic
from dialeval_plugin.statistics.canonical import canonical, symmetric
from dialeval_plugin.statistics.checks import FloatArray, IntArray
from dialeval_plugin.statistics.coefficients.alpha import alpha_of_samples
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named

from .preferences import A_IS_BETTER, B_IS_BETTER, POINTS, Comparisons

Samples: TypeAlias = tuple[Statistic, IntArray]
"""A statistic of weighted observations, and the cluster of each observation."""

_BOOTSTRAP = Bootstrap()


@dataclass(frozen=True, kw_only=True)
class Difference(Estimate):
    """What one metric's statistic has more than the other's; `n_total` and its parts count comparisons.

    Attributes:
        statistic: its name.
    """

    statistic: str

    def __str__(self) -> str:
        return f"difference of {self.statistic}: {self._text()}, {self.n_scored} of {self.n_total} comparisons scored by both"


def difference(
    one: Comparisons, other: Comparisons, *, statistic: str = "voting_spearman", bootstrap: Bootstrap = _BOOTSTRAP
) -> Difference:
    """Return statistic(one) - statistic(other), with an interval from resamples that both metrics share.

    Whole dialogues are resampled. An interval that holds 0 does not tell the metrics apart. Range: from -2 to 2.
    Undefined: where the statistic of either is.

    Args:
        one: a metric's scores of the comparisons, see `agreement.comparisons`.
        other: another metric's, of the same comparisons in the same order.
        statistic: "voting_pearson", "voting_spearman", "ignore_equal" or "cont2cat", with the paper's options.
        bootstrap: of the interval, over clusters.

    Raises:
        InputError: the comparisons differ, or the statistic is unknown.

    Example:
        >>> from dialeval_plugin.statistics.preference.preferences import comparisons
        >>> votes = [[0, 0, 0], [1, 1, 1], [2, 2, 2], [0, 0, 1]]
        >>> good, bad = comparisons([4, 1, 3, 3], [1, 4, 3, 2], votes), comparisons([1, 4, 3, 3], [4, 1, 3, 2], votes)
        >>> round(difference(good, bad, bootstrap=Bootstrap(rounds=0)).value, 3)
        1.59
    """
    if statistic not in _SAMPLES:
        raise InputError(f"difference: there is no statistic {statistic!r}. Choose one of {', '.join(_SAMPLES)}.")
    for name in ("votes", "clusters", "n_total"):
        if not np.array_equal(getattr(one, name), getattr(other, name)):
            raise InputError(
                f"difference: the metrics' {name} differ. Compare them on the comparisons that both have a score for."
            )
    ordered_one, ordered_other = _ordered(one, other)
    of_one, clusters = _SAMPLES[statistic](ordered_one)
    of_other, _ = _SAMPLES[statistic](ordered_other)

    def of_both(weights: FloatArray) -> FloatArray:
        values: FloatArray = of_one(weights) - of_other(weights)
        return values

    value = float(of_both(np.ones((1, len(clusters))))[0])
    reason = f"{statistic}: undefined for one of the metrics. Score responses that differ." if np.isnan(value) else None
    interval = Interval(None, None, 0, reason)
    if reason is None:
        interval = bootstrap.intervals({statistic: of_both}, np.arange(len(clusters)), clusters)[statistic]
    return Difference(
        statistic=statistic,
        value=None if reason else value,
        **bootstrap.fields(interval),
        n_total=one.n_total,
        n_scored=len(one.votes),
        n_unscored=one.n_total - len(one.votes),
        n_clusters=int(one.clusters.max(initial=-1)) + 1,
    )


def _ordered(one: Comparisons, other: Comparisons) -> tuple[Comparisons, Comparisons]:
    """The same comparisons in their canonical order."""
    scores = ([compared.scores_a, compared.scores_b] for compared in (one, other))
    order, clusters = canonical(symmetric(scores, list(one.votes.T)), one.clusters)

    def in_order(compared: Comparisons) -> Comparisons:
        rows = {name: getattr(compared, name)[order] for name in ("scores_a", "scores_b", "votes")}
        return replace(compared, **rows, clusters=clusters)

    return in_order(one), in_order(other)


def _voting(compared: Comparisons, coefficient: str) -> Samples:
    scores = np.concatenate([compared.scores_a, compared.scores_b])
    points = POINTS[:, compared.votes].sum(axis=2).ravel()
    clusters = np.concatenate([compared.clusters, compared.clusters])
    return partial(coefficient_named(coefficient).of_samples, scores, points), clusters


def _ignore_equal(compared: Comparisons) -> Samples:
    owner, rater = np.nonzero((compared.votes == A_IS_BETTER) | (compared.votes == B_IS_BETTER))
    preferred = (compared.votes[owner, rater] == A_IS_BETTER).astype(np.float64)
    gaps = (compared.scores_a - compared.scores_b)[owner]
    return partial(coefficient_named("pearson").of_samples, gaps, preferred), compared.clusters[owner]


def _cont2cat(compared: Comparisons) -> Samples:
    metric = np.where(compared.scores_a > compared.scores_b, A_IS_BETTER, B_IS_BETTER)
    answers = np.column_stack([compared.votes, metric])
    counts = (answers[:, :, None] == np.arange(4)).sum(axis=1).astype(np.float64)
    return partial(alpha_of_samples, counts), compared.clusters


_SAMPLES: Mapping[str, Callable[[Comparisons], Samples]] = MappingProxyType(
    {
        "voting_pearson": partial(_voting, coefficient="pearson"),
        "voting_spearman": partial(_voting, coefficient="spearman"),
        "ignore_equal": _ignore_equal,
        "cont2cat": _cont2cat,
    }
)
