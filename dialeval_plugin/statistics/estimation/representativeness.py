"""Whether the labelled rows are a random sample of all rows, as far as the judge's scores can tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import IntArray

from .sample import Sample

ROUNDS = 500
REFUSED = 0.01
"""Labels that a random sample would be as unlike as with less than this probability are refused."""
DOUBTED = 0.05


class Representativeness(NamedTuple):
    """Distance of the judge's scores of the labelled rows from those of all rows.

    Attributes:
        distance: the largest difference of the shares of rows at or below any score (Kolmogorov and Smirnov).
        p_value: share of random samples of as many labels in as many conversations that lie as far away, or farther.
        labelled: mean score of the labelled rows, where each stratum counts by its rows; all: of all rows.
    """

    distance: float
    p_value: float
    labelled: float
    all: float


def representativeness(sample: Sample, *, rounds: int = ROUNDS, seed: int = 0) -> Representativeness | None:
    """Compare the labelled rows with random samples, which have as many rows of as many conversations, drawn at random.

    With strata, each is compared by itself, and the p-value is the least of them times their number (Bonferroni). None where
    all rows are labelled, or labels are weighted by strata of the scores, which makes up for it.
    """
    if sample.is_by_score or sample.is_labelled.all():
        return None
    generator = np.random.default_rng(seed)
    found = []
    for stratum in range(sample.n_strata):
        rows = np.flatnonzero(sample.strata == stratum)
        found.append(_of_rows(sample, rows, rounds, generator))
    distance, p_value, _, _ = min(found, key=lambda one: (one.p_value, -one.distance))
    shares = np.bincount(sample.strata) / len(sample.strata)
    labelled = sum(share * one.labelled for share, one in zip(shares, found, strict=True))
    return Representativeness(distance, min(1.0, p_value * len(found)), float(labelled), float(sample.scores.mean()))


def _of_rows(sample: Sample, rows: IntArray, rounds: int, generator: np.random.Generator) -> Representativeness:
    rows = rows[np.argsort(sample.clusters[rows], kind="stable")]
    scores, is_labelled = sample.scores[rows], sample.is_labelled[rows]
    values, codes = np.unique(scores, return_inverse=True)
    of_all = np.cumsum(np.bincount(codes)) / len(codes)

    def distance(places: IntArray) -> float:
        if len(values) < len(places):
            return float(np.abs(np.cumsum(np.bincount(codes[places], minlength=len(values))) / len(places) - of_all).max())
        # Between two scores of the sample only that of all rows rises.
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
    """Rows of random clusters; `counts` are the labelled rows of each cluster.

    Where most rows of the labelled clusters are labelled, whole clusters were; else rows are drawn, and of the cluster of each
    as many as were labelled in one.
    """
    given = counts[counts > 0]
    if 2 * given.sum() > sizes[counts > 0].sum():
        chosen = generator.choice(len(starts), size=len(given), replace=False)
        offset, taken = np.zeros(len(given), dtype=np.int64), sizes[chosen]
    else:
        first = generator.choice(int(sizes.sum()), size=len(given), replace=False)
        chosen = np.searchsorted(starts, first, side="right") - 1
        offset, taken = first - starts[chosen], np.minimum(given, sizes[chosen])
    within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
    return np.asarray(np.repeat(starts[chosen], taken) + (np.repeat(offset, taken) + within) % np.repeat(sizes[chosen], taken))
