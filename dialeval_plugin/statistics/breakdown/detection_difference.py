"""Whether two breakdown detectors differ: the difference of each of DBDC's metrics, with a paired interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate, Statistic
from dialeval_plugin.statistics.canonical import canonical, symmetric
from dialeval_plugin.statistics.checks import BoolArray, FloatArray, IntArray, Labels, same_length, used_codes

from .detection import Counts, Distributions, checked_counts, checked_distributions, checked_labels, metric_statistics

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
        >>> from dialeval_plugin.statistics.breakdown.detection import detections
        >>> good, bad = detections([0.9, 0.1, 0.8]), detections([0.1, 0.9, 0.8])
        >>> counts = [[0, 0, 9], [9, 0, 0], [1, 0, 8]]
        >>> found = breakdown_differences(Detected(*good), Detected(*bad), counts, bootstrap=Bootstrap(rounds=0))
        >>> round(found["accuracy"].value, 3)
        0.667
    """
    same_length("breakdown_differences", one=one.distributions, other=other.distributions, counts=counts)
    annotations = checked_counts(counts)
    one_said, other_said = _Said.of(one), _Said.of(other)
    both = one_said.is_scored & other_said.is_scored & (annotations.sum(axis=1) > 0)
    if not both.any():
        raise InputError("breakdown_differences: no annotated turn has an answer of both. Score annotated turns.")
    used = np.flatnonzero(both)
    content = symmetric((said.columns(used) for said in (one_said, other_said)), list(annotations[used].T))
    order, codes = canonical(content, used_codes("breakdown_differences", clusters, used, len(both)))
    rows = used[order]
    statistics = _differences(*(said.statistics(rows, annotations[rows]) for said in (one_said, other_said)))
    whole = np.ones((1, len(rows)))
    intervals = bootstrap.intervals(statistics, np.arange(len(rows)), codes)
    return {
        name: BreakdownDifference(
            metric=name,
            value=float(statistic(whole)[0]),
            n_total=len(both),
            n_scored=len(rows),
            n_unscored=len(both) - len(rows),
            n_clusters=int(codes.max(initial=-1)) + 1,
            **bootstrap.fields(intervals[name]),
        )
        for name, statistic in statistics.items()
    }


class _Said(NamedTuple):
    """What a detector said of all turns, checked."""

    distributions: FloatArray
    labels: IntArray
    is_scored: BoolArray

    @classmethod
    def of(cls, said: Detected) -> _Said:
        distributions, is_scored = checked_distributions(said.distributions)
        return cls(distributions, checked_labels(said.labels, is_scored), is_scored)

    def columns(self, rows: IntArray) -> list[FloatArray | IntArray]:
        return [*self.distributions[rows].T, self.labels[rows]]

    def statistics(self, rows: IntArray, counts: IntArray) -> Mapping[str, Statistic]:
        return metric_statistics(self.distributions[rows], counts, labels=self.labels[rows].tolist())


def _differences(one: Mapping[str, Statistic], other: Mapping[str, Statistic]) -> dict[str, Statistic]:
    def difference(name: str) -> Statistic:
        def of_both(weights: FloatArray) -> FloatArray:
            values: FloatArray = one[name](weights) - other[name](weights)
            return values

        return of_both

    return {name: difference(name) for name in one if name in other}
