"""What is said of a stream's scores, kept while they pass: numbers, a distribution and the worst, never the rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.scorer import Scorer, run_signature
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.reports.printed_scores import N_BINS, Bars, WorstRow, bar_range, worst_places


class _Worst(NamedTuple):
    """A row in the order of badness: sorted by its signed score, then by its place."""

    signed: float
    place: int
    row: WorstRow


class RunningSummary:
    """Sums over the blocks of a stream.

    Args:
        scorer: whose scores they are. Where an end of its range is infinite, that of the first block's scores stands for it in
            `bars`.
        n_worst: so many of the worst rows are kept.
    """

    def __init__(self, scorer: Scorer, n_worst: int = 0) -> None:
        self._range, self._n_worst = scorer.range, n_worst
        self.main, self.signature = scorer.columns[0], run_signature(scorer)
        self.level, self.orientation = scorer.level, scorer.orientation
        self.n_total = 0
        self._unscored: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        self.worst: list[_Worst] = []
        self.bars: Bars | None = None
        self._sums: list[float] = []

    def add(self, scores: Scores, items: Sequence[Item], cut: Counter[str]) -> None:
        """Count a block; `cut` is what `n_cut` says of it."""
        values = [value for value in scores.values if value is not None]
        sign = -1 if scores.orientation == "lower" else 1
        percentiles = scores.columns.get(PERCENTILE)
        for place in worst_places(scores, self._n_worst):
            value = scores.values[place]
            if value is not None:
                row = WorstRow(None if percentiles is None else percentiles[place], value, items[place])
                self.worst.append(_Worst(sign * value, self.n_total + place, row))
        self.worst = sorted(self.worst, key=lambda one: one[:2])[: self._n_worst]
        self.n_total += scores.n_total
        self._unscored += Counter(scores.unscored_by_reason)
        self.cut += cut
        self._sums.append(math.fsum(values))
        shown = values if percentiles is None else [value for value in percentiles if value is not None]
        if shown and self.bars is None:
            low, high = bar_range(shown, (0.0, 100.0) if percentiles is not None else self._range)
            edges = np.linspace(low, high, N_BINS + 1)
            title = scores.main if percentiles is None else PERCENTILE
            self.bars = Bars(title, np.zeros(N_BINS, dtype=np.int64), edges)
        if shown and self.bars is not None:
            # What later blocks have beyond the ends of the first is counted in the bar at that end.
            kept = np.clip(shown, self.bars.edges[0], self.bars.edges[-1])
            self.bars.counts[:] += np.histogram(kept, bins=self.bars.edges)[0]

    @property
    def unscored_by_reason(self) -> dict[str, int]:
        """Reason to number of rows, reasons in alphabetical order."""
        return dict(sorted(self._unscored.items()))

    @property
    def n_unscored(self) -> int:
        """Rows without a score."""
        return sum(self._unscored.values())

    @property
    def n_scored(self) -> int:
        """Rows with one."""
        return self.n_total - self.n_unscored

    def mean(self) -> float | None:
        """Of the main column; None without a score."""
        return math.fsum(self._sums) / self.n_scored if self.n_scored else None
