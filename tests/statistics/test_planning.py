"""The smallest detectable difference: t tests of statsmodels as the reference, clusters, plans, and real intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics.bootstrap import Bootstrap, Resampled
from dialeval_plugin.statistics.means import clustered_mean, difference_of_means, paired_difference_interval
from dialeval_plugin.statistics.significance import Detectable, clusters_needed, detectable_difference
from tests.refusals import refused


def normal(n: int, seed: int = 7) -> np.ndarray:
    """Quantiles of a normal distribution in random order, whose standard deviation is exactly 1."""
    values = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return np.random.default_rng(seed).permutation(values / values.std(ddof=1))


def rows_alone(n: int) -> Resampled:
    return clustered_mean(normal(n), range(n))


# statsmodels 0.15.0, TTestPower and TTestIndPower: reproduction/references/planning.py.
@pytest.mark.parametrize(
    ("n", "one_sample", "two_samples"), [(30, 0.5292, 0.7356), (100, 0.2829, 0.3981), (400, 0.1404, 0.1983)]
)
def test_of_normal_rows_it_is_that_of_a_t_test(n: int, one_sample: float, two_samples: float) -> None:
    found = detectable_difference(rows_alone(n))
    assert found is not None
    assert found.difference == pytest.approx(one_sample, rel=0.03)
    assert 0 < found.error < 0.03 * one_sample
    sides: dict[str, Any] = {"clusters_a": range(n), "clusters_b": range(n, 2 * n)}
    computed, _ = difference_of_means(normal(n), normal(n, seed=8), **sides)
    assert not isinstance(computed, str)
    unpaired = detectable_difference(computed[1])
    assert unpaired is not None
    assert unpaired.difference == pytest.approx(two_samples, rel=0.03)


@pytest.mark.parametrize(("effect", "rows"), [(0.2, 198.2), (0.5, 33.4)])
def test_so_many_rows_are_needed_as_for_a_t_test(effect: float, rows: float) -> None:
    found = clusters_needed(rows_alone(60), effect)
    assert found is not None
    assert found.n_clusters == pytest.approx(rows, rel=0.06)
    assert found.difference == pytest.approx(effect, rel=0.03)


def test_a_plan_for_another_number_of_clusters_goes_by_the_root() -> None:
    of_pilot, larger, largest = (detectable_difference(rows_alone(100), n) for n in (None, 400, 40_000))
    assert of_pilot is not None
    assert larger is not None
    assert largest is not None
    assert (of_pilot.n_clusters, larger.n_clusters, largest.n_clusters) == (100, 400, 40_000)
    assert of_pilot.difference / larger.difference == pytest.approx(2, rel=0.05)
    assert larger.difference / largest.difference == pytest.approx(10, rel=0.05)


def test_a_pilot_of_many_clusters_comes_in_groups_of_them() -> None:
    found = detectable_difference(rows_alone(5000))
    assert found is not None
    assert found.difference == pytest.approx((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) / 5000**0.5, rel=0.05)


def test_rows_of_one_conversation_are_no_further_rows() -> None:
    """Ten equal rows a conversation show what one shows; taken for single rows they would promise a third of it."""
    alone, repeated = rows_alone(60), clustered_mean(np.repeat(normal(60), 10), np.repeat(np.arange(60), 10))
    as_rows = clustered_mean(np.repeat(normal(60), 10), range(600))
    found = [detectable_difference(pilot) for pilot in (alone, repeated, as_rows)]
    assert found[0] is not None
    assert found[1] == pytest.approx(found[0])
    assert found[2] is not None
    assert found[2].difference == pytest.approx(found[0].difference / 10**0.5, rel=0.05)


def test_the_order_of_the_clusters_moves_no_digit() -> None:
    values = normal(50)
    backwards = clustered_mean(values[::-1], range(50))
    found = detectable_difference(clustered_mean(values, range(50)))
    assert found is not None
    assert detectable_difference(backwards) == pytest.approx(found)


@pytest.mark.parametrize(
    ("pilot", "options"),
    [
        (rows_alone(9), {}),
        (rows_alone(20), {"n_clusters": 9}),
        (rows_alone(20), {"bootstrap": Bootstrap(rounds=0)}),
        (clustered_mean([1.0] * 20, range(20)), {}),
    ],
)
def test_where_there_would_be_no_interval_nothing_is_promised(pilot: Resampled, options: dict[str, Any]) -> None:
    assert detectable_difference(pilot, **options) is None
    if "n_clusters" not in options:
        assert clusters_needed(pilot, 0.1, **options) is None


def test_how_it_is_said() -> None:
    assert str(Detectable(120, 0.0502, 0.001)) == "a difference of 0.050 would be seen four times in five"


def test_wrong_numbers_are_refused() -> None:
    with refused("clusters_needed: difference is 0. Give a number above 0."):
        clusters_needed(rows_alone(20), 0)


@pytest.mark.long
def test_what_is_promised_is_what_the_interval_of_the_package_sees() -> None:
    """New data with the promised difference, of clusters of one to six rows: four in five intervals lie above 0."""
    generator, n = np.random.default_rng(3), 40

    def data(shift: float) -> tuple[np.ndarray, np.ndarray]:
        clusters = np.repeat(np.arange(n), generator.integers(1, 7, size=n))
        return shift + generator.normal(size=n)[clusters] + generator.normal(size=len(clusters)), clusters

    promised = [detectable_difference(clustered_mean(*data(0.0))) for _ in range(40)]
    difference = float(np.mean([one.difference for one in promised if one is not None]))
    seen = 0
    for _ in range(400):
        values, clusters = data(difference)
        low = paired_difference_interval(values, 0 * values, clusters=clusters).ci_low
        seen += low is not None and low > 0
    assert seen / 400 == pytest.approx(0.8, abs=0.06)
