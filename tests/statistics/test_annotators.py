"""Whether an evaluator may stand in for a person, and where the variance of ratings comes from: the authors' code, statsmodels
and scipy, loops over the formulas, and cases that cannot be told. Golden values: reproduction/references/annotators.py."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from dialeval_plugin.core.errors import StatisticUndefined
from dialeval_plugin.labels.table import JudgedLabels, LabelTable, Scale
from dialeval_plugin.statistics.annotators.alternative_annotator_test import _by_isotonic, alternative_annotator_test
from dialeval_plugin.statistics.annotators.reliability import VarianceComponents, variance_components
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Bootstrap
from reproduction.references.annotators import crossed_ratings, drawn_labels
from tests.cluster_order import expanded_ends
from tests.refusals import refusal, refused

INTERVAL = Scale("interval")


def labels_of(labels: Any, scale: Scale = INTERVAL, **beside: Any) -> LabelTable:
    values = np.asarray(labels, dtype=np.float64)
    ids, raters = [str(row) for row in range(len(values))], tuple(f"r{place}" for place in range(values.shape[1]))
    return LabelTable(**{"source": "labels.csv", "ids": ids, "raters": raters, **beside}, labels=values, scale=scale)


def judged(scores: Any, labels: LabelTable, scale: Scale | None = None) -> JudgedLabels:
    return JudgedLabels(evaluator="judge", scores=np.asarray(scores, dtype=np.float64), labels=labels, scale=scale)


@pytest.mark.parametrize(
    ("case", "rate", "advantage", "p_values"),
    [
        ((2, 0.6, 0.2), 1.0, 0.917315113, [1.04826835e-05, 2.50143618e-06, 3.58105895e-06, 1.44274976e-10, 7.17746328e-11]),
        ((4, 0.5, 0.1), 0.4, 0.812697357, [0.0388362569, 0.021649852, 0.0220982464, 2.57700554e-06, 0.000147718312]),
        ((5, 0.6, 0.15), 0.6, 0.724603224, [0.295703779, 0.102853634, 0.00926568908, 0.000129913178, 6.39175229e-07]),
    ],
)
def test_the_authors_figures(case: tuple[int, float, float], rate: float, advantage: float, p_values: list[float]) -> None:
    n_levels, spread, epsilon = case
    labels, scores = drawn_labels(1, n_levels, spread)
    scale = {2: Scale("binary", ("fail", "pass")), 4: Scale("nominal", tuple("abcd"))}.get(n_levels, INTERVAL)
    found = alternative_annotator_test(judged(scores, labels_of(labels, scale)), epsilon=epsilon, bootstrap=NO_RESAMPLES)
    assert found.winning_rate == rate
    assert found.advantage.value == pytest.approx(advantage, abs=1e-9)
    assert [one.p_value for one in found.comparisons] == pytest.approx(p_values, rel=1e-8)
    assert [one.rater for one in found.comparisons] == ["r0", "r1", "r2", "r3", "r4"]
    # The same of rows in another order.
    order = np.random.default_rng(3).permutation(len(scores))
    shuffled = judged(scores[order], labels_of(labels[order], scale))
    assert alternative_annotator_test(shuffled, epsilon=epsilon, bootstrap=NO_RESAMPLES) == found


def test_conversations_are_what_is_independent() -> None:
    """Every row four times is four times as much for the t-test of rows, and nothing more for that of conversations."""
    labels, scores = drawn_labels(1, 5, 0.6)
    once = alternative_annotator_test(judged(scores, labels_of(labels)), epsilon=0.15)
    clusters = [str(row // 4) for row in range(480)]
    repeated = judged(scores.repeat(4), labels_of(labels.repeat(4, axis=0), clusters=clusters))
    found = alternative_annotator_test(repeated, epsilon=0.15)
    assert [one.p_value for one in found.comparisons] == pytest.approx([one.p_value for one in once.comparisons], rel=1e-9)
    by_row = alternative_annotator_test(replace(repeated, labels=labels_of(labels.repeat(4, axis=0))), epsilon=0.15)
    assert all(row.p_value < one.p_value for row, one in zip(by_row.comparisons, found.comparisons, strict=True))
    assert (found.advantage.n_clusters, found.advantage.ci_low) == (120, pytest.approx(once.advantage.ci_low, abs=0.02))


def test_the_t_test_of_conversations_by_a_loop() -> None:
    labels, scores = drawn_labels(1, 5, 0.6)
    clusters = np.random.default_rng(0).integers(40, size=120)
    found = alternative_annotator_test(judged(scores, labels_of(labels, clusters=[*map(str, clusters)])), epsilon=0.15)
    for rater, one in enumerate(found.comparisons):
        d, of = [], []
        for row in range(120):
            others = np.delete(labels[row], rater)
            others = others[~np.isnan(others)]
            if np.isnan(labels[row, rater]) or not len(others):
                continue
            person, machine = (round(float(((x - others) ** 2).mean()), 9) for x in (labels[row, rater], scores[row]))
            d.append(int(person < machine) - int(machine < person))
            of.append(clusters[row])
        mean, groups = np.mean(d), sorted(set(of))
        totals = [sum(x - mean for x, g in zip(d, of, strict=True) if g == group) for group in groups]
        error = np.sqrt(len(groups) / (len(groups) - 1) * np.square(totals).sum()) / len(d)
        assert one.p_value == pytest.approx(stats.t.cdf((mean - 0.15) / error, len(groups) - 1), rel=1e-9)
        assert (one.n_rows, one.n_clusters) == (len(d), len(groups))


def test_the_answer_in_words() -> None:
    generator = np.random.default_rng(4)
    truth = generator.integers(1, 6, size=(100, 1))
    labels = np.clip(truth + generator.integers(-1, 2, size=(100, 3)), 1, 5)
    found = alternative_annotator_test(judged(truth[:, 0], labels_of(labels)))
    assert (found.passes, found.cautions) == (True, ())
    assert found.over_constant.ci_low > 0
    low, high = found.advantage.ci_low, found.advantage.ci_high
    assert found.verdict == (
        "May judge stand in for a person: yes. It matches 3 of 3 raters (winning rate 1.00 at epsilon 0.2, 0.5 is needed), and "
        f"on {found.advantage.value:.2f} [{low:.2f}, {high:.2f}] of the rows it is at least as close to the other raters as "
        "the one left out."
    )
    guess = alternative_annotator_test(judged(generator.permutation(truth[:, 0]), labels_of(labels)))
    assert not guess.passes
    assert guess.verdict.startswith("May judge stand in for a person: not shown. It matches 0 of 3 raters")
    whole = json.loads(json.dumps(found.to_dict()))
    assert (whole["passes"], whole["comparisons"][0]["rater"]) == (True, "r0")
    assert list(found.to_pandas()["rater"]) == ["r0", "r1", "r2"]


def test_an_evaluator_that_knows_nothing_does_not_pass_where_people_hardly_agree() -> None:
    """The mean of the scale is closer to other people than a person is whose ratings are noise."""
    labels = np.random.default_rng(0).integers(1, 6, size=(60, 2))
    found = alternative_annotator_test(judged(np.full(60, 3), labels_of(labels, clusters=[str(row // 3) for row in range(60)])))
    assert (found.winning_rate, found.over_constant.value <= 0, found.passes) == (1.0, True, False)
    assert found.verdict.startswith(
        "May judge stand in for a person: unclear, as one that says the same of every row may do as well. It matches 2"
    )
    assert found.cautions == (
        "2 raters are few: with 3 or more, the others have something in common.",
        "Rough: a rater labelled 20 conversations, fewer than 30.",
    )


def test_too_few_rows_and_places_that_are_nobody() -> None:
    labels, scores = drawn_labels(1, 5, 0.6)
    labels[25:, 4] = np.nan
    found = alternative_annotator_test(judged(scores, labels_of(labels, has_people=False)), epsilon=0.15)
    assert [one.rater for one in found.comparisons] == ["r0", "r1", "r2", "r3"]
    assert found.cautions == (
        "Not left out, as they labelled fewer than 30 rows or 10 conversations: r4.",
        "The file does not say who gave which label: a rater here is a place in its lists, which several people filled. The "
        "winning rate says how surely the evaluator matches people on average, not how many of them.",
    )
    n_labels = (~np.isnan(labels[:20])).sum(axis=0)
    shown = ", ".join(f"r{place} {n} ({n})" for place, n in enumerate(n_labels))
    with refused(
        f"labels.csv: no rater can be left out to test judge: rows (and their conversations) with a score and two labels are "
        f"{shown}. Have 30 rows of 10 conversations labelled by three people."
    ):
        alternative_annotator_test(judged(scores[:20], labels_of(labels[:20])))


def test_scores_on_a_scale_of_their_own_need_a_word() -> None:
    labels, scores = drawn_labels(1, 5, 0.4)
    own = judged(scores / 4, labels_of(labels))
    with refused(
        "judge: its scores, from 0 to 1, are not all numbers that people gave, from 0 to 4: they may mean something else. "
        "Say --calibrate isotonic or quantiles to make labels of them, or --calibrate none if they are labels."
    ):
        alternative_annotator_test(own)
    as_they_are = alternative_annotator_test(own, calibration="none")
    by_quantiles = alternative_annotator_test(own, calibration="quantiles")
    assert as_they_are.winning_rate < by_quantiles.winning_rate
    # A rising function of the scores changes no quantile.
    stretched = replace(own, scores=np.exp(own.scores))
    assert alternative_annotator_test(stretched, calibration="quantiles") == by_quantiles
    message = refusal(alternative_annotator_test, replace(own, labels=labels_of(labels, Scale("nominal", tuple("abcde")))))
    assert message == (
        "judge: its scores, from 0 to 1, are no labels, and no order leads from numbers to a, b, c, d, e. Give labels."
    )
    message = refusal(alternative_annotator_test, own, epsilon=1)
    assert message == "alternative annotator test: epsilon is 1. Give a number from 0 to below 1, such as 0.2."


def test_scores_without_information_gain_nothing_by_quantiles() -> None:
    generator = np.random.default_rng(2)
    truth = generator.normal(size=(300, 1))
    labels = np.clip((3 + truth + 0.7 * generator.normal(size=(300, 4))).round(), 1, 5)
    table = labels_of(labels)
    assert alternative_annotator_test(judged(generator.random(300), table), calibration="quantiles").winning_rate == 0
    assert alternative_annotator_test(judged(truth[:, 0], table), calibration="quantiles").winning_rate == 1


def components_by_loop(labels: Any, clusters: Any, systems: Any = None) -> dict[str, float]:
    """Henderson's method 1 by matrices: sums of squares of projections, and traces as their expectations."""
    row, rater = np.nonzero(~np.isnan(labels))
    y = labels[row, rater]
    effects = {"systems": systems, "conversations": clusters, "responses": np.arange(len(labels)), "raters": rater}
    effects = {name: of if name == "raters" else np.asarray(of)[row] for name, of in effects.items() if of is not None}
    incidence = {name: (np.unique(of)[:, None] == of).T.astype(float) for name, of in effects.items()}
    projections = [z @ np.linalg.inv(z.T @ z) @ z.T for z in incidence.values()] + [np.eye(len(y))]
    mean = np.full((len(y), len(y)), 1 / len(y))
    covariances = [z @ z.T for z in incidence.values()] + [np.eye(len(y))]
    expected = [[np.trace((p - mean) @ c) for c in covariances] for p in projections]
    found = np.linalg.solve(expected, [y @ (p - mean) @ y for p in projections])
    return dict(zip([*incidence, "residual"], np.maximum(found, 0), strict=True))


def values_of(found: VarianceComponents) -> dict[str, float | None]:
    return {name: one.value for name, one in found.of.items()}


def test_components_of_balanced_ratings_are_those_of_restricted_maximum_likelihood() -> None:
    """statsmodels 0.15.0, MixedLM."""
    ratings = crossed_ratings(2)
    systems = [f"s{row // 36}" for row in range(144)]
    clusters = [str(row // 3) for row in range(144)]
    found = variance_components(labels_of(ratings.reshape(144, 5), clusters=clusters, systems=systems), bootstrap=NO_RESAMPLES)
    expected = {
        "systems": 0.8043645666906092,
        "conversations": 0.3916526732548939,
        "responses": 0.2626660511356532,
        "raters": 0.2314424983642976,
        "residual": 0.50441852576218,
    }
    assert values_of(found) == pytest.approx(expected, rel=1e-3)
    assert (found.n_raters, found.n_responses, found.n_conversations) == pytest.approx((5, 3, 12))


def test_components_of_ratings_with_gaps_and_shared_contexts_by_matrices() -> None:
    generator = np.random.default_rng(5)
    labels = generator.normal(size=(60, 4)) + generator.normal(size=(60, 1)) + 0.5 * generator.normal(size=(1, 4))
    labels[generator.random(labels.shape) < 0.3] = np.nan
    labels[0] = np.nan
    clusters, systems = generator.integers(15, size=60), generator.integers(3, size=60)
    table = labels_of(labels, clusters=[*map(str, clusters)], systems=[*map(str, systems)])
    found = variance_components(table, bootstrap=Bootstrap(rounds=50))
    kept = slice(1, None)
    assert values_of(found) == pytest.approx(components_by_loop(labels[kept], clusters[kept], systems[kept]), abs=1e-9)
    assert found.of["residual"].n_unscored == int((table.n_labels == 0).sum())
    pairs = len({*zip(clusters[table.n_labels > 0], systems[table.n_labels > 0], strict=True)})
    assert found.n_conversations == pairs / 3


def test_resampled_components_are_those_of_the_resampled_conversations() -> None:
    """A conversation that is drawn twice is two conversations; raters stay who they are."""
    generator = np.random.default_rng(6)
    labels = generator.normal(size=(40, 3)) + generator.normal(size=(40, 1)) + generator.normal(size=(1, 3))
    clusters = np.arange(40) // 2
    found = variance_components(labels_of(labels, clusters=[*map(str, clusters)]), bootstrap=Bootstrap(rounds=400, seed=1))
    spreads = []
    for _ in range(400):
        drawn = generator.integers(20, size=20)
        rows = np.concatenate([[2 * one, 2 * one + 1] for one in drawn])
        spreads.append(components_by_loop(labels[rows], np.arange(40) // 2)["raters"])
    raters = found.of["raters"]
    assert (raters.ci_low, raters.ci_high) == pytest.approx(tuple(np.quantile(spreads, expanded_ends(20))), rel=0.15)


def test_the_interval_of_a_component_is_that_of_the_logarithm_of_its_mean_square() -> None:
    """A loop that leaves each conversation out, on balanced data, where the mean square is that of the means."""
    generator = np.random.default_rng(8)
    n, clusters = 30, [str(row // 3) for row in range(90)]
    labels = (
        np.repeat(generator.normal(size=(n, 1)), 3, axis=0) + generator.normal(size=(90, 1)) + generator.normal(size=(90, 4))
    )
    table = replace(labels_of(labels, clusters=clusters), has_people=False)
    found = variance_components(table)

    def component(name: str, kept: np.ndarray) -> float:
        rows = labels[kept].reshape(-1, 3, 4)
        within, of_means = rows.var(axis=2, ddof=1).mean(), rows.mean(axis=2)
        of_responses = of_means.var(axis=1, ddof=1).mean()
        of = {"residual": within, "responses": of_responses - within / 4}
        return float({**of, "conversations": of_means.mean(axis=1).var(ddof=1) - of_responses / 3}[name])

    value_of = {name: one.value or 0.0 for name, one in found.of.items()}
    errors = {"residual": 0.0, "responses": value_of["residual"] / 4}
    errors["conversations"] = (value_of["responses"] + errors["responses"]) / 3
    for name, one in found.of.items():
        assert one.value == pytest.approx(component(name, np.arange(90)), abs=1e-9)
        left = np.array([component(name, np.delete(np.arange(90), np.s_[3 * k : 3 * k + 3])) for k in range(n)])
        error = np.sqrt((n - 1) / n * ((left - left.mean()) ** 2).sum())
        whole = value_of[name] + errors[name]
        factor = np.exp(stats.t.ppf(0.975, n - 1) * error / whole)
        ends = [max(0.0, whole * by - errors[name]) for by in (1 / factor, factor)]
        assert (one.ci_low, one.ci_high) == pytest.approx(ends, abs=1e-9)
        plain = variance_components(table, bootstrap=Bootstrap(rounds=100, interval="percentile")).of[name]
        assert (plain.value, plain.ci_low is None) == (one.value, False)


def test_a_component_of_nothing_may_be_small() -> None:
    generator = np.random.default_rng(1)
    table = replace(labels_of(generator.normal(size=(90, 4)), clusters=[str(row // 3) for row in range(90)]), has_people=False)
    found = variance_components(table).of["responses"]
    assert (found.value, found.ci_low) == (0.0, 0.0)
    assert 0 < (found.ci_high or 0) < 0.3


def test_what_more_raters_are_worth() -> None:
    """By hand: of responses 2, of what is left over 6; with 3 raters a response has 2 + 2, with 6 raters 2 + 1."""
    found = variance_components(labels_of(np.random.default_rng(0).normal(size=(30, 3))), bootstrap=NO_RESAMPLES)
    made = {
        name: replace(found.of["residual"], value=value) for name, value in (("responses", 2.0), ("raters", 1), ("residual", 6))
    }
    by_hand = replace(found, of=made)
    assert by_hand.reliability(3) == pytest.approx(2 / (2 + 7 / 3))
    assert by_hand.standard_error(30, 3) == pytest.approx((4 / 30) ** 0.5)
    assert by_hand.worth_of_raters(3) == pytest.approx(10)
    assert by_hand.standard_error(40, 3) == pytest.approx(by_hand.standard_error(30, 6))
    assert json.loads(json.dumps(by_hand.to_dict()))["of"]["raters"]["value"] == 1


@pytest.mark.parametrize(
    ("labels", "clusters", "message"),
    [
        ([[1, np.nan], [2, np.nan]], None, "2 rows have 2 ratings, or all the same. Have rows rated twice."),
        ([[1, 1], [1, 1]], None, "2 rows have 4 ratings, or all the same. Have rows rated twice."),
        (np.empty((3, 0)), None, "0 rows have 0 ratings, or all the same. Have rows rated twice."),
        ([[1, 2, 4]], None, "no effect has two levels. Have two rows rated twice, or more."),
    ],
)
def test_what_has_no_components(labels: Any, clusters: Any, message: str) -> None:
    with refused(f"variance_components: {message}", StatisticUndefined):
        variance_components(labels_of(labels, clusters=clusters))


def test_one_conversation_has_components_and_no_interval() -> None:
    """Left out, it leaves no rating, and numpy computes no condition number of NaN."""
    labels = np.random.default_rng(0).normal(size=(6, 3)) + np.arange(6)[:, None]
    found = variance_components(labels_of(labels, clusters=["a"] * 6), bootstrap=Bootstrap(interval="jackknife"))
    assert found.of["responses"].value > 0
    assert all(one.ci_low is None and "an interval needs 10 clusters" in (one.reason or "") for one in found.of.values())


def test_effects_that_always_go_together_cannot_be_told_apart() -> None:
    labels = np.random.default_rng(0).normal(size=(40, 2))
    table = labels_of(labels, clusters=[str(row // 10) for row in range(40)], systems=[str(row // 10) for row in range(40)])
    with refused(
        "variance_components: effects of systems, conversations, responses, raters cannot be told apart. "
        "Have more rows rated twice.",
        StatisticUndefined,
    ):
        variance_components(table)


@pytest.mark.parametrize("seed", range(4))
def test_isotonic_calibration_is_scikit_learns(seed: int) -> None:
    generator = np.random.default_rng(seed)
    # Some scores are equal, and some people left rows out.
    scores = generator.integers(0, 12, 40) / 3
    labels = generator.integers(1, 6, (40, 3)).astype(float)
    labels[:, 1:][generator.random((40, 2)) < 0.3] = np.nan
    asked = generator.normal(size=40) * 3
    weights = (~np.isnan(labels)).sum(axis=1)
    model = IsotonicRegression(out_of_bounds="clip").fit(scores, np.nanmean(labels, axis=1), sample_weight=weights)
    assert _by_isotonic(scores, labels, asked) == pytest.approx(model.predict(asked), abs=1e-12)
