"""Thresholds chosen by the costs of a false pass and a false fail, which are measured on held-out conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Bootstrap, Counts, Estimate, ratio_of_sums

N_FOLDS = 10


class Costs(NamedTuple):
    """Costs of passing a bad answer, and of failing a good one; only their ratio affects the threshold."""

    false_pass: float = 1.0
    false_fail: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Threshold, and its cost on held-out conversations.

    Attributes:
        value: chosen on all rows; a score that reaches it counts as positive. Above all scores, no row passes.
        cost: mean cost per row of thresholds chosen on other conversations.
        constant_cost: mean cost per row of the constant label that is cheaper on other conversations.
        saving: `constant_cost` minus `cost`; if its interval contains 0, the evaluator has not been shown to be useful.
    """

    value: float
    costs: Costs
    cost: Estimate
    constant_cost: Estimate
    saving: Estimate


def chosen_threshold(
    scores: FloatArray, shares: FloatArray, clusters: IntArray, counts: Counts, costs: Costs, bootstrap: Bootstrap
) -> tuple[Threshold, FloatArray]:
    """Return the threshold, and for each row 1 if it passes the threshold chosen without it, else 0.

    Args:
        scores: one per row, higher is better.
        shares: share of people who call the row positive, in [0, 1].
        clusters: number of each row's conversation, from 0.
        counts: counts of the rows, for the estimates.
        costs: two numbers above 0; others are an InputError.
        bootstrap: settings of the intervals; its seed also draws the folds.
    """
    if not min(costs) > 0 or not np.isfinite(costs).all():
        raise InputError(
            f"--cost {costs[0]:g} {costs[1]:g}: expected two numbers above 0, of a false pass and of a false fail."
        )
    n_clusters = int(clusters.max()) + 1
    folds = np.random.default_rng(bootstrap.seed).permutation(np.arange(n_clusters) % N_FOLDS)[clusters]
    passes, always = np.zeros(len(scores)), np.zeros(len(scores))
    for fold in range(min(N_FOLDS, n_clusters)):
        others, held_out = folds != fold, folds == fold
        # With a single conversation there are no others.
        learned = others if others.any() else held_out
        passes[held_out] = scores[held_out] >= _best(scores[learned], shares[learned], costs)
        mean = shares[learned].mean()
        always[held_out] = costs.false_pass * (1 - mean) <= costs.false_fail * mean
    held, constant = (
        costs.false_pass * (1 - shares) * passed + costs.false_fail * shares * (1 - passed) for passed in (passes, always)
    )
    of_cluster = sparse.csr_array((np.ones(len(scores)), (clusters, np.arange(len(scores)))))
    sums = np.asarray(of_cluster @ np.stack([held, constant, np.ones(len(scores))], axis=1))
    cost, constant_cost = (ratio_of_sums(sums, column, 2) for column in (0, 1))
    named = {"cost": cost, "constant_cost": constant_cost, "saving": constant_cost - cost}
    value = _best(scores, shares, costs)
    return Threshold(value=value, costs=costs, **bootstrap.estimates(named, counts)), passes


def _best(scores: FloatArray, shares: FloatArray, costs: Costs) -> float:
    values, codes = np.unique(scores, return_inverse=True)
    positive = np.concatenate([[0], np.bincount(codes, shares).cumsum()])
    negative = np.concatenate([[0], np.bincount(codes, 1 - shares).cumsum()])
    cost = costs.false_fail * positive + costs.false_pass * (negative[-1] - negative)
    ends = np.concatenate([values[:1], (values[:-1] + values[1:]) / 2, [np.nextafter(values[-1], np.inf)]])
    return float(ends[int(np.argmin(np.round(cost, 9)))])
