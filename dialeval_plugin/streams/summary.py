"""Running summary of scores: numbers, a distribution, an interval and the worst rows, without keeping all rows."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter, defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.scorer import Scorer, count_truncated, run_signature
from dialeval_plugin.core.scores import Scores, conversation_id
from dialeval_plugin.reports.printed_scores import N_BINS, Bars, WorstRow, bar_range

if TYPE_CHECKING:
    from dialeval_plugin.statistics.bootstrap import Estimate, Interval

MOST_CLUSTERS = 10_000
"""Conversations with separate sums; further ones are added to these, so that memory and time stay bounded."""


class RunningSummary:
    """Sums over the blocks of a run.

    Args:
        scorer: scorer of the rows. If an end of its range is infinite, the first block's scores give that end of `bars`.
        n_worst: number of worst rows to keep.
    """

    def __init__(self, scorer: Scorer, n_worst: int = 0) -> None:
        self._scorer, self._n_worst = scorer, n_worst
        self.main, self.signature = scorer.columns[0], run_signature(scorer)
        self.level, self.orientation = scorer.level, scorer.orientation
        self.n_total = 0
        self._unscored: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        self.out_of_scope: Counter[str] = Counter()
        self._worst: list[tuple[float, int, WorstRow]] = []
        self.bars: Bars | None = None
        self._sums: list[float] = []
        self._n_judged: Counter[str] = Counter()
        self._sum_judged: defaultdict[str, float] = defaultdict(float)
        self._clusters: dict[bytes, int] = {}
        self._of_clusters = np.zeros((MOST_CLUSTERS, 2))

    def add(self, scores: Scores) -> None:
        """Add the next rows."""
        sign = -1 if scores.orientation == "lower" else 1
        percentiles = scores.columns.get(PERCENTILE)
        values = []
        for place, (item, value) in enumerate(zip(scores.items, scores.values, strict=True)):
            if value is not None:
                values.append(value)
                if (judge := scores.judged_by(place)) is not None:
                    self._n_judged[judge] += 1
                    self._sum_judged[judge] += value
                self._of_clusters[self._cluster(item)] += (value, 1.0)
                row = WorstRow(None if percentiles is None else percentiles[place], value, item)
                rank = sign * value if self._scorer.has_one_scale or row.percentile is None else row.percentile
                self._worst.append((rank, self.n_total + place, row))
        self._worst = heapq.nsmallest(self._n_worst, self._worst, key=itemgetter(0, 1))
        self.n_total += scores.n_total
        self._unscored += Counter(scores.unscored_by_reason)
        self.cut += count_truncated(self._scorer, scores)
        self.out_of_scope += Counter(scores.out_of_scope_by_kind)
        self._sums.append(math.fsum(values))
        shown = values if percentiles is None else [value for value in percentiles if value is not None]
        if shown and self.bars is None and (self._scorer.has_one_scale or percentiles is not None):
            low, high = bar_range(shown, (0.0, 100.0) if percentiles is not None else self._scorer.range)
            edges = np.linspace(low, high, N_BINS + 1)
            title = scores.main if percentiles is None else PERCENTILE
            self.bars = Bars(title, np.zeros(N_BINS, dtype=np.int64), edges)
        if shown and self.bars is not None:
            # Values beyond the first block's ends are counted in the bar at that end.
            kept = np.clip(shown, self.bars.edges[0], self.bars.edges[-1])
            self.bars.counts[:] += np.histogram(kept, bins=self.bars.edges)[0]

    def _cluster(self, item: Item) -> int:
        """Return the index of the sums of an item's conversation or, for a response without one, of its context."""
        said = [turn.text for turn in item.context] if isinstance(item, Example) else []
        of = conversation_id(item) or said or item.id
        key = hashlib.sha256(repr(of).encode()).digest()[:8]
        known, n = self._clusters.get(key), len(self._clusters)
        if known is None and n < MOST_CLUSTERS:
            known = self._clusters[key] = n
        return int.from_bytes(key, "big") % MOST_CLUSTERS if known is None else known

    @property
    def worst(self) -> list[WorstRow]:
        """The worst rows, the worst first; ties keep their order."""
        return [row for _, _, row in self._worst]

    @property
    def n_clusters(self) -> int:
        """Number of conversations, or contexts of responses without one, that have a score; at most `MOST_CLUSTERS`."""
        return len(self._clusters)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the mean, over conversations; without ends if there are too few."""
        from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Resampled

        mean = Resampled(lambda drawn: drawn[:, 0] / drawn[:, 1], self._of_clusters[: self.n_clusters])
        return DEFAULT_BOOTSTRAP.intervals({self.main: mean})[self.main]

    @property
    def estimate(self) -> Estimate:
        """The mean with its interval and its counts."""
        from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Counts, Estimate

        counts = Counts(self.n_total, self.n_scored, self.n_clusters, self.n_total - self.n_scored)
        interval = self.interval._asdict()
        return Estimate(name=self.main, value=self.mean(), **interval, **counts._asdict(), bootstrap=DEFAULT_BOOTSTRAP)

    @property
    def unscored_by_reason(self) -> dict[str, int]:
        """Number of rows by reason, reasons in alphabetical order."""
        return dict(sorted(self._unscored.items()))

    @property
    def n_scored(self) -> int:
        """Number of rows with a score."""
        return self.n_total - sum(self._unscored.values())

    def mean(self) -> float | None:
        """Mean of the main column; None without a score, or if the scores of several judges have no common scale."""
        return math.fsum(self._sums) / self.n_scored if self.n_scored and self._scorer.has_one_scale else None

    @property
    def judges(self) -> dict[str, dict[str, float]]:
        """Number and mean of the scores of each judge of a combined scorer, for judges with any score."""
        return {
            name: {"n_scored": self._n_judged[name], "mean": self._sum_judged[name] / self._n_judged[name]}
            for name in self._scorer.judges
            if self._n_judged[name]
        }
