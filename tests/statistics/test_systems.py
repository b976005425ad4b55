"""Soft pairwise accuracy beside mt-metrics-eval's, and Pearson's correlation of differences beside its definition."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.statistics.bootstrap import Bootstrap, Resampled
from dialeval_plugin.statistics.coefficients.by_name import pairwise_difference_pearson, soft_pairwise_accuracy
from dialeval_plugin.statistics.correlation import level_correlations
from dialeval_plugin.statistics.levels import ScoredRatings
from dialeval_plugin.statistics.significance import Measure, Paired, paired_bootstrap, permutation_test
from tests.refusals import refusal, refused


def made_up(n_systems: int, n_items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ratings and scores of shape (systems, items); as reproduction/references/systems.py."""
    generator = np.random.default_rng(seed)
    quality = np.linspace(0, 0.6, n_systems)[:, None]
    ratings = quality + generator.normal(size=n_items) + generator.normal(size=(n_systems, n_items))
    return ratings, 0.5 * ratings + generator.normal(size=(n_systems, n_items))


def rated(shape: tuple[int, int, int], **changed: Any) -> ScoredRatings:
    ratings, scores = made_up(*shape)
    systems, items = (index.reshape(-1) for index in np.indices(ratings.shape))
    columns = {"clusters": items, "systems": systems, "items": items}
    return ScoredRatings(scores=scores.reshape(-1), ratings=ratings.reshape(-1), **{**columns, **changed})


# mt-metrics-eval 1b47eab, `pce.py` with 20,000 permutations: reproduction/references/systems.py.
@pytest.mark.parametrize(("shape", "theirs"), [((5, 60, 0), 0.786175), ((8, 200, 1), 0.858063), ((11, 400, 2), 0.854942)])
def test_soft_pairwise_accuracy_is_that_of_mt_metrics_eval(shape: tuple[int, int, int], theirs: float) -> None:
    found = level_correlations(rated(shape), level="system", coefficients=["soft_pairwise_accuracy"])["soft_pairwise_accuracy"]
    assert found.value == pytest.approx(theirs, abs=0.001)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert 0.5 < found.ci_low < theirs < found.ci_high <= 1
    assert (found.n_groups, found.n_clusters) == (shape[0], shape[1])


def test_the_interval_is_not_lowered_by_the_noise_of_resamples() -> None:
    """Quantiles alone held the expected accuracy of twenty systems in 70 % of simulated data sets (reproduction/coverage)."""
    data = rated((20, 100, 0))
    name, bootstrap = "soft_pairwise_accuracy", Bootstrap(rounds=200)
    resampled = soft_pairwise_accuracy(data.scores, data.ratings, data.clusters, data.systems)
    values = bootstrap.on_resamples({name: resampled})[name]
    low, high = np.quantile(values, bootstrap.ends(100))
    found = bootstrap.interval_of(name, values, resampled)
    assert resampled.value - values.mean() > 0.01
    assert found.ci_low == pytest.approx(low + resampled.value - values.mean())
    assert found.ci_high == pytest.approx(min(1, high + resampled.value - values.mean()))
    # Perfect agreement cannot be exceeded, and the difference of two evaluators keeps the limit.
    same = soft_pairwise_accuracy(data.ratings, data.ratings, data.clusters, data.systems)
    assert bootstrap.intervals({name: resampled - same})[name].ci_high <= 1


def test_systems_without_common_clusters_are_compared_by_an_unpaired_test() -> None:
    """With two systems on other dialogues each, p is that of the pooled test of two samples."""
    ratings, scores = (values[[0, -1]] for values in made_up(5, 60, 0))
    systems = np.repeat([0, 1], 60)
    found = soft_pairwise_accuracy(scores.reshape(-1), ratings.reshape(-1), np.arange(120), systems)
    p_values = []
    for a, b in (scores, ratings):
        spread = np.concatenate([a, b]).std() * np.sqrt(1 / 60 + 1 / 60)
        p_values.append(stats.norm.sf((a.mean() - b.mean()) / spread))
    assert found.value == pytest.approx(1 - abs(p_values[0] - p_values[1]), abs=1e-9)


def test_equal_systems_are_even() -> None:
    """Scores that are all the same have p = 0.5, and ratings that tell the systems apart for sure have 0 or 1."""
    ratings = np.repeat([1.0, 2.0], 40) + np.tile([0.1, -0.1], 40)
    found = soft_pairwise_accuracy(np.ones(80), ratings, np.arange(80), np.repeat([0, 1], 40))
    assert found.value == pytest.approx(0.5, abs=1e-6)


def test_a_system_that_is_not_drawn_leaves_its_pairs_out() -> None:
    found = soft_pairwise_accuracy(np.arange(6.0), np.arange(6.0), np.arange(6), np.array([0, 0, 1, 1, 2, 2]))
    sums = found.sums.toarray()
    assert found.statistic(sums[:4].sum(axis=0)[None])[0] == pytest.approx(1)
    assert np.isnan(found.statistic(sums[:2].sum(axis=0)[None])[0])


def differences(values: np.ndarray) -> list[float]:
    return [a - b for column in values.T for a, b in itertools.permutations(column, 2)]


def test_differences_are_those_of_all_pairs_of_responses_to_one_item() -> None:
    ratings, scores = made_up(5, 60, 0)
    expected = stats.pearsonr(differences(scores), differences(ratings)).statistic
    name = "pairwise_difference_pearson"
    found = level_correlations(rated((5, 60, 0)), average_by="item", coefficients=[name])[name]
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.ci_low is not None
    assert found.ci_low < expected
    assert found.n_groups == 60


def test_an_item_that_is_hard_for_all_does_not_count() -> None:
    ratings, scores = made_up(5, 60, 0)
    shift = 10 * np.arange(60.0)
    systems, items = (index.reshape(-1) for index in np.indices(ratings.shape))
    plain, moved = (
        pairwise_difference_pearson((scores + of).reshape(-1), ratings.reshape(-1), items, items).value
        for of in (0 * shift, shift)
    )
    assert moved == pytest.approx(plain, abs=1e-9)
    assert len(systems) == 300


def test_what_they_need_is_said() -> None:
    data = rated((5, 60, 0))
    systems = "soft_pairwise_accuracy: compares systems. Give level='system', which is --by-system."
    items = "pairwise_difference_pearson: compares responses to one item. Give average_by='item', which is --average-by item."
    for options in ({}, {"average_by": "item"}, {"average_by": "system"}):
        assert refusal(level_correlations, data, coefficients=["soft_pairwise_accuracy"], **options) == systems
    for options in ({}, {"level": "system"}, {"average_by": "system"}):
        assert refusal(level_correlations, data, coefficients=["pairwise_difference_pearson"], **options) == items
    with refused("pairwise_difference_pearson: responses to one item lie in several clusters. Give clusters of whole items."):
        pairwise_difference_pearson(np.arange(4.0), np.arange(4.0), np.arange(4), np.array([0, 0, 1, 1]))
    why = "no two responses to one item differ in scores, or none in ratings. Give several responses an item."
    with refused(f"pairwise_difference_pearson: {why}", StatisticUndefined):
        pairwise_difference_pearson(np.arange(4.0), np.ones(4), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
    with refused("soft_pairwise_accuracy: 1 systems, 2 are needed. Give responses of several systems.", StatisticUndefined):
        soft_pairwise_accuracy(np.arange(4.0), np.ones(4), np.arange(4), np.zeros(4, dtype=int))


def test_evaluators_are_compared_by_them() -> None:
    data = rated((5, 60, 0))
    noise = np.random.default_rng(5).normal(size=300)
    columns = {name: getattr(data, name) for name in ("ratings", "clusters", "systems", "items")}
    paired = Paired(scores_a=data.scores, scores_b=noise, **columns)
    found = permutation_test(paired, Measure("pairwise_difference_pearson", average_by="item"), rounds=100)
    assert found.p_value is not None
    assert found.p_value < 0.02
    assert permutation_test(paired, Measure("soft_pairwise_accuracy", "system"), rounds=20).p_value is not None


def test_noise_of_resamples_puts_no_coefficient_of_systems_outside_its_interval() -> None:
    """Resampled means differ more than the means, so that Pearson's r of similar systems is nearer to 0 on all resamples."""
    generator = np.random.default_rng(49)
    quality, shared = generator.normal(size=20), generator.normal(size=(30, 20))
    ratings, scores = quality + 2 * shared, -quality + 2 * shared + generator.normal(size=(30, 20))
    items, systems = (index.reshape(-1) for index in np.indices(ratings.shape))
    data = ScoredRatings(scores=scores.reshape(-1), ratings=ratings.reshape(-1), clusters=items, systems=systems)
    expected = stats.pearsonr(scores.mean(axis=0), ratings.mean(axis=0)).statistic
    for name in ("pearson", "spearman", "kendall_b", "pairwise_accuracy"):
        found = level_correlations(data, level="system", coefficients=[name], bootstrap=Bootstrap(rounds=200))[name]
        assert found.ci_low is not None, found.reason
        assert found.ci_high is not None
        assert (0 if name == "pairwise_accuracy" else -1) <= found.ci_low < found.value < found.ci_high < 1
    found = level_correlations(data, level="system", coefficients=["pearson"], bootstrap=Bootstrap(interval="percentile"))
    assert found["pearson"].value == pytest.approx(expected, abs=1e-12)
    generator = np.random.default_rng(0)
    of_resamples = [
        stats.pearsonr(scores[drawn].mean(axis=0), ratings[drawn].mean(axis=0)).statistic
        for drawn in generator.integers(30, size=(1000, 30))
    ]
    assert np.quantile(of_resamples, 0.025) > expected
    assert found["pearson"].ci_low < expected < found["pearson"].ci_high


def test_a_difference_of_two_systems_coefficients_has_twice_their_range() -> None:
    ratings, _ = made_up(5, 60, 0)
    systems, items = (index.reshape(-1) for index in np.indices(ratings.shape))
    noise = np.random.default_rng(5).normal(size=300)
    paired = Paired(scores_a=ratings.reshape(-1), scores_b=-ratings.reshape(-1) + noise, ratings=ratings.reshape(-1),
                    clusters=items, systems=systems)  # fmt: skip
    found = paired_bootstrap(paired, Measure("pearson", "system"))
    assert found.ci_low < found.value < found.ci_high <= 2
    assert found.value > 1.5


def test_a_value_outside_the_interval_of_its_resamples_has_none() -> None:
    sums = np.arange(40.0).reshape(-1, 1)
    nearer = Resampled(lambda drawn: np.where(drawn[:, 0] == sums.sum(), 5.0, np.sin(drawn[:, 0])), sums)
    found = Bootstrap(rounds=200).intervals({"r": nearer})["r"]
    why = "r: the value lies outside the interval of its resamples, so there is no interval. Score and rate more examples."
    assert (found.ci_low, found.reason) == (None, why)
