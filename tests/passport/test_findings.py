"""Every question of a passport: what is answered yes, no, cannot tell, and what is not tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dialeval_plugin.labels.table import LabelTable, ScoreTable
from dialeval_plugin.passport.certify import CERTIFY_BOOTSTRAP, EvaluatorPassport, certify
from dialeval_plugin.passport.findings import QUESTIONS, TITLES, Finding
from dialeval_plugin.statistics.partial import covariate_bias
from dialeval_plugin.statistics.raters import leave_one_rater_out
from dialeval_plugin.statistics.reliability import intraclass_correlation
from tests.passport.conftest import MadeUp

FEWER_ROUNDS = replace(CERTIFY_BOOTSTRAP, rounds=200)


def passport_of(scores: ScoreTable | list[ScoreTable], labels: LabelTable) -> EvaluatorPassport:
    given = {"judge": scores} if isinstance(scores, list) else [scores]
    return certify(given, labels, bootstrap=FEWER_ROUNDS).evaluators[0]


def finding(key: str, scores: ScoreTable | list[ScoreTable], labels: LabelTable) -> Finding:
    (found,) = (one for one in passport_of(scores, labels).findings if one.key == key)
    return found


@pytest.mark.parametrize(
    ("noise", "verdict", "begins"),
    [
        (0.1, "yes", "In the place of one rater it agrees with the others as well as that person does, within 0.05: 0."),
        (4.0, "no", "In the place of one rater it agrees with the others less than that person does: 0."),
        (0.9, "cannot tell", "In the place of one rater it may agree with the others more or less than that person does: 0."),
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
    assert found.headline.sentence.startswith(f"{why} Its scores rise with the people's mean: Spearman's rho 0.")
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
        (0.5, "yes", "Its scores rise with the people's mean: Spearman's rho 0."),
        (np.inf, "cannot tell", "It cannot be told from chance: Spearman's rho "),
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
    assert by_key["second_person"][0] == "cannot tell"
    assert found.verdict == "cannot tell"


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


def test_ceiling(made_up: MadeUp) -> None:
    scores = made_up.table("judge", 0.3)
    found = finding("ceiling", scores, made_up.labels)
    ceiling = intraclass_correlation(made_up.labels.labels.tolist()).ceiling_of_mean.value
    pearson = stats.pearsonr(scores.scores, made_up.labels.labels.mean(axis=1)).statistic
    assert found.figures[2].value == pytest.approx(ceiling, abs=1e-12)
    assert found.sentence.endswith(f" with these labels; its {pearson:.2f} is {100 * pearson / ceiling:.0f} % of that.")


def test_repeated_runs(made_up: MadeUp) -> None:
    first, second, third = (made_up.table("judge", noise) for noise in (0.3, 0.35, 4.0))
    steady = finding("repeats", [first, second], made_up.labels)
    assert steady.verdict == "yes"
    assert steady.sentence.startswith("Runs say the same: the reliability of one of 2 runs is 1.00 [")
    assert finding("repeats", [first, third], made_up.labels).verdict == "no"
    alone = finding("repeats", first, made_up.labels)
    why = "No repeated runs are given: give NAME=FILE several times with one NAME."
    assert (alone.verdict, alone.sentence) == ("not tested", why)


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
