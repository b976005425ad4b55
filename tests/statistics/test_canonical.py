"""One figure has one value: the order of rows, and of clusters, and their names change no digit (FAULTS, TRIAL 17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval_plugin.statistics.annotators.raters import leave_one_rater_out, split_half
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.breakdown import breakdown_differences, breakdown_metrics, detections
from dialeval_plugin.statistics.coefficients.by_name import MAX_CANDIDATES, calibrated_epsilon
from dialeval_plugin.statistics.correlation import correlations, covariate_bias, level_correlations, partial_correlation
from dialeval_plugin.statistics.levels import RatingTable, ScoredRatings
from dialeval_plugin.statistics.means import balanced_mean_interval, mean_interval, paired_difference_interval
from dialeval_plugin.statistics.preferences import cont2cat, ignore_equal, preference_difference, preferences, voting
from dialeval_plugin.statistics.ranking import rank_metrics, rank_permutation_tests
from dialeval_plugin.statistics.rows import canonical, symmetric
from dialeval_plugin.statistics.significance import Measure, Paired, paired_bootstrap, permutation_test

N = 48
PEARSON: dict[str, Any] = {"coefficient": "pearson"}
FEW = Bootstrap(rounds=30, seed=3)
BCA = replace(FEW, interval="bca")


class Data(NamedTuple):
    """Columns of as many rows; every other one ties with others."""

    scores: np.ndarray
    other: np.ndarray
    ratings: np.ndarray
    lengths: np.ndarray
    votes: np.ndarray
    clusters: np.ndarray
    systems: np.ndarray
    items: np.ndarray

    @classmethod
    def make(cls, seed: int) -> Data:
        generator = np.random.default_rng(seed)
        ratings = generator.integers(1, 6, N).astype(float)
        return cls(
            scores=(ratings + generator.normal(0, 3, N)).round(),
            other=(ratings + generator.normal(0, 2, N)).round(1),
            ratings=ratings,
            lengths=generator.integers(1, 30, N).astype(float),
            votes=generator.integers(4, size=(N, 3)),
            clusters=generator.permutation(np.arange(N) % 14),
            systems=np.arange(N) % 4,
            items=np.arange(N) // 4,
        )

    def shuffled(self, seed: int) -> Data:
        """The same rows in another order, under other names of clusters, systems and items."""
        generator = np.random.default_rng(seed)
        order = generator.permutation(N)
        moved = Data(*(column[order] for column in self))
        names = {name: generator.permutation(100)[getattr(moved, name)] for name in ("clusters", "systems", "items")}
        return moved._replace(**names)

    @property
    def optional(self) -> list[float | None]:
        return [None if value < -1 else float(value) for value in self.scores]

    @property
    def shares(self) -> np.ndarray:
        return (self.other - self.other.min()) / np.ptp(self.other)

    @property
    def counts(self) -> list[list[int]]:
        return [[int(rating), 2, int(6 - rating)] for rating in self.ratings]

    @property
    def metrics(self) -> dict[str, Any]:
        return {"a": self.optional, "b": self.other, "c": self.lengths}

    @property
    def labels(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("ratings", "clusters", "systems", "items")}

    @property
    def drawn(self) -> dict[str, Any]:
        return {"clusters": self.clusters, "bootstrap": FEW}

    def rated(self) -> ScoredRatings:
        return ScoredRatings(scores=self.optional, **self.labels)

    def paired(self) -> Paired:
        return Paired(scores_a=self.optional, scores_b=self.other, **self.labels)


def _breakdown_difference(data: Data) -> Any:
    one, other = (detections(shares) for shares in (data.shares, data.ratings / 5))
    return breakdown_differences(one, other, data.counts, **data.drawn)


def _compared(data: Data, scores: np.ndarray) -> Any:
    return preferences(scores, data.lengths, data.votes, clusters=data.clusters)


def _agreement(statistic: Any) -> Callable[[Data], Any]:
    """Without the coin flips' mean, which floating point takes in the order of the rows."""

    def of(data: Data) -> dict[str, Any]:
        found = statistic(_compared(data, data.scores), bootstrap=FEW)
        return {**found.to_dict(), **{end: pytest.approx(getattr(found, end), abs=1e-12) for end in ("floor", "ceiling")}}

    return of


PAIRWISE = ["pairwise_accuracy"]
STATISTICS: dict[str, Callable[[Data], Any]] = {
    "correlations": lambda data: correlations(data.optional, data.ratings, **data.drawn),
    "without clusters": lambda data: correlations(data.optional, data.ratings, bootstrap=FEW),
    "bca": lambda data: level_correlations(data.rated(), bootstrap=BCA),
    "by system": lambda data: level_correlations(data.rated(), average_by="system", bootstrap=FEW),
    "by item": lambda data: level_correlations(data.rated(), average_by="item", bootstrap=FEW),
    "of systems": lambda data: level_correlations(data.rated(), level="system", bootstrap=FEW),
    "pairwise": lambda data: level_correlations(data.rated(), average_by="item", coefficients=PAIRWISE, bootstrap=FEW),
    "mean": lambda data: mean_interval(data.optional, **data.drawn),
    "difference of means": lambda data: paired_difference_interval(data.scores, data.other, **data.drawn),
    "balanced mean": lambda data: balanced_mean_interval(data.optional, data.systems, **data.drawn),
    "bias": lambda data: covariate_bias(data.optional, data.ratings, data.lengths, name="length", **data.drawn),
    "partial": lambda data: partial_correlation(data.optional, data.ratings, {"length": data.lengths}, **PEARSON, **data.drawn),
    "one person": lambda data: leave_one_rater_out(data.votes.tolist(), **data.drawn),
    "half the people": lambda data: split_half(data.votes.tolist(), **data.drawn),
    "breakdown": lambda data: breakdown_metrics(detections(data.shares).distributions, data.counts, **data.drawn),
    "difference of breakdown": _breakdown_difference,
    "voting": _agreement(voting),
    "ignore equal": _agreement(ignore_equal),
    "cont2cat": _agreement(cont2cat),
    "difference of agreement": lambda data: [
        preference_difference(_compared(data, data.scores), _compared(data, data.other), statistic=statistic, bootstrap=FEW)
        for statistic in ("voting_pearson", "voting_spearman", "ignore_equal", "cont2cat")
    ],
    "permutation": lambda data: permutation_test(data.paired(), rounds=30),
    "paired bootstrap": lambda data: paired_bootstrap(data.paired(), bootstrap=FEW),
    "ranking": lambda data: rank_metrics(data.metrics, RatingTable(**data.labels), Measure("pearson"), rounds=30),
    "ranks": lambda data: rank_permutation_tests(data.metrics, data.ratings, clusters=data.clusters, rounds=30),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_order_and_names_change_no_digit(name: str) -> None:
    statistic = STATISTICS[name]

    @settings(max_examples=8)
    @given(st.integers(0, 10**6), st.integers(0, 10**6))
    def check(of_data: int, of_order: int) -> None:
        data = Data.make(of_data)
        assert statistic(data.shuffled(of_order)) == statistic(data)

    check()


def test_who_is_called_a_changes_the_sign_only() -> None:
    data = Data.make(5)
    forwards, backwards = data.paired(), replace(data.paired(), scores_a=data.other, scores_b=data.optional)
    assert permutation_test(backwards, rounds=99).p_value == permutation_test(forwards, rounds=99).p_value
    one, other = (paired_bootstrap(paired, bootstrap=FEW) for paired in (forwards, backwards))
    # Quantiles are interpolated from below, so the last digits may differ.
    assert (one.ci_low, one.ci_high) == pytest.approx((-(other.ci_high or 0), -(other.ci_low or 0)), abs=1e-12)
    tests = partial(rank_permutation_tests, ratings=data.ratings, clusters=data.clusters, rounds=99)
    assert tests({"a": data.optional, "b": data.other})["a", "b"] == tests({"b": data.other, "a": data.optional})["b", "a"]


def test_a_pair_has_the_p_value_that_it_has_among_others() -> None:
    data = Data.make(6)
    alone = rank_permutation_tests({"a": data.scores, "b": data.other}, data.ratings, clusters=data.clusters, rounds=99)
    more = {"c": data.lengths, "b": data.other, "a": data.scores}
    among = rank_permutation_tests(more, data.ratings, clusters=data.clusters, rounds=99)
    assert among["b", "a"] == alone["a", "b"]


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_the_ceiling_depends_on_what_the_raters_said_alone(seed: int) -> None:
    """Rows, raters within a row, gaps and clusters: none of them moves "half the people"."""
    generator = np.random.default_rng(seed)
    rows: list[list[float | None]] = [[float(value) for value in generator.integers(1, 6, n)] for n in [2, 3, 4, 5] * 10]
    found = split_half(rows, bootstrap=Bootstrap(rounds=0)).value
    moved = [[*generator.permutation(np.array(rows[row])).tolist(), None] for row in generator.permutation(len(rows))]
    assert split_half(moved, bootstrap=Bootstrap(rounds=0)).value == found
    assert split_half(moved, clusters=generator.integers(12, size=40), bootstrap=Bootstrap(rounds=5)).value == found


def test_each_half_of_the_raters_is_drawn_anew_in_each_row() -> None:
    """Sorted answers must not make one half of the lower ones."""
    generator = np.random.default_rng(1)
    rows = generator.integers(1, 6, (400, 4)).astype(float).tolist()
    assert abs(split_half(rows, coefficient="pearson", bootstrap=Bootstrap(rounds=0)).value or 1) < 0.05


def test_sampled_differences_follow_from_the_data_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_CANDIDATES > 100
    monkeypatch.setattr("dialeval_plugin.statistics.coefficients.by_name.MAX_CANDIDATES", 100)
    data = Data.make(7)
    moved = data.shuffled(1)
    found = calibrated_epsilon(data.other, data.ratings)
    assert found != calibrated_epsilon(data.other, data.ratings, seed=1)
    assert calibrated_epsilon(moved.other, moved.ratings) == found


def test_clusters_are_numbered_by_what_their_rows_hold() -> None:
    values, clusters = np.array([3.0, 1.0, 1.0, 2.0, 1.0]), np.array([0, 0, 1, 2, 2])
    found = canonical([values], clusters)
    # Sorted, the clusters hold [1], [1, 2] and [1, 3].
    assert values[found.order].tolist() == [1.0, 1.0, 1.0, 2.0, 3.0]
    assert found.order.tolist() == [2, 4, 1, 3, 0]
    assert found.clusters.tolist() == [0, 1, 2, 1, 2]


def test_equal_rows_are_told_apart_by_their_groups() -> None:
    """Two clusters hold the same values; that the 5 of one is in the group of the 9 decides."""
    values = np.array([5.0, 5.0, 5.0, 5.0, 9.0, 0.0])
    clusters, groups = np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 0, 2])
    first = canonical([values], clusters, groups)
    order = np.array([3, 2, 1, 0, 5, 4])
    again = canonical([values[order]], np.array([1, 1, 0, 0, 3, 2]), np.array([2, 1, 1, 0, 2, 0]))
    assert order[again.order][again.clusters == 1].tolist() == first.order[first.clusters == 1].tolist()


def test_no_rows_have_an_order_too() -> None:
    nothing = np.array([], dtype=np.int64)
    found = canonical([nothing], nothing, nothing)
    assert (found.order.tolist(), found.clusters.tolist()) == ([], [])


def test_metrics_are_put_in_the_order_of_what_they_say_beside_each_rating() -> None:
    ratings, low, high = np.array([2.0, 1.0]), np.array([0.0, 5.0]), np.array([0.0, 6.0])
    for metrics in ((low, high), (high, low)):
        found = symmetric(([column] for column in metrics), [ratings])
        assert [column.tolist() for column in found] == [[2.0, 1.0], [0.0, 5.0], [0.0, 6.0]]
