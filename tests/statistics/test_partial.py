"""Partial correlations: residuals, the textbook and the inverse matrix as oracles; length and position bias."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from dialeval_plugin.statistics.correlation import DEFAULT_COEFFICIENTS, covariate_bias, partial_correlation
from tests.cluster_order import interval_by_loop
from tests.refusals import refusal

KEYS = ["score_length", "rating_length", "score_rating", "score_length_given_rating", "score_rating_given_length"]


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
    found = covariate_bias(*columns, name="length", coefficient=coefficient, bootstrap=NO_RESAMPLES)
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


def test_kendall() -> None:
    x, y, z = long_winded()
    found = covariate_bias(x, y, z, name="position", coefficient="kendall_b", bootstrap=NO_RESAMPLES)
    xy, xz, yz = (stats.kendalltau(*pair).statistic for pair in ((x, y), (x, z), (y, z)))
    expected = (xz - xy * yz) / np.sqrt((1 - xy**2) * (1 - yz**2))
    assert found["score_position_given_rating"].value == pytest.approx(expected, abs=1e-9)


def test_interval_is_that_of_the_same_resamples() -> None:
    x, y, z = long_winded()
    clusters = np.arange(80) // 4
    found = covariate_bias(x, y, z, name="length", clusters=clusters, bootstrap=Bootstrap(rounds=50, seed=2))
    expected = interval_by_loop(lambda of: stats.spearmanr(x[of], z[of]).statistic, clusters, [x, y, z], rounds=50, seed=2)
    assert (found["score_length"].ci_low, found["score_length"].ci_high) == expected
    for one in found.values():
        assert one.ci_low < one.value < one.ci_high
    json.dumps([one.to_dict() for one in found.values()], allow_nan=False)


def test_rows_without_all_three_are_left_out() -> None:
    x, y, z = (column.tolist() for column in long_winded())
    found = covariate_bias([None, 1, 1, *x], [1, None, 1, *y], [1, 1, None, *z], name="length", bootstrap=NO_RESAMPLES)
    kept = covariate_bias(x, y, z, name="length", bootstrap=NO_RESAMPLES)
    assert found["score_rating"].value == kept["score_rating"].value
    one = found["score_rating"]
    assert (one.n_total, one.n_scored, one.n_unscored, one.n_unrated) == (83, 80, 2, 1)


@pytest.mark.parametrize(
    ("scores", "ratings", "covariate", "undefined"),
    [
        ([1, 2, 3, 5], [1, 2, 2, 3], [7, 7, 7, 7], set(KEYS) - {"score_rating"}),
        ([1, 2, 3, 5], [2, 1, 3, 2], [10, 20, 30, 50], {"score_rating_given_length"}),
        ([1, 2, 4], [2, 1, 3], [2, 4, 3], {key for key in KEYS if "given" in key}),
        ([None], [1], [1], set(KEYS)),
        ([1, 2], [1, 2], [1, 2], set(KEYS)),
    ],
)
def test_undefined(scores: Any, ratings: Any, covariate: Any, undefined: set[str]) -> None:
    found = covariate_bias(scores, ratings, covariate, name="length", bootstrap=NO_RESAMPLES)
    assert {key for key, one in found.items() if one.value is None} == undefined
    for key in undefined:
        assert found[key].reason == reason(key, found[key].n_scored)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_two_covariates_give_the_inverse_of_the_correlation_matrix(coefficient: str) -> None:
    x, y, z = long_winded()
    w = z + np.random.default_rng(0).normal(0, 4, len(z))
    table = np.column_stack([x, y, z, w])
    precision = np.linalg.inv(np.corrcoef((table if coefficient == "pearson" else stats.rankdata(table, axis=0)).T))
    expected = -precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1])
    for covariates in ({"turns": z, "words": w}, {"words": w, "turns": z}):
        found = partial_correlation(x, y, covariates, coefficient=coefficient, bootstrap=NO_RESAMPLES)
        assert found.value == pytest.approx(expected, abs=1e-10)


def test_of_one_covariate_or_none_it_is_what_the_bias_says() -> None:
    x, y, z = long_winded()
    options: dict[str, Any] = {"coefficient": "spearman", "clusters": np.arange(80) // 4}
    found = covariate_bias(x, y, z, name="length", bootstrap=Bootstrap(rounds=50, seed=2), **options)
    given, other = (
        partial_correlation(x, y, {"length": z}, bootstrap=Bootstrap(rounds=50, seed=seed), **options) for seed in (2, 3)
    )
    expected = found["score_rating_given_length"]
    assert (given.value, given.ci_low, given.ci_high) == (expected.value, expected.ci_low, expected.ci_high)
    assert other.ci_low != given.ci_low
    assert partial_correlation(x, y, {}, bootstrap=NO_RESAMPLES, **options).value == found["score_rating"].value


def reason(key: str, n_rows: int) -> str:
    return (
        f"{key}: undefined on {n_rows} rows: there are too few, a column is constant, "
        "or what is held fixed says all about another. Score and rate more examples."
    )


@pytest.mark.parametrize("covariate", [[2, 4, 6, 8], [2, 2, 2, 2]])
def test_what_the_covariates_determine_is_undefined(covariate: list[float]) -> None:
    found = partial_correlation([1, 2, 3, 4], [3, 1, 4, 1], {"length": covariate}, coefficient="pearson")
    assert (found.value, found.ci_low, found.ci_high, found.reason) == (None, None, None, reason("pearson", 4))


def test_wrong_coefficient() -> None:
    message = "there is no coefficient='auroc'. Known are: pearson, spearman, kendall_b."
    assert refusal(covariate_bias, [1], [1], [1], name="length", coefficient="auroc") == f"covariate_bias: {message}"
    assert refusal(partial_correlation, [1], [1], {}, coefficient="auroc") == f"partial_correlation: {message}"


@pytest.mark.parametrize("coefficient", DEFAULT_COEFFICIENTS)
def test_no_row_with_all_columns_is_undefined(coefficient: str) -> None:
    found = partial_correlation([1, None], [None, 2], {"length": [1, 2]}, coefficient=coefficient)
    assert (found.value, found.n_scored) == (None, 0)
