"""How an estimate is written, means over data sets, and p-values of intervals."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from dialeval_plugin.statistics.estimates import ValueInterval, interval_text, mean_over_sets, normal_p_value

NOTHING = ValueInterval(None, None, None)


@pytest.mark.parametrize(
    ("figures", "options", "text"),
    [
        ((0.25, 0.1, 0.35), {}, "0.250 [0.100, 0.350]"),
        ((0.25, 0.1, 0.35), {"decimals": 2, "bound_decimals": 1, "is_rough": True}, "0.25 [0.1, 0.3, rough]"),
        ((-0.0001, -0.0004, 0.2), {}, "0.000 [0.000, 0.200]"),
        ((0.25, None, 0.35), {}, "0.250"),
        ((0.25, 0.1, None), {"is_rough": True}, "0.250"),
        ((0.25, 0.1, 0.35), {"decimals": 2, "bound_decimals": 0}, "0.25 [0, 0]"),
        ((None, 0.1, 0.35), {}, "undefined"),
    ],
)
def test_value_and_interval(figures: tuple[float | None, ...], options: dict[str, int], text: str) -> None:
    assert interval_text(*figures, **options) == text  # type: ignore[arg-type]


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
