"""A judge's scores of all rows and labels of some: sums by cluster and stratum, rows to label next, a test of randomness."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import BoolArray, FloatArray, IntArray, Labels, OptionalNumbers
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Resampled
from dialeval_plugin.statistics.rows import cluster_codes, same_length

MOST_VALUES = 7
"""Largest number of distinct scores with one stratum each; with more, each stratum has a fifth of all rows."""
N_STRATA = 5


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A judge's scores of all rows, and human labels of some.

    Attributes:
        scores: shape (rows,), finite.
        labels: shape (rows,): human label of a row, the mean of several raters; NaN without a label.
        clusters: number of each row's conversation, from 0 without gaps.
        strata: number of each row's stratum, from 0 without gaps.
        is_rate: whether labels are shares of "pass", in [0, 1].
        is_by_score: whether the strata are those of `score_strata`, within which labels are a random sample.
        cluster_names: names of the conversations, which may have rows in another sample too.
        n_unscored: rows left out because the judge gave no score; n_unscored_labels: labelled ones among them.
    """

    scores: FloatArray
    labels: FloatArray
    clusters: IntArray
    strata: IntArray
    is_rate: bool
    is_by_score: bool = False
    cluster_names: Sequence[Hashable] = ()
    n_unscored: int = 0
    n_unscored_labels: int = 0

    @classmethod
    def of(
        cls,
        scores: OptionalNumbers,
        labels: OptionalNumbers,
        *,
        clusters: Labels | None = None,
        strata: Labels | None = None,
        is_rate: bool,
        is_by_score: bool = False,
    ) -> Sample:
        """Return the sample of columns of equal length, where None and NaN stand for a missing score or label.

        Rows without a score are left out. `strata` divide the rows, such as by system; `is_by_score` divides them by scores,
        and merges neighbouring strata with fewer than two labelled conversations.

        Raises:
            InputError: lengths differ, no row has a label and a score, a rate is not in [0, 1], or a stratum has fewer than two
                labelled conversations.
        """
        where = "estimate"
        same_length(where, scores=scores, labels=labels, clusters=clusters, strata=strata)
        score, label = (np.asarray(column, dtype=np.float64) for column in (scores, labels))
        scored = np.flatnonzero(~np.isnan(score))
        codes = cluster_codes(where, cluster_codes(where, clusters, len(score))[scored], len(scored))
        first = scored[np.unique(codes, return_index=True)[1]]
        n_unscored_labels = int((~np.isnan(label)).sum() - (~np.isnan(label[scored])).sum())
        n_unscored, score, label = len(score) - len(scored), score[scored], label[scored]
        if np.isnan(label).all():
            raise InputError(f"{where}: none of {len(score)} scored rows has a label. Label some of them.")
        if is_rate and (np.nanmin(label) < 0 or np.nanmax(label) > 1):
            raise InputError(f"{where}: labels of pass and fail are not from 0 to 1. Give 1 for pass and 0 for fail.")
        names = None if strata is None else [str(strata[row]) for row in scored.tolist()]
        of_rows = np.zeros(len(scored), dtype=np.int64) if names is None else cluster_codes(where, names, len(scored))
        if is_by_score:
            of_rows = _joined(score_strata(score), codes, ~np.isnan(label))
        sample = cls(
            scores=score,
            labels=label,
            clusters=codes,
            strata=of_rows,
            is_rate=is_rate,
            is_by_score=is_by_score,
            cluster_names=[row if clusters is None else clusters[row] for row in first.tolist()],
            n_unscored=n_unscored,
            n_unscored_labels=n_unscored_labels,
        )
        for stratum, n_clusters in enumerate(_labelled_clusters(of_rows, codes, sample.is_labelled)):
            if names is not None and n_clusters < 2:
                name = names[list(of_rows).index(stratum)]
                raise InputError(
                    f"{where}: stratum {name!r} has labels of {n_clusters} conversation{'s' * int(n_clusters != 1)}. "
                    "Label two at least, or leave out the strata."
                )
        return sample

    @cached_property
    def is_labelled(self) -> BoolArray:
        """Whether each row has a label, shape (rows,)."""
        return ~np.isnan(self.labels)

    @cached_property
    def n_labels(self) -> int:
        """Number of labelled rows."""
        return int(self.is_labelled.sum())

    @cached_property
    def n_labelled_clusters(self) -> int:
        """Number of conversations with a label, which determines the interval."""
        return len(np.unique(self.clusters[self.is_labelled]))

    @property
    def n_strata(self) -> int:
        """Number of strata."""
        return int(self.strata.max()) + 1

    @property
    def centre(self) -> float:
        """Mean score, subtracted in the `Sums` because squares of 1000.1 and 1000.2 would lose precision."""
        return float(self.scores.mean())

    @cached_property
    def sums(self) -> FloatArray:
        """Addends of each cluster to the `Sums`, stratum by stratum, shape (clusters, strata times sums)."""
        n_clusters, n_strata = int(self.clusters.max()) + 1, self.n_strata
        labelled = np.flatnonzero(self.is_labelled)
        score, label = self.scores - self.centre, self.labels[labelled]
        some, place = score[labelled], self.clusters * n_strata + self.strata

        def total(values: FloatArray | None, at: IntArray) -> FloatArray:
            return np.bincount(at, weights=values, minlength=n_clusters * n_strata).astype(np.float64)

        of_labelled = [total(values, place[labelled]) for values in (None, label, label**2, some, some * label)]
        of_all = [total(values, place) for values in (None, score, score**2)]
        return np.stack([*of_labelled, *of_all], axis=1).reshape(n_clusters, -1)

    def resampled(self, statistic: Callable[[Sums], FloatArray]) -> Resampled:
        """Return a statistic of these sums."""

        # Without the only labels of a stratum, 0 / 0 is NaN, which marks the statistic as undefined.
        @np.errstate(invalid="ignore", divide="ignore")
        def of_columns(drawn: FloatArray) -> FloatArray:
            return statistic(Sums.of(drawn))

        return Resampled(of_columns, self.sums)


class Sums(NamedTuple):
    """Sums over the drawn clusters, each of shape (draws, strata): of labelled rows, then of all rows."""

    n: FloatArray
    labels: FloatArray
    label_squares: FloatArray
    scores: FloatArray
    products: FloatArray
    n_all: FloatArray
    scores_all: FloatArray
    score_squares_all: FloatArray

    @classmethod
    def of(cls, drawn: FloatArray) -> Sums:
        """Return the columns of `Sample.sums` by name."""
        return cls(*np.moveaxis(drawn.reshape(len(drawn), -1, len(cls._fields)), 2, 0))


def score_strata(scores: FloatArray) -> IntArray:
    """Return the number of each row's stratum: rows with equal scores, or fifths of all rows if there are many scores."""
    values, codes = np.unique(scores, return_inverse=True)
    if len(values) > MOST_VALUES:
        edges = np.unique(np.quantile(scores, np.arange(1, N_STRATA) / N_STRATA, method="inverted_cdf"))
        codes = np.unique(np.searchsorted(edges, scores), return_inverse=True)[1]
    return codes.reshape(-1).astype(np.int64)


def _labelled_clusters(strata: IntArray, clusters: IntArray, is_labelled: BoolArray) -> IntArray:
    pairs = np.unique(np.stack([strata[is_labelled], clusters[is_labelled]]), axis=1)
    return np.bincount(pairs[0], minlength=int(strata.max()) + 1)


def _joined(strata: IntArray, clusters: IntArray, is_labelled: BoolArray) -> IntArray:
    """Merge each stratum with the one below it until all have two labelled conversations."""
    strata = strata.copy()
    while strata.max() and (few := np.flatnonzero(_labelled_clusters(strata, clusters, is_labelled) < 2)).size:
        strata[strata >= max(few[0], 1)] -= 1
    return strata


_PRIOR = 2
"""Pseudo-labels for a stratum's spread: for rates one pass and one fail, else labels with the spread of all."""
_LEAST = 2
"""Smallest number of labels for each stratum with as many rows."""


def allocate(sizes: IntArray, labelled: IntArray, spreads: FloatArray, n_next: int) -> IntArray:
    """Return how many of `n_next` labels go to each stratum (Neyman 1934); arrays have shape (strata,).

    Totals with earlier labels are proportional to rows times spread of the labels, as far as rows are left.
    """
    weights = sizes * np.maximum(spreads, 1e-9)
    new = np.zeros(len(sizes), dtype=np.int64)
    # One label at a time to where it lowers the variance most; this gives the same totals, never more than there are rows.
    for _ in range(min(n_next, int((sizes - labelled).sum()))):
        has = labelled + new
        is_short = has < np.minimum(_LEAST, sizes)
        gain = np.where(has > 0, weights**2 / np.maximum(has * (has + 1), 1), np.inf)
        gain = np.where(is_short, np.inf, gain)
        new[np.argmax(np.where(has < sizes, gain, -1.0))] += 1
    return new


def next_rows(scores: FloatArray, labels: FloatArray, n_next: int, *, is_rate: bool | None, seed: int = 0) -> IntArray:
    """Return the numbers of the rows to label next, in random order: a random sample of each of the `score_strata`.

    Args:
        scores: shape (rows,); rows with NaN are never drawn.
        labels: shape (rows,), as in `Sample`; labelled rows are not drawn again.
        n_next: number of rows.
        is_rate: whether labels are shares of "pass"; None without labels.
        seed: for the draw.

    Raises:
        InputError: no row has a score, or all such rows are labelled.
    """
    scored = np.flatnonzero(~np.isnan(scores))
    strata, label = score_strata(scores[scored]), labels[scored]
    is_labelled = ~np.isnan(label)
    if not len(scored):
        raise InputError("label: no row has a score. Score the rows first.")
    if is_labelled.all():
        raise InputError(f"label: all {len(scored)} scored rows are labelled. There is nothing left to label.")
    sizes = np.bincount(strata)
    n_labelled = np.bincount(strata[is_labelled], minlength=len(sizes))
    new = allocate(sizes, n_labelled, _spreads(strata[is_labelled], label[is_labelled], len(sizes), is_rate=is_rate), n_next)
    generator = np.random.default_rng(seed)
    drawn = [
        generator.choice(np.flatnonzero((strata == stratum) & ~is_labelled), size=n, replace=False)
        for stratum, n in enumerate(new.tolist())
    ]
    return np.asarray(scored[generator.permutation(np.concatenate(drawn))])


def _spreads(strata: IntArray, labels: FloatArray, n_strata: int, *, is_rate: bool | None) -> FloatArray:
    if is_rate is None or not len(labels):
        return np.ones(n_strata)
    n = np.bincount(strata, minlength=n_strata)
    total = np.bincount(strata, weights=labels, minlength=n_strata)
    if is_rate:
        rate = (total + _PRIOR / 2) / (n + _PRIOR)
        return np.sqrt(rate * (1 - rate))
    squares = np.bincount(strata, weights=(labels - (total / np.maximum(n, 1))[strata]) ** 2, minlength=n_strata)
    return np.asarray(np.sqrt((squares + _PRIOR * labels.var()) / (n + _PRIOR)))


ROUNDS = 500
REFUSED = 0.01
"""Labels are refused if random samples differ as much with a smaller probability."""
DOUBTED = 0.05


class Representativeness(NamedTuple):
    """Distance of the judge's scores of the labelled rows from those of all rows.

    Attributes:
        distance: largest difference of the shares of rows at or below any score (Kolmogorov and Smirnov).
        p_value: share of random samples of as many labels in as many conversations with at least this distance.
        labelled: mean score of the labelled rows, with strata weighted by their rows; all: of all rows.
    """

    distance: float
    p_value: float
    labelled: float
    all: float


def representativeness(sample: Sample, *, rounds: int = ROUNDS, seed: int = 0) -> Representativeness | None:
    """Compare the labelled rows with random samples of as many rows in as many conversations.

    With strata, each is compared separately, and the p-value is the smallest times their number (Bonferroni). None if all rows
    are labelled, or if labels are weighted by score strata, which corrects for the difference.
    """
    if sample.is_by_score or sample.is_labelled.all():
        return None
    generator = np.random.default_rng(seed)
    of_strata = []
    for stratum in range(sample.n_strata):
        rows = np.flatnonzero(sample.strata == stratum)
        of_strata.append(_of_rows(sample, rows, rounds, generator))
    distance, p_value, _, _ = min(of_strata, key=lambda one: (one.p_value, -one.distance))
    shares = np.bincount(sample.strata) / len(sample.strata)
    labelled = sum(share * one.labelled for share, one in zip(shares, of_strata, strict=True))
    return Representativeness(distance, min(1.0, p_value * len(of_strata)), float(labelled), float(sample.scores.mean()))


def _of_rows(sample: Sample, rows: IntArray, rounds: int, generator: np.random.Generator) -> Representativeness:
    rows = rows[np.argsort(sample.clusters[rows], kind="stable")]
    scores, is_labelled = sample.scores[rows], sample.is_labelled[rows]
    values, codes = np.unique(scores, return_inverse=True)
    of_all = np.cumsum(np.bincount(codes)) / len(codes)

    def distance(places: IntArray) -> float:
        if len(values) < len(places):
            return float(np.abs(np.cumsum(np.bincount(codes[places], minlength=len(values))) / len(places) - of_all).max())
        # Between two scores of the sample, only the distribution of all rows rises.
        drawn = np.sort(codes[places])
        above = np.searchsorted(drawn, drawn, side="right") / len(drawn) - of_all[drawn]
        below = np.where(drawn > 0, of_all[drawn - 1], 0) - np.searchsorted(drawn, drawn, side="left") / len(drawn)
        return float(max(above.max(), below.max()))

    own = distance(np.flatnonzero(is_labelled))
    starts = np.flatnonzero(np.r_[True, np.diff(sample.clusters[rows]) > 0])
    sizes = np.diff(np.r_[starts, len(rows)])
    counts = np.add.reduceat(is_labelled.astype(np.int64), starts)
    n_as_far = sum(distance(_drawn(starts, sizes, counts, generator)) >= own - 1e-12 for _ in range(rounds))
    return Representativeness(own, (n_as_far + 1) / (rounds + 1), float(scores[is_labelled].mean()), float(scores.mean()))


def _drawn(starts: IntArray, sizes: IntArray, counts: IntArray, generator: np.random.Generator) -> IntArray:
    """Return rows of random clusters; `counts` are the labelled rows of each cluster.

    If most rows of labelled clusters are labelled, clusters are drawn whole; else a random row of each and the rows after it,
    as many as were labelled.
    """
    labelled = counts[counts > 0]
    if 2 * labelled.sum() > sizes[counts > 0].sum():
        chosen = generator.choice(len(starts), size=len(labelled), replace=False)
        offset, taken = np.zeros(len(labelled), dtype=np.int64), sizes[chosen]
    else:
        first = generator.choice(int(sizes.sum()), size=len(labelled), replace=False)
        chosen = np.searchsorted(starts, first, side="right") - 1
        offset, taken = first - starts[chosen], np.minimum(labelled, sizes[chosen])
    within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
    return np.asarray(np.repeat(starts[chosen], taken) + (np.repeat(offset, taken) + within) % np.repeat(sizes[chosen], taken))
