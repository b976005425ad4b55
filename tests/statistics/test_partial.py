"""Partial correlations against the textbook formula, and what they say of scores that are nothing but length."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.core.errors import InputError, StatisticUndefined
from dialeval_plugin.statistics.partial import partial_coefficient, partial_correlation


def columns(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores and ratings that agree only because both grow with the length, and two lengths."""
    generator = np.random.default_rng(seed)
    length = generator.integers(2, 30, n).astype(float)
    words = 8 * length + generator.normal(0, 4, n)
    return length + generator.normal(0, 3, n), length + generator.normal(0, 3, n), length, words


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_one_covariate_gives_the_textbook_formula(coefficient: str) -> None:
    x, y, z, _ = columns()
    of = stats.pearsonr if coefficient == "pearson" else stats.spearmanr
    r_xy, r_xz, r_yz = (of(a, b).statistic for a, b in ((x, y), (x, z), (y, z)))
    expected = (r_xy - r_xz * r_yz) / math.sqrt((1 - r_xz**2) * (1 - r_yz**2))
    assert partial_coefficient(x, y, {"length": z}, coefficient) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_two_covariates_give_the_inverse_of_the_correlation_matrix(coefficient: str) -> None:
    table = np.column_stack(columns())
    values = table if coefficient == "pearson" else stats.rankdata(table, axis=0)
    precision = np.linalg.inv(np.corrcoef(values.T))
    expected = -precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1])
    x, y, z, w = table.T
    found = partial_coefficient(x, y, {"turns": z, "words": w}, coefficient)
    assert found == pytest.approx(expected, abs=1e-10)
    assert partial_coefficient(x, y, {"words": w, "turns": z}, coefficient) == pytest.approx(found, abs=1e-10)


def test_without_covariates_it_is_the_plain_coefficient() -> None:
    x, y, *_ = columns()
    assert partial_coefficient(x, y, {}, "pearson") == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


def test_a_score_that_is_only_length_keeps_nothing() -> None:
    x, y, z, _ = columns(400)
    assert stats.pearsonr(x, y).statistic > 0.7
    found = partial_correlation(x, y, {"length": z}, coefficient="pearson", rounds=200)
    assert found.value is not None
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.ci_low < 0 < found.ci_high
    assert found.ci_low < found.value < found.ci_high
    assert abs(found.value) < 0.1


def test_what_has_no_score_or_rating_is_left_out_and_counted() -> None:
    x, y, z, _ = columns(30)
    scores = [None if place in (3, 4) else value for place, value in enumerate(x)]
    ratings = [None if place in (4, 9) else value for place, value in enumerate(y)]
    lengths = [None if place in (3, 4) else value for place, value in enumerate(z)]
    found = partial_correlation(scores, ratings, {"length": lengths}, coefficient="spearman", rounds=50)
    kept = [place for place in range(30) if place not in (3, 4, 9)]
    assert found.value == pytest.approx(partial_coefficient(x[kept], y[kept], {"length": z[kept]}, "spearman"), abs=1e-12)
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_unrated) == (30, 27, 1, 2)
    assert (found.n_clusters, found.covariates, found.rounds) == (27, ("length",), 50)


def test_the_seed_decides_the_interval() -> None:
    x, y, z, _ = columns()
    first, again, other = (
        partial_correlation(x, y, {"length": z}, coefficient="pearson", rounds=100, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first.ci_low != other.ci_low


@pytest.mark.parametrize(
    ("scores", "covariates", "reason"),
    [
        ([1, 2, 3, 4], {"length": [2, 4, 6, 8]}, "partial pearson: the covariates determine the scores. Hold less constant."),
        ([1, 1, 1, 1], {"length": [2, 4, 1, 8]}, "partial pearson: the covariates determine the scores. Hold less constant."),
        (
            [1, 2, 3],
            {"length": [2, 4, 1]},
            "partial pearson: 3 rows, at least 4 are needed. Score and rate more examples.",
        ),
    ],
)
def test_what_is_undefined_has_a_reason(scores: list[float], covariates: dict[str, list[float]], reason: str) -> None:
    ratings = [3, 1, 4, 1][: len(scores)]
    with pytest.raises(StatisticUndefined) as error:
        partial_coefficient(scores, ratings, covariates, "pearson")
    assert str(error.value) == reason
    found = partial_correlation(scores, ratings, covariates, coefficient="pearson")
    assert (found.value, found.ci_low, found.ci_high, found.reason) == (None, None, None, reason)


def test_wrong_arguments_are_said() -> None:
    with pytest.raises(InputError) as unknown:
        partial_correlation([1, 2], [1, 2], {}, coefficient="kendall_b")
    assert str(unknown.value) == ("partial_correlation: there is no coefficient 'kendall_b'. Choose one of pearson, spearman.")
    with pytest.raises(InputError) as missing:
        partial_correlation([1, 2], [1, 2], {"length": [1, None]}, coefficient="pearson")
    assert str(missing.value) == (
        "partial_correlation: a scored row has no 'length'. Give every covariate of a row that has a score."
    )
