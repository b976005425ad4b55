"""How well a detector's distributions agree with annotators, by the metrics of DBDC: the tasks `dbdc`.

Beside every metric stands what a detector earns that calls every turn a breakdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.breakdown.detection import ALWAYS_BREAKDOWN, METRICS, breakdown_metrics

from .corpus_metrics import CorpusMetrics, Undefined, undefined

BASELINE = "always_breakdown_"
LOWER_IS_BETTER = tuple(name for name in METRICS if name.startswith(("jsd_", "mse_")))


class Detected(NamedTuple):
    """What a detector said of one system turn, and what the annotators did."""

    distribution: tuple[float, float, float] | None
    """None where the turn is unscored."""
    counts: tuple[int, int, int]
    cluster: str
    unscored: str | None = None


def _metrics(items: Sequence[Detected], bootstrap: Bootstrap) -> dict[str, Estimate | float | Undefined]:
    """The metrics of the turns with an answer, with intervals that resample dialogues, and the baseline's on the same turns."""
    said = [item.distribution for item in items]
    counts, clusters = [item.counts for item in items], [item.cluster for item in items]
    found: dict[str, Estimate | float | Undefined] = {**breakdown_metrics(said, counts, clusters=clusters, bootstrap=bootstrap)}
    always = [None if distribution is None else ALWAYS_BREAKDOWN for distribution in said]
    for name, metric in breakdown_metrics(always, counts, clusters=clusters, bootstrap=Bootstrap(0)).items():
        found[f"{BASELINE}{name}"] = undefined(metric.reason) if metric.value is None else metric.value
    return found


BREAKDOWNS = CorpusMetrics(Detected, _metrics, score="distribution")

f1_b, f1_b_ci_low, f1_b_ci_high, n_scored = BREAKDOWNS.printed("f1_b")
