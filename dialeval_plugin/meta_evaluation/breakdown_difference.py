"""Whether two breakdown detectors differ: the difference of each of DBDC's metrics, with a paired interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dialeval_plugin.errors import InputError

from .bootstrap import Bootstrap, Estimate, Statistic
from .breakdown import Counts, Distributions, metric_statistics
from .checks import FloatArray, Labels, cluster_codes, same_length

_BOOTSTRAP = Bootstrap()


class Detected(NamedTuple):
    """What a detector said of some turns, as `breakdown.detections` gives it."""

    distributions: Distributions
    labels: Sequence[int | None]


@dataclass(frozen=True, kw_only=True)
class BreakdownDifference(Estimate):
    """What one detector's metric has more than the other's; `n_total` and its parts count system turns.

    Attributes:
        metric: its name.
    """

    metric: str

    def __str__(self) -> str:
        return f"difference of {self.metric}: {self._text()}, {self.n_scored} of {self.n_total} turns scored by both"


def breakdown_differences(
    one: Detected,
    other: Detected,
    counts: Counts,
    *,
    clusters: Labels | None = None,
    bootstrap: Bootstrap = _BOOTSTRAP,
) -> dict[str, BreakdownDifference]:
    """Return metric(one) - metric(other) by name, with intervals from resamples that both detectors share.

    Only annotated turns that both detectors answered count. An interval that holds 0 does not tell them apart. A metric that
    is undefined for one of them is left out.

    Args:
        one: a detector's answers.
        other: another's, of the same turns in the same order.
        counts: the annotators', of shape (turns, 3).
        clusters: label of the dialogue of each turn; turns of one dialogue are resampled together.
        bootstrap: of the intervals.

    Raises:
        InputError: as `breakdown.breakdown_metrics`.

    Example:
        >>> from dialeval_plugin.meta_evaluation.breakdown import detections
        >>> good, bad = detections([0.9, 0.1, 0.8]), detections([0.1, 0.9, 0.8])
        >>> counts = [[0, 0, 9], [9, 0, 0], [1, 0, 8]]
        >>> found = breakdown_differences(Detected(*good), Detected(*bad), counts, bootstrap=Bootstrap(rounds=0))
        >>> round(found["accuracy"].value, 3)
        0.667
    """
    same_length("breakdown_differences", one=one.distributions, other=other.distributions, counts=counts)
    both = np.array(
        [
            a is not None and b is not None and sum(row) > 0
            for a, b, row in zip(one.distributions, other.distributions, counts, strict=True)
        ],
        dtype=np.bool_,
    )
    if not both.any():
        raise InputError("breakdown_differences: no annotated turn has an answer of both. Score annotated turns.")
    places = np.flatnonzero(both).tolist()
    codes = cluster_codes("breakdown_differences", clusters, len(both))[both]
    renumbered = cluster_codes("breakdown_differences", codes, len(codes))
    chosen = [counts[place] for place in places]
    statistics = _differences(_statistics(one, places, chosen), _statistics(other, places, chosen))
    whole = np.ones((1, len(places)))
    intervals = bootstrap.intervals(statistics, np.arange(len(places)), renumbered)
    return {
        name: BreakdownDifference(
            metric=name,
            value=float(statistic(whole)[0]),
            n_total=len(both),
            n_scored=len(places),
            n_unscored=len(both) - len(places),
            n_clusters=int(renumbered.max(initial=-1)) + 1,
            ci_low=intervals[name].low,
            ci_high=intervals[name].high,
            n_degenerate=intervals[name].n_degenerate,
            confidence=bootstrap.confidence,
            rounds=bootstrap.rounds,
            seed=bootstrap.seed,
            reason=intervals[name].reason,
        )
        for name, statistic in statistics.items()
    }


def _statistics(said: Detected, places: Sequence[int], counts: Counts) -> Mapping[str, Statistic]:
    return metric_statistics(
        [said.distributions[place] for place in places], counts, labels=[said.labels[place] for place in places]
    )


def _differences(one: Mapping[str, Statistic], other: Mapping[str, Statistic]) -> dict[str, Statistic]:
    def difference(name: str) -> Statistic:
        def of_both(weights: FloatArray) -> FloatArray:
            values: FloatArray = one[name](weights) - other[name](weights)
            return values

        return of_both

    return {name: difference(name) for name in one if name in other}
