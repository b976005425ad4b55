r"""Prediction-powered means (PPI++; Angelopoulos, Duchi and Zrnic 2023), and Rogan and Gladen's (1978) pass rates.

The mean of the labels is corrected by the difference between the judge's means over all and over labelled rows: $\hat\theta =
\sum_h (N_h / N) (\bar Y_h + \lambda (\bar f_{h,all} - \bar f_{h,labelled}))$ over strata $h$. Without strata this is PPI++,
whose weight is $\lambda (N - n) / N$. $\lambda$ minimises the variance, like a regression slope, and is not limited to [0, 1],
because the judge may have another scale than the labels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.errors import InputError

from .sample import Sample, Sums


def slope(sums: Sums) -> FloatArray:
    """Return the weight of the judge; 0 if its scores are equal within the strata."""
    covariance, variance = _products(sums)
    weight = _shares(sums) ** 2 / sums.n
    below = (weight * variance).sum(axis=1)
    return np.asarray(np.where(below > 0, (weight * covariance).sum(axis=1) / np.where(below > 0, below, 1), 0.0))


def mean_of_labels(sums: Sums) -> FloatArray:
    """Return the mean of the labels, with strata weighted by their rows."""
    return np.asarray((_shares(sums) * sums.labels / sums.n).sum(axis=1))


def mean_with_judge(sums: Sums) -> FloatArray:
    """Return the prediction-powered mean."""
    moved = (_shares(sums) * (sums.scores_all / sums.n_all - sums.scores / sums.n)).sum(axis=1)
    return np.asarray(mean_of_labels(sums) + slope(sums) * moved)


def predicted_mean(sums: Sums, whole: Sums, weight: float) -> FloatArray:
    """Return the mean over all rows of the whole sample's predictions: the uncertainty that more labels do not reduce."""
    level = (whole.labels - weight * whole.scores) / whole.n
    return np.asarray((level * sums.n_all + weight * sums.scores_all).sum(axis=1) / sums.n_all.sum(axis=1))


def gain_over_random(sums: Sums, weight: float) -> float:
    """Return the variance with as many random labels and no judge, divided by that of the estimate, row by row."""
    share, n_all = _shares(sums), sums.n_all.sum()
    covariance, variance = _products(sums)
    of_labels = sums.label_squares / sums.n - (sums.labels / sums.n) ** 2
    left = of_labels - 2 * weight * covariance + weight**2 * variance
    total = float((share * sums.label_squares / sums.n).sum() - mean_of_labels(sums)[0] ** 2)
    own = float((share**2 * left / sums.n).sum() + (total - (share * left).sum()) / n_all)
    return total / float(sums.n.sum()) / own if own > 0 else math.inf


class JudgeRates(NamedTuple):
    """Rates at which a judge says pass and is right about pass and fail, with effective sizes.

    Rows of one conversation are similar, so `n_` are numbers of independent rows with the same variance.
    """

    passed: float
    sensitivity: float
    specificity: float
    n_passed: float
    n_sensitivity: float
    n_specificity: float


def judge_rates(sample: Sample) -> JudgeRates:
    """Return a judge's rates; a row of several raters counts as pass and as fail by their shares.

    Raises InputError if scores are not 0 and 1, or the labels are all pass or all fail.
    """
    if not sample.is_rate or not np.isin(sample.scores, (0, 1)).all():
        raise InputError(
            "estimate: Rogan and Gladen's estimate is of a judge that says pass or fail, and of such labels. Use --method ppi."
        )
    known = sample.is_labelled
    passes, score, clusters = sample.labels[known], sample.scores[known], sample.clusters[known]
    if not 0 < passes.sum() < len(passes):
        what = "pass" if passes.sum() else "fail"
        raise InputError(f"estimate: all {len(passes)} labels are {what}. Label more rows, or use --method ppi.")
    rates, sizes = zip(
        _rate(sample.scores, np.ones(len(sample.scores)), sample.clusters),
        _rate(score, passes, clusters),
        _rate(1 - score, 1 - passes, clusters),
        strict=True,
    )
    return JudgeRates(*rates, *sizes)


def rogan_gladen(passed: float, sensitivity: float, specificity: float) -> float:
    """Return the true pass rate, in [0, 1], given the judge's pass rate, sensitivity and specificity."""
    return min(1.0, max(0.0, (passed + specificity - 1) / (sensitivity + specificity - 1)))


def rogan_gladen_interval(rates: JudgeRates, quantile: float) -> tuple[float, float] | None:
    """Return the interval of Lee et al. (ICML 2026), with the errors of all three rates, for a normal or t `quantile`.

    It adds rows to each rate, as Lang and Reiczigel (2014) do, and takes the rates as independent. Where the judge was right on
    all labelled passes or fails, its rate has no other error; elsewhere this is too wide, see `fieller_ends`. None if the judge
    is not better than chance with the added rows.
    """
    squared = quantile**2
    n, m1, m0 = rates.n_passed + squared, rates.n_sensitivity + 2, rates.n_specificity + 2
    passed = (rates.n_passed * rates.passed + squared / 2) / n
    right1 = (rates.n_sensitivity * rates.sensitivity + 1) / m1
    right0 = (rates.n_specificity * rates.specificity + 1) / m0
    informedness = right0 + right1 - 1
    if informedness <= 0:
        return None
    value = (passed + right0 - 1) / informedness
    of1, of0 = right1 * (1 - right1) / m1, right0 * (1 - right0) / m0
    centre = value + 2 * squared * (value * of1 - (1 - value) * of0)
    half = quantile * math.sqrt(passed * (1 - passed) / n + (1 - value) ** 2 * of0 + value**2 * of1) / informedness
    return max(0.0, centre - half), min(1.0, centre + half)


def rogan_gladen_parts(sums: Sums, centre: float) -> tuple[FloatArray, FloatArray]:
    """Return numerator and denominator of Rogan and Gladen's rate, not limited to [0, 1]; the latter is TPR + TNR - 1.

    `centre` was subtracted from the scores before summing.
    """
    n, n_all, passes = sums.n.sum(axis=1), sums.n_all.sum(axis=1), sums.labels.sum(axis=1)
    both = sums.products.sum(axis=1) + centre * passes
    judged = sums.scores.sum(axis=1) + centre * n
    false_positive = (judged - both) / (n - passes)
    return sums.scores_all.sum(axis=1) / n_all + centre - false_positive, both / passes - false_positive


def _shares(sums: Sums) -> FloatArray:
    return np.asarray(sums.n_all / sums.n_all.sum(axis=1, keepdims=True))


def _products(sums: Sums) -> tuple[FloatArray, FloatArray]:
    """Return for each stratum the covariance of labels and scores, and the variance of all scores."""
    covariance = sums.products / sums.n - sums.labels * sums.scores / sums.n**2
    variance = (sums.score_squares_all - sums.scores_all**2 / sums.n_all) / np.maximum(sums.n_all - 1, 1)
    # For equal scores, only rounding noise remains.
    return covariance, np.where(variance > 1e-12 * sums.score_squares_all / sums.n_all, variance, 0.0)


def _rate(values: FloatArray, weights: FloatArray, clusters: IntArray) -> tuple[float, float]:
    size = float(weights.sum())
    rate = float((weights * values).sum() / size)
    spread = np.bincount(clusters, weights=weights * (values - rate))
    variance = float((spread**2).sum()) / size**2
    n_clusters = len(np.unique(clusters[weights > 0]))
    return rate, min(size, rate * (1 - rate) / variance if variance > 0 else n_clusters)
