"""Corpus-level metrics of the lm-eval tasks: coefficients, their interval bounds and the counts that they rest on.

The host has no channel for intervals, so each bound is a metric of its own. All come from one bootstrap, computed once.
"""

from __future__ import annotations

import functools
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from dialeval_plugin.core.scores import NOT_FOR_THIS_DATA
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import Correlation, correlations

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
    unscored: str | None = None
    """Why it is, where the scorer says so: a value of `scoring.Reason`."""


class Undefined(str):
    """A coefficient that has no value, with the reason: the text stands in the result file in the number's place.

    The host prints it in a column of its table, so it is kept short: see `undefined`.

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


def undefined(reason: str | None, unscored: Iterable[str | None] = ()) -> Undefined:
    """Return the text for a number that is not there.

    Args:
        reason: as the statistic gives it: what it is the reason for, what is wrong, and what to do.
        unscored: of each document, where none has a score, why it has none.

    Example:
        >>> undefined("pearson: all 4 ratings are 5.0. Give ratings that differ.")
        'undefined (all 4 ratings are 5.0)'
        >>> undefined("pearson: 0 pairs of score and rating.", ["scores_turns_only", "scores_turns_only"])
        'undefined (scores turns only)'
        >>> undefined("pearson: 0 pairs of score and rating.", ["parse_failure", "parse_failure", "refusal"])
        'undefined (no scores: parse failure 2, refusal 1)'
    """
    return Undefined(f"undefined ({no_scores(Counter(filter(None, unscored))) or _problem(reason or 'no value')})")


def no_scores(reasons: Counter[str]) -> str:
    """Say in words why nothing has a score, from the number of documents by reason; empty where no reason is known.

    Example:
        >>> no_scores(Counter(needs_references=5)), no_scores(Counter())
        ('needs references', '')
    """
    counts = sorted(reasons.items())
    if len(counts) == 1 and counts[0][0] in {reason.value for reason in NOT_FOR_THIS_DATA}:
        return counts[0][0].replace("_", " ")
    return "no scores: " + ", ".join(f"{name} {number}" for name, number in counts).replace("_", " ") if counts else ""


def _problem(reason: str) -> str:
    return re.sub(r"^[\w ]+: ", "", reason).partition(". ")[0].removesuffix(".")


def why_unscored(items: Iterable[Any], score: str = "score") -> list[str | None]:
    """The reasons of documents, for `undefined`; none where one of them has a score, which stands in its field `score`."""
    found = list(items)
    return [item.unscored for item in found] if all(getattr(item, score) is None for item in found) else []


@functools.lru_cache(maxsize=32)
def _correlations(judged: tuple[Judged, ...]) -> dict[str, Correlation]:
    scores, ratings, clusters, _ = zip(*judged, strict=True)
    found = correlations(
        scores,
        ratings,
        coefficients=("spearman", "pearson", "kendall_b"),
        clusters=clusters,
        bootstrap=Bootstrap(ROUNDS, seed=SEED),
    )
    for coefficient in found.values():
        if coefficient.value is None:
            reasons = Counter(filter(None, why_unscored(judged)))
            logger.warning("no coefficient: %s", no_scores(reasons) or coefficient.reason)
    if any(coefficient.is_rough for coefficient in found.values()):
        logger.warning("the intervals are rough: they rest on %d clusters (dialogues)", found["spearman"].n_clusters)
    return found


def _find(items: Sequence[Judged], coefficient: str, name: str) -> float | Undefined:
    # Items that went through the host's gathering may have become plain tuples.
    judged = tuple(Judged(*item) for item in items)
    found = _correlations(judged)[coefficient]
    value: float | None = getattr(found, name)
    return undefined(found.reason, why_unscored(judged)) if value is None else value


def spearman(items: Sequence[Judged]) -> float | Undefined:
    """Spearman's rho between scores and ratings, over the documents that have a score."""
    return _find(items, "spearman", "value")


def spearman_ci_low(items: Sequence[Judged]) -> float | Undefined:
    """Lower bound of rho's 95 % interval, from a bootstrap over dialogues."""
    return _find(items, "spearman", "ci_low")


def spearman_ci_high(items: Sequence[Judged]) -> float | Undefined:
    """Upper bound of rho's interval."""
    return _find(items, "spearman", "ci_high")


def pearson(items: Sequence[Judged]) -> float | Undefined:
    """Pearson's r between scores and ratings, over the documents that have a score."""
    return _find(items, "pearson", "value")


def pearson_ci_low(items: Sequence[Judged]) -> float | Undefined:
    """Lower bound of r's 95 % interval, from the same resamples as rho's."""
    return _find(items, "pearson", "ci_low")


def pearson_ci_high(items: Sequence[Judged]) -> float | Undefined:
    """Upper bound of r's interval."""
    return _find(items, "pearson", "ci_high")


def kendall(items: Sequence[Judged]) -> float | Undefined:
    """Kendall's tau-b between scores and ratings, over the documents that have a score."""
    return _find(items, "kendall_b", "value")


def kendall_ci_low(items: Sequence[Judged]) -> float | Undefined:
    """Lower bound of tau-b's 95 % interval, from the same resamples as rho's."""
    return _find(items, "kendall_b", "ci_low")


def kendall_ci_high(items: Sequence[Judged]) -> float | Undefined:
    """Upper bound of tau-b's interval."""
    return _find(items, "kendall_b", "ci_high")


def n_scored(items: Sequence[Judged]) -> int:
    """How many documents have a score: the number that every coefficient of the task rests on."""
    return sum(Judged(*item).score is not None for item in items)


def n_unscored(items: Sequence[Judged]) -> int:
    """How many documents have no score."""
    return len(items) - n_scored(items)
