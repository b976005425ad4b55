"""Krippendorff's alpha between raters on a nominal scale: one value, and the values of many weighted samples at once."""

from __future__ import annotations

import krippendorff
import numpy as np

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.checks import FloatArray, Statistic


def alpha(counts: FloatArray) -> float:
    """Return Krippendorff's nominal alpha from `counts[unit, answer]`, how many raters gave each answer.

    Source: Krippendorff 2011, through the package `krippendorff`.
    Range: 1 for full agreement, 0 for what chance gives, below 0 for less. Missing values: a unit with fewer than two answers
    is left out. StatisticUndefined: fewer than two different answers are left.

    Example:
        >>> alpha(np.array([[2.0, 0.0], [0.0, 2.0]]))
        1.0
    """
    pairable = counts[counts.sum(axis=1) > 1]
    if (pairable.sum(axis=0) > 0).sum() < 2:
        raise StatisticUndefined("alpha: the raters gave fewer than two different answers. Compare more responses.")
    return float(krippendorff.alpha(value_counts=pairable, level_of_measurement="nominal"))


def alpha_of_samples(counts: FloatArray) -> Statistic:
    r"""Alpha of weighted samples of units, `weights[sample, unit]`.

    With $n_{uc}$ raters of unit u giving answer c and $m_u$ of them in all, $\sum_u \sum_c n_{uc}(n_{uc}-1)/(m_u-1)$ is the
    observed agreement and $n_c = \sum_u n_{uc}$: both are sums over units, so one matrix product serves all samples.
    """
    sizes = counts.sum(axis=1)
    pairable = sizes > 1
    agreeing = np.zeros(len(counts))
    agreeing[pairable] = (counts * (counts - 1)).sum(axis=1)[pairable] / (sizes[pairable] - 1)
    paired = np.where(pairable[:, None], counts, 0)

    def statistic(weights: FloatArray) -> FloatArray:
        answers = weights @ paired
        n = answers.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            disagreement = (n - weights @ agreeing) / n
            expected = (n**2 - (answers**2).sum(axis=1)) / (n * (n - 1))
            return np.where(expected > 0, 1 - disagreement / expected, np.nan)

    return statistic
