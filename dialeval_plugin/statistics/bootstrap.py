"""Bootstrap intervals that resample whole clusters, because single rows of a cluster are not independent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse, special

from dialeval_plugin.core.arrays import FloatArray, IntArray, Statistic
from dialeval_plugin.core.errors import InputError, unknown_name

from .estimates import interval_text

IntervalKind: TypeAlias = Literal["percentile", "expanded", "bca", "jackknife"]
INTERVAL_KINDS: tuple[IntervalKind, ...] = ("percentile", "expanded", "bca", "jackknife")
ClusterSums: TypeAlias = Any
"""Addends of each cluster to each sum used by a statistic, `sums[cluster, k]`: a dense or sparse array."""

MAX_DEGENERATE = 0.1
"""Largest share of degenerate resamples that permits an interval."""

MIN_CLUSTERS = 10
"""Smallest number of clusters for an interval: resamples of a few dialogues say little about others."""

ROUGH_CLUSTERS = 30
"""Number of clusters below which an interval is rough, that is, too narrow; see `Bootstrap`."""

UNIFORM = "the same on all resamples, which tells nothing of its spread"
"""Reason for a missing interval if all clusters have equal values."""

MAX_JACKKNIFE = 1000
"""Largest number of clusters left out one by one for the acceleration of BCa; with more, that many groups of clusters."""

_WEIGHTS_AT_ONCE = 2_000_000
"""Largest number of weights in a chunk of resamples (16 MB), which bounds the memory."""

_DRAWN_AHEAD = 100_000
"""Number of clusters above which a thread draws one chunk ahead, because drawing takes as long as the statistics."""


class Resampled(NamedTuple):
    """Statistic of sums over the drawn clusters."""

    statistic: Statistic
    """Function of `sums[r, k]` for each resample r."""
    sums: ClusterSums
    shift: float = 0.0
    """Added to every value: the difference on the whole data from the statistic that this one approximates."""
    bins: tuple[int, int] | None = None
    """Numbers of bins of scores and ratings, if it uses fewer levels than the data have."""
    limit: float | None = None
    """Highest value, for a statistic that the noise of resamples lowers: its interval is moved by the value less their mean."""
    range: tuple[float, float] | None = None
    """Lowest and highest value, for a coefficient of systems' means, which the noise of resamples brings nearer to chance: its
    interval is widened by the value less their mean."""

    @property
    def whole(self) -> FloatArray:
        """Sums over all clusters, shape (1, sums)."""
        return np.asarray(self.sums.sum(axis=0), dtype=np.float64).reshape(1, -1)

    @property
    def value(self) -> float:
        """Statistic on the whole data."""
        return float(self.statistic(self.whole)[0]) + self.shift

    def at_least(self, low: float) -> Resampled:
        """Return this statistic, or `low` where it is lower."""
        return self._replace(statistic=lambda drawn: np.maximum(self.statistic(drawn), low - self.shift))

    def __sub__(self, other: Resampled) -> Resampled:
        """Return this statistic minus the other one on the same draws of clusters."""
        if self.sums is other.sums:
            return self._replace(
                statistic=lambda drawn: self.statistic(drawn) - other.statistic(drawn), shift=self.shift - other.shift
            )
        both = (self.range[0] - other.range[1], self.range[1] - other.range[0]) if self.range and other.range else None
        width = self.sums.shape[1]
        sums = sparse.hstack([sparse.csr_array(self.sums), sparse.csr_array(other.sums)], format="csr")

        def statistic(drawn: FloatArray) -> FloatArray:
            return self.statistic(drawn[:, :width]) - other.statistic(drawn[:, width:])

        return Resampled(statistic, sums, self.shift - other.shift, limit=self.limit, range=both)


Computed: TypeAlias = Resampled | tuple[float, Resampled] | str
"""Statistic, with its value on the whole data where the resampled one approximates it; or the reason why it is undefined."""


def defined(resampled: Resampled, reason: str) -> Computed:
    """Return a statistic, or the reason if it is undefined on the whole data."""
    return reason if math.isnan(resampled.value) else resampled


def ratio_of_sums(sums: ClusterSums, top: int = 0, bottom: int = 1) -> Resampled:
    """Return one column of sums divided by another, such as a mean; NaN (degenerate) where nothing is drawn that counts."""

    @np.errstate(invalid="ignore")
    def ratio(drawn: FloatArray) -> FloatArray:
        return np.asarray(drawn[:, top] / drawn[:, bottom])

    return Resampled(ratio, sums)


class Counts(NamedTuple):
    """Numbers of rows and clusters."""

    n_total: int
    n_scored: int
    n_clusters: int
    n_unscored: int
    n_unrated: int = 0


@dataclass(frozen=True, slots=True)
class Bootstrap:
    r"""Bootstrap over clusters (Efron 1979; Davison and Hinkley 1997, section 3.8).

    Each round draws as many clusters as there are, with replacement, and repeats all rows of a cluster as often as it was
    drawn. Quantiles are numpy's, with linear interpolation. `rows.canonical` numbers the clusters by content, so that the same
    data give the same interval.

    With few clusters the intervals are too narrow: below `MIN_CLUSTERS` there is none, below `ROUGH_CLUSTERS` it `is_rough`. In
    a simulation (1000 data sets, clusters of four rows that share half of their variance, Pearson's r of 0.5, percentile), 95 %
    intervals contained the true value in 90.7, 91.4, 92.2 and 93.1 % of the sets with 10, 20, 29 and 60 clusters.

    - "percentile": between the (1 - confidence) / 2 quantiles of the statistic over the rounds.
    - "expanded" (Hesterberg 2015), the default: between the quantiles $\Phi(\pm t\sqrt{n/(n-1)})$ for n clusters, where t is
      Student's quantile with n - 1 degrees of freedom. 95 % intervals contain the true value in 93 to 96 % of sets with 20 or
      more clusters, see reproduction/coverage/NOTES.md.
    - "bca" (Efron 1987): these quantiles move to $\Phi(z_0 + (z_0 + z)/(1 - a(z_0 + z)))$, where $\Phi(z_0)$ is the share of
      rounds below the value, ties counting one half, and $a = \sum d^3 / (6 (\sum d^2)^{3/2})$ is from the jackknife over
      clusters, or over `MAX_JACKKNIFE` random groups of them, with d the mean minus each value.
    - "jackknife": no resamples; the value plus and minus the standard error of `jackknife_error` times a quantile of Student's
      t with n - 1 degrees of freedom.

    Degenerate resamples, on which the statistic is undefined, are counted and left out. There is no interval with `rounds=0`,
    if more than `MAX_DEGENERATE` of the resamples are degenerate, if all resamples give the same value (zero width would claim
    certainty), if the value is outside it, or for "bca" if all resamples are on one side of the value.

    The seed starts one numpy Generator, so every process draws the same resamples. InputError: an argument is out of range.
    """

    rounds: int = 1000
    confidence: float = 0.95
    seed: int = 0
    interval: IntervalKind = "expanded"

    def __post_init__(self) -> None:
        for name, value in (("rounds", self.rounds), ("seed", self.seed)):
            if not isinstance(value, int) or value < 0:
                raise InputError(f"bootstrap: {name} is {value!r}. Give an integer that is 0 or more.")
        if not 0 < self.confidence < 1:
            raise InputError(f"bootstrap: confidence is {self.confidence!r}. Give a number between 0 and 1, such as 0.95.")
        if self.interval not in INTERVAL_KINDS:
            raise unknown_name(f"bootstrap: there is no interval {self.interval!r}", self.interval, INTERVAL_KINDS)

    def estimates(self, computed: Mapping[str, Computed], counts: Counts) -> dict[str, Estimate]:
        """Return statistics by name with their intervals, all from the same resamples."""
        known = {name: one for name, one in computed.items() if not isinstance(one, str)}
        resampled = {name: one if isinstance(one, Resampled) else one[1] for name, one in known.items()}
        intervals = self.intervals(resampled)
        estimates = {}
        for name, one in computed.items():
            if isinstance(one, str):
                estimates[name] = self.estimate(name, None, Interval(reason=one), counts)
            else:
                value = one.value if isinstance(one, Resampled) else float(one[0])
                estimates[name] = self.estimate(name, value, intervals[name], counts)
        return estimates

    def estimate(self, name: str, value: float | None, interval: Interval, counts: Counts) -> Estimate:
        """Return a statistic with its interval."""
        return Estimate(name=name, value=value, **interval._asdict(), **counts._asdict(), bootstrap=self)

    def intervals(self, resampled: Mapping[str, Resampled]) -> dict[str, Interval]:
        """Return one interval per statistic, all from the same resamples; the statistics need the same clusters."""
        values = self.on_resamples(resampled)
        return {name: self.interval_on_resamples(name, values[name], entry) for name, entry in resampled.items()}

    def on_resamples(self, resampled: Mapping[str, Resampled]) -> dict[str, FloatArray]:
        """Return the values of each statistic on the same resamples, NaN if undefined; none if there will be no interval."""
        n_clusters = max((entry.sums.shape[0] for entry in resampled.values()), default=0)
        if n_clusters < MIN_CLUSTERS or self.interval == "jackknife":
            return {name: np.empty(0) for name in resampled}
        values = {name: np.empty(self.rounds) for name in resampled}
        widest = max(n for entry in resampled.values() for n in entry.sums.shape)
        for rounds, drawn in self._draws(n_clusters, max(1, _WEIGHTS_AT_ONCE // widest)):
            sums, drawn_sums = None, np.empty(0)
            for name, entry in resampled.items():
                # Consecutive statistics with the same sums share the product.
                if entry.sums is not sums:
                    sums, drawn_sums = entry.sums, np.ascontiguousarray(drawn @ entry.sums)
                values[name][rounds] = entry.statistic(drawn_sums) + entry.shift
        return values

    def interval_on_resamples(self, name: str, values: FloatArray, entry: Resampled) -> Interval:
        """Return the interval from a statistic's values `on_resamples`; with few clusters it is rough or missing."""
        n_clusters = entry.sums.shape[0]
        if self.interval == "jackknife":
            return self.around(name, entry.value, jackknife_error(entry), n_clusters)
        if not self.rounds:
            return _no_interval(name, "rounds is 0", "Ask for 1000 rounds.")
        if n_clusters < MIN_CLUSTERS:
            return Interval(reason=too_few_clusters(name, n_clusters))
        interval, slack = self.interval_of(name, values, entry), 1e-9 * max(1, abs(entry.value))
        low, high = interval[:2]
        if low is not None and high is not None and not low - slack <= entry.value <= high + slack:
            why = "the value lies outside the interval of its resamples"
            return _no_interval(name, why, "Score and rate more examples.", interval.n_degenerate)
        return interval._replace(is_rough=n_clusters < ROUGH_CLUSTERS and interval.ci_low is not None)

    def interval_of(self, name: str, values: FloatArray, entry: Resampled) -> Interval:
        """Return the interval from a statistic's `values` on resamples, NaN where it is undefined."""
        defined = values[~np.isnan(values)]
        n_degenerate = len(values) - len(defined)
        advice = "Score and rate more examples."
        if n_degenerate > MAX_DEGENERATE * len(values):
            why = f"undefined on {n_degenerate} of {len(values)} resamples, more than {100 * MAX_DEGENERATE:g} %"
            return _no_interval(name, why, advice, n_degenerate)
        if np.ptp(defined) <= 1e-12 * np.abs(defined).max():
            return _no_interval(name, UNIFORM, advice, n_degenerate)
        ends, value = self.ends(entry.sums.shape[0]), entry.value
        if self.interval == "bca":
            share = float(((defined < value).sum() + (defined <= value).sum()) / (2 * len(defined)))
            if not 0 < share < 1:
                why = "all resamples lie on one side of the value"
                return _no_interval(name, why, "Ask for the percentile interval.", n_degenerate)
            bias = special.ndtri(share)
            moved = bias + special.ndtri(ends)
            ends = special.ndtr(bias + moved / (1 - _acceleration(entry, self.seed) * moved))
        low, high = np.quantile(defined, ends)
        move = value - defined.mean()
        if entry.limit is not None and self.interval != "bca":
            low, high = np.minimum(np.array([low, high]) + move, entry.limit)
        if entry.range is not None and self.interval != "bca":
            low, high = np.clip([low + min(move, 0), high + max(move, 0)], *entry.range)
        return Interval(float(low), float(high), n_degenerate)

    def ends(self, n_clusters: int) -> FloatArray:
        """Return the quantiles at the ends of an interval, before BCa moves them."""
        ends = np.array([(1 - self.confidence) / 2, (1 + self.confidence) / 2])
        if self.interval == "expanded":
            ends = special.ndtr(np.sqrt(n_clusters / (n_clusters - 1)) * special.stdtrit(n_clusters - 1, ends))
        return np.asarray(ends)

    def quantile(self, n_clusters: int) -> float:
        """Return the number of standard errors between the value and each end of an interval."""
        return float(special.stdtrit(n_clusters - 1, (1 + self.confidence) / 2))

    def around(self, name: str, value: float, error: float, n_clusters: int) -> Interval:
        """Return the interval around a value with a standard error; with few clusters it is rough or missing."""
        if n_clusters < MIN_CLUSTERS:
            return Interval(reason=too_few_clusters(name, n_clusters))
        if np.isnan(error):
            return _no_interval(name, "undefined without one of the clusters", "Score and rate more examples.")
        if error <= 1e-12 * abs(value):
            return _no_interval(name, UNIFORM, "Score and rate more examples.")
        half = self.quantile(n_clusters) * error
        return Interval(value - half, value + half, is_rough=n_clusters < ROUGH_CLUSTERS)

    def log_scale_interval(self, name: str, entry: Resampled, offset: float = 0.0) -> Interval:
        """Return the interval of a positive statistic, from the jackknife on a logarithmic scale.

        It is that of the logarithm of the statistic plus `offset`, with Student's t, less the offset; the lowest end is 0. A
        mean square is about log-normal (Bartlett and Kendall 1946); a variance component is one, less that of its error.
        Simple quantiles of 30 clusters end too low.
        """
        n_clusters, deviation = entry.sums.shape[0], jackknife_error(entry)
        interval = self.around(name, entry.value, deviation, n_clusters)
        whole = entry.value + offset
        if interval.ci_low is None or whole <= 0:
            return interval
        factor = float(np.exp(self.quantile(n_clusters) * deviation / whole))
        return interval._replace(ci_low=max(0.0, whole / factor - offset), ci_high=max(0.0, whole * factor - offset))

    def _draws(self, n_clusters: int, at_once: int) -> Iterator[tuple[slice, FloatArray]]:
        generator = np.random.default_rng(self.seed)
        chunks = [slice(start, min(start + at_once, self.rounds)) for start in range(0, self.rounds, at_once)]
        if n_clusters <= _DRAWN_AHEAD or not chunks:
            yield from ((chunk, draw_clusters(n_clusters, chunk.stop - chunk.start, generator)) for chunk in chunks)
            return
        with ThreadPoolExecutor(max_workers=1) as drawing:
            ahead = drawing.submit(draw_clusters, n_clusters, chunks[0].stop, generator)
            for i, chunk in enumerate(chunks):
                drawn = ahead.result()
                if following := chunks[i + 1 : i + 2]:
                    ahead = drawing.submit(draw_clusters, n_clusters, following[0].stop - following[0].start, generator)
                yield chunk, drawn


DEFAULT_BOOTSTRAP = Bootstrap()
NO_RESAMPLES = Bootstrap(rounds=0)
"""Settings for a value without an interval."""


class Interval(NamedTuple):
    """Ends of an interval, or the reason why there is none; the fields are those of `Estimate`."""

    ci_low: float | None = None
    ci_high: float | None = None
    n_degenerate: int = 0
    reason: str | None = None
    is_rough: bool = False


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Statistic with its interval and counts; JSON-able, never NaN.

    Attributes:
        value: None if undefined.
        ci_low: None without an interval.
        n_total: number of input rows, `n_scored + n_unscored + n_unrated`.
        n_scored: rows used for the value.
        n_unscored: rows left out because they have no score.
        n_unrated: rows left out because they have no rating, with or without a score.
        n_clusters: clusters of the scored rows.
        n_degenerate: resamples on which the statistic is undefined, left out of the interval.
        reason: why the value or the interval is None; None if both exist.
        is_rough: whether the interval is based on fewer than `ROUGH_CLUSTERS` clusters; False without an interval.
    """

    name: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    n_total: int
    n_scored: int
    n_unscored: int
    n_unrated: int
    n_clusters: int
    n_degenerate: int
    reason: str | None
    is_rough: bool
    bootstrap: Bootstrap

    @property
    def coverage(self) -> float | None:
        """Share of the rated rows that have a score; None without rated rows."""
        n_rated = self.n_scored + self.n_unscored
        return self.n_scored / n_rated if n_rated else None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object."""
        return asdict(self)

    def text(self, decimals: int = 3) -> str:
        """Return "value [low, high]"."""
        return interval_text(self.value, self.ci_low, self.ci_high, decimals, is_rough=self.is_rough)

    def __str__(self) -> str:
        n_rated = self.n_scored + self.n_unscored
        return f"{self.name} {self.text()}, {self.n_scored} of {n_rated} rows scored, {self.n_clusters} clusters"


def too_few_clusters(name: str, n_clusters: int) -> str:
    """Return the reason why a statistic of few clusters has no interval."""
    why = f"an interval needs {MIN_CLUSTERS} clusters (dialogues), here are {n_clusters}"
    return str(_no_interval(name, why, "Score and rate more dialogues.").reason)


def rows_by_cell(cells: IntArray, clusters: IntArray) -> ClusterSums:
    """Return the number of rows of each cell in each cluster."""
    counts = sparse.coo_array((np.ones(len(cells)), (clusters, cells))).tocsr()
    counts.sum_duplicates()
    return counts


def draw_clusters(n_clusters: int, rounds: int, generator: np.random.Generator) -> FloatArray:
    """Return the number of draws of each cluster in each round, with replacement; it does not depend on `rounds`."""
    drawn = np.empty((rounds, n_clusters))
    for row in drawn:
        row[:] = np.bincount(generator.integers(n_clusters, size=n_clusters), minlength=n_clusters)
    return drawn


@np.errstate(invalid="ignore")
def jackknife_error(resampled: Resampled) -> float:
    """Return the jackknife standard error of a statistic; NaN if it is undefined without one of the clusters."""
    n_clusters = resampled.sums.shape[0]
    values = _left_out(resampled, resampled.sums)
    return float(np.sqrt((n_clusters - 1) / n_clusters * ((values - values.mean()) ** 2).sum()))


def fieller_ends(numerator: Resampled, denominator: Resampled, quantile: float) -> tuple[float, float] | None:
    r"""Return the ends of Fieller's (1954) interval of a ratio of two statistics of the same sums.

    It contains the ratios r for which the difference N - r D is less than `quantile` of its jackknife standard errors over
    clusters. None if the denominator's interval contains 0, as then any ratio is possible.
    """
    n_clusters = numerator.sums.shape[0]
    left = np.stack([_left_out(one, one.sums) for one in (numerator, denominator)])
    spread = (
        quantile**2 * (n_clusters - 1) / n_clusters * (deviations := left - left.mean(axis=1, keepdims=True)) @ deviations.T
    )
    n, d = numerator.value, denominator.value
    # The ends are the roots of a r^2 - 2 b r + c.
    a, b, c = d**2 - spread[1, 1], n * d - spread[0, 1], n**2 - spread[0, 0]
    if not a > 0:
        return None
    half = float(np.sqrt(max(b**2 - a * c, 0.0)))
    return float(b - half) / float(a), float(b + half) / float(a)


def jackknife_values(resampled: Resampled, seed: int) -> FloatArray:
    """Return the defined values of the statistic without each cluster, or each of `MAX_JACKKNIFE` random groups."""
    n_clusters = resampled.sums.shape[0]
    n_groups = min(n_clusters, MAX_JACKKNIFE)
    # Clusters are ordered by content, so groups of neighbours would differ too much.
    group_of = np.random.default_rng(seed).permutation(n_clusters) * n_groups // n_clusters
    groups = sparse.csr_array((np.ones(n_clusters), (group_of, np.arange(n_clusters)))) @ resampled.sums
    values = _left_out(resampled, groups)
    return values[~np.isnan(values)]


def _left_out(resampled: Resampled, groups: ClusterSums) -> FloatArray:
    whole = resampled.whole
    at_once = max(1, _WEIGHTS_AT_ONCE // whole.shape[1])
    parts = []
    for start in range(0, groups.shape[0], at_once):
        some = groups[start : start + at_once]
        parts.append(resampled.statistic(whole - (some.toarray() if sparse.issparse(some) else some)))
    return np.concatenate(parts)


def _acceleration(resampled: Resampled, seed: int) -> float:
    values = jackknife_values(resampled, seed)
    deviations = values.mean() - values if len(values) else values
    squares = float((deviations**2).sum())
    return float((deviations**3).sum() / (6 * squares**1.5)) if squares > 0 else 0.0


def _no_interval(name: str, why: str, advice: str, n_degenerate: int = 0) -> Interval:
    return Interval(n_degenerate=n_degenerate, reason=f"{name}: {why}, so there is no interval. {advice}")
