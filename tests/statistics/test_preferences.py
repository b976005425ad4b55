"""Voting, IgnoreEqual and Cont2Cat against the oracle, the published labels and cases worked by hand; paired differences."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from dialeval_plugin.statistics.categories import alpha, alpha_of_samples
from dialeval_plugin.statistics.preferences import (
    A_IS_BETTER,
    B_IS_BETTER,
    BOTH_ARE_BAD,
    BOTH_ARE_GOOD,
    Preferences,
    cont2cat,
    ignore_equal,
    preference_difference,
    preferences,
    voting,
)
from tests.refusals import refusal

NAN = float("nan")
A, B, GOOD, BAD = A_IS_BETTER, B_IS_BETTER, BOTH_ARE_GOOD, BOTH_ARE_BAD


@pytest.fixture(scope="module")
def oracle(oracles_dir: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((oracles_dir / "causalscore_agreement.json").read_text(encoding="utf-8"))
    return read


@pytest.fixture(scope="module")
def compared(oracle: dict[str, Any]) -> Preferences:
    items = oracle["items"]
    return preferences(
        [item["score_A"] for item in items],
        [item["score_B"] for item in items],
        [[oracle["options"].index(vote) for vote in item["votes"]] for item in items],
        clusters=[item["history"] for item in items],
        responses=([(item["history"], item["A"]) for item in items], [(item["history"], item["B"]) for item in items]),
    )


@pytest.mark.parametrize("unit", ["comparison", "response"])
@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_voting_equals_the_oracle(oracle: dict[str, Any], compared: Preferences, unit: Any, coefficient: str) -> None:
    expected = oracle["expected"][f"voting_per_{unit}"]
    found = voting(compared, coefficient=coefficient, unit=unit)
    assert found.value == pytest.approx(expected[coefficient]["statistic"], abs=1e-6)
    assert (found.n_rows, found.n_scored, found.n_unscored) == (expected["n"], 120, 0)
    assert found.ci_low < found.value < found.ci_high


@pytest.mark.parametrize(("opinion", "name"), [("vote", "ignore_equal_per_vote"), ("majority", "ignore_equal_majority")])
def test_ignore_equal_equals_the_oracle(oracle: dict[str, Any], compared: Preferences, opinion: Any, name: str) -> None:
    found = ignore_equal(compared, opinion=opinion, bootstrap=NO_RESAMPLES)
    assert found.value == pytest.approx(oracle["expected"][name]["point_biserial"]["statistic"], abs=1e-6)
    assert found.n_rows == oracle["expected"][name]["n"]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "alpha_with_metric"),
        ({"ties": "missing"}, "alpha_with_metric_ties_missing"),
        ({"equal": "missing"}, "alpha_with_metric_both_as_missing"),
        ({"raters": "one_by_one"}, "mean_pairwise_alpha_metric_vs_each_human"),
    ],
)
def test_cont2cat_equals_the_oracle(oracle: dict[str, Any], compared: Preferences, options: Any, name: str) -> None:
    found = cont2cat(compared, **options)
    assert found.value == pytest.approx(oracle["expected"]["cont2cat"][name], abs=1e-6)
    assert found.ci_low < found.value < found.ci_high


def alpha_among(votes: Any) -> float:
    return alpha((np.array(votes)[:, :, None] == range(4)).sum(axis=1).astype(float))


def test_the_raters_own_alpha_equals_the_oracle(oracle: dict[str, Any], compared: Preferences) -> None:
    assert alpha_among(compared.votes) == pytest.approx(oracle["expected"]["cont2cat"]["alpha_humans_only"], abs=1e-6)


@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=12))
def test_alpha_of_samples_equals_alpha_of_the_repeated_units(counts: list[list[int]]) -> None:
    table = np.array(counts, dtype=float)
    weights = np.array([[1.0] * len(counts), [float(index % 3) for index in range(len(counts))]])
    for row, value in zip(weights, alpha_of_samples(table)(weights), strict=True):
        repeated = np.repeat(table, row.astype(int), axis=0)
        try:
            assert value == pytest.approx(alpha(repeated), abs=1e-9)
        except StatisticUndefined:
            assert np.isnan(value)


def test_points_by_hand() -> None:
    compared = preferences([0.9, 0.2, 0.5], [0.1, 0.3, 0.5], [[A, A, GOOD], [B, BAD, BAD], [GOOD, GOOD, BAD]])
    points = [3, 0, 2, 1, 1, 2]
    found = voting(compared, coefficient="pearson", bootstrap=NO_RESAMPLES)
    assert found.value == pytest.approx(np.corrcoef([0.9, 0.2, 0.5, 0.1, 0.3, 0.5], points)[0, 1])
    # Three votes prefer one of two: A, A with the difference 0.8, and B with -0.1.
    found = ignore_equal(compared, bootstrap=NO_RESAMPLES)
    assert (found.n_rows, found.value) == (3, pytest.approx(1.0))


def test_a_tie_is_b_or_no_answer() -> None:
    tied = preferences([0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [[A, A], [B, B], [B, B]])
    assert cont2cat(tied, bootstrap=NO_RESAMPLES).value == pytest.approx(1.0)
    assert cont2cat(tied, ties="missing", bootstrap=NO_RESAMPLES).value == pytest.approx(1.0)
    other = preferences([0.9, 0.1, 0.5], [0.1, 0.9, 0.5], [[A, A], [B, B], [A, A]])
    assert cont2cat(other, ties="missing", bootstrap=NO_RESAMPLES).value == pytest.approx(1.0)
    assert cont2cat(other, bootstrap=NO_RESAMPLES).value < 1


def test_unscored_comparisons_are_counted() -> None:
    compared = preferences([0.9, None, 0.3, 0.7], [0.1, 0.3, 0.4, None], [[A], [B], [B], [A]], clusters=["x", "x", "y", "z"])
    found = voting(compared, bootstrap=NO_RESAMPLES)
    assert (found.n_total, found.n_scored, found.n_unscored, found.n_clusters) == (4, 2, 2, 2)


def test_what_is_undefined_says_why() -> None:
    same = preferences([0.1, 0.2], [0.3, 0.4], [[GOOD], [GOOD]])
    found = cont2cat(preferences([0.3, 0.4], [0.1, 0.2], [[A], [A]]), bootstrap=NO_RESAMPLES)
    reason = "alpha: the raters gave fewer than two different answers. Compare more responses."
    assert (found.value, found.reason) == (None, reason)
    found = ignore_equal(same, bootstrap=NO_RESAMPLES)
    reason = "pearson: 0 pairs of score and rating, at least 3 are needed. Score and rate more examples."
    assert (found.value, found.reason) == (None, reason)
    assert str(found) == "ignore_equal undefined, coin flip undefined, human majority undefined, 2 of 2 comparisons scored"
    empty = preferences([], [], [])
    assert voting(empty, bootstrap=NO_RESAMPLES).value is None
    assert cont2cat(empty, bootstrap=NO_RESAMPLES).floor is None


SOME_VOTES = preferences([0.1, 0.5], [0.2, 0.1], [[A], [B]])
OTHER_VOTES = preferences([0.1, 0.5], [0.2, 0.1], [[A], [A]])
DIFFER = "the metrics' votes differ. Compare them on the comparisons that both have a score for."
NAMES = "voting_pearson, voting_spearman, ignore_equal, cont2cat"
SAME_RESPONSES = "unit='response' needs to know which responses are the same. Give `responses` to preferences."


@pytest.mark.parametrize(
    ("of", "arguments", "options", "message"),
    [
        (preferences, [[0.1], [0.2], []], {}, "1 scores_a but 0 votes. Give one of each for every row."),
        (preferences, [[1], [NAN], [[A]]], {}, "scores_b[0] is nan, not a finite number. Give None where there is no value."),
        (preferences, [[1], [2], [[4]]], {}, "votes[0][0] is 4. Give 0 (A), 1 (B), 2 (both are good) or 3 (both are bad)."),
        (preferences, [[1], [2], [["A"]]], {}, "votes[0][0] is 'A'. Give 0 (A), 1 (B), 2 (both are good) or 3 (both are bad)."),
        (preferences, [[1, 2], [1, 2], [[A], [A, B]]], {}, "the comparisons have 1 to 2 votes. Give as many for each."),
        (voting, [SOME_VOTES], {"unit": "system"}, "there is no unit='system'. Known are: comparison, response."),
        (voting, [SOME_VOTES], {"unit": "response"}, SAME_RESPONSES),
        (ignore_equal, [SOME_VOTES], {"opinion": "mean"}, "there is no opinion='mean'. Known are: vote, majority."),
        (cont2cat, [SOME_VOTES], {"ties": "a"}, "there is no ties='a'. Known are: b, missing."),
        (preference_difference, [SOME_VOTES, OTHER_VOTES], {}, DIFFER),
        (preference_difference, [SOME_VOTES] * 2, {"statistic": "tau"}, f"there is no statistic='tau'. Known are: {NAMES}."),
    ],
)
def test_wrong_columns_and_options_are_refused(of: Any, arguments: Any, options: dict[str, Any], message: str) -> None:
    assert refusal(of, *arguments, **options) == f"{of.__name__}: {message}"


@pytest.mark.real_data
def test_floors_and_ceilings_of_the_published_labels(data_dir: Path) -> None:
    dialogues = [
        dialogue
        for name in ("dream", "msc")
        for dialogue in cgdialog.read_preferences(name, folder=data_dir / cgdialog.CORPUS.name)
    ]
    rows = [compared for dialogue in dialogues for compared in dialogue.comparisons]
    assert len(rows) == 1200
    generator = np.random.default_rng(0)
    for criterion in cgdialog.CRITERIA:
        votes = [[cgdialog.OPTIONS.index(vote) for vote in row.votes[criterion]] for row in rows]
        flips = generator.integers(2, size=len(rows)).astype(float)
        found = cont2cat(preferences(list(flips), list(1 - flips), votes), bootstrap=NO_RESAMPLES)
        # METHODS: a coin flip gets .25-.30, the majority .41-.44, on overall .44-.47 and .62-.65.
        low, high, own = (0.44, 0.65, 1.0) if criterion == "overall" else (0.25, 0.44, 0.6)
        assert found.floor == pytest.approx(low + 0.02, abs=0.03)
        assert found.ceiling == pytest.approx(high - 0.02, abs=0.03)
        assert alpha_among(votes) == pytest.approx(own, abs=0.02)


STATISTICS: dict[str, Any] = {
    "voting_pearson": partial(voting, coefficient="pearson"),
    "voting_spearman": voting,
    "ignore_equal": ignore_equal,
    "cont2cat": cont2cat,
}


def metrics(n_dialogues: int = 30, seed: int = 0) -> tuple[Preferences, Preferences, Preferences]:
    """A metric that follows the votes a little, a copy of it with noise, and one that follows nothing."""
    generator = np.random.default_rng(seed)
    votes = generator.integers(4, size=(n_dialogues * 6, 3))
    clusters = np.repeat(np.arange(n_dialogues), 6)
    lean = (votes == 0).sum(axis=1) - (votes == 1).sum(axis=1) + generator.normal(0, 2, len(votes))
    scores = [(lean, -lean)]
    scores.append(tuple(side + generator.normal(0, 0.2, len(votes)) for side in scores[0]))
    scores.append(tuple(generator.normal(0, 1, (2, len(votes)))))
    return tuple(preferences(a, b, votes.tolist(), clusters=clusters) for a, b in scores)  # type: ignore[return-value]


@pytest.mark.parametrize("statistic", STATISTICS)
def test_it_is_the_difference_of_the_two_statistics(statistic: str) -> None:
    good, _, chance = metrics()
    of = partial(preference_difference, statistic=statistic, bootstrap=NO_RESAMPLES)
    found, alone = of(good, chance), partial(STATISTICS[statistic], bootstrap=NO_RESAMPLES)
    assert found.value == pytest.approx(alone(good).value - alone(chance).value, abs=1e-9)
    assert of(chance, good).value == pytest.approx(-(found.value or 0))
    assert (found.n_total, found.n_scored, found.n_clusters, found.name) == (180, 180, 30, f"difference of {statistic}")


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_interval_tells_a_noisy_copy_from_nothing_but_not_from_its_original(statistic: str) -> None:
    good, copy, chance = metrics()
    boot = Bootstrap(rounds=400)
    alike, apart = (preference_difference(good, one, statistic=statistic, bootstrap=boot) for one in (copy, chance))
    assert alike.ci_low < 0 < alike.ci_high
    assert apart.ci_low > 0
    # Paired: far narrower than the interval of either statistic.
    alone = STATISTICS[statistic](good, bootstrap=boot)
    assert alike.ci_high - alike.ci_low < 0.5 * (alone.ci_high - alone.ci_low)


def test_a_metric_without_differences_leaves_it_undefined() -> None:
    good, *_ = metrics(4)
    flat = preferences([1.0] * 24, [1.0] * 24, good.votes.tolist(), clusters=good.clusters)
    found = preference_difference(good, flat)
    assert (found.value, found.ci_low, found.ci_high) == (None, None, None)
    assert found.reason == "voting_spearman: undefined for one of the metrics. Score responses that differ."
    assert str(found) == "difference of voting_spearman undefined, 24 of 24 rows scored, 4 clusters"


@pytest.mark.parametrize("statistic", ["voting_spearman", "ignore_equal", "cont2cat"])
@pytest.mark.parametrize("n", [0, 4])
def test_a_difference_without_an_observation_is_undefined(statistic: str, n: int) -> None:
    same = preferences([0.1, 0.2, 0.3, 0.4][:n], [0.4, 0.3, 0.2, 0.1][:n], [[GOOD], [BAD], [GOOD], [GOOD]][:n])
    found = preference_difference(same, same, statistic=statistic, bootstrap=NO_RESAMPLES)
    if n == 0 or statistic == "ignore_equal":
        reason = f"{statistic}: undefined for one of the metrics. Score responses that differ."
        assert (found.value, found.reason) == (None, reason)
    else:
        assert found.value == 0
