"""Every question of a passport: what is answered yes, no, cannot tell, and what is not tested."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from dialeval_plugin.bias.battery import ANSWER_CHANGES
from dialeval_plugin.labels.reading import labels_from
from dialeval_plugin.labels.scores import pair
from dialeval_plugin.labels.table import LabelTable, ScoreTable
from dialeval_plugin.passport.certify import EvaluatorPassport, certify
from dialeval_plugin.passport.findings import QUESTIONS, TITLES, Finding
from dialeval_plugin.results.true_mean import estimate
from dialeval_plugin.statistics.annotators.alternative_annotator_test import alternative_annotator_test
from dialeval_plugin.statistics.annotators.raters import leave_one_rater_out
from dialeval_plugin.statistics.annotators.reliability import disattenuated_correlation, intraclass_correlation
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, UNIFORM, Estimate
from dialeval_plugin.statistics.correlation import covariate_bias
from tests.passport.conftest import SIGNATURE, MadeUp
from tests.refusals import refusal, refused

FEWER_ROUNDS = replace(DEFAULT_BOOTSTRAP, rounds=200)


def passport_of(scores: ScoreTable | list[ScoreTable], labels: LabelTable) -> EvaluatorPassport:
    given = {"judge": scores} if isinstance(scores, list) else [scores]
    return certify(given, labels, bootstrap=FEWER_ROUNDS).evaluators[0]


def finding(key: str, scores: ScoreTable | list[ScoreTable], labels: LabelTable) -> Finding:
    (found,) = (one for one in passport_of(scores, labels).findings if one.key == key)
    return found


@pytest.mark.parametrize(
    ("noise", "verdict", "begins"),
    [
        (
            0.1,
            "yes",
            "It agrees with people as well as a second person does, within 0.05: Spearman's rho in the place of each rater 0.",
        ),
        (4.0, "no", "It agrees with people less than a second person does: Spearman's rho in the place of each rater 0."),
        (
            0.9,
            "cannot tell",
            "It may agree with people more or less than a second person does: Spearman's rho in the place of each rater 0.",
        ),
    ],
)
def test_second_person(made_up: MadeUp, noise: float, verdict: str, begins: str) -> None:
    found = finding("second_person", made_up.table("judge", noise), made_up.labels)
    assert (found.verdict, found.sentence[: len(begins)]) == (verdict, begins)
    ours, person, difference = found.figures
    of_people = leave_one_rater_out(made_up.labels.labels.tolist())
    assert person.value == pytest.approx(of_people.value, abs=1e-12)
    assert difference.value == pytest.approx(ours.value - person.value, abs=1e-12)
    end = f"{ours.text(2)} against {person.value:.2f}, a difference of {difference.text(2)}."
    assert found.sentence.endswith(end)


def test_one_rater_only_has_no_ceiling(made_up: MadeUp) -> None:
    labels = replace(made_up.labels, labels=made_up.labels.labels[:, :1], raters=("Ann",))
    found = passport_of(made_up.table("judge", 0.3), labels)
    by_key = {one.key: (one.verdict, one.sentence) for one in found.findings}
    why = "One rater only: how well people agree with each other, the ceiling, is not known."
    assert by_key["second_person"] == ("not tested", why)
    assert by_key["ceiling"] == ("not tested", "One rater only: how reliable the labels are is not known.")
    assert found.verdict == "cannot tell"
    assert found.headline.sentence.startswith(f"{why} It agrees with people: Spearman's rho with the people's mean 0.")
    against = replace(made_up.table("judge", 0.3), scores=-made_up.table("judge", 0.3).scores)
    assert passport_of(against, labels).verdict == "no"


def test_raters_who_labelled_few_rows_each_are_taken_by_place(made_up: MadeUp) -> None:
    """Sixty people, three a row: no person has rows enough for a coefficient, the places of the rows have."""
    whole = made_up.labels.labels
    spread = np.full((len(whole), 60), np.nan)
    for row, own in enumerate(whole):
        spread[row, (row % 20) * 3 : (row % 20) * 3 + 3] = own
    many = replace(made_up.labels, labels=spread, raters=tuple(f"p{number}" for number in range(60)))
    scores = made_up.table("judge", 0.3)
    assert finding("second_person", scores, many) == finding("second_person", scores, made_up.labels)


@pytest.mark.parametrize(
    ("noise", "verdict", "begins"),
    [
        (0.5, "yes", "It agrees with people: Spearman's rho with the people's mean 0."),
        (np.inf, "cannot tell", "It cannot be told from chance: Spearman's rho with the people's mean "),
    ],
)
def test_agreement(made_up: MadeUp, noise: float, verdict: str, begins: str) -> None:
    scores = made_up.table("judge", noise)
    found = finding("agreement", scores, made_up.labels)
    assert (found.verdict, found.sentence[: len(begins)]) == (verdict, begins)
    people = made_up.labels.labels.mean(axis=1)
    expected = stats.spearmanr(scores.scores, people).statistic, stats.pearsonr(scores.scores, people).statistic
    assert [one.value for one in found.figures] == pytest.approx(expected, abs=1e-9)


def test_a_constant_evaluator_is_undefined_everywhere_and_certified_nowhere(made_up: MadeUp) -> None:
    found = passport_of(replace(made_up.table("judge", 0.5), scores=np.ones(240)), made_up.labels)
    by_key = {one.key: (one.verdict, one.sentence) for one in found.findings}
    assert by_key["agreement"] == ("cannot tell", "spearman: all 240 scores are 1.0. Give scores that differ.")
    assert by_key["second_person"] == by_key["agreement"]
    assert by_key["power"][1] == by_key["agreement"][1]
    assert found.verdict == "cannot tell"


def test_labels_that_are_all_the_same_are_named_so(made_up: MadeUp) -> None:
    same = replace(made_up.labels, labels=np.full((240, 3), 4.0))
    sentence = finding("second_person", made_up.table("judge", 0.5), same).sentence
    assert sentence == "spearman: all 720 ratings are 4.0. Give ratings that differ."


def test_the_number_of_words(made_up: MadeUp) -> None:
    words = np.array([float(len(said.split())) for _, said in made_up.labels.texts or ()])
    long = replace(made_up.table("judge", 0.5), scores=words)
    assert finding("beyond_length", long, made_up.labels).verdict == "cannot tell"
    good = finding("beyond_length", made_up.table("judge", 0.3), made_up.labels)
    assert good.verdict == "yes"
    assert good.sentence.startswith("It agrees with people better than the number of words does, by 0.")
    bias = finding("length_bias", replace(long, scores=words + made_up.quality), made_up.labels)
    assert bias.verdict == "no"
    assert bias.sentence.startswith("Among responses that people find equally good, it prefers long ones: 0.")
    people = made_up.labels.labels.mean(axis=1)
    expected = covariate_bias(words + made_up.quality, people, words, name="length")["score_length_given_rating"]
    assert bias.figures[0].value == pytest.approx(expected.value, abs=1e-12)
    for key in ("beyond_length", "length_bias"):
        untold = finding(key, long, replace(made_up.labels, texts=None))
        why = "The labels come without texts, so the length of the responses is not known."
        assert (untold.verdict, untold.sentence) == ("not tested", why)


def test_the_length_of_a_dialogue_is_that_of_all_its_turns(made_up: MadeUp) -> None:
    labels = replace(made_up.labels, is_of_dialogues=True)
    every = np.array([float(len(f"{before} {said}".split())) for before, said in labels.texts or ()])
    found = finding("beyond_length", replace(made_up.table("judge", 0.5), scores=every), labels)
    assert found.figures[0].value == 0


def test_ceiling(made_up: MadeUp) -> None:
    scores = made_up.table("judge", 0.3)
    found = finding("ceiling", scores, made_up.labels)
    people = made_up.labels.labels.tolist()
    assert found.figures[2].value == pytest.approx(intraclass_correlation(people).ceiling_of_mean.value, abs=1e-12)
    share = found.figures[3]
    assert share.value == pytest.approx(disattenuated_correlation(scores.scores, people).value, abs=1e-12)
    assert found.sentence.endswith(f" with these labels. It reaches {share.text(2)} of that.")


def test_power(made_up: MadeUp) -> None:
    found = finding("power", made_up.table("judge", 0.3), made_up.labels)
    (figure,) = found.figures
    seen = f"a difference of {figure.value:.3f} would be seen four times in five between it and a person"
    said = f"With these 80 conversations {seen}"
    assert (found.verdict, found.sentence) == ("yes" if figure.value <= 0.1 else "no", f"{said}; 0.1 or less is enough.")


def test_alternative_annotator(made_up: MadeUp) -> None:
    scores = made_up.table("judge", 0.3)
    found = finding("alternative_annotator", scores, made_up.labels)
    expected = alternative_annotator_test(pair(scores, made_up.labels), calibration="quantiles", bootstrap=FEWER_ROUNDS)
    assert (found.verdict, found.figures[0].value) == ("yes", expected.winning_rate)
    said = "It matches 3 of 3 raters, each left out in turn, at epsilon 0.2, and half are needed; on "
    assert found.sentence.startswith(f"{said}{expected.advantage.text(2)} of")
    two = replace(made_up.labels, labels=made_up.labels.labels[:, :2], raters=("Ann", "Bob"))
    of_two = finding("alternative_annotator", scores, two)
    assert (of_two.verdict, of_two.figures[0].value) == ("cannot tell", 1.0)
    assert "2 raters are few: with 3 or more, the others have something in common." in of_two.sentence
    few = replace(made_up.labels, labels=np.where(np.arange(240)[:, None] < 20, made_up.labels.labels, np.nan))
    untold = finding("alternative_annotator", scores, few)
    why = "No rater labelled 30 rows that others labelled too, in 10 conversations."
    assert (untold.verdict, untold.sentence) == ("not tested", why)


def test_repeated_runs(made_up: MadeUp) -> None:
    first, second, third = (made_up.table("judge", noise) for noise in (0.3, 0.35, 4.0))
    steady = finding("repeats", [first, second], made_up.labels)
    assert steady.verdict == "yes"
    assert steady.sentence.startswith("The reliability of one of 2 runs is 1.00 [")
    assert finding("repeats", [first, third], made_up.labels).verdict == "no"
    alone = finding("repeats", first, made_up.labels)
    why = "No repeated runs are given: give NAME=FILE several times with one NAME."
    assert (alone.verdict, alone.sentence) == ("not tested", why)


def test_a_sample_of_labels_says_the_true_mean_of_all_rows(made_up: MadeUp) -> None:
    scores = made_up.table("judge", 0.3)
    known = finding("true_mean", scores, made_up.labels)
    assert (known.verdict, known.sentence) == ("not tested", "All rows that it scored are labelled: their mean is known.")
    gaps = replace(scores, scores=np.where(np.arange(240) < 5, np.nan, scores.scores), unscored={"parse_failure": 5})
    assert finding("true_mean", gaps, made_up.labels).sentence == known.sentence
    is_labelled = np.random.default_rng(8).permutation(80)[np.arange(240) // 3] < 30
    some = replace(made_up.labels, labels=np.where(is_labelled[:, None], made_up.labels.labels, np.nan))
    found = finding("true_mean", scores, some)
    expected = estimate(scores, some)
    assert [one.value for one in found.figures] == [expected.mean.value, expected.labels_only.value]
    worth = f"with its scores the 90 labels are worth {expected.effective_labels:,.0f}."
    assert (found.verdict, found.sentence) == ("yes", f"The true mean of all 240 rows is {expected.mean.text(2)}; {worth}")
    assert finding("true_mean", gaps, some).sentence.startswith("The true mean of all 235 scored rows is")
    chance = finding("true_mean", made_up.table("judge", np.inf), some)
    assert chance.verdict == "no"
    assert chance.sentence.endswith("; it adds nothing to the 90 labels.")


def test_systems(made_up: MadeUp) -> None:
    scores = made_up.table("judge", 0.3)
    nameless = finding("systems", scores, made_up.labels)
    why = "No systems are named: neither their ranks nor self-preference are tested."
    assert (nameless.verdict, nameless.sentence) == ("not tested", why)
    two = finding("systems", scores, replace(made_up.labels, systems=["a", "b"] * 120))
    assert (two.verdict, two.sentence) == ("not tested", "2 systems are named, and ranking them needs 3.")
    places = np.argsort(np.argsort(made_up.quality)) // 60
    told = finding("systems", scores, replace(made_up.labels, systems=[f"system {place}" for place in places]))
    assert told.verdict == "yes"
    assert told.sentence.startswith("It ranks the means of 4 systems as people do: Pearson's r 1.00 [")


def test_coverage(made_up: MadeUp) -> None:
    scores = made_up.table("judge", 0.3)
    whole = finding("coverage", scores, made_up.labels)
    assert (whole.verdict, whole.sentence) == ("yes", "All 240 labelled rows have a score.")
    lacking = scores.scores.copy()
    lacking[:12] = np.nan
    found = passport_of(replace(scores, scores=lacking, unscored={"refusal": 9, "parse_failure": 3}), made_up.labels)
    part = next(one for one in found.findings if one.key == "coverage")
    said = "12 of 240 labelled rows have no score (parse failure 3, refusal 9). They are left out of every figure."
    assert (part.verdict, part.sentence, part.figures[0].value) == ("no", said, 0.95)
    spearman = found.figures["spearman"]
    assert (spearman.n_total, spearman.n_scored, spearman.n_unscored) == (240, 228, 12)


def test_few_conversations_leave_everything_open(made_up: MadeUp) -> None:
    one = replace(made_up.labels, clusters=[f"c{row % 9}" for row in range(240)])
    found = passport_of(made_up.table("judge", 0.3), one)
    assert {finding.verdict for finding in found.findings} <= {"cannot tell", "not tested", "yes"}
    assert found.verdict == "cannot tell"
    assert found.headline.sentence.endswith("Score and rate more dialogues.")


def test_every_figure_has_a_title(made_up: MadeUp) -> None:
    found = passport_of([made_up.table("judge", 0.3), made_up.table("judge", 0.4)], made_up.labels)
    assert {*found.figures} < {*TITLES}
    assert len(TITLES) == sum(len(one.figures) for one in QUESTIONS.values())


CUT = -0.4
"""Threshold of the made-up quality: what is better passes."""


def words(is_good: object) -> str:
    return "pass" if is_good else "fail"


def people_and_judge(made_up: MadeUp) -> tuple[np.ndarray, np.ndarray]:
    """Whether two people, and a judge, let each row pass."""
    return made_up.quality[:, None] + 0.6 * made_up.noise[:, :2] > CUT, made_up.quality + 0.3 * made_up.noise[:, 3] > CUT


def passport_of_words(made_up: MadeUp, said: np.ndarray) -> EvaluatorPassport:
    people, _ = people_and_judge(made_up)
    labels = [{"id": id, "ann": words(a), "bob": words(b)} for id, (a, b) in zip(made_up.labels.ids, people, strict=True)]
    judge = [{"id": id, "verdict": words(one)} for id, one in zip(made_up.labels.ids, said, strict=True)]
    again = [{**row, "verdict": "fail" if place < 12 else row["verdict"]} for place, row in enumerate(judge)]
    return certify({"judge": [judge, again]}, labels, raters=("ann", "bob"), bootstrap=FEWER_ROUNDS).evaluators[0]


def test_kappa_of_a_judge_stands_beside_that_of_two_people(made_up: MadeUp) -> None:
    people, judge = people_and_judge(made_up)
    found = passport_of_words(made_up, judge)
    two = cohen_kappa_score(np.concatenate(people.T), np.concatenate(people.T[::-1]))
    with_one = cohen_kappa_score(np.tile(judge, 2), np.concatenate(people.T))
    assert found.figures["person"].value == pytest.approx(two, abs=1e-9)
    assert found.figures["second_person"].value == pytest.approx(with_one, abs=1e-9)
    assert found.figures["kappa"].value == pytest.approx(with_one, abs=1e-9)
    assert found.figures["second_person_difference"].value == pytest.approx(with_one - two, abs=1e-9)
    said = "It may agree with people more or less than a second person does: kappa with one of them 0."
    assert found.headline.sentence.startswith(said)


def test_the_commonest_label_stands_beside_a_judge(made_up: MadeUp) -> None:
    people, judge = people_and_judge(made_up)
    found = passport_of_words(made_up, judge)
    gain = found.figures["accuracy"].value - people.mean()
    assert found.figures["accuracy_over_constant"].value == pytest.approx(gain, abs=1e-9)
    constant = next(one for one in found.findings if one.key == "constant")
    assert constant.verdict == "yes"
    assert constant.sentence.startswith("It is right more often than one that always says 'pass': by 0.")


def test_runs_of_a_judge_flip(made_up: MadeUp) -> None:
    _, judge = people_and_judge(made_up)
    found = passport_of_words(made_up, judge)
    assert found.figures["flip_rate"].value == pytest.approx(judge[:12].sum() / 240, abs=1e-9)
    assert "repeat_icc" not in found.figures


def test_a_judge_that_nearly_always_says_the_same_is_no_person(made_up: MadeUp) -> None:
    found = passport_of_words(made_up, np.arange(240) != 100)
    assert found.verdict == "no"
    by_key = {one.key: one.verdict for one in found.findings}
    assert (by_key["agreement"], by_key["constant"]) == ("cannot tell", "cannot tell")


def test_categories_without_an_order_have_no_means(made_up: MadeUp) -> None:
    names = ["joke", "fact", "question"]
    labels = {id: [names[row % 3], names[(row + row // 7) % 3]] for row, id in enumerate(made_up.labels.ids)}
    judge = [{"id": id, "said": names[row % 3]} for row, id in enumerate(made_up.labels.ids)]
    found = certify({"judge": judge}, labels, bootstrap=FEWER_ROUNDS).evaluators[0]
    why = {one.key: one.sentence for one in found.findings if one.verdict == "not tested"}
    of_means = ("beyond_length", "length_bias", "ceiling", "systems")
    assert {key: why[key] for key in of_means} == dict.fromkeys(of_means, "The labels have no order, so they have no mean.")
    assert found.figures["kappa"].value is not None
    assert "tpr" not in found.figures


def test_scores_beside_pass_and_fail_have_a_threshold_that_other_conversations_choose(made_up: MadeUp) -> None:
    people, _ = people_and_judge(made_up)
    labels = {id: words(one) for id, one in zip(made_up.labels.ids, people[:, 0], strict=True)}
    found = passport_of(made_up.table("judge", 0.3), labels_from(labels))
    by_key = {one.key: (one.verdict, one.sentence) for one in found.findings}
    assert by_key["agreement"][0] == "yes"
    assert by_key["agreement"][1].startswith("It agrees with people: AUROC 0.9")
    why = "It answers with numbers of its own: how often it is right depends on a threshold."
    assert by_key["constant"] == ("not tested", why)
    assert 0.5 < found.figures["kappa"].value < 1


def shift(value: float, low: float | None, high: float | None) -> Estimate:
    reason = None if low is not None else f"shift: {UNIFORM}, so there is no interval."
    counts = {"n_total": 60, "n_scored": 60, "n_unscored": 0, "n_unrated": 0, "n_clusters": 30, "n_degenerate": 0}
    return Estimate(
        name="shift", value=value, ci_low=low, ci_high=high, reason=reason, is_rough=False, bootstrap=FEWER_ROUNDS, **counts
    )


@pytest.mark.parametrize(
    ("effects", "verdict", "sentence"),
    [
        (
            {"order of rows": [(0.0, None, None)], "markdown": [(-0.05, -0.1, 0.02)]},
            "yes",
            "None of markdown, order of rows moves its scores by 0.2 standard deviations.",
        ),
        (
            {"markdown": [(0.1, 0.0, 0.15), (-0.25, -0.4, -0.1)], "verbosity": [(0.01, -0.1, 0.1)]},
            "cannot tell",
            "Its scores may be moved by markdown (change 1) by -0.25 [-0.40, -0.10] standard deviations.",
        ),
        (
            {"markdown": [(-0.25, -0.4, -0.1)], "injection": [(1.5, 1.2, 1.8)], "verbosity": [(-0.9, -1.0, -0.8)]},
            "no",
            "Its scores are moved by injection (change 0) by 1.50 [1.20, 1.80]; verbosity (change 0) by -0.90 [-1.00, -0.80] "
            "standard deviations.",
        ),
    ],
)
def test_what_moves_scores_that_should_not(
    made_up: MadeUp, tmp_path: Path, effects: dict[str, list[tuple[float, float, float]]], verdict: str, sentence: str
) -> None:
    report = [
        {"test": test, "change": f"change {place}", "shift": shift(*ends).to_dict(), "n_equal": 3}
        for test, shifts in effects.items()
        for place, ends in enumerate(shifts)
    ]
    path = tmp_path / "bias.json"
    path.write_text(json.dumps({"signature": SIGNATURE, "scorer": "made-up", "effects": report}), encoding="utf-8")
    scores = made_up.table("judge", 0.3, signature=SIGNATURE)
    passport = certify([scores], made_up.labels, bias=[path], bootstrap=FEWER_ROUNDS).evaluators[0]
    (found,) = (one for one in passport.findings if one.key == "unmoved")
    assert (found.verdict, found.sentence) == (verdict, sentence)
    assert {figure.name for figure in found.figures} == {f"bias_{test.replace(' ', '_')}" for test in effects}
    wrong = made_up.table("judge", 0.3, signature="method:other|version:1")
    assert refusal(certify, [wrong], made_up.labels, bias=[path], bootstrap=FEWER_ROUNDS) == (
        f"{path}: is of {SIGNATURE}, which none of the results is of. Run `dialeval bias` with the scorer and the options that "
        "gave the results."
    )


def test_a_report_of_bias_that_is_none_is_refused(made_up: MadeUp, tmp_path: Path) -> None:
    path = tmp_path / "bias.json"
    path.write_text('{"signature": "a", "effects": [{"test": "markdown"}]}', encoding="utf-8")
    with refused(f"{path}: effects.0.change: field required. Give what `dialeval bias --output FILE.json` wrote."):
        certify([made_up.table("judge", 0.3)], made_up.labels, bias=[path], bootstrap=FEWER_ROUNDS)


def test_what_is_measured_has_a_name_in_a_passport() -> None:
    assert {f"bias_{test.replace(' ', '_')}" for test in ANSWER_CHANGES} <= QUESTIONS["unmoved"].figures.keys()
