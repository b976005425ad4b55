"""Corpus-level metrics of a task that runs several times with other random examples: mean and deviation over the runs.

The host runs a task once and knows no deviation, so each item is a document for every seed, and its metrics are taken apart
here. The paper reports the same two figures over three runs (Huynh et al. 2023, section 3.3).
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES
from dialeval_plugin.statistics.correlation import correlate

from .aggregation import Undefined, undefined, why_unscored

logger = logging.getLogger(__name__)

SEED_METRICS = (
    *(f"{name}{of}" for name in ("spearman", "pearson", "kendall") for of in ("", "_deviation")),
    "n_scored",
    "n_unscored",
)
"""Names of the metrics, as in the task files."""


class SeededJudged(NamedTuple):
    """A document's score in one of the runs, and what it is compared with."""

    score: float | None
    """None where the document is unscored."""
    rating: float
    seed: int
    unscored: str | None = None
    """Why it is, where the scorer says so: a value of `scoring.Reason`."""


def spearman(items: Sequence[SeededJudged]) -> float | Undefined:
    """Mean of the runs' Spearman's rho between scores and ratings."""
    return _mean(items, "spearman")


def spearman_deviation(items: Sequence[SeededJudged]) -> float | Undefined:
    """Standard deviation of rho over the runs, as of a sample (n - 1)."""
    return _deviation(items, "spearman")


def pearson(items: Sequence[SeededJudged]) -> float | Undefined:
    """Mean of the runs' Pearson's r."""
    return _mean(items, "pearson")


def pearson_deviation(items: Sequence[SeededJudged]) -> float | Undefined:
    """Standard deviation of r over the runs."""
    return _deviation(items, "pearson")


def kendall(items: Sequence[SeededJudged]) -> float | Undefined:
    """Mean of the runs' Kendall's tau-b."""
    return _mean(items, "kendall_b")


def kendall_deviation(items: Sequence[SeededJudged]) -> float | Undefined:
    """Standard deviation of tau-b over the runs."""
    return _deviation(items, "kendall_b")


def n_scored(items: Sequence[SeededJudged]) -> int:
    """How many documents have a score, over all runs."""
    return sum(SeededJudged(*item).score is not None for item in items)


def n_unscored(items: Sequence[SeededJudged]) -> int:
    """How many documents have no score, over all runs."""
    return len(items) - n_scored(items)


def _mean(items: Sequence[SeededJudged], coefficient: str) -> float | Undefined:
    values = _of_runs(items, coefficient)
    return values if isinstance(values, Undefined) else statistics.fmean(values)


def _deviation(items: Sequence[SeededJudged], coefficient: str) -> float | Undefined:
    values = _of_runs(items, coefficient)
    if isinstance(values, Undefined):
        return values
    return statistics.stdev(values) if len(values) > 1 else Undefined("undefined (one run has no deviation)")


def _of_runs(items: Sequence[SeededJudged], coefficient: str) -> list[float] | Undefined:
    """The coefficient of each run; a mean over fewer runs than were asked for would not be what it says."""
    # Items that went through the host's gathering may have become plain tuples.
    judged = [SeededJudged(*item) for item in items]
    values = []
    for seed in sorted({item.seed for item in judged}):
        run = [item for item in judged if item.seed == seed]
        found = correlate(
            [item.score for item in run], [item.rating for item in run], coefficient=coefficient, bootstrap=NO_RESAMPLES
        )
        if found.value is None:
            why = undefined(found.reason, why_unscored(judged))
            logger.warning("no coefficient: seed %d: %s", seed, why)
            return why
        values.append(found.value)
    return values
