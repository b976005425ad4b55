"""Correlations with intervals: what is counted, what is withheld (R20, R23, R31), seeds (R24), clusters (R28), levels."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialeval_plugin.statistics import levels
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.coefficients.by_name import COEFFICIENTS, accuracy_at, calibrated_epsilon
from dialeval_plugin.statistics.correlation import Correlation, correlate, correlations, level_correlations
from dialeval_plugin.statistics.levels import ScoredRatings
from tests.cluster_order import SCIPY, drawn_rows, expanded_ends, interval_by_loop
from tests.refusals import refusal

FEW = Bootstrap(rounds=50)


def rated_data(n: int = 60, seed: int = 1) -> tuple[list[float], list[float], list[str]]:
    """Heavily tied scores and ratings, in clusters of unequal sizes."""
    generator = np.random.default_rng(seed)
    ratings = generator.integers(1, 6, size=n)
    scores = (ratings + generator.normal(scale=2, size=n)).round()
    return scores.tolist(), ratings.tolist(), [f"context {c}" for c in generator.integers(n // 3, size=n)]


@pytest.mark.parametrize("coefficient", sorted(SCIPY))
def test_interval_is_that_of_the_loop(coefficient: str) -> None:
    scores, ratings, clusters = rated_data()
    boot, of = Bootstrap(rounds=200, confidence=0.9, seed=7), SCIPY[coefficient]
    found = correlate(scores, ratings, coefficient=coefficient, clusters=clusters, bootstrap=boot)
    assert found.value == pytest.approx(of(scores, ratings).statistic, abs=1e-9)
    x, y = np.array(scores), np.array(ratings)
    drawn = {"rounds": 200, "seed": 7, "confidence": 0.9}
    expected = interval_by_loop(lambda rows: of(x[rows], y[rows]).statistic, clusters, [y, x], **drawn)
    assert (found.ci_low, found.ci_high) == expected
    assert (found.n_clusters, found.n_degenerate, found.reason) == (len(set(clusters)), 0, None)


def test_rows_without_a_score_or_rating_are_left_out_and_counted() -> None:
    scores, ratings, clusters = rated_data()
    kept = correlate(scores, ratings, coefficient="spearman", clusters=clusters, bootstrap=FEW)
    # A cluster without any scored row is not drawn.
    rows = [None, 1, None, *scores], [3, None, None, *ratings], ["other", clusters[0], "third", *clusters]
    found = correlate(rows[0], rows[1], coefficient="spearman", clusters=rows[2], bootstrap=FEW)
    assert (found.value, found.ci_low, found.ci_high) == (kept.value, kept.ci_low, kept.ci_high)
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_unrated) == (63, 60, 1, 2)
    assert (found.n_clusters, found.coverage) == (kept.n_clusters, 60 / 61)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.none() | st.integers(1, 3), st.none() | st.integers(1, 3), st.integers(0, 4)), max_size=15))
def test_never_nan_and_counts_add_up(rows: list[tuple[int | None, int | None, int]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    for found in correlations(columns[0], columns[1], clusters=columns[2], bootstrap=Bootstrap(rounds=20)).values():
        json.dumps(found.to_dict(), allow_nan=False)
        assert found.n_total == found.n_scored + found.n_unscored + found.n_unrated == len(rows)
        assert (found.reason is None) == (found.ci_low is not None)
        assert (found.ci_low is None) == (found.ci_high is None)
        if found.value is None:
            assert found.ci_low is None
        elif found.ci_low is not None and found.ci_high is not None:
            assert -1 <= found.ci_low <= found.ci_high <= 1


def test_one_coefficient_alone_has_the_interval_that_it_has_among_others() -> None:
    scores, ratings, clusters = rated_data()
    together = correlations(scores, ratings, clusters=clusters, bootstrap=FEW)
    assert list(together) == ["pearson", "spearman", "kendall_b"]
    for name, found in together.items():
        assert correlate(scores, ratings, coefficient=name, clusters=clusters, bootstrap=FEW) == found


def test_undefined_is_a_reason_and_no_number() -> None:
    found = correlations([0.5] * 4, [1, 2, 3, 4], coefficients=["kendall_b"], bootstrap=Bootstrap(rounds=10))["kendall_b"]
    assert (found.value, found.ci_low, found.ci_high, found.n_scored, found.n_degenerate) == (None, None, None, 4, 0)
    assert found.reason == "kendall_b: all 4 scores are 0.5. Give scores that differ."
    assert str(found) == "kendall_b undefined, 4 of 4 rows scored, 4 clusters"


def test_what_is_asked_for_by_default() -> None:
    scores, ratings, _ = rated_data(30)
    found = correlate(scores, ratings, coefficient="pearson")
    assert found.bootstrap == Bootstrap(rounds=1000, confidence=0.95, seed=0, interval="expanded")
    assert (found.level, found.average_by, found.n_groups) == ("turn", "none", None)
    at_level = level_correlations(ScoredRatings(scores=scores, ratings=ratings), level="turn")
    assert list(at_level) == ["pearson", "spearman", "kendall_b"]
    assert at_level["pearson"] == found


def test_a_coefficient_that_is_named_twice_is_computed_once() -> None:
    found = correlations([1, 2, 3], [1, 3, 2], coefficients=["spearman", "pearson", "spearman"], bootstrap=Bootstrap(rounds=0))
    assert list(found) == ["spearman", "pearson"]


def test_one_undefined_coefficient_leaves_the_others_their_intervals() -> None:
    scores, ratings, _ = rated_data(30)
    found = correlations(scores, ratings, coefficients=["auroc", "pearson"], bootstrap=FEW)
    assert found["auroc"].reason == "auroc: 5 different ratings, exactly 2 are needed. Give ratings of two values."
    assert (found["auroc"].ci_low, found["auroc"].n_degenerate, found["auroc"].n_clusters) == (None, 0, 30)
    assert found["pearson"] == correlate(scores, ratings, coefficient="pearson", bootstrap=FEW)
    assert found["pearson"].ci_low is not None


def test_some_degenerate_resamples_are_counted() -> None:
    scores, ratings = [1] * 7 + [2, 2, 3, 3], [1] * 7 + [2, 1, 3, 2]
    found = correlate(scores, ratings, coefficient="kendall_b", bootstrap=Bootstrap(rounds=5000, seed=3))
    assert 0 < found.n_degenerate < 500
    assert (found.ci_low is None, found.reason) == (False, None)


def test_many_degenerate_resamples_withhold_the_interval() -> None:
    found = correlate([1] * 11 + [2], range(12), coefficient="spearman", bootstrap=Bootstrap(rounds=100, seed=1))
    assert (found.value is None, found.ci_low, found.ci_high) == (False, None, None)
    assert found.n_degenerate > 10
    assert found.reason == (
        f"spearman: undefined on {found.n_degenerate} of 100 resamples, more than 10 %, so there is no interval. "
        "Score and rate more examples."
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scores": [1, math.nan, 3]}, "scores[1] is nan, not a finite number. Give None where there is no value."),
        ({"ratings": [1, 2, math.inf]}, "ratings[2] is inf, not a finite number. Give None where there is no value."),
        ({"ratings": [1, 2]}, "3 scores but 2 ratings. Give one of each for every row."),
        ({"clusters": ["a"]}, "3 scores but 1 clusters. Give one of each for every row."),
        ({"items": ["a"]}, "3 scores but 1 items. Give one of each for every row."),
        ({"clusters": ["a", None, "b"]}, "clusters[1] is None, which names no cluster. Give a string or an integer."),
        ({"clusters": ["a", "b", math.nan]}, "clusters[2] is nan, which names no cluster. Give a string or an integer."),
        ({"clusters": [["a"], 1, 2]}, "clusters[0] is ['a'], which names no cluster. Give a string or an integer."),
    ],
)
def test_wrong_input(changed: dict[str, Any], message: str) -> None:
    rated = ScoredRatings(**{"scores": [1, 2, 3], "ratings": [1, 3, 2], **changed})
    assert refusal(level_correlations, rated) == f"correlate: {message}"


PROGRAM = """
import json
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import correlations
rows = [(i * 37 % 11, i * 17 % 5, f"context {i % 13}") for i in range(60)]
clusters = [c for _, _, c in rows]
found = correlations(*zip(*((s, r) for s, r, _ in rows)), clusters=clusters, bootstrap=Bootstrap(rounds=100, seed=4))
print(json.dumps({name: value.to_dict() for name, value in found.items()}))
"""


@pytest.mark.long
def test_same_bytes_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, check=True
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(printed) == 1
    assert json.loads(printed.pop())["pearson"]["ci_low"] is not None


def test_the_global_generator_is_left_alone_and_the_seed_counts() -> None:
    scores, ratings, _ = rated_data()
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the state that must not move
    first, second = (correlate(scores, ratings, coefficient="pearson", bootstrap=Bootstrap(50, seed=seed)) for seed in (1, 2))
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    assert first.value == second.value
    assert first.ci_low != second.ci_low


def test_r32_coefficients_of_different_kinds_are_never_averaged() -> None:
    """A mean over groups is one of each kind, the same whatever other kinds are asked for, and no other number comes out."""
    scores, ratings, contexts = rated_data()
    rated = ScoredRatings(scores=scores, ratings=ratings, items=contexts)
    asked = partial(level_correlations, rated, level="turn", average_by="item", bootstrap=Bootstrap(rounds=0))
    together = asked(coefficients=list(COEFFICIENTS))
    assert list(together) == list(COEFFICIENTS)
    for name, found in together.items():
        assert (found.name, found) == (name, asked(coefficients=[name])[name])
    groups = [[index for index, context in enumerate(contexts) if context == group] for group in dict.fromkeys(contexts)]
    parts = [([scores[index] for index in rows], [ratings[index] for index in rows]) for rows in groups]
    values = [correlate(*part, coefficient="pearson", bootstrap=Bootstrap(rounds=0)).value for part in parts]
    values = [value for value in values if value is not None]
    assert together["pearson"].value == pytest.approx(sum(values) / len(values), abs=1e-12)


# google-research/mt-metrics-eval, stats_test.py, CorrelationTest: two systems, three items.
TOY = ScoredRatings(scores=[2, 1, 4, 3, 3, 7], ratings=[1, 2, 3, 4, 5, 6], systems=list("aaabbb"), items=list("xyzxyz"))


def at_level(rated: ScoredRatings, coefficient: str = "pearson", **options: Any) -> Correlation:
    return level_correlations(rated, coefficients=[coefficient], **{"bootstrap": FEW, **options})[coefficient]


def rated_systems(n_items: int = 20, n_systems: int = 4, seed: int = 3) -> ScoredRatings:
    """Responses of several systems to each context, in few levels."""
    generator = np.random.default_rng(seed)
    quality = np.repeat(generator.normal(size=n_items), n_systems) + np.tile(np.arange(n_systems) / 2, n_items)
    return ScoredRatings(
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


@pytest.mark.parametrize(("tied_groups", "value", "n_groups"), [("zero", 0.5, 2), ("skip", 1.0, 1)])
def test_a_group_of_tied_scores_counts_as_zero_or_is_skipped(tied_groups: Any, value: float, n_groups: int) -> None:
    """testNaNHandling of mt-metrics-eval, with and without its `replace_nans_with_zeros`: the first system's are constant."""
    rated = ScoredRatings(scores=[2, 2, 2, 4, 5, 6], ratings=[1, 2, 3, 4, 5, 6], systems=list("aaabbb"))
    found = at_level(rated, average_by="system", tied_groups=tied_groups)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert (found.n_groups, found.n_tied_groups, found.n_undefined_groups, found.n_scored) == (n_groups, 1, 0, 6)


@pytest.mark.parametrize(("coefficient", "of_tied"), [("pearson", 0), ("spearman", 0), ("kendall_c", 0), ("auroc", 0.5)])
def test_who_does_not_decide_is_as_good_as_a_guess(coefficient: str, of_tied: float) -> None:
    """Two of twenty contexts decided rightly, and all others not at all, are no perfect agreement."""
    good = [0, 1, 1] if coefficient == "auroc" else [1, 2, 3]
    clusters = np.repeat(np.arange(20), 3)
    scores = [*good, *good, *[2] * 54]
    found = at_level(
        ScoredRatings(scores=scores, ratings=good * 20, items=clusters, clusters=clusters), coefficient, average_by="item"
    )
    assert found.value == pytest.approx((2 + 18 * of_tied) / 20, abs=1e-12)
    assert (found.n_groups, found.n_tied_groups, found.n_undefined_groups) == (20, 18, 0)
    assert found.ci_low is not None
    assert found.ci_low < found.value


def test_ratings_that_do_not_differ_judge_nobody() -> None:
    """Such a group is left out for all evaluators, tied scores or not."""
    rated = {"ratings": [3, 3, 3, 1, 2, 3], "items": list("aaabbb")}
    for scores in ([1, 2, 3, 1, 2, 3], [2, 2, 2, 1, 2, 3]):
        found = at_level(ScoredRatings(scores=scores, **rated), average_by="item")
        assert found.value == pytest.approx(1, abs=1e-12)
        assert (found.n_groups, found.n_tied_groups, found.n_undefined_groups) == (1, 0, 1)


@pytest.mark.parametrize("tied_groups", ["zero", "skip"])
@pytest.mark.parametrize("few", ["scores", "ratings"])
def test_tied_scores_count_in_resamples_of_a_group_too(tied_groups: Any, few: str) -> None:
    """A system whose drawn rows have one score counts as 0, as it would on the whole data; one of equal ratings does not."""
    generator = np.random.default_rng(2)
    varied, rare = generator.normal(size=24), generator.normal(size=24)
    rare[:12] = [1, 1, *[0] * 10]
    scores, ratings = (rare, varied) if few == "scores" else (varied, rare)
    rated = ScoredRatings(scores=scores, ratings=ratings, systems=["a"] * 12 + ["b"] * 12, clusters=[*range(12)] * 2)
    found = at_level(rated, average_by="system", tied_groups=tied_groups, bootstrap=Bootstrap(rounds=200, seed=5))

    def statistic(rows: np.ndarray) -> float:
        values = []
        for system in (rows[rows < 12], rows[rows >= 12]):
            if np.ptp(ratings[system]) and np.ptp(scores[system]):
                values.append(stats.pearsonr(scores[system], ratings[system]).statistic)
            elif np.ptp(ratings[system]) and tied_groups == "zero":
                values.append(0.0)
        return float(np.mean(values))

    expected = interval_by_loop(statistic, rated.clusters, [ratings, scores], rounds=200, seed=5)
    assert (found.ci_low, found.ci_high) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall_b"])
@pytest.mark.parametrize("average_by", ["system", "item"])
def test_average_is_that_of_a_loop(coefficient: str, average_by: Any) -> None:
    rated = rated_systems()
    labels = rated.systems if average_by == "system" else rated.items
    of = SCIPY[coefficient]
    scores, ratings = np.array(rated.scores), np.array(rated.ratings)
    groups = [np.flatnonzero(np.array(labels) == label) for label in np.unique(np.array(labels))]
    rated_apart = [rows for rows in groups if np.ptp(ratings[rows])]
    values = [of(scores[rows], ratings[rows]).statistic if np.ptp(scores[rows]) else 0.0 for rows in rated_apart]
    found = at_level(rated, coefficient, average_by=average_by)
    assert found.value == pytest.approx(np.mean(values), abs=1e-9)
    assert (found.n_groups, found.n_undefined_groups) == (len(values), len(groups) - len(values))


def test_items_are_drawn_whole() -> None:
    """Each context is a cluster, so the interval is that of a mean of fixed values."""
    rated = rated_systems()
    found = at_level(rated, "kendall_b", average_by="item", bootstrap=Bootstrap(rounds=200, seed=5))
    scores, ratings = (np.array(column).reshape(20, 4) for column in (rated.scores, rated.ratings))
    values = np.array([stats.kendalltau(scores[item], ratings[item]).statistic for item in range(20)])
    content = [rated.ratings, rated.scores]
    expected = interval_by_loop(lambda rows: np.nanmean(values[rows[::4] // 4]), rated.clusters, content, rounds=200, seed=5)
    assert (found.ci_low, found.ci_high) == expected


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
    content = [rated.ratings, rated.scores]
    values = [statistic(rows[::4] // 4) for rows in drawn_rows(rated.clusters, content, rounds=100, seed=5)]
    low, high = np.quantile(values, expanded_ends(20))
    if level == "system":  # widened, as far as 1, by what the noise of resamples takes away
        assert np.mean(values) < found.value - 0.01
        high = min(1, high + found.value - np.mean(values))
    assert (found.ci_low, found.ci_high) == pytest.approx((low, high), abs=1e-12)
    assert (found.level, found.average_by, found.n_groups) == (level, average_by, 4)


def test_epsilon_is_reported() -> None:
    rated = rated_systems()
    found = level_correlations(rated, average_by="item", coefficients=["pairwise_accuracy", "pearson"], bootstrap=FEW)
    chosen = calibrated_epsilon(rated.scores, rated.ratings, groups=rated.items)
    assert found["pairwise_accuracy"].epsilon == chosen
    assert found["pearson"].epsilon is None
    json.dumps([one.to_dict() for one in found.values()], allow_nan=False)


def test_a_range_of_ratings() -> None:
    rated = ScoredRatings(scores=[1, 3, 2, 4, None, 5, 6, 7], ratings=[1, 2, 2, 3, 3, 4, None, 5])
    found = at_level(rated, within_range=(2, 4))
    kept = correlate([3, 2, 4, 5], [2, 2, 3, 4], coefficient="pearson", bootstrap=FEW)
    assert (found.value, found.ci_low) == (kept.value, kept.ci_low)
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_unrated, found.n_out_of_range) == (8, 4, 1, 1, 2)


@pytest.mark.parametrize(("level", "average_by"), [("turn", "item"), ("system", "none"), ("turn", "none")])
def test_nothing_to_compare(level: Any, average_by: Any) -> None:
    rated = ScoredRatings(scores=[None, 1], ratings=[1, None], systems=["a", "b"], items=["x", "y"])
    found = at_level(rated, "spearman", level=level, average_by=average_by)
    assert (found.value, found.n_scored, found.n_clusters, found.coverage) == (None, 0, 0, 0)
    assert found.reason == "spearman: 0 pairs of score and rating, at least 3 are needed. Score and rate more examples."
    assert at_level(rated, "pairwise_accuracy", level=level, average_by=average_by).value is None
    nothing = at_level(ScoredRatings(scores=[], ratings=[], systems=[], items=[]), level=level, average_by=average_by)
    assert (nothing.value, nothing.coverage) == (None, None)


@pytest.mark.long
@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall_b", "kendall_c", "pairwise_accuracy"])
@pytest.mark.parametrize("is_rounded", [True, False])
def test_bins_give_almost_the_exact_interval(coefficient: str, is_rounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(8)
    ratings = generator.normal(size=3000)
    scores = ratings + generator.normal(size=3000)
    rated = ScoredRatings(scores=scores, ratings=ratings.round() if is_rounded else ratings, clusters=np.arange(3000) // 3)
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
        ({"level": "word"}, "there is no level='word'. Known are: turn, dialogue, system."),
        ({"average_by": "sys"}, "there is no average_by='sys'. Did you mean 'system'? Known are: none, system, item."),
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
    assert refusal(at_level, ScoredRatings(scores=[1, 2, 3], ratings=[1, 2, 2]), **changed) == f"correlate: {message}"


def test_pairwise_accuracy_counts_tied_groups_in_resamples_too() -> None:
    """A system to whose drawn rows people or the metric gave one value keeps its share of equal pairs."""
    generator = np.random.default_rng(4)
    scores, ratings = generator.normal(size=24), generator.normal(size=24)
    scores[:12], ratings[2:12] = [1, 1, *[0] * 10], 3
    rated = ScoredRatings(scores=scores, ratings=ratings, systems=["a"] * 12 + ["b"] * 12, clusters=[*range(12)] * 2)
    found = at_level(rated, "pairwise_accuracy", average_by="system", bootstrap=Bootstrap(rounds=100, seed=5))

    def statistic(rows: np.ndarray) -> float:
        return float(
            np.mean([accuracy_at(scores[own], ratings[own], found.epsilon) for own in (rows[rows < 12], rows[rows >= 12])])
        )

    expected = interval_by_loop(statistic, rated.clusters, [ratings, scores], rounds=100, seed=5)
    assert (found.ci_low, found.ci_high) == pytest.approx(expected, abs=1e-9)
