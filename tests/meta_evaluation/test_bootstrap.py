"""BCa intervals: scipy as the oracle, groups of clusters, coverage (R28), seeds (R24)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.errors import InputError
from dialeval_plugin.meta_evaluation import bootstrap
from dialeval_plugin.meta_evaluation.bootstrap import Bootstrap, Resampled
from dialeval_plugin.meta_evaluation.correlation import level_correlations
from dialeval_plugin.meta_evaluation.levels import Rated
from dialeval_plugin.meta_evaluation.significance import Measure, Paired, paired_bootstrap

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall_b": stats.kendalltau}
BCA = Bootstrap(rounds=300, seed=3, confidence=0.9, interval="bca")


def rated_rows(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(2)
    ratings = generator.integers(1, 6, size=n).astype(float)
    return ratings + generator.exponential(scale=2, size=n).round(1), ratings


@pytest.mark.parametrize("coefficient", sorted(SCIPY))
def test_bca_is_that_of_scipy(coefficient: str) -> None:
    x, y = rated_rows()
    found = level_correlations(Rated(scores=x, ratings=y), level="turn", coefficients=[coefficient], bootstrap=BCA)[coefficient]
    in_order = np.lexsort((x, y))
    expected = stats.bootstrap(
        (x[in_order], y[in_order]),
        lambda a, b: SCIPY[coefficient](a, b).statistic,
        n_resamples=300,
        paired=True,
        vectorized=False,
        confidence_level=0.9,
        method="BCa",
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert (found.ci_low, found.ci_high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert found.interval == "bca"


def test_bca_differs_from_percentile_on_skewed_data() -> None:
    x, y = rated_rows()
    both = [
        level_correlations(Rated(scores=x, ratings=y), level="turn", coefficients=["pearson"], bootstrap=kind)["pearson"]
        for kind in (BCA, Bootstrap(rounds=300, seed=3, confidence=0.9))
    ]
    assert both[0].value == both[1].value
    assert both[0].ci_low != both[1].ci_low


def test_groups_of_clusters_give_almost_the_same_acceleration(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rated_rows(400)
    rated = Rated(scores=x, ratings=y)
    exact = level_correlations(rated, level="turn", coefficients=["pearson"], bootstrap=BCA)["pearson"]
    monkeypatch.setattr(bootstrap, "MAX_JACKKNIFE", 80)
    found = level_correlations(rated, level="turn", coefficients=["pearson"], bootstrap=BCA)["pearson"]
    assert found.ci_low != exact.ci_low
    assert (found.ci_low, found.ci_high) == pytest.approx((exact.ci_low, exact.ci_high), abs=0.01)


@pytest.mark.parametrize("limit", [1, 50])
def test_same_numbers_whatever_is_handled_at_once(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rated_rows()
    rated = Rated(scores=x, ratings=y, clusters=np.arange(40) // 3)
    whole = level_correlations(rated, level="turn", bootstrap=BCA)
    monkeypatch.setattr(bootstrap, "_WEIGHTS_AT_ONCE", limit)
    assert level_correlations(rated, level="turn", bootstrap=BCA) == whole
    monkeypatch.setattr(bootstrap, "_DRAWN_AHEAD", 0)
    assert level_correlations(rated, level="turn", bootstrap=BCA) == whole


def test_bca_of_a_paired_difference() -> None:
    x, y = rated_rows()
    paired = Paired(scores_a=x, scores_b=y + x.round(), ratings=y)
    found = paired_bootstrap(paired, Measure("pearson"), bootstrap=BCA)
    assert found.ci_low is not None
    assert found.ci_low < found.difference < found.ci_high


def test_no_bca_where_all_resamples_lie_on_one_side() -> None:
    shifted = Resampled(lambda sums: sums[:, 0], np.array([[1.0], [3.0]]))
    values = np.array([5.0, 6.0, 7.0])
    assert bootstrap.bca_interval("odd", values, shifted, 0.95).reason == (
        "odd: all resamples lie on one side of the value, so there is no interval. Ask for the percentile interval."
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([2.0] * 5, "x: the same on all resamples, which tells nothing of its spread, so there is no interval. {}"),
        ([np.nan] * 2 + [1.0, 2.0, 5.0], "x: undefined on 2 of 5 resamples, more than 10 %, so there is no interval. {}"),
        ([np.nan] * 5, "x: undefined on 5 of 5 resamples, more than 10 %, so there is no interval. {}"),
    ],
)
def test_no_bca(values: list[float], reason: str) -> None:
    entry = Resampled(lambda sums: sums[:, 0], np.array([[1.0], [1.0]]))
    found = bootstrap.bca_interval("x", np.array(values), entry, 0.95)
    assert found.reason == reason.format("Score and rate more examples.")


def test_unknown_interval() -> None:
    with pytest.raises(InputError) as caught:
        Bootstrap(interval="studentised")  # type: ignore[arg-type]
    assert str(caught.value) == "bootstrap: there is no interval 'studentised'. Choose one of percentile, bca."


@pytest.mark.parametrize("interval", ["percentile", "bca"])
@pytest.mark.parametrize(("n_simulations", "least"), [(60, 0.85), pytest.param(400, 0.91, marks=pytest.mark.slow)])
def test_coverage_on_clustered_data(interval: Any, n_simulations: int, least: float) -> None:
    """Rows of a cluster share half of their variance; the true correlation is 0.5."""
    generator = np.random.default_rng(28)
    covariance = [[1, 0.5], [0.5, 1]]
    hits = 0
    for _ in range(n_simulations):
        shared = generator.multivariate_normal([0, 0], covariance, size=60).repeat(4, axis=0)
        x, y = (shared + generator.multivariate_normal([0, 0], covariance, size=240)).T
        rated = Rated(scores=x, ratings=y, clusters=np.arange(240) // 4)
        boot = Bootstrap(rounds=200, interval=interval)
        found = level_correlations(rated, level="turn", coefficients=["pearson"], bootstrap=boot)["pearson"]
        assert found.ci_low is not None
        hits += found.ci_low <= 0.5 <= found.ci_high
    assert hits / n_simulations >= least
