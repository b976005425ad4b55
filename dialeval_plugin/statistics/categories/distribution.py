r"""Agreement of an evaluator with the distribution of several people's labels, rather than with one label of each row.

Where people differ, the shares of their labels say more than a majority (Uma et al. 2021). An evaluator is a distribution, too:
the chances that it gives each label, 1 for its label if it gives one.

- jsd: Jensen-Shannon divergence (Lin 1991) with logarithms to base 2, 0 to 1, lower is better. Each person of a row is left out
  in turn and the evaluator compared with the shares of the others; a person is compared with the same shares, so that the two
  can be compared with each other.
- cross_entropy: $-\sum_k p_k \log_2 q_k$ of people's shares p and the evaluator's chances q, in bits per row, lower is better.
  Undefined if the chance of a label that a person gave is 0, as it always is for an evaluator of labels that people dispute.

Both are means over rows with at least `MIN_LABELS` labels; with few labels a row, shares are coarse, and jsd is larger than for
many.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.statistics.bootstrap import Resampled, ratio_of_sums

MIN_LABELS = 3
"""Smallest number of labels of a row, so that the others of each person are two or more."""
FEW_LABELS = 5
"""Mean number of labels of a row below which a distribution is coarse."""


def jensen_shannon(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the divergence of distributions p and q, one in each row, in bits."""
    divergences = special.rel_entr(p, (p + q) / 2) + special.rel_entr(q, (p + q) / 2)
    return np.asarray(divergences.sum(axis=1) / (2 * math.log(2)))


def divergence(chances: FloatArray | None, counts: FloatArray, clusters: IntArray) -> Resampled:
    """Return jsd.

    Args:
        chances: the evaluator's distributions, shape (rows, categories); None for the person who is left out.
        counts: number of people who gave each label, at least `MIN_LABELS` in each row.
        clusters: number of each row's cluster, from 0.
    """
    n, values = counts.sum(axis=1), np.zeros(len(counts))
    for place, label in enumerate(np.eye(counts.shape[1])):
        is_given = counts[:, place] > 0
        others = (counts[is_given] - label) / (n[is_given, None] - 1)
        own = np.broadcast_to(label, others.shape) if chances is None else chances[is_given]
        values[is_given] += counts[is_given, place] / n[is_given] * jensen_shannon(own, others)
    return _mean(values, clusters)


def cross_entropy(chances: FloatArray, counts: FloatArray, clusters: IntArray) -> Resampled | str:
    """Return cross_entropy, or why it is undefined; arguments as in `divergence`."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    values = -special.xlogy(shares, chances).sum(axis=1) / math.log(2)
    if n_excluded := int(np.isinf(values).sum()):
        return (
            f"cross_entropy: in {n_excluded} of {len(values)} rows the evaluator gives no chance to a label of a person. "
            "Give it chances between 0 and 1."
        )
    return _mean(values, clusters)


def _mean(values: FloatArray, clusters: IntArray) -> Resampled:
    return ratio_of_sums(np.stack([np.bincount(clusters, values), np.bincount(clusters)], axis=1))
