"""Differences of two metrics' agreement with people's preferences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Estimate, Resampled, rows_by_cell
from dialeval_plugin.statistics.coefficients.by_name import coefficient_named
from dialeval_plugin.statistics.preference.preferences import (
    Observations,
    Preferences,
    resampled_alpha,
    vote_gaps,
    voted_points,
)
from dialeval_plugin.statistics.rows import canonical_rows, check_choice


def preference_difference(
    one: Preferences, other: Preferences, *, statistic: str = "voting_spearman", bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> Estimate:
    """Return statistic(one) - statistic(other), with an interval from resamples of dialogues shared by both metrics.

    The statistic is "voting_pearson", "voting_spearman", "ignore_equal" or "cont2cat". Range: -2 to 2. Undefined if either is.
    Raises InputError if the metrics' comparisons, or their order, differ.
    """
    where = "preference_difference"
    check_choice(where, "statistic", statistic, _RESAMPLED)
    for column in ("votes", "clusters", "n_total"):
        if not np.array_equal(getattr(one, column), getattr(other, column)):
            raise InputError(
                f"{where}: the metrics' {column} differ. Compare them on the comparisons that both have a score for."
            )
    metrics = ([compared.scores_a, compared.scores_b] for compared in (one, other))
    rows = canonical_rows(where, list(one.votes.T), np.arange(len(one.votes)), one.clusters, metrics=metrics)
    of_one, of_other = (_RESAMPLED[statistic](compared.in_order(rows)) for compared in (one, other))
    name = f"difference of {statistic}"
    resampled = of_one - of_other
    reason = f"{statistic}: undefined for one of the metrics. Score responses that differ."
    computed = reason if np.isnan(resampled.value) else (resampled.value, resampled)
    return bootstrap.estimates({name: computed}, one.counts)[name]


def _resampled_correlation(
    compared: Preferences, *, rows: Callable[[Preferences, FloatArray, FloatArray], Observations], coefficient: str
) -> Resampled:
    observed = rows(compared, compared.scores_a, compared.scores_b)
    statistic = coefficient_named(coefficient).of_samples(observed.scores, observed.compared_with)
    return Resampled(statistic, rows_by_cell(np.arange(len(observed.scores)), observed.clusters))


_RESAMPLED: Mapping[str, Callable[[Preferences], Resampled]] = {
    "voting_pearson": partial(_resampled_correlation, rows=voted_points, coefficient="pearson"),
    "voting_spearman": partial(_resampled_correlation, rows=voted_points, coefficient="spearman"),
    "ignore_equal": partial(_resampled_correlation, rows=vote_gaps, coefficient="pearson"),
    "cont2cat": resampled_alpha,
}
