"""The true mean by a judge and labels, beside other packages (`reproduction/references/estimation.py`) and definitions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.bootstrap import Bootstrap, Resampled, jackknife_error
from dialeval_plugin.statistics.estimation.means import (
    JudgeRates,
    judge_rates,
    rogan_gladen,
    rogan_gladen_interval,
    rogan_gladen_parts,
)
from dialeval_plugin.statistics.estimation.sample import Sample, Sums, allocate, next_rows, representativeness, score_strata
from dialeval_plugin.statistics.estimation.true_mean import difference_of_true_means, true_mean, wilson
from tests.refusals import refusal, refused

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "estimation.json").read_text(encoding="utf-8"))
DATA = {name: np.array(column) for name, column in GOLDEN["data"].items()}
KNOWN = DATA["labelled"] == 1
Z = float(stats.norm.ppf(0.975))


def sample(label: str = "passes", score: str = "verdicts", *, clustered: bool = True, **options: Any) -> Sample:
    labels = np.where(KNOWN, DATA[label], np.nan)
    clusters = DATA["conversations"].astype(int) if clustered else None
    return Sample.of(DATA[score], labels, clusters=clusters, is_rate=label == "passes", **options)


@pytest.mark.parametrize(("label", "score"), [("passes", "verdicts"), ("ratings", "scores")])
def test_prediction_powered_means_are_those_of_ppi_python_and_truescore(label: str, score: str) -> None:
    value, low, high = GOLDEN[label]["ppi_py"]
    found = true_mean(sample(label, score, clustered=False), method="ppi")
    assert found.mean.value == pytest.approx(value, abs=1e-12)
    assert found.mean.value == pytest.approx(GOLDEN[label]["truescore"][0], abs=1e-12)
    n_all, n = len(KNOWN), KNOWN.sum()
    assert found.slope == pytest.approx(GOLDEN[label]["truescore_slope"] * n_all / (n_all - n), abs=1e-12)
    # Theirs take the slope for known; ours is wider by what it is not.
    assert found.mean.ci_low is not None
    assert found.mean.ci_high is not None
    assert 1 < (found.mean.ci_high - found.mean.ci_low) / (high - low) < 1.03


@pytest.mark.parametrize(("label", "score"), [("passes", "verdicts"), ("ratings", "scores")])
def test_clustered_intervals_are_near_those_of_truescore(label: str, score: str) -> None:
    value, low, high = GOLDEN[label]["truescore_clustered"]
    found = true_mean(sample(label, score), method="ppi").mean
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert (found.ci_high - found.ci_low) / (high - low) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize(("label", "score"), [("passes", "verdicts"), ("ratings", "scores")])
def test_the_error_of_labels_alone_is_the_clustered_one_of_statsmodels(label: str, score: str) -> None:
    whole = sample(label, score)
    assert len(np.unique(np.bincount(whole.clusters[whole.is_labelled])[whole.clusters[whole.is_labelled]])) == 1
    mean = Resampled(lambda sums: sums[:, 0] / sums[:, 1], whole.sums[:, [1, 0]][whole.sums[:, 0] > 0])
    assert jackknife_error(mean) == pytest.approx(GOLDEN[label]["statsmodels_clustered_error"], rel=1e-9)


def test_the_jackknife_leaves_out_each_conversation() -> None:
    labels, scores, clusters = (DATA[name] for name in ("ratings", "scores", "conversations"))

    def mean_without(left_out: float) -> float:
        rest = clusters != left_out
        y, f, f_all = labels[rest & KNOWN], scores[rest & KNOWN], scores[rest]
        slope = np.cov(y, f, ddof=0)[0, 1] / f_all.var(ddof=1)
        return float(y.mean() + slope * (f_all.mean() - f.mean()))

    values = np.array([mean_without(one) for one in np.unique(clusters)])
    error = np.sqrt((len(values) - 1) / len(values) * ((values - values.mean()) ** 2).sum())
    found = true_mean(sample("ratings", "scores")).mean
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.value is not None
    half = stats.t.ppf(0.975, 29) * error
    assert (found.ci_low, found.ci_high) == pytest.approx((found.value - half, found.value + half), rel=1e-9)


def test_rogan_and_gladens_estimate_is_that_of_judgy_and_truescore() -> None:
    found = true_mean(sample(clustered=False), method="rogan-gladen").mean
    assert found.value == pytest.approx(GOLDEN["judgy"][0], abs=1e-12)
    assert found.value == pytest.approx(GOLDEN["truescore_rogan_gladen"][0], abs=1e-12)
    assert (found.ci_low, found.ci_high) == pytest.approx(GOLDEN["judgy"][1:], abs=0.01)
    _, low, high = GOLDEN["truescore_rogan_gladen"]
    assert low < found.ci_low < found.ci_high < high


def test_its_interval_contains_the_ratios_that_the_jackknife_does_not_refute() -> None:
    """The ends of Fieller's interval, found by trying ratios."""
    data = sample()
    n_clusters, quantile = data.n_labelled_clusters, float(stats.t.ppf(0.975, data.n_labelled_clusters - 1))

    def beyond(ratio: float) -> float:
        def apart(sums: Sums) -> np.ndarray:
            numerator, denominator = rogan_gladen_parts(sums, data.centre)
            return numerator - ratio * denominator

        resampled = data.resampled(apart)
        return abs(resampled.value) - quantile * jackknife_error(resampled)

    found = true_mean(data, method="rogan-gladen").mean
    assert (found.n_clusters, found.ci_low > 0, found.ci_high < 1) == (n_clusters, True, True)
    ends = [optimize.brentq(beyond, found.value, found.value + step) for step in (-0.5, 0.5)]
    assert (found.ci_low, found.ci_high) == pytest.approx(ends, abs=1e-9)


def test_a_judge_without_an_error_among_the_labels_may_still_make_some() -> None:
    verdicts = np.where(KNOWN, DATA["passes"], DATA["verdicts"])
    right = Sample.of(
        verdicts, np.where(KNOWN, DATA["passes"], np.nan), clusters=DATA["conversations"].astype(int), is_rate=True
    )
    found, quantile = true_mean(right, method="rogan-gladen").mean, float(stats.t.ppf(0.975, right.n_labelled_clusters - 1))
    assert (found.ci_low, found.ci_high) == rogan_gladen_interval(judge_rates(right), quantile)


@pytest.mark.parametrize("row", GOLDEN["judge_reporting"])
def test_its_interval_is_that_of_lee_and_others(row: list[float]) -> None:
    passed, specificity, sensitivity, n, m0, m1, low, high = row
    rates = JudgeRates(passed, sensitivity, specificity, n, m1, m0)
    assert rogan_gladen_interval(rates, Z) == pytest.approx((low, high), abs=1e-12)


def test_independent_rows_count_in_full_and_those_of_conversations_less() -> None:
    y, f = DATA["passes"][KNOWN], DATA["verdicts"][KNOWN]
    rates = judge_rates(sample(clustered=False))
    assert rates[:3] == pytest.approx((DATA["verdicts"].mean(), f[y == 1].mean(), 1 - f[y == 0].mean()), abs=1e-12)
    assert rates[3:] == pytest.approx((len(KNOWN), y.sum(), len(y) - y.sum()), rel=1e-9)
    clustered = judge_rates(sample())
    assert clustered[:3] == rates[:3]
    assert clustered.n_passed < rates.n_passed


def test_wilsons_interval_is_that_of_statsmodels() -> None:
    assert wilson(37 / 50, 50, Z) == pytest.approx(GOLDEN["statsmodels_wilson"], abs=1e-12)


def test_several_raters_of_a_row_count_as_their_share() -> None:
    passed, judged = [1, 0.5, 0, 1], [1, 1, 0, 0]
    rates = judge_rates(Sample.of(judged, passed, is_rate=True))
    assert rates.sensitivity == pytest.approx(1.5 / 2.5)
    assert rates.specificity == pytest.approx(1 / 1.5)
    assert rogan_gladen(*rates[:3]) == pytest.approx(2.5 / 4)


def test_the_fields_of_a_true_mean() -> None:
    found = true_mean(sample())
    assert (found.method, found.is_rate, found.notes) == ("ppi", True, ())
    assert (found.mean.n_scored, found.mean.n_total, found.mean.n_unrated, found.mean.n_clusters) == (150, 600, 450, 30)
    assert (found.judge.n_scored, found.judge.n_clusters) == (600, 120)
    assert found.judge.value == pytest.approx(DATA["verdicts"].mean())
    assert found.labels_only.value == pytest.approx(DATA["passes"][KNOWN].mean())
    assert found.effective_labels is not None
    assert found.effective_labels > 150
    assert list(found.to_pandas().index) == ["true mean", "labels only", "judge", "sensitivity", "specificity"]
    assert json.loads(json.dumps(found.to_dict()))["mean"]["n_scored"] == 150


def test_strata_count_by_their_rows() -> None:
    systems = np.where(DATA["conversations"] < 40, "old", "new")
    whole = sample("ratings", "scores", strata=systems)
    found = true_mean(whole)
    expected, weights = 0.0, []
    for name in ("old", "new"):
        of = systems == name
        y, f, f_all = DATA["ratings"][of & KNOWN], DATA["scores"][of & KNOWN], DATA["scores"][of]
        weights.append((of.mean() ** 2 / len(y), np.cov(y, f, ddof=0)[0, 1], f_all.var(ddof=1)))
        expected += of.mean() * y.mean()
    slope = sum(w * c for w, c, _ in weights) / sum(w * v for w, _, v in weights)
    assert found.labels_only.value == pytest.approx(expected, abs=1e-12)
    for name in ("old", "new"):
        of = systems == name
        expected += of.mean() * slope * (DATA["scores"][of].mean() - DATA["scores"][of & KNOWN].mean())
    assert found.mean.value == pytest.approx(expected, abs=1e-12)


def test_labels_chosen_by_the_verdict_are_weighted_and_without_that_refused() -> None:
    generator = np.random.default_rng(5)
    passes = generator.random(4000) < 0.7
    verdicts = np.where(generator.random(4000) < np.where(passes, 0.9, 0.3), 1.0, 0.0)
    labels = np.full(4000, np.nan)
    for verdict, n in ((1, 40), (0, 160)):
        rows = generator.choice(np.flatnonzero(verdicts == verdict), n, replace=False)
        labels[rows] = passes[rows]
    assert refusal(true_mean, Sample.of(verdicts, labels, is_rate=True)) == (
        "estimate: the labels are no random sample of the rows: the judge's mean is 0.2 on labelled rows and "
        f"{verdicts.mean():.3g} on all, and random samples are as unlike in 0.2 % of cases. Where labels were chosen by the "
        "judge's scores, weight them by --strata scores; where the judge is right as often elsewhere, use --method "
        "rogan-gladen; else label a random sample, which `dialeval label` draws."
    )
    weighted = Sample.of(verdicts, labels, is_rate=True, is_by_score=True)
    found = true_mean(weighted)
    by_verdict = [np.nanmean(labels[verdicts == verdict]) for verdict in (0, 1)]
    assert found.mean.value == pytest.approx(np.average(by_verdict, weights=np.bincount(verdicts.astype(int))))
    assert found.sensitivity is None
    assert found.representativeness is None
    with pytest.raises(InputError, match=re.escape("TPR and TNR among them are others. Use --method ppi.")):
        true_mean(weighted, method="rogan-gladen")


def test_a_judge_that_tells_nothing_leaves_the_labels_alone() -> None:
    generator = np.random.default_rng(2)
    blind = replace(sample(), scores=(generator.random(600) < 0.5).astype(float))
    found = true_mean(blind)
    assert found.method == "labels"
    assert found.slope == 0
    assert found.mean.value == found.labels_only.value
    assert found.notes == ("The judge says nothing of the labels beyond chance, so the mean is of the labels alone.",)
    assert re.fullmatch(
        r"estimate: the judge tells pass from fail no better than chance: TPR \+ TNR - 1 is -?0\.\d\d \[-0\.\d\d, 0\.\d\d\]\. "
        r"Label more rows, or use --method ppi, which needs no good judge\.",
        refusal(true_mean, blind, method="rogan-gladen"),
    )


def test_labels_that_are_all_the_same_have_an_interval_that_is_not_too_narrow() -> None:
    labels = np.where(KNOWN, 1.0, np.nan)
    found = true_mean(Sample.of(DATA["verdicts"], labels, clusters=DATA["conversations"].astype(int), is_rate=True)).mean
    assert (found.value, found.ci_high) == (1.0, 1.0)
    assert found.ci_low == pytest.approx(wilson(1.0, 30, float(stats.t.ppf(0.975, 29)))[0])


def test_few_conversations_have_a_value_and_no_interval() -> None:
    labels = np.where(KNOWN & (np.cumsum(KNOWN) <= 45), DATA["passes"], np.nan)
    found = true_mean(Sample.of(DATA["verdicts"], labels, clusters=DATA["conversations"].astype(int), is_rate=True))
    assert found.mean.ci_low is None
    assert found.mean.reason == (
        "true mean: an interval needs 10 clusters (dialogues), here are 9, so there is no interval. "
        "Score and rate more dialogues."
    )
    assert (found.width, found.more_labels, found.effective_labels) == (None, None, None)


def test_unscored_rows_are_left_out_and_counted() -> None:
    scores = DATA["verdicts"].copy()
    scores[np.flatnonzero(KNOWN)[:2]] = np.nan
    scores[np.flatnonzero(~KNOWN)[:3]] = np.nan
    labels = np.where(KNOWN, DATA["passes"], np.nan)
    found = true_mean(Sample.of(scores, labels, clusters=DATA["conversations"].astype(int), is_rate=True))
    assert (found.mean.n_total, found.mean.n_scored, found.mean.n_unscored, found.mean.n_unrated) == (600, 148, 5, 447)
    assert found.notes == ("5 rows have no score and are left out of all figures. 2 of them are labelled.",)


def test_more_labels_make_the_interval_as_wide_as_is_asked() -> None:
    generator = np.random.default_rng(3)
    n = 20_000
    passes = (generator.random(n) < 0.7).astype(float)
    verdicts = np.where(generator.random(n) < np.where(passes == 1, 0.9, 0.2), 1.0, 0.0)
    order = generator.permutation(n)

    def of(n_labels: int, **options: Any) -> Any:
        labels = np.full(n, np.nan)
        labels[order[:n_labels]] = passes[order[:n_labels]]
        return true_mean(Sample.of(verdicts, labels, is_rate=True), **options)

    few = of(200)
    assert few.more_labels is not None
    more = of(200 + few.more_labels).mean
    assert more.ci_high - more.ci_low == pytest.approx(few.width, rel=0.1)
    assert of(200, width=0.5).more_labels == 0
    assert of(200, width=0.001).more_labels is None
    assert refusal(of, 200, width=0.0) == "estimate: the width of an interval is 0.0. Give a number above 0."


def test_a_difference_of_conversations_in_both_is_narrower_than_of_different_ones() -> None:
    conversations = DATA["conversations"].astype(int)
    a = sample("ratings", "scores")
    better = np.where(KNOWN, DATA["ratings"] + 0.5, np.nan)
    b = Sample.of(DATA["scores"] + 0.5, better, clusters=conversations, is_rate=False)
    paired = difference_of_true_means(a, b)
    assert paired.difference.value == pytest.approx(0.5)
    assert paired.n_shared == 30
    assert paired.difference.reason is not None
    assert "tells nothing of its spread" in paired.difference.reason
    other = Sample.of(DATA["scores"] + 0.5, better, clusters=conversations + 1000, is_rate=False)
    apart = difference_of_true_means(a, other)
    assert (apart.difference.value, apart.n_shared) == (pytest.approx(0.5), 0)
    widths = [one.ci_high - one.ci_low for one in (apart.difference, apart.a.mean, apart.b.mean)]  # type: ignore[operator]
    assert widths[0] == pytest.approx(np.hypot(*widths[1:]), rel=0.01)
    assert list(apart.to_pandas().index) == ["A", "B", "difference"]


def test_random_labels_are_rarely_refused_and_chosen_ones_always() -> None:
    generator = np.random.default_rng(0)
    conversations = np.repeat(np.arange(200), 5)
    scores = np.round(generator.normal(size=200)[conversations] + generator.normal(size=1000), 2)
    p_values = []
    for whole in (True, False) * 30:
        chosen = np.isin(conversations, generator.choice(200, 30, replace=False))
        if not whole:
            chosen = np.isin(np.arange(1000), generator.choice(1000, 60, replace=False))
        labels = np.where(chosen, 1.0, np.nan)
        found = representativeness(Sample.of(scores, labels, clusters=conversations, is_rate=True), rounds=100)
        assert found is not None
        p_values.append(found.p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    labels = np.where(scores > 0.5, 1.0, np.nan)
    worst = representativeness(Sample.of(scores, labels, clusters=conversations, is_rate=True))
    assert worst is not None
    assert worst.p_value == 1 / 501


def test_the_distance_is_that_of_kolmogorov_and_smirnov() -> None:
    for score in ("scores", "verdicts"):
        found = representativeness(sample("ratings", score))
        assert found is not None
        assert found.distance == pytest.approx(stats.ks_2samp(DATA[score][KNOWN], DATA[score]).statistic, abs=1e-12)


def test_labels_go_where_they_narrow_the_interval_most() -> None:
    assert allocate(np.array([800, 200]), np.array([0, 0]), np.array([0.3, 0.5]), 34).tolist() == [24, 10]
    assert allocate(np.array([800, 200]), np.array([40, 0]), np.array([0.3, 0.5]), 10).tolist() == [0, 10]
    assert allocate(np.array([800, 3]), np.array([0, 0]), np.array([0.1, 0.9]), 50).tolist() == [48, 2]
    assert allocate(np.array([3, 2]), np.array([1, 0]), np.array([0.5, 0.5]), 50).tolist() == [2, 2]


def test_rows_to_label_are_drawn_at_random_within_strata_and_by_a_seed() -> None:
    scores, labels = DATA["verdicts"].copy(), np.where(KNOWN, DATA["passes"], np.nan)
    scores[:5] = np.nan
    rows = next_rows(scores, labels, 40, is_rate=True, seed=1)
    assert len(set(rows.tolist())) == 40
    assert not KNOWN[rows].any()
    assert (rows >= 5).all()
    assert rows.tolist() == next_rows(scores, labels, 40, is_rate=True, seed=1).tolist()
    assert rows.tolist() != next_rows(scores, labels, 40, is_rate=True, seed=2).tolist()
    with refused("label: all 595 scored rows are labelled. There is nothing left to label."):
        next_rows(scores, np.ones(600), 40, is_rate=True)


def test_many_scores_have_strata_of_a_fifth_each() -> None:
    assert np.bincount(score_strata(np.arange(600.0))).tolist() == [120] * 5
    assert np.bincount(score_strata(DATA["ratings"])).tolist() == np.unique(DATA["ratings"], return_counts=True)[1].tolist()


def test_a_jackknife_interval_is_that_of_t() -> None:
    values = DATA["ratings"][:20]
    mean = Resampled(lambda sums: sums[:, 0] / sums[:, 1], np.stack([values, np.ones(20)], axis=1))
    found = Bootstrap(rounds=0, interval="jackknife").intervals({"mean": mean})["mean"]
    expected = stats.t.interval(0.95, 19, loc=values.mean(), scale=stats.sem(values))
    assert (found.ci_low, found.ci_high, found.is_rough) == (pytest.approx(expected[0]), pytest.approx(expected[1]), True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [np.nan] * 3}, "estimate: none of 3 scored rows has a label. Label some of them."),
        ({"labels": [1, 2, 0]}, "estimate: labels of pass and fail are not from 0 to 1. Give 1 for pass and 0 for fail."),
        (
            {"labels": [1, 1, 0], "strata": ["a", "a", "b"]},
            "estimate: stratum 'b' has labels of 1 conversation. Label two at least, or leave out the strata.",
        ),
    ],
)
def test_samples_that_are_refused(options: dict[str, Any], message: str) -> None:
    with refused(message):
        Sample.of([1, 0, 1], is_rate=True, **options)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (
            [0.5, 1, 0],
            [1, 0, 1],
            "estimate: Rogan and Gladen's estimate is of a judge that says pass or fail, and of such labels. Use --method ppi.",
        ),
        ([1, 1, 0], [1, 1, 1], "estimate: all 3 labels are pass. Label more rows, or use --method ppi."),
    ],
)
def test_judges_that_are_refused(scores: list[float], labels: list[float], message: str) -> None:
    with refused(message):
        judge_rates(Sample.of(scores, labels, is_rate=True))


def test_a_judge_that_is_right_by_chance_alone_is_refused() -> None:
    """TPR + TNR - 1 of 0 was divided by."""
    sample = Sample.of([1.0, 0, 1, 1, 0, 1, 0, 0] * 10, [1, 0, 1, 0] * 10 + [np.nan] * 40, is_rate=True)
    with refused(
        "estimate: the judge tells pass from fail no better than chance: TPR + TNR - 1 is 0.00 [-0.33, 0.33]. Label more rows, "
        "or use --method ppi, which needs no good judge."
    ):
        true_mean(sample, method="rogan-gladen")


def test_rows_without_a_score_are_not_labelled_next() -> None:
    nothing = np.full(3, np.nan)
    assert refusal(next_rows, nothing, nothing, 1, is_rate=None) == "label: no row has a score. Score the rows first."


def test_a_judge_that_passes_nearly_all_is_refused_where_few_passes_say_that_it_is_right_on_all() -> None:
    """With the rows that its interval adds, TPR + TNR - 1 is 0 or less, and was divided by."""
    scores, labels = [1.0] * 30 + [0.0] * 5 + [1.0] * 95, [1] * 10 + [np.nan] * 20 + [0] * 100
    sample = Sample.of(scores, labels, is_rate=True)
    assert rogan_gladen_interval(judge_rates(sample), 2.0) is None
    with refused(
        "estimate: the judge tells pass from fail no better than chance: TPR + TNR - 1 is 0.05 among 10 passes and 100 fails. "
        "Label more rows, or use --method ppi, which needs no good judge."
    ):
        true_mean(sample, method="rogan-gladen")
