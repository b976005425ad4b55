"""Bootstrap intervals: scipy as the oracle of BCa, groups of clusters, coverage (R28), seeds (R24), what has none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.statistics import bootstrap
from dialeval_plugin.statistics.bootstrap import INTERVAL_KINDS, Bootstrap, Counts, Interval, Resampled
from dialeval_plugin.statistics.correlation import correlate, correlations
from dialeval_plugin.statistics.means import mean_interval
from tests.cluster_order import SCIPY
from tests.refusals import refused

BCA = Bootstrap(rounds=300, seed=3, confidence=0.9, interval="bca")


def rated_rows(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(2)
    ratings = generator.integers(1, 6, size=n).astype(float)
    return ratings + generator.exponential(scale=2, size=n).round(1), ratings


@pytest.mark.parametrize("coefficient", sorted(SCIPY))
def test_bca_is_that_of_scipy(coefficient: str) -> None:
    x, y = rated_rows()
    found = correlate(x, y, coefficient=coefficient, bootstrap=BCA)
    in_order = np.lexsort((x, y))
    expected = stats.bootstrap(
        (x[in_order], y[in_order]),
        lambda a, b: SCIPY[coefficient](a, b).statistic,
        n_resamples=300,
        paired=True,
        vectorized=False,
        confidence_level=0.9,
        method="BCa",
        random_state=np.random.default_rng(3),  # its name up to SciPy 1.14; later versions take it too
    ).confidence_interval
    assert (found.ci_low, found.ci_high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert found.bootstrap == BCA


def test_groups_of_clusters_give_almost_the_same_acceleration(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rated_rows(400)
    exact = correlate(x, y, coefficient="pearson", bootstrap=BCA)
    monkeypatch.setattr(bootstrap, "MAX_JACKKNIFE", 80)
    found = correlate(x, y, coefficient="pearson", bootstrap=BCA)
    assert found.ci_low != exact.ci_low
    assert (found.ci_low, found.ci_high) == pytest.approx((exact.ci_low, exact.ci_high), abs=0.01)


@pytest.mark.parametrize("limit", [1, 50])
def test_same_numbers_whatever_is_handled_at_once(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = partial(correlations, *rated_rows(), clusters=np.arange(40) // 3, bootstrap=BCA)
    whole = found()
    monkeypatch.setattr(bootstrap, "_WEIGHTS_AT_ONCE", limit)
    assert found() == whole
    monkeypatch.setattr(bootstrap, "_DRAWN_AHEAD", 0)
    assert found() == whole


def coverage(n_clusters: int, n_simulations: int, boot: Bootstrap, *, size: int = 4, is_clustered: bool = True) -> float:
    """Share of intervals that hold the true correlation of 0.5; rows of a cluster share half of their variance."""
    generator, covariance = np.random.default_rng(28), [[1, 0.5], [0.5, 1]]
    clusters = np.arange(size * n_clusters) // size if is_clustered else None
    hits = 0
    for _ in range(n_simulations):
        shared = generator.multivariate_normal([0, 0], covariance, size=n_clusters).repeat(size, axis=0)
        x, y = (shared + generator.multivariate_normal([0, 0], covariance, size=size * n_clusters)).T
        found = correlate(x, y, coefficient="pearson", clusters=clusters, bootstrap=boot)
        hits += found.ci_low <= 0.5 <= found.ci_high
    return hits / n_simulations


@pytest.mark.parametrize("interval", ["percentile", "bca"])
@pytest.mark.parametrize(("n_simulations", "least"), [(60, 0.85), pytest.param(400, 0.91, marks=pytest.mark.exhaustive)])
def test_coverage_on_clustered_data(interval: Any, n_simulations: int, least: float) -> None:
    assert coverage(60, n_simulations, Bootstrap(rounds=200, interval=interval)) >= least


@pytest.mark.long
def test_single_rows_resampled_are_too_sure() -> None:
    of = partial(coverage, 50, 200, Bootstrap(rounds=200, interval="percentile"), size=8)
    assert of() >= 0.88
    assert of(is_clustered=False) <= 0.85


def clustered_mean(n_clusters: int) -> Resampled:
    """The mean of as many different numbers, each a cluster of its own."""
    sums = np.column_stack([np.arange(n_clusters) ** 1.5, np.ones(n_clusters)])
    return Resampled(lambda drawn: drawn[:, 0] / drawn[:, 1], sums)


@pytest.mark.parametrize("interval", INTERVAL_KINDS)
@pytest.mark.parametrize(
    ("n_clusters", "is_there", "is_rough"), [(9, False, False), (10, True, True), (29, True, True), (30, True, False)]
)
def test_few_clusters_have_a_rough_interval_and_a_handful_none(
    interval: Any, n_clusters: int, is_there: bool, is_rough: bool
) -> None:
    """TRIAL 6: two dialogues had an interval of 0.872 to 1.000."""
    found = Bootstrap(rounds=100, interval=interval).intervals({"mean": clustered_mean(n_clusters)})["mean"]
    assert (found.ci_low is not None, found.ci_high is not None, found.is_rough) == (is_there, is_there, is_rough)
    why = "an interval needs 10 clusters (dialogues), here are 9, so there is no interval. Score and rate more dialogues."
    assert found.reason == (None if is_there else f"mean: {why}")


def test_what_has_no_interval_for_another_reason_is_not_rough() -> None:
    constant = Resampled(lambda drawn: drawn[:, 0], np.ones((12, 1)))
    found = Bootstrap(rounds=20).intervals({"x": constant, "mean": clustered_mean(12)})
    assert (found["x"].ci_low, found["x"].is_rough, found["mean"].is_rough) == (None, False, True)
    assert Bootstrap().intervals({}) == {}


def test_no_rounds_come_before_few_clusters() -> None:
    found = Bootstrap(rounds=0).intervals({"mean": clustered_mean(3)})["mean"]
    assert found == Interval(reason="mean: rounds is 0, so there is no interval. Ask for 1000 rounds.")


def test_statistics_with_their_own_sums_and_shifts_share_the_draws() -> None:
    shared = clustered_mean(20)
    entries = {
        "mean": shared,
        "shifted": Resampled(shared.statistic, shared.sums, shift=5.0),
        "twice": Resampled(lambda drawn: drawn[:, 0], np.arange(20.0)[:, None] ** 1.5 / 10),
    }
    found = Bootstrap(rounds=50, seed=4).intervals(entries)
    alone = {name: Bootstrap(rounds=50, seed=4).intervals({name: one})[name] for name, one in entries.items()}
    assert found == alone
    low, high = found["mean"].ci_low, found["mean"].ci_high
    assert (found["shifted"].ci_low, found["shifted"].ci_high) == pytest.approx((low + 5, high + 5))
    assert (found["twice"].ci_low, found["twice"].ci_high) == pytest.approx((2 * low, 2 * high))


SAME = "the same on all resamples, which tells nothing of its spread"
ONE_SIDE = "all resamples lie on one side of the value"


@pytest.mark.parametrize(
    ("interval", "values", "reason"),
    [
        *((kind, [2.0] * 5, SAME) for kind in INTERVAL_KINDS),
        *((kind, [np.nan] * 2 + [1.0, 2.0, 5.0], "undefined on 2 of 5 resamples, more than 10 %") for kind in INTERVAL_KINDS),
        *((kind, [np.nan] * 5, "undefined on 5 of 5 resamples, more than 10 %") for kind in INTERVAL_KINDS),
        *(("bca", [np.nan, *[low, low + 1] * 5], ONE_SIDE) for low in (1.0, 5.0)),
    ],
)
def test_no_interval(interval: Any, values: list[float], reason: str) -> None:
    entry = Resampled(lambda sums: sums[:, 0], np.array([[2.0], [2.0]]))
    found = Bootstrap(interval=interval).interval_of("x", np.array(values), entry)
    assert (found.ci_low, found.ci_high, found.n_degenerate) == (None, None, int(np.isnan(values).sum()))
    advice = "Ask for the percentile interval." if reason == ONE_SIDE else "Score and rate more examples."
    assert found.reason == f"x: {reason}, so there is no interval. {advice}"


def test_a_tenth_of_degenerate_resamples_is_borne() -> None:
    found = Bootstrap(confidence=0.5, interval="percentile").interval_of("x", np.array([np.nan, *range(9)]), clustered_mean(9))
    assert found == Interval(2.0, 6.0, 1, None)


@pytest.mark.parametrize(("spread", "is_there"), [(1e-14, False), (1e-10, True)])
@pytest.mark.parametrize("scale", [1e-6, -1e6])
def test_rounding_is_no_spread(spread: float, is_there: bool, scale: float) -> None:
    found = Bootstrap(confidence=0.9).interval_of("x", scale * np.array([1.0, 1.0 + spread, 1.0]), clustered_mean(3))
    assert (found.ci_low is not None) == is_there


def test_bca_by_hand() -> None:
    """Efron 1987: bias from the share below the value, ties counting one half, acceleration from the jackknife."""
    numbers = np.array([1.0, 2.0, 4.0, 9.0])
    resampled = Resampled(lambda sums: sums[:, 0] / sums[:, 1], np.column_stack([numbers, np.ones(4)]), shift=1.0)
    values = np.array([np.nan, *np.arange(2, 9, 0.5)])
    found = Bootstrap(confidence=0.8, interval="bca").interval_of("mean", values, resampled)
    defined = values[1:]
    bias = stats.norm.ppf(((defined < 5).sum() + 0.5 * (defined == 5).sum()) / 14)
    left_out = np.array([np.delete(numbers, place).mean() for place in range(4)])
    deviations = left_out.mean() - left_out
    acceleration = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
    moved = [bias + stats.norm.ppf(share) for share in (0.1, 0.9)]
    shares = [stats.norm.cdf(bias + one / (1 - acceleration * one)) for one in moved]
    assert (found.ci_low, found.ci_high) == pytest.approx(np.quantile(defined, shares), abs=1e-12)
    assert (found.n_degenerate, found.reason) == (1, None)


def test_an_expanded_interval_has_the_length_of_a_t_interval() -> None:
    """Hesterberg 2015: of normal resamples with the spread that n clusters give, it is the mean and t times s / root n."""
    n, s = 12, 3.0
    shares = (np.arange(200_000) + 0.5) / 200_000
    values = stats.norm.ppf(shares) * s * np.sqrt((n - 1) / n) / np.sqrt(n)
    found = Bootstrap(confidence=0.9, interval="expanded").interval_of("mean", values, clustered_mean(n))
    assert (found.ci_low, found.ci_high) == pytest.approx(stats.t.interval(0.9, n - 1, scale=s / np.sqrt(n)), abs=1e-3)


@pytest.mark.exhaustive
def test_an_expanded_interval_holds_what_it_says() -> None:
    """A percentile interval of 20 clusters holds the truth in 91 to 92 % of the sets."""
    assert 0.93 <= coverage(20, 1000, Bootstrap(rounds=1000, interval="expanded")) <= 0.97


def test_many_clusters_are_left_out_in_so_many_groups() -> None:
    seen: list[int] = []

    def statistic(sums: np.ndarray) -> np.ndarray:
        seen.append(len(sums))
        return np.asarray(sums[:, 0] / sums[:, 1])

    entry = Resampled(statistic, clustered_mean(1500).sums)
    value = float((entry.sums[:, 0].sum() / 1500).item())
    values = value + np.linspace(-1, 1, 50)
    first, again, other = (replace(BCA, seed=seed).interval_of("x", values, entry) for seed in (1, 1, 2))
    assert sum(seen) == 3 * (1 + 1000)
    assert first == again
    assert first != other


def test_draws_are_of_as_many_clusters_and_go_on_where_they_stopped() -> None:
    whole = bootstrap.draw_clusters(7, 6, np.random.default_rng(2))
    generator = np.random.default_rng(2)
    parts = [bootstrap.draw_clusters(7, rounds, generator) for rounds in (2, 1, 3)]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert whole.sum(axis=1).tolist() == [7.0] * 6
    assert len({tuple(row) for row in whole}) > 1


def test_rows_of_a_cell_are_counted() -> None:
    counts = bootstrap.rows_by_cell(np.array([0, 2, 2, 1, 2]), np.array([0, 0, 0, 1, 1]))
    assert counts.toarray().tolist() == [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]


def test_estimates_are_values_with_their_intervals_or_reasons() -> None:
    boot = Bootstrap(rounds=40, confidence=0.9, seed=3)
    entry = clustered_mean(20)
    found = boot.estimates({"mean": (entry.value, entry), "odd": "odd: no reason"}, Counts(25, 20, 20, 4, 1))
    estimate, odd = found["mean"], found["odd"]
    assert Interval(*(getattr(estimate, name) for name in Interval._fields)) == boot.intervals({"mean": entry})["mean"]
    assert (odd.name, odd.value, odd.ci_low, odd.ci_high, odd.reason) == ("odd", None, None, None, "odd: no reason")
    assert str(odd) == "odd undefined, 20 of 24 rows scored, 20 clusters"
    assert (estimate.bootstrap, estimate.n_unrated, estimate.coverage) == (boot, 1, 20 / 24)
    assert estimate.text(1) == f"{estimate.value:.1f} [{estimate.ci_low:.1f}, {estimate.ci_high:.1f}, rough]"
    assert str(replace(estimate, is_rough=False, value=0.2, ci_low=0.1, ci_high=0.25)) == (
        "mean 0.200 [0.100, 0.250], 20 of 24 rows scored, 20 clusters"
    )
    assert estimate.to_dict()["bootstrap"] == {"rounds": 40, "confidence": 0.9, "seed": 3, "interval": "expanded"}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"rounds": -1}, "rounds is -1. Give an integer that is 0 or more."),
        ({"seed": 0.5}, "seed is 0.5. Give an integer that is 0 or more."),
        *(({"confidence": c}, f"confidence is {c!r}. Give a number between 0 and 1, such as 0.95.") for c in (0, 1, -0.5, 95)),
        ({"interval": "studentised"}, "there is no interval 'studentised'. Known are: percentile, expanded, bca, jackknife."),
    ],
)
def test_wrong_options(option: dict[str, Any], message: str) -> None:
    with refused(f"bootstrap: {message}"):
        Bootstrap(**option)


@pytest.mark.parametrize(("n_simulations", "within"), [(100, 0.05), pytest.param(1000, 0.005, marks=pytest.mark.exhaustive)])
def test_why_intervals_of_few_clusters_are_called_rough(n_simulations: int, within: float) -> None:
    """The figures of `Bootstrap`'s docstring: of 95 % asked for, fewer hold the true correlation of 0.5."""
    found = {n: coverage(n, n_simulations, Bootstrap(rounds=400, interval="percentile")) for n in (10, 29, 60)}
    assert found == pytest.approx({10: 0.907, 29: 0.922, 60: 0.931}, abs=within)


def test_no_rounds_are_drawn_of_many_clusters() -> None:
    """Above 100,000 clusters the next chunk is drawn ahead, also where there is none."""
    found = mean_interval(np.arange(100_001) % 2, bootstrap=Bootstrap(rounds=0))
    why = "mean: rounds is 0, so there is no interval. Ask for 1000 rounds."
    assert (found.n_clusters, found.ci_low, found.reason) == (100_001, None, why)
