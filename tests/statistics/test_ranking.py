"""Holm's correction and rank clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.statistics.comparison.ranking import holm, rank_clusters, rank_metrics
from dialeval_plugin.statistics.comparison.significance import Measure
from dialeval_plugin.statistics.levels import Ratings
from tests.refusals import refused


@given(st.lists(st.floats(0, 1) | st.none(), max_size=8))
def test_holm_by_definition(p_values: list[float | None]) -> None:
    tested = sorted(p for p in p_values if p is not None)
    stepped = [min(1.0, (len(tested) - k) * p) for k, p in enumerate(tested)]
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        expected = None if p is None else max(stepped[: max(k for k, other in enumerate(tested) if other == p) + 1])
        assert adjusted == expected


def test_holm_of_the_textbook() -> None:
    # Holm 1979, as in R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm").
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


def test_holm_of_no_p_value() -> None:
    with refused("holm: p_values[1] is 1.5. Give a number from 0 to 1, or None where there is no test."):
        holm([0.5, 1.5])


def test_a_cluster_starts_below_a_significant_difference() -> None:
    values = {"d": 0.1, "a": 0.9, "c": 0.3, "b": 0.8, "e": None}
    # c is worse than a, though not than b; d is no worse than c, the only one of its cluster.
    p_values = {("a", "c"): 0.05, ("b", "c"): 0.5, ("d", "a"): 0.01, ("c", "d"): 0.2}
    assert rank_clusters(values, p_values) == {"d": 2, "a": 1, "c": 2, "b": 1, "e": None}
    assert set(rank_clusters(values, {}).values()) == {1, None}


def test_wrong_alpha() -> None:
    with refused("rank_clusters: alpha is 5. Give a number between 0 and 1, such as 0.05."):
        rank_clusters({}, {}, alpha=5)


def test_rank_metrics() -> None:
    generator = np.random.default_rng(2)
    ratings = generator.integers(1, 6, size=80)
    good, fair, none = (ratings + generator.normal(scale=scale, size=80) for scale in (1, 1, 20))
    scores = {"none": none, "good": good, "fair": fair, "constant": [1] * 80}
    found = rank_metrics(scores, Ratings(ratings=ratings), Measure("pearson"), rounds=199)
    assert found.ranks == {"none": 2, "good": 1, "fair": 1, "constant": None}
    assert list(found.comparisons) == list(found.adjusted)
    assert found.comparisons["none", "good"].p_value == 1 / 200
    assert found.adjusted["none", "good"] == 3 / 200
    assert found.adjusted["none", "constant"] is None


def test_metrics_are_ordered_on_the_rows_that_all_have() -> None:
    ratings = list(range(10))
    scores = {"partly": [*range(5), *[None] * 5], "whole": [0, 1, 2, 3, 4, 9, 5, 8, 6, 7]}
    found = rank_metrics(scores, Ratings(ratings=ratings), Measure("pearson"))
    assert found.comparisons["partly", "whole"].n_both == 5
    assert found.ranks == {"partly": 1, "whole": 1}
