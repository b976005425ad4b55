"""P-values of intervals."""

from __future__ import annotations

import pytest
from scipy import stats

from reproduction.intervals import normal_p_value


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_p_value_of_a_normal_interval(confidence: float) -> None:
    half = stats.norm.ppf((1 + confidence) / 2) * 0.2
    p_value = normal_p_value(-0.3, -0.3 - half, -0.3 + half, confidence=confidence)
    assert p_value == pytest.approx(2 * stats.norm.sf(1.5))


@pytest.mark.parametrize("figures", [(None, 0.0, 1.0), (0.5, None, 1.0), (0.5, 0.0, None), (0.5, 0.5, 0.5)])
def test_no_p_value_without_an_interval(figures: tuple[float | None, ...]) -> None:
    assert normal_p_value(*figures) is None  # type: ignore[arg-type]
