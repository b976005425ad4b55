"""Coefficients of binary ratings: scikit-learn and scipy as oracles, invariances (R27), undefined cases (R20)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.coefficients.binary import auroc, point_biserial

rows_of_two_kinds = st.lists(st.tuples(st.integers(-3, 3).map(float), st.sampled_from([2.0, 5.0])), min_size=3, max_size=30)


@settings(deadline=None)
@given(rows_of_two_kinds)
def test_equal_to_the_oracles_on_ties(rows: list[tuple[float, float]]) -> None:
    x, y = np.array(rows).T
    if len(set(x)) == 1 or len(set(y)) == 1:
        with pytest.raises(StatisticUndefined):
            auroc(x, y)
        return
    assert auroc(x, y) == pytest.approx(roc_auc_score(y == 5, x), abs=1e-12)
    assert point_biserial(x, y) == pytest.approx(stats.pointbiserialr(y == 5, x).statistic, abs=1e-9)
    assert auroc(-x, y) == pytest.approx(1 - auroc(x, y), abs=1e-12)
    assert auroc(x**3, y) == pytest.approx(auroc(x, y), abs=1e-12)
    assert auroc(y, y) == 1.0


@pytest.mark.parametrize("statistic", [auroc, point_biserial])
def test_three_kinds_of_ratings_are_undefined(statistic: object) -> None:
    assert callable(statistic)
    with pytest.raises(StatisticUndefined) as caught:
        statistic([1, 2, 3], [1, 2, 3])
    name = getattr(statistic, "__name__", "")
    assert str(caught.value) == f"{name}: 3 different ratings, exactly 2 are needed. Give ratings of two values."


def test_scores_that_differ_by_rounding_only() -> None:
    with pytest.raises(StatisticUndefined) as caught:
        point_biserial([0.3, 0.1 + 0.2, 0.3], [0, 1, 1])
    assert str(caught.value) == "point_biserial: the scores differ by rounding error only. Give scores that differ."
