"""The curve of a cascade: its ends, its shares, and the share that keeps a part of the coefficient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.choices import CascadePoint, cascade_curve, share_that_keeps
from dialeval_plugin.statistics.coefficients.pearson import spearman


def scores(seed: int, n: int = 60) -> tuple[list[float], list[float], list[float]]:
    generator = np.random.default_rng(seed)
    ratings = generator.integers(1, 6, size=n).astype(float)
    small = np.clip(ratings / 6 + generator.normal(0, 0.3, n), 0, 1)
    fused = np.clip(ratings / 6 + generator.normal(0, 0.1, n), 0, 1)
    return small.tolist(), fused.tolist(), ratings.tolist()


@given(st.integers(0, 50))
def test_each_point_asks_about_the_least_sure(seed: int) -> None:
    small, fused, ratings = scores(seed)
    curve = cascade_curve(small, fused, ratings)
    assert (curve[0].share, curve[-1].share) == (0.0, 1.0)
    assert curve[0].value == pytest.approx(spearman(small, ratings))
    assert curve[-1].value == pytest.approx(spearman(fused, ratings))
    assert [point.share for point in curve] == sorted({point.share for point in curve})
    for share, width, value in curve[1:]:
        asked = [abs(score - 0.5) <= width for score in small]
        assert share == pytest.approx(sum(asked) / len(asked))
        mixed = [both if is_asked else alone for alone, both, is_asked in zip(small, fused, asked, strict=True)]
        assert value == pytest.approx(spearman(mixed, ratings))


def test_the_share_that_keeps_is_the_last_one_below_which_something_is_lost() -> None:
    values = (0.2, 0.5, 0.3, 0.496, 0.5)
    curve = [CascadePoint(place / 4, place / 8, value) for place, value in enumerate(values)]
    assert share_that_keeps(curve, 0.99).share == 0.75  # 0.25 has as much, and 0.5 has less
    assert share_that_keeps(curve, 1.0).share == 1.0
    assert share_that_keeps(curve, 0.0).share == 0.0


def test_what_has_no_curve_is_refused() -> None:
    with pytest.raises(InputError, match="cascade_curve: "):
        cascade_curve([0.1, 0.2], [0.1], [1, 2])
    with pytest.raises(
        StatisticUndefined, match=r"cascade_curve: the coefficient is undefined on some share\. Give more rows\."
    ):
        cascade_curve([0.5, 0.5, 0.5], [0.1, 0.2, 0.3], [1, 2, 3])
