"""Length and position bias: regression residuals as the oracle, undefined cases, shared resamples."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bias import covariate_bias
from dialeval_plugin.statistics.bootstrap import Bootstrap
from tests.cluster_order import rows_by_cluster

KEYS = ["score_length", "rating_length", "score_rating", "score_length_given_rating", "score_rating_given_length"]
NO_INTERVAL = Bootstrap(rounds=0)


def long_winded(n: int = 80, seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A metric that likes long responses, of which people are fond only a little."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 30, size=n)
    ratings = np.clip((3 + lengths / 30 + generator.normal(size=n)).round(), 1, 5)
    return (ratings + lengths / 4 + generator.normal(size=n)).round(1), ratings, lengths


def residuals(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    line = stats.linregress(z, x)
    return np.asarray(x - line.intercept - line.slope * z)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_partial_correlation_is_that_of_residuals(coefficient: Any) -> None:
    columns = long_winded()
    found = covariate_bias(*columns, name="length", coefficient=coefficient, bootstrap=NO_INTERVAL)
    assert list(found) == KEYS
    x, y, z = (stats.rankdata(column) if coefficient == "spearman" else column for column in columns)
    expected = {
        "score_length": stats.pearsonr(x, z).statistic,
        "rating_length": stats.pearsonr(y, z).statistic,
        "score_rating": stats.pearsonr(x, y).statistic,
        "score_length_given_rating": stats.pearsonr(residuals(x, y), residuals(z, y)).statistic,
        "score_rating_given_length": stats.pearsonr(residuals(x, z), residuals(y, z)).statistic,
    }
    for key, value in expected.items():
        assert found[key].value == pytest.approx(value, abs=1e-9)
    assert (found["score_length_given_rating"].between, found["score_length_given_rating"].given) == (
        ("score", "length"),
        "rating",
    )


def test_kendall() -> None:
    x, y, z = long_winded()
    found = covariate_bias(x, y, z, name="position", coefficient="kendall_b", bootstrap=NO_INTERVAL)
    xy, xz, yz = (stats.kendalltau(*pair).statistic for pair in ((x, y), (x, z), (y, z)))
    expected = (xz - xy * yz) / np.sqrt((1 - xy**2) * (1 - yz**2))
    assert found["score_position_given_rating"].value == pytest.approx(expected, abs=1e-9)


def test_interval_is_that_of_the_same_resamples() -> None:
    x, y, z = long_winded()
    clusters = np.arange(80) // 4
    found = covariate_bias(x, y, z, name="length", clusters=clusters, bootstrap=Bootstrap(rounds=50, seed=2))
    rows, generator = rows_by_cluster(clusters, [x, y, z]), np.random.default_rng(2)
    drawn = [np.concatenate([rows[i] for i in generator.integers(20, size=20)]) for _ in range(50)]
    expected = np.quantile([stats.spearmanr(x[of], z[of]).statistic for of in drawn], [0.025, 0.975])
    assert (found["score_length"].ci_low, found["score_length"].ci_high) == pytest.approx(expected)
    for one in found.values():
        assert one.ci_low is not None
        assert one.ci_high is not None
        assert one.ci_low < one.value < one.ci_high
    json.dumps([one.to_dict() for one in found.values()], allow_nan=False)


def test_rows_without_all_three_are_left_out() -> None:
    x, y, z = (column.tolist() for column in long_winded())
    found = covariate_bias([None, 1, 1, *x], [1, None, 1, *y], [1, 1, None, *z], name="length", bootstrap=NO_INTERVAL)
    kept = covariate_bias(x, y, z, name="length", bootstrap=NO_INTERVAL)
    assert found["score_rating"].value == kept["score_rating"].value
    assert (found["score_rating"].n_total, found["score_rating"].n_scored, found["score_rating"].n_unscored) == (83, 80, 3)


@pytest.mark.parametrize(
    ("scores", "ratings", "covariate", "undefined"),
    [
        ([1, 2, 3, 5], [1, 2, 2, 3], [7, 7, 7, 7], set(KEYS) - {"score_rating"}),
        ([1, 2, 3, 5], [2, 1, 3, 2], [10, 20, 30, 50], {"score_rating_given_length"}),
        ([None], [1], [1], set(KEYS)),
        ([1, 2], [1, 2], [1, 2], set(KEYS)),
    ],
)
def test_undefined(scores: Any, ratings: Any, covariate: Any, undefined: set[str]) -> None:
    found = covariate_bias(scores, ratings, covariate, name="length", bootstrap=Bootstrap(rounds=0))
    assert {key for key, one in found.items() if one.value is None} == undefined
    for key in undefined:
        assert found[key].reason == (
            f"{key}: undefined on {found[key].n_scored} rows: there are fewer than 3, a column is constant, "
            "or one of them says all about another. Score and rate more examples."
        )


def test_wrong_coefficient() -> None:
    with pytest.raises(InputError) as caught:
        covariate_bias([1], [1], [1], name="length", coefficient="auroc")  # type: ignore[arg-type]
    assert str(caught.value) == ("covariate_bias: there is no coefficient 'auroc'. Choose one of pearson, spearman, kendall_b.")
