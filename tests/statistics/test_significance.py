"""Tests between two metrics: exact enumeration (R25), golden values of mt-metrics-eval, swaps of clusters, false alarms."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialeval_plugin.statistics import significance
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.levels import RatingTable
from dialeval_plugin.statistics.rows import symmetric
from dialeval_plugin.statistics.significance import (
    Measure,
    Paired,
    difference_intervals,
    paired_bootstrap,
    permutation_test,
)
from tests.cluster_order import SCIPY, interval_by_loop
from tests.refusals import refusal

PEARSON = Measure("pearson")
levels = st.integers(1, 3)


def paired_data(n: int = 60, seed: int = 1) -> Paired:
    generator = np.random.default_rng(seed)
    ratings = generator.integers(1, 6, size=n)
    a, b = (ratings + generator.normal(scale=scale, size=n) for scale in (1, 3))
    return Paired(scores_a=a, scores_b=100 * b, ratings=ratings, clusters=np.arange(n) // 2)


def share_by_force(a: Any, b: Any, y: Any, units: Any, coefficient: str) -> float:
    """All swaps of units, written out; a swap without a value counts as large."""
    za, zb = stats.zscore(a).round(12), stats.zscore(b).round(12)
    of = SCIPY[coefficient]
    observed = of(a, y).statistic - of(b, y).statistic
    large = []
    for swapped in itertools.product([0, 1], repeat=max(units) + 1):
        mask = np.array(swapped)[units] == 1
        difference = of(np.where(mask, zb, za), y).statistic - of(np.where(mask, za, zb), y).statistic
        large.append(np.isnan(difference) or abs(difference) >= abs(observed) - 1e-12)
    return float(np.mean(large))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("coefficient", sorted(SCIPY))
def test_exact_enumeration_equals_brute_force_on_ties(coefficient: str) -> None:
    @settings(max_examples=8)
    @given(st.lists(st.tuples(levels, levels, levels), min_size=3, max_size=6))
    def check(rows: list[tuple[int, int, int]]) -> None:
        a, b, y = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        paired = Paired(scores_a=a, scores_b=b, ratings=y)
        found = permutation_test(paired, Measure(coefficient))
        if any(len(set(column)) == 1 for column in (a, b, y)):
            assert found.p_value is None
            return
        assert (found.is_exact, found.n_rounds) == (True, 2 ** len(rows))
        assert found.p_value == pytest.approx(share_by_force(a, b, y, np.arange(len(y)), coefficient), abs=1e-12)

    check()


def test_clusters_are_swapped_as_a_whole() -> None:
    paired = paired_data(12)
    found = permutation_test(paired, PEARSON)
    expected = share_by_force(paired.scores_a, paired.scores_b, paired.ratings, paired.clusters, "pearson")
    assert (found.n_clusters, found.n_rounds, found.p_value) == (6, 64, pytest.approx(expected, abs=1e-12))


def test_random_swaps_come_near_all_swaps_and_are_never_0(monkeypatch: pytest.MonkeyPatch) -> None:
    paired = paired_data(16, seed=4)
    exact = permutation_test(paired, PEARSON)
    monkeypatch.setattr(significance, "EXACT_UNITS", 0)
    found = permutation_test(paired, PEARSON, rounds=600, seed=3)
    assert (exact.is_exact, found.is_exact) == (True, False)
    assert found.p_value == pytest.approx(exact.p_value, abs=0.05)
    assert permutation_test(paired, PEARSON, rounds=600, seed=3) == found
    ratings, noise = np.arange(200.0), np.random.default_rng(0).normal(size=200)
    clear = permutation_test(Paired(scores_a=ratings, scores_b=noise, ratings=ratings), PEARSON, rounds=99)
    assert clear.p_value == 1 / 100


def test_a_metric_against_itself() -> None:
    paired = paired_data()
    same = Paired(scores_a=paired.scores_a, scores_b=np.array(paired.scores_a) * 3 + 1, ratings=paired.ratings)
    for coefficient in SCIPY:
        found = permutation_test(same, Measure(coefficient), rounds=50)
        assert (found.difference, found.p_value) == (pytest.approx(0, abs=1e-12), 1.0)


def test_only_rows_that_both_have_count() -> None:
    a, b, y = [1, None, 3, 4, 2, 5, 9], [2, 2, None, 3, 1, 5, 9], [1, 2, 3, 5, 1, 4, None]
    found = permutation_test(Paired(scores_a=a, scores_b=b, ratings=y), PEARSON)
    kept = permutation_test(Paired(scores_a=[1, 4, 2, 5], scores_b=[2, 3, 1, 5], ratings=[1, 5, 1, 4]), PEARSON)
    assert (found.p_value, found.value_a, found.value_b) == (kept.p_value, kept.value_a, kept.value_b)
    assert (found.n_total, found.n_both, found.n_clusters) == (7, 4, 4)


@pytest.mark.parametrize("scale", [1 / 7, 3, 1000])
def test_scores_that_stand_equally_high_are_tied_after_a_swap(scale: float) -> None:
    a, ratings = np.array([0.1, 0.2, 0.3, 0.7, 0.3, 0.1, 0.9]), np.array([1, 2, 2, 3, 3, 1, 3])
    b = a[[3, 0, 5, 1, 6, 2, 4]]
    plain, scaled = (permutation_test(Paired(scores_a=a, scores_b=b * by, ratings=ratings), Measure()) for by in (1, scale))
    assert scaled.p_value == plain.p_value


@pytest.mark.parametrize("measure", [Measure("pairwise_accuracy", "turn", "item"), Measure("pearson", "system")])
def test_levels(measure: Measure) -> None:
    generator = np.random.default_rng(6)
    n_items, n_systems = 12, 5
    ratings = (generator.normal(size=(n_items, n_systems)) + np.arange(n_systems)).round()
    a, b = (ratings + generator.normal(scale=scale, size=ratings.shape) for scale in (0.5, 5))
    items, systems = np.repeat(np.arange(n_items), n_systems), np.tile(np.arange(n_systems), n_items)
    columns = {"scores_a": a.ravel(), "scores_b": b.ravel(), "ratings": ratings.ravel()}
    paired = Paired(**columns, clusters=items, systems=systems, items=items)
    found = permutation_test(paired, measure, rounds=40)
    assert found.n_clusters == n_items
    assert found.p_value is not None
    difference = paired_bootstrap(paired, measure, bootstrap=Bootstrap(rounds=40))
    assert difference.value == pytest.approx(found.difference, abs=1e-12)
    if measure.level == "system":
        means = [stats.pearsonr(scores.mean(axis=0), ratings.mean(axis=0)).statistic for scores in (a, b)]
        assert found.difference == pytest.approx(means[0] - means[1], abs=1e-9)


FOUR = {"scores_a": [1, 2, 3, 5], "scores_b": [2, 1, 3, 4], "ratings": [1, 2, 2, 3]}


@pytest.mark.parametrize(
    ("changed", "rounds", "reason"),
    [
        ({"scores_a": [1, 1, 1, 1]}, 1000, "pearson: all 4 scores are 1.0. Give scores that differ."),
        ({"scores_a": [None] * 4}, 1000, "permutation_test: 0 units to swap. Give more rows."),
        ({"clusters": ["a"] * 4}, 1000, "permutation_test: 1 units to swap. Give more rows."),
        ({}, 0, "permutation_test: rounds is 0, so there is no p-value. Ask for 1000 rounds."),
    ],
)
def test_no_test(changed: dict[str, Any], rounds: int, reason: str) -> None:
    found = permutation_test(Paired(**{**FOUR, **changed}), PEARSON, rounds=rounds)
    assert (found.p_value, found.reason) == (None, reason)
    assert (found.difference is None) == bool(rounds)
    json.dumps(asdict(found), allow_nan=False)


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({}, {"rounds": -1}, "bootstrap: rounds is -1. Give an integer that is 0 or more."),
        ({"scores_b": [1]}, {}, "permutation_test: 4 scores_a but 1 scores_b. Give one of each for every row."),
    ],
)
def test_wrong_input(changed: dict[str, Any], options: dict[str, Any], message: str) -> None:
    assert refusal(permutation_test, Paired(**{**FOUR, **changed}), **options) == message


@pytest.mark.parametrize("coefficient", sorted(SCIPY))
def test_paired_bootstrap_is_that_of_a_loop(coefficient: str) -> None:
    paired, of = paired_data(), SCIPY[coefficient]
    found = paired_bootstrap(paired, Measure(coefficient), bootstrap=Bootstrap(rounds=100, seed=2))
    a, b, y = columns = [np.array(column) for column in (paired.scores_a, paired.scores_b, paired.ratings)]
    content = symmetric(([column] for column in columns[:2]), columns[2:])

    def difference(rows: np.ndarray) -> float:
        return float(of(a[rows], y[rows]).statistic - of(b[rows], y[rows]).statistic)

    assert (found.ci_low, found.ci_high) == interval_by_loop(difference, paired.clusters, content, rounds=100, seed=2)
    assert (found.name, found.n_scored, found.n_clusters) == (f"difference of {coefficient}", 60, 30)


def test_paired_bootstrap_undefined() -> None:
    found = paired_bootstrap(Paired(scores_a=[1, 1, 1], scores_b=[1, 2, 3], ratings=[1, 2, 3]), Measure("kendall_b"))
    assert (found.value, found.ci_low, found.n_scored) == (None, None, 3)
    assert found.reason == "kendall_b: all 3 scores are 1.0. Give scores that differ."


@pytest.mark.parametrize(("n_simulations", "most"), [(20, 0.2), pytest.param(400, 0.075, marks=pytest.mark.exhaustive)])
def test_few_false_alarms_between_equally_good_metrics(n_simulations: int, most: float) -> None:
    """Rows of a cluster share noise: swapping clusters keeps the level of 5 %, within three standard errors above."""
    generator = np.random.default_rng(25)
    alarms = 0
    for _ in range(n_simulations):
        ratings = generator.normal(size=40)
        a, b = (ratings + generator.normal(size=20).repeat(2) + generator.normal(size=40) for _ in range(2))
        paired = Paired(scores_a=a, scores_b=b, ratings=ratings, clusters=np.arange(40) // 2)
        alarms += permutation_test(paired, PEARSON, rounds=99).p_value <= 0.05
    assert alarms / n_simulations <= most


def test_the_differences_of_all_pairs_are_those_of_each_pair_alone_up_to_what_is_drawn() -> None:
    generator = np.random.default_rng(4)
    ratings = generator.normal(size=200)
    scores: dict[str, list[float | None]] = {
        name: list(ratings + generator.normal(scale=scale, size=200)) for name, scale in (("a", 0.5), ("b", 1.0), ("c", 2.0))
    }
    # One metric lacks rows, so that its pairs rest on others than the rest.
    scores["c"][:30] = [None] * 30
    clusters = [str(row // 4) for row in range(200)]
    found = difference_intervals(scores, RatingTable(ratings=ratings, clusters=clusters))
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [one.n_scored for one in found.values()] == [200, 170, 170]
    for (a, b), one in found.items():
        alone = paired_bootstrap(Paired(scores_a=scores[a], scores_b=scores[b], ratings=ratings, clusters=clusters))
        assert one.value == alone.value
        assert (one.ci_low, one.ci_high) == pytest.approx((alone.ci_low, alone.ci_high), abs=0.03)
        assert (one.n_clusters, one.is_rough) == (alone.n_clusters, alone.is_rough)


def test_of_few_clusters_or_a_constant_metric_there_is_no_interval_of_a_difference() -> None:
    scores = {"a": [1, 2, 3, 4], "b": [2, 1, 4, 3], "flat": [1, 1, 1, 1]}
    found = difference_intervals(scores, RatingTable(ratings=[1, 2, 3, 4]))
    assert (found["a", "b"].ci_low, found["a", "flat"].value) == (None, None)
    assert "needs 10 clusters" in str(found["a", "b"].reason)
    assert "all 4 scores are 1.0" in str(found["a", "flat"].reason)


def test_a_metric_that_decides_nothing_can_be_compared() -> None:
    """Its scores have no spread to be standardised by; a swap of clusters mixes them with the other metric's in each system."""
    generator = np.random.default_rng(3)
    scores, ratings, swapped = generator.normal(size=(2, 6)), generator.normal(size=(2, 6)), itertools.product([0, 1], repeat=6)
    paired = Paired(
        scores_a=scores.reshape(-1),
        scores_b=[7] * 12,
        ratings=ratings.reshape(-1),
        clusters=[*range(6)] * 2,
        systems=[*"a" * 6, *"b" * 6],
    )
    found = permutation_test(paired, Measure("spearman", average_by="system"))

    def value(columns: np.ndarray) -> float:
        pairs = zip(columns, ratings, strict=True)
        return float(np.mean([stats.spearmanr(*pair).statistic if np.ptp(pair[0]) else 0.0 for pair in pairs]))

    standard = stats.zscore(scores, axis=None)
    taken = [np.array(swap, dtype=bool) for swap in swapped]
    differences = [value(np.where(swap, 0, standard)) - value(np.where(swap, standard, 0)) for swap in taken]
    n_large = sum(abs(difference) >= abs(differences[0]) - 1e-12 for difference in differences)
    assert (found.value_a, found.value_b, found.n_degenerate) == (pytest.approx(differences[0]), 0, 0)
    assert found.p_value == n_large / 64


@pytest.mark.parametrize("name", ["ratings", "where", "items"])
def test_a_metric_may_have_the_name_of_a_column(name: str) -> None:
    ratings = [1, 2, 3, 4, 5, 5, 4, 3, 2, 1]
    found = difference_intervals({name: ratings, "b": ratings[::-1]}, RatingTable(ratings=ratings))
    assert found[name, "b"].value == pytest.approx(0)
