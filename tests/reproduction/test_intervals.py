"""Means over data sets, and p-values of intervals."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from reproduction.intervals import ValueInterval, mean_over_sets, normal_p_value

NOTHING = ValueInterval(None, None, None)


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([], NOTHING),
        ([ValueInterval(0.5, 0.4, 0.6), NOTHING], NOTHING),
        ([ValueInterval(0.5, 0.4, 0.6), None], NOTHING),
        ([ValueInterval(0.5, 0.4, 0.6), ValueInterval(0.3, None, 0.4)], ValueInterval(0.4, None, None)),
        ([ValueInterval(0.5, 0.4, 0.6), ValueInterval(0.3, 0.2, None)], ValueInterval(0.4, None, None)),
        ([ValueInterval(0.5, 0.4, 0.7)], ValueInterval(0.5, 0.35, 0.65)),
    ],
)
def test_mean_over_sets(figures: list[ValueInterval | None], expected: ValueInterval) -> None:
    assert mean_over_sets(figures) == pytest.approx(expected)


def test_standard_errors_of_a_mean_over_sets_add_up() -> None:
    """Of independent estimates, the variance of the mean is the mean of the variances over their number."""
    z = stats.norm.ppf(0.975)
    deviations = [0.1, 0.2, 0.05]
    found = mean_over_sets([ValueInterval(0.3, 0.3 - z * one, 0.3 + z * one) for one in deviations])
    half = z * math.sqrt(sum(one**2 for one in deviations)) / 3
    assert found == pytest.approx((0.3, 0.3 - half, 0.3 + half))


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_p_value_of_a_normal_interval(confidence: float) -> None:
    half = stats.norm.ppf((1 + confidence) / 2) * 0.2
    p_value = normal_p_value(-0.3, -0.3 - half, -0.3 + half, confidence=confidence)
    assert p_value == pytest.approx(2 * stats.norm.sf(1.5))


@pytest.mark.parametrize("figures", [(None, 0.0, 1.0), (0.5, None, 1.0), (0.5, 0.0, None), (0.5, 0.5, 0.5)])
def test_no_p_value_without_an_interval(figures: tuple[float | None, ...]) -> None:
    assert normal_p_value(*figures) is None  # type: ignore[arg-type]
