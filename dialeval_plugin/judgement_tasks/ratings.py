"""What a rated document becomes, and how scores agree with ratings: the tasks `dstc10_dialog`, `fed_dialog`, `slide`, `dre`.

A task that runs several times with other random examples has no interval but mean and deviation over the runs, as in the paper
(Huynh et al. 2023, section 3.3). The host runs a task once, so each item is a document for every seed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from dialeval_plugin.statistics.correlation import Correlation, correlate, correlations

from .corpus_metrics import CorpusMetrics, Undefined, undefined

COEFFICIENTS: Mapping[str, str] = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}


class Variant(NamedTuple):
    """Another score of the same document, as that of the small model alone."""

    name: str
    score: float | None
    unscored: str | None = None
    detail: str = ""


class Judged(NamedTuple):
    """A document's score and what it is compared with."""

    score: float | None
    """None where the document is unscored."""
    rating: float
    cluster: str
    unscored: str | None = None
    """Why it is, where the scorer says so: a value of `scores.Reason`."""
    variants: tuple[Variant, ...] = ()
    """The task's other scores, for whoever reads the logged samples."""
    percentile: float | None = None
    """Of the score among those of people's own responses, for the same reader; None where the scorer has no table of them."""
    out_of_scope: str | None = None
    """Why the scorer's model does not know what it judged, for the same reader."""

    def by(self, variant: str) -> Judged:
        """Return the same document judged by a variant's score."""
        found = next((Variant(*one) for one in self.variants if one[0] == variant), None)
        return self if found is None else Judged(found.score, self.rating, self.cluster, found.unscored)


class SeededJudged(NamedTuple):
    """A document's score in one of the runs, and what it is compared with."""

    score: float | None
    rating: float
    seed: int
    unscored: str | None = None


def scored_correlations(
    scores: Sequence[float | None], ratings: Sequence[float], clusters: Sequence[str], bootstrap: Bootstrap
) -> dict[str, Correlation]:
    """Return the coefficients by metric, from one bootstrap over dialogues."""
    found = correlations(scores, ratings, coefficients=tuple(COEFFICIENTS.values()), clusters=clusters, bootstrap=bootstrap)
    return {name: found[coefficient] for name, coefficient in COEFFICIENTS.items()}


def _correlations(judged: Sequence[Judged], bootstrap: Bootstrap) -> dict[str, Correlation]:
    return scored_correlations(
        [one.score for one in judged], [one.rating for one in judged], [one.cluster for one in judged], bootstrap
    )


def _over_seeds(judged: Sequence[SeededJudged], bootstrap: Bootstrap) -> dict[str, float | Undefined]:
    """Mean and standard deviation (n - 1) of each coefficient over the runs; without one of the runs there is neither."""
    runs = [[one for one in judged if one.seed == seed] for seed in sorted({one.seed for one in judged})]
    has_score = any(one.score is not None for one in judged)
    values: dict[str, float | Undefined] = {}
    for name, coefficient in COEFFICIENTS.items():
        found = [
            correlate([one.score for one in run], [one.rating for one in run], coefficient=coefficient, bootstrap=NO_RESAMPLES)
            for run in runs
        ]
        known = [one.value for one in found if one.value is not None]
        if len(known) < len(found):
            reason = next(one.reason for one in found if one.value is None)
            why = undefined(reason, [] if has_score else [one.unscored for one in judged])
            values |= {name: why, f"{name}_deviation": why}
        else:
            alone = Undefined("undefined (one run has no deviation)")
            values |= {name: statistics.fmean(known)}
            values[f"{name}_deviation"] = statistics.stdev(known) if len(known) > 1 else alone
    return values


RATINGS = CorpusMetrics(Judged, _correlations)
OVER_SEEDS = CorpusMetrics(SeededJudged, _over_seeds)

spearman, spearman_ci_low, spearman_ci_high, n_scored = RATINGS.printed("spearman")
pearson, kendall = RATINGS.metric("pearson"), RATINGS.metric("kendall")
spearman_over_seeds = OVER_SEEDS.metric("spearman")
spearman_deviation = OVER_SEEDS.metric("spearman_deviation")
n_scored_over_seeds = OVER_SEEDS.metric("n_scored")
