"""Means over data sets, with what is known of their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics.estimates import ValueInterval, mean_over_sets, mean_within_set

NOTHING = ValueInterval(None, None, None)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([], NOTHING),
        ([ValueInterval(0.5, 0.4, 0.6), NOTHING], NOTHING),
        ([ValueInterval(0.5, 0.4, 0.6), None], NOTHING),
        ([ValueInterval(0.5, 0.4, 0.6), ValueInterval(0.3, None, 0.4)], ValueInterval(0.4, None, None)),
        ([ValueInterval(0.5, 0.4, 0.6), ValueInterval(0.3, 0.2, None)], ValueInterval(0.4, None, None)),
        ([ValueInterval(0.5, 0.4, 0.7)], ValueInterval(0.5, 0.4, 0.7)),
        (
            [ValueInterval(0.5, 0.4, 0.7), ValueInterval(0.5, 0.4, 0.7)],
            ValueInterval(0.5, 0.5 - 0.15 / 2**0.5, 0.5 + 0.15 / 2**0.5),
        ),
    ],
)
def test_mean_over_sets(figures: list[ValueInterval | None], expected: ValueInterval) -> None:
    assert mean_over_sets(figures) == pytest.approx(expected)


def test_standard_errors_of_a_mean_over_sets_add_up() -> None:
    """The variance of the mean of independent estimates is the mean of the variances over their number."""
    z = stats.norm.ppf(0.975)
    deviations = [0.1, 0.2, 0.05]
    found = mean_over_sets([ValueInterval(0.3, 0.3 - z * one, 0.3 + z * one) for one in deviations])
    half = z * math.sqrt(sum(one**2 for one in deviations)) / 3
    assert found == pytest.approx((0.3, 0.3 - half, 0.3 + half))


def test_the_interval_of_a_mean_of_qualities_of_one_set_is_never_too_narrow() -> None:
    """Whatever their errors have to do with each other, the deviation of a mean is at most the mean of the deviations."""
    z = stats.norm.ppf(0.975)
    for correlation in (-0.5, 0.0, 0.7, 1.0):
        covariance = np.outer([0.1, 0.3], [0.1, 0.3]) * np.array([[1, correlation], [correlation, 1]])
        true_half = z * math.sqrt(covariance.sum()) / 2
        found = mean_within_set(
            [ValueInterval(0.3, 0.3 - z * 0.1, 0.3 + z * 0.1), ValueInterval(0.5, 0.5 - z * 0.3, 0.5 + z * 0.3)]
        )
        assert found.value == pytest.approx(0.4)
        assert found.ci_high is not None
        assert found.ci_high - 0.4 >= true_half - 1e-12
    assert found.ci_high - 0.4 == pytest.approx(true_half)
    assert mean_within_set([ValueInterval(0.3), None]) == NOTHING
    assert mean_within_set([ValueInterval(0.3), ValueInterval(0.5, 0.4, 0.6)]) == ValueInterval(0.4)
