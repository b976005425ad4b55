"""How close an evaluator is to all that people said of a row, not only to their majority."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import special

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.labels.table import JudgedLabels
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Estimate
from dialeval_plugin.statistics.means import mean_interval

SUM_TOLERANCE = 0.01
"""Detectors publish rounded shares: three of 0.33 are a distribution."""


def jensen_shannon(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the Jensen-Shannon divergence of each two rows of shares; logarithms to base 2, no root, from 0 to 1."""
    divergences = special.rel_entr(p, (p + q) / 2) + special.rel_entr(q, (p + q) / 2)
    return np.asarray(divergences.sum(axis=1) / (2 * math.log(2)))


def squared_difference(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the mean squared difference of each two rows of shares."""
    return np.asarray(((p - q) ** 2).mean(axis=1))


def distribution_agreement(
    judged: JudgedLabels, *, shares: FloatArray | None = None, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> dict[str, Estimate]:
    """Return means over rows of how an evaluator's distribution over the categories differs from that of the people's labels.

    "jsd" and "mse" as above; "cross_entropy" in bits, undefined where the evaluator gives no share to what a person said.
    "agreement" is that of the evaluator's likeliest category with one person drawn at random, "people" that of two persons,
    each also over the rows on which all persons agree, on which more than half do, and on which they are divided.

    Args:
        judged: labels of categories; without `shares`, scores that are labels.
        shares: of each category in each row, of shape (rows, categories), which sum to 1; NaN where a row is unscored.
        bootstrap: of the intervals.

    Raises:
        InputError: labels or scores are no categories, or rows of shares do not sum to 1.
    """
    table, places = judged.labels, np.arange(len(judged.labels.scale.categories))
    if not len(places) or (shares is None and judged.scale is None):
        raise InputError(f"{judged.evaluator}: there are no categories to compare, only numbers. Give labels in words.")
    said = np.where(np.isnan(judged.scores)[:, None], np.nan, judged.scores[:, None] == places) if shares is None else shares
    sums = said.sum(axis=1)
    if said.shape != (len(table.ids), len(places)) or (np.abs(sums[~np.isnan(sums)] - 1) > SUM_TOLERANCE).any():
        raise InputError(f"{judged.evaluator}: a row of shares does not sum to 1. Give one share a category.")
    counts, n = (table.labels[:, :, None] == places).sum(axis=1), table.n_labels
    with np.errstate(invalid="ignore", divide="ignore"):
        given = counts / n[:, None]
        of_two = np.where(np.isnan(sums), np.nan, (counts * (counts - 1)).sum(axis=1) / (n * (n - 1)))
        entropy = -special.xlogy(given, said).sum(axis=1) / math.log(2)
    likeliest = np.nan_to_num(said).argmax(axis=1)
    agreement = np.where(np.isnan(sums), np.nan, given[np.arange(len(given)), likeliest])
    of_rows = {"jsd": jensen_shannon(given, said), "mse": squared_difference(given, said), "cross_entropy": entropy}
    most = given.max(axis=1)
    kinds = {"": most > 0, "_all_agree": most == 1, "_most_agree": (most > 0.5) & (most < 1), "_divided": most <= 0.5}
    for kind, is_in in kinds.items():
        of_rows |= {f"agreement{kind}": np.where(is_in, agreement, np.nan), f"people{kind}": np.where(is_in, of_two, np.nan)}
    found = {}
    for name, values in of_rows.items():
        is_finite = not np.isinf(values).any()
        finite = [float(value) if is_finite and not np.isnan(value) else None for value in values]
        found[name] = replace(mean_interval(finite, clusters=table.clusters, bootstrap=bootstrap), name=name)
    if np.isinf(entropy).any():
        n_without = int(np.isinf(entropy).sum())
        why = f"cross_entropy: the evaluator gives no share to a label of {n_without} rows. Give shares above 0."
        found["cross_entropy"] = replace(found["cross_entropy"], reason=why)
    return found
