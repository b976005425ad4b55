"""Bootstrap intervals that resample whole clusters, such as all responses to one context.

Rows of one cluster resemble each other, so resampling single rows would give intervals that are too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from dialeval_plugin.errors import InputError

from .checks import FloatArray, IntArray

Statistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""Takes `weights[r, i]`, how often cell i occurs in sample r; returns one value a sample, NaN where it is undefined."""

MAX_DEGENERATE = 0.1
"""Above this share of resamples on which the statistic is undefined, the others tell too little of its spread."""

MIN_CLUSTERS = 2
"""One cluster, drawn again and again, never differs from itself."""

_WEIGHTS_AT_ONCE = 2_000_000
"""Resamples are handled in chunks of at most so many weights (16 MB): time does not care, memory stays bounded."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A statistic with its interval and what it rests on; JSON-able, never NaN.

    Attributes:
        value: the statistic; None where it is undefined.
        ci_low: lower end of the interval; None where there is none.
        ci_high: upper end.
        n_total: rows handed in; every count below says what became of them.
        n_scored: rows that the value rests on.
        n_unscored: rows left out because they have no score.
        n_clusters: clusters of the scored rows.
        n_degenerate: resamples, of `rounds`, on which the statistic is undefined; the interval is made from the others.
        confidence: share of such intervals that should hold the true value.
        rounds: number of resamples.
        seed: of the generator that drew them.
        reason: why the value or the interval is None; None where both are there.
    """

    value: float | None
    ci_low: float | None
    ci_high: float | None
    n_total: int
    n_scored: int
    n_unscored: int
    n_clusters: int
    n_degenerate: int
    confidence: float
    rounds: int
    seed: int
    reason: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self)

    def _text(self) -> str:
        if self.value is None:
            return "undefined"
        if self.ci_low is None or self.ci_high is None:
            return f"{self.value:.3f} (no interval)"
        return f"{self.value:.3f} ({100 * self.confidence:g} % interval {self.ci_low:.3f} to {self.ci_high:.3f})"


class Interval(NamedTuple):
    """Ends of an interval, or the reason why there is none."""

    low: float | None
    high: float | None
    n_degenerate: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The percentile bootstrap over clusters (Efron 1979; Davison and Hinkley 1997, section 3.8).

    A round draws as many clusters as there are, with replacement, and takes all rows of each as often as it was drawn. The
    interval runs between the (1 - confidence) / 2 quantiles of the statistic over the rounds, with numpy's linear
    interpolation. With few clusters, say below 20, such intervals are too narrow.

    Degenerate resamples, on which the statistic is undefined, are counted and left out. There is no interval with
    `rounds=0`, with fewer than two clusters, where more than 10 % of the resamples are degenerate, and where all resamples
    give the same value, as with 20 right answers of 20: zero width would claim certainty.

    Seed: starts one numpy Generator; a seed gives the same resamples in every process, whatever statistics are asked for.

    Raises:
        InputError: an argument is out of its range.
    """

    rounds: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("rounds", self.rounds), ("seed", self.seed)):
            if not isinstance(value, int) or value < 0:
                raise InputError(f"bootstrap: {name} is {value!r}. Give an integer that is 0 or more.")
        if not 0 < self.confidence < 1:
            raise InputError(f"bootstrap: confidence is {self.confidence!r}. Give a number between 0 and 1, such as 0.95.")

    def intervals(self, statistics: Mapping[str, Statistic], cells: IntArray, clusters: IntArray) -> dict[str, Interval]:
        """Return one interval a statistic, all from the same resamples.

        Args:
            statistics: by name; each takes one weight a cell.
            cells: for each row, the number of its cell. Rows that no statistic tells apart share one, which saves time.
            clusters: for each row, the number of its cluster.

        Example:
            >>> def mean(weights):
            ...     return weights @ np.array([0.0, 1.0]) / weights.sum(axis=1)
            >>> answers = np.array([0, 1] * 50)
            >>> Bootstrap(rounds=200).intervals({"accuracy": mean}, answers, np.arange(100))["accuracy"].n_degenerate
            0
        """
        n_clusters = int(clusters.max(initial=-1)) + 1
        if not self.rounds:
            return {name: _no_interval(name, "rounds is 0", "Ask for 1000 rounds.") for name in statistics}
        if n_clusters < MIN_CLUSTERS:
            why = f"{n_clusters} cluster, at least {MIN_CLUSTERS} are needed"
            return {name: _no_interval(name, why, "Score more contexts.") for name in statistics}
        values = {name: np.empty(self.rounds) for name in statistics}
        rows_by_cell = sparse.csr_array((np.ones(len(cells)), (clusters, cells)))
        generator = np.random.default_rng(self.seed)
        chunk = max(1, _WEIGHTS_AT_ONCE // max(rows_by_cell.shape))
        for start in range(0, self.rounds, chunk):
            drawn = draw_clusters(n_clusters, min(chunk, self.rounds - start), generator)
            weights = np.ascontiguousarray(drawn @ rows_by_cell)
            for name, statistic in statistics.items():
                values[name][start : start + chunk] = statistic(weights)
        return {name: percentile_interval(name, values[name], self.confidence) for name in statistics}


def draw_clusters(n_clusters: int, rounds: int, generator: np.random.Generator) -> FloatArray:
    """Return how often each cluster is drawn in each round, when `n_clusters` are drawn with replacement.

    Drawn round by round, so that the numbers do not depend on how many rounds are asked for at once.

    Example:
        >>> draw_clusters(4, 2, np.random.default_rng(0)).sum(axis=1)
        array([4., 4.])
    """
    drawn = np.empty((rounds, n_clusters))
    for row in drawn:
        row[:] = np.bincount(generator.integers(n_clusters, size=n_clusters), minlength=n_clusters)
    return drawn


def percentile_interval(name: str, values: FloatArray, confidence: float) -> Interval:
    """Return the central interval of a statistic's `values` on resamples, NaN where it is undefined.

    Example:
        >>> percentile_interval("mean", np.arange(101.0), confidence=0.5)
        Interval(low=25.0, high=75.0, n_degenerate=0, reason=None)
    """
    defined = values[~np.isnan(values)]
    n_degenerate = len(values) - len(defined)
    if n_degenerate > MAX_DEGENERATE * len(values):
        why = f"undefined on {n_degenerate} of {len(values)} resamples, more than {100 * MAX_DEGENERATE:g} %"
    elif np.ptp(defined) <= 1e-12 * np.abs(defined).max():
        why = "the same on all resamples, which tells nothing of its spread"
    else:
        low, high = np.quantile(defined, [(1 - confidence) / 2, (1 + confidence) / 2])
        return Interval(float(low), float(high), n_degenerate, None)
    return _no_interval(name, why, "Score and rate more examples.", n_degenerate)


def _no_interval(name: str, why: str, advice: str, n_degenerate: int = 0) -> Interval:
    return Interval(None, None, n_degenerate, f"{name}: {why}, so there is no interval. {advice}")
