"""Is a response positive or negative (SLIDE's Table 1): accuracies over DailyDialog++, the tasks `dailydialog_pp`.

An answer that cannot be read, and a choice whose answers all have probability 0, are unscored: not wrong, but left out of the
accuracies and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from annotated_types import Interval

from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate
from dialeval_plugin.statistics.means import balanced_mean_interval, mean_interval

from .corpus_metrics import CorpusMetrics

KINDS = ("positive", "adversarial", "random")


class Classified(NamedTuple):
    """What became of one response."""

    kind: str
    hit: Annotated[float, Interval(ge=0, le=1)] | None
    """1.0 where the answer is the response's label, 0.0 where it is the other one, None where there is none."""
    cluster: str
    unscored: str | None = None


def _accuracies(items: Sequence[Classified], bootstrap: Bootstrap) -> dict[str, Estimate]:
    """The share of right labels among the responses of each kind that have an answer; positive and adversarial ones balanced.

    The overall accuracy is the mean of those on positive and adversarial responses, as in Table 1; random ones are no part.
    """
    found: dict[str, Estimate] = {}
    for kind in KINDS:
        chosen = [item for item in items if item.kind == kind]
        clusters = [item.cluster for item in chosen]
        found[f"accuracy_{kind}"] = mean_interval([item.hit for item in chosen], clusters=clusters, bootstrap=bootstrap)
    pair = [item for item in items if item.kind in {"positive", "adversarial"}]
    hits, kinds, clusters = [item.hit for item in pair], [item.kind for item in pair], [item.cluster for item in pair]
    found["accuracy_overall"] = balanced_mean_interval(hits, kinds, clusters=clusters, bootstrap=bootstrap)
    return found


ACCURACIES = CorpusMetrics(Classified, _accuracies, score="hit")

accuracy_overall, accuracy_overall_ci_low, accuracy_overall_ci_high, n_scored = ACCURACIES.printed("accuracy_overall")
