"""Levels and averaging: golden values of mt-metrics-eval, loops over groups, what is left out (R20), ranges of ratings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics import levels
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.coefficients.tie_calibration import calibrated_epsilon
from dialeval_plugin.statistics.correlation import Correlation, correlate, level_correlations
from dialeval_plugin.statistics.levels import Rated
from tests.cluster_order import drawn_rows
from tests.refusals import refused

FEW = Bootstrap(rounds=50)
# google-research/mt-metrics-eval, stats_test.py, CorrelationTest: two systems, three items.
TOY = Rated(scores=[2, 1, 4, 3, 3, 7], ratings=[1, 2, 3, 4, 5, 6], systems=list("aaabbb"), items=list("xyzxyz"))


def at_level(rated: Rated, coefficient: str = "pearson", **options: Any) -> Correlation:
    return level_correlations(rated, coefficients=[coefficient], **{"bootstrap": FEW, **options})[coefficient]


def rated_systems(n_items: int = 20, n_systems: int = 4, seed: int = 3) -> Rated:
    """Responses of several systems to each context, in few levels."""
    generator = np.random.default_rng(seed)
    quality = np.repeat(generator.normal(size=n_items), n_systems) + np.tile(np.arange(n_systems) / 2, n_items)
    return Rated(
        scores=(2 * quality + generator.normal(size=n_items * n_systems)).round(),
        ratings=np.clip((quality + generator.normal(size=n_items * n_systems)).round(), -1, 3),
        clusters=np.repeat(np.arange(n_items), n_systems),
        systems=np.tile(np.arange(n_systems), n_items),
        items=np.repeat(np.arange(n_items), n_systems),
    )


@pytest.mark.parametrize(
    ("coefficient", "average_by", "expected"),
    [
        ("pearson", "none", 0.776),
        ("pearson", "system", 0.760),
        ("kendall_b", "none", 0.552),
        ("kendall_b", "system", 0.575),
        ("kendall_c", "none", 0.556),
        ("kendall_c", "system", 0.611),
    ],
)
def test_golden_values_of_mt_metrics_eval(coefficient: str, average_by: Any, expected: float) -> None:
    assert at_level(TOY, coefficient, average_by=average_by).value == pytest.approx(expected, abs=5e-4)


def test_two_rows_an_item_are_undefined_unlike_in_mt_metrics_eval() -> None:
    """There, two rows give 1 or -1; here, only pairwise accuracy counts them."""
    reason = "pearson: undefined in all 3 groups, which have fewer than 3 rows or no differences. Give more rows a group."
    assert at_level(TOY, average_by="item").reason == reason
    found = at_level(TOY, "pairwise_accuracy", average_by="item")
    assert (found.value, found.n_groups) == (1.0, 3)


def test_an_undefined_group_is_left_out_and_counted() -> None:
    """testNaNHandling of mt-metrics-eval: the scores of the first system are constant."""
    rated = Rated(scores=[2, 2, 2, 4, 5, 6], ratings=[1, 2, 3, 4, 5, 6], systems=list("aaabbb"))
    found = at_level(rated, average_by="system")
    assert found.value == pytest.approx(1, abs=1e-12)
    assert (found.n_groups, found.n_undefined_groups, found.n_scored) == (1, 1, 6)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall_b"])
@pytest.mark.parametrize("average_by", ["system", "item"])
def test_average_is_that_of_a_loop(coefficient: str, average_by: Any) -> None:
    rated = rated_systems()
    labels = rated.systems if average_by == "system" else rated.items
    of = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall_b": stats.kendalltau}[coefficient]
    scores, ratings = np.array(rated.scores), np.array(rated.ratings)
    groups = [np.flatnonzero(np.array(labels) == label) for label in np.unique(np.array(labels))]
    varied = [rows for rows in groups if np.ptp(scores[rows]) and np.ptp(ratings[rows])]
    found = at_level(rated, coefficient, average_by=average_by)
    assert found.value == pytest.approx(np.mean([of(scores[rows], ratings[rows]).statistic for rows in varied]), abs=1e-9)
    assert (found.n_groups, found.n_undefined_groups) == (len(varied), len(groups) - len(varied))


def test_items_are_drawn_whole() -> None:
    """Each context is a cluster, so the interval is that of a mean of fixed values."""
    rated = rated_systems()
    found = at_level(rated, "kendall_b", average_by="item", bootstrap=Bootstrap(rounds=200, seed=5))
    scores, ratings = (np.array(column).reshape(20, 4) for column in (rated.scores, rated.ratings))
    values = np.array([stats.kendalltau(scores[item], ratings[item]).statistic for item in range(20)])
    drawn = drawn_rows(rated.clusters, [rated.ratings, rated.scores], rounds=200, seed=5)
    means = [np.nanmean(values[rows[::4] // 4]) for rows in drawn]
    assert (found.ci_low, found.ci_high) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=1e-9)


@pytest.mark.parametrize(("level", "average_by"), [("turn", "system"), ("system", "none")])
def test_systems_are_made_anew_from_the_rows_that_are_drawn(level: Any, average_by: Any) -> None:
    rated = rated_systems()
    found = at_level(rated, level=level, average_by=average_by, bootstrap=Bootstrap(rounds=100, seed=5))
    scores, ratings = (np.array(column).reshape(20, 4) for column in (rated.scores, rated.ratings))

    def statistic(rows: np.ndarray) -> float:
        if level == "system":
            return float(stats.pearsonr(scores[rows].mean(axis=0), ratings[rows].mean(axis=0)).statistic)
        return float(np.mean([stats.pearsonr(scores[rows, i], ratings[rows, i]).statistic for i in range(4)]))

    assert found.value == pytest.approx(statistic(np.arange(20)), abs=1e-9)
    drawn = drawn_rows(rated.clusters, [rated.ratings, rated.scores], rounds=100, seed=5)
    values = [statistic(rows[::4] // 4) for rows in drawn]
    assert (found.ci_low, found.ci_high) == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1e-9)
    assert (found.level, found.average_by, found.n_groups) == (level, average_by, 4)


def test_epsilon_is_reported() -> None:
    rated = rated_systems()
    found = level_correlations(rated, average_by="item", coefficients=["pairwise_accuracy", "pearson"], bootstrap=FEW)
    chosen = calibrated_epsilon(rated.scores, rated.ratings, groups=rated.items)
    assert found["pairwise_accuracy"].epsilon == chosen.epsilon
    assert found["pearson"].epsilon is None
    json.dumps([one.to_dict() for one in found.values()], allow_nan=False)


def test_a_range_of_ratings() -> None:
    rated = Rated(scores=[1, 3, 2, 4, None, 5, 6, 7], ratings=[1, 2, 2, 3, 3, 4, None, 5])
    found = at_level(rated, within_range=(2, 4))
    kept = correlate([3, 2, 4, 5], [2, 2, 3, 4], coefficient="pearson", bootstrap=FEW)
    assert (found.value, found.ci_low) == (kept.value, kept.ci_low)
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_unrated, found.n_out_of_range) == (8, 4, 1, 1, 2)


@pytest.mark.parametrize(("level", "average_by"), [("turn", "item"), ("system", "none"), ("turn", "none")])
def test_nothing_to_compare(level: Any, average_by: Any) -> None:
    rated = Rated(scores=[None, 1], ratings=[1, None], systems=["a", "b"], items=["x", "y"])
    reason = "spearman: 0 pairs of score and rating, at least 3 are needed. Score and rate more examples."
    assert at_level(rated, "spearman", level=level, average_by=average_by).reason == reason
    assert at_level(rated, "pairwise_accuracy", level=level, average_by=average_by).value is None


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall_b", "kendall_c", "pairwise_accuracy"])
@pytest.mark.parametrize("is_rounded", [True, False])
def test_bins_give_almost_the_exact_interval(coefficient: str, is_rounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(8)
    ratings = generator.normal(size=3000)
    scores = ratings + generator.normal(size=3000)
    rated = Rated(scores=scores, ratings=ratings.round() if is_rounded else ratings, clusters=np.arange(3000) // 3)
    exact = at_level(rated, coefficient)
    assert exact.bins is None
    monkeypatch.setattr(levels, "MAX_CELLS", 1000)
    monkeypatch.setattr(levels, "_FEW_LEVELS", 20)
    found, tolerance = at_level(rated, coefficient), 1e-9 if coefficient == "pearson" else 2e-3
    assert found.value == exact.value
    assert (found.ci_low, found.ci_high) == pytest.approx((exact.ci_low, exact.ci_high), abs=tolerance)
    n_levels = len(np.unique(rated.ratings))
    assert found.bins == (None if coefficient == "pearson" else (1000 // n_levels, n_levels) if is_rounded else (31, 31))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"level": "word"}, "there is no level='word'. Choose one of turn, dialogue, system."),
        ({"average_by": "sys"}, "there is no average_by='sys'. Choose one of none, system, item."),
        ({"average_by": "item"}, "average_by='item' needs to know the item of each row. Give `items`."),
        ({"level": "system"}, "level='system' needs to know the system of each row. Give `systems`."),
        (
            {"level": "system", "average_by": "item"},
            "level='system' has one row a system, nothing to average. Give average_by='none'.",
        ),
        ({"within_range": (4, 2)}, "within_range is (4, 2). Give the lowest and the highest rating that count."),
    ],
)
def test_wrong_options(changed: dict[str, Any], message: str) -> None:
    with refused(f"correlate: {message}"):
        at_level(Rated(scores=[1, 2, 3], ratings=[1, 2, 2]), **changed)


def test_columns_of_other_lengths() -> None:
    with refused("correlate: 3 scores but 1 items. Give one of each for every row."):
        at_level(Rated(scores=[1, 2, 3], ratings=[1, 2, 2], items=["a"]))
