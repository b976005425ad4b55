"""Corpus-level metrics of the lm-eval tasks: coefficients, their interval bounds and the counts that they rest on.

The host has no channel for intervals, so each bound is a metric of its own. All come from one bootstrap, computed once.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from dialeval_plugin.meta_evaluation.correlation import Correlation, correlations

logger = logging.getLogger(__name__)

METRICS = (
    *(f"{name}{bound}" for name in ("spearman", "pearson", "kendall") for bound in ("", "_ci_low", "_ci_high")),
    "n_scored",
    "n_unscored",
)
"""Names of the metrics, as in the task files."""

ROUNDS = 1000
SEED = 0


class Judged(NamedTuple):
    """A document's score and what it is compared with."""

    score: float | None
    """None where the document is unscored."""
    rating: float
    cluster: str


class Undefined(str):
    """A coefficient that has no value, with the reason: the text stands in the result file in the number's place.

    NaN would make the file invalid JSON and would spread into the group's mean; 0 would be a lie; None makes the host fail
    while it averages the group, after all inference. In the host's sum for a group, an undefined value counts for nothing:
    the mean is taken over the tasks that have one.
    """

    __slots__ = ()

    def __mul__(self, weight: Any) -> Any:
        return _WeightedSum(0.0, float(weight), self)

    __rmul__ = __mul__


class _WeightedSum:
    """A sum of weighted values of which some are undefined, until the host divides it by the sum of all weights."""

    def __init__(self, total: float, missing: float, reason: Undefined) -> None:
        self.total = total
        self.missing = missing
        self.reason = reason

    def __add__(self, other: Any) -> _WeightedSum:
        if isinstance(other, _WeightedSum):
            return _WeightedSum(self.total + other.total, self.missing + other.missing, self.reason)
        return _WeightedSum(self.total + other, self.missing, self.reason)

    __radd__ = __add__

    def __truediv__(self, weights: float) -> float | Undefined:
        return self.total / (weights - self.missing) if weights > self.missing else self.reason


@functools.lru_cache(maxsize=32)
def _correlations(judged: tuple[Judged, ...]) -> dict[str, Correlation]:
    scores, ratings, clusters = zip(*judged, strict=True)
    found = correlations(
        scores, ratings, coefficients=("spearman", "pearson", "kendall_b"), clusters=clusters, rounds=ROUNDS, seed=SEED
    )
    for coefficient in found.values():
        if coefficient.value is None:
            logger.warning("no coefficient: %s", coefficient.reason)
    if any(coefficient.is_rough for coefficient in found.values()):
        logger.warning("the intervals are rough: they rest on %d clusters (dialogues)", found["spearman"].n_clusters)
    return found


def _find(items: Sequence[Judged], coefficient: str) -> Correlation:
    # Items that went through the host's gathering may have become plain tuples.
    return _correlations(tuple(Judged(*item) for item in items))[coefficient]


def _value(items: Sequence[Judged], coefficient: str) -> float | Undefined:
    found = _find(items, coefficient)
    return Undefined(f"undefined ({found.reason})") if found.value is None else found.value


def _bound(items: Sequence[Judged], coefficient: str, name: str) -> float | Undefined:
    found = _find(items, coefficient)
    value: float | None = getattr(found, name)
    return Undefined(f"undefined ({found.reason})") if value is None else value


def spearman(items: Sequence[Judged]) -> float | Undefined:
    """Spearman's rho between scores and ratings, over the documents that have a score."""
    return _value(items, "spearman")


def spearman_ci_low(items: Sequence[Judged]) -> float | Undefined:
    """Lower bound of rho's 95 % interval, from a bootstrap over dialogues."""
    return _bound(items, "spearman", "ci_low")


def spearman_ci_high(items: Sequence[Judged]) -> float | Undefined:
    """Upper bound of rho's interval."""
    return _bound(items, "spearman", "ci_high")


def pearson(items: Sequence[Judged]) -> float | Undefined:
    """Pearson's r between scores and ratings, over the documents that have a score."""
    return _value(items, "pearson")


def pearson_ci_low(items: Sequence[Judged]) -> float | Undefined:
    """Lower bound of r's 95 % interval, from the same resamples as rho's."""
    return _bound(items, "pearson", "ci_low")


def pearson_ci_high(items: Sequence[Judged]) -> float | Undefined:
    """Upper bound of r's interval."""
    return _bound(items, "pearson", "ci_high")


def kendall(items: Sequence[Judged]) -> float | Undefined:
    """Kendall's tau-b between scores and ratings, over the documents that have a score."""
    return _value(items, "kendall_b")


def kendall_ci_low(items: Sequence[Judged]) -> float | Undefined:
    """Lower bound of tau-b's 95 % interval, from the same resamples as rho's."""
    return _bound(items, "kendall_b", "ci_low")


def kendall_ci_high(items: Sequence[Judged]) -> float | Undefined:
    """Upper bound of tau-b's interval."""
    return _bound(items, "kendall_b", "ci_high")


def n_scored(items: Sequence[Judged]) -> int:
    """How many documents have a score: the number that every coefficient of the task rests on."""
    return sum(Judged(*item).score is not None for item in items)


def n_unscored(items: Sequence[Judged]) -> int:
    """How many documents have no score."""
    return len(items) - n_scored(items)
