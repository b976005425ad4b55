"""How far an evaluator agrees with people, from readers to the table, with clusters, several raters and unscored rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from dialeval_plugin import agreement
from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.scores import meta_file
from dialeval_plugin.results.agreement import Disagreement
from dialeval_plugin.statistics.bootstrap import UNIFORM, Bootstrap
from tests.refusals import refusal

NO_ROUNDS = Bootstrap(rounds=0)


def judged(n_conversations: int = 40, seed: int = 0) -> pd.DataFrame:
    """Four rows a conversation: a judge, a score and two people, the second of whom leaves a fifth out."""
    generator = np.random.default_rng(seed)
    n = 4 * n_conversations
    truth = generator.random(n) < np.repeat(generator.choice([0.3, 0.9], n_conversations), 4)

    def says(rate: float) -> list[str]:
        return ["pass" if said else "fail" for said in np.where(generator.random(n) < rate, truth, ~truth)]

    frame = pd.DataFrame({"id": [f"c{row // 4}:{row % 4}" for row in range(n)], "judge": says(0.8)})
    frame["score"] = np.round(truth + generator.normal(size=n), 2)
    frame["annotator_1"], frame["annotator_2"] = says(0.9), says(0.85)
    frame.loc[generator.random(n) < 0.2, "annotator_2"] = None
    frame["context"], frame["response"] = "Hi.", [f"Answer {row}." for row in range(n)]
    return frame


def test_a_judge_and_two_people() -> None:
    frame = judged()
    found = agreement(frame, frame, column="judge", bootstrap=Bootstrap(rounds=200))
    people = frame[["annotator_1", "annotator_2"]]
    share = (people == "pass").sum(axis=1) / people.notna().sum(axis=1)
    right = np.where(frame["judge"] == "pass", share, 1 - share)
    assert found.statistics["accuracy"].value == pytest.approx(right.mean())
    both = people.dropna()
    same = (both["annotator_1"] == both["annotator_2"]).mean()
    assert found.people["accuracy"].value == pytest.approx(same)
    assert (found.evaluator, found.quality, found.statistics["accuracy"].n_clusters) == ("judge", "rating", 40)
    assert found.people["accuracy"].n_scored == len(both)
    low, high = found.statistics["kappa"].ci_low, found.statistics["kappa"].ci_high
    assert low is not None
    assert high is not None
    assert low < (found.statistics["kappa"].value or 0) < high
    assert found.statistics["constant_accuracy"].value == pytest.approx(share.mean())
    assert np.sum(found.confusion) == pytest.approx(160)
    wrong = (right < 1).sum()
    assert len(found.disagreements) == wrong
    strengths = [row.strength for row in found.disagreements]
    assert strengths == sorted(strengths, reverse=True)
    first = found.disagreements[0]
    assert (first.strength, len(first.people), first.said in first.people) == (1, 2, False)
    assert (first.conversation, first.context) == (first.id.split(":")[0], "Hi.")
    assert first.response == frame.set_index("id").loc[first.id, "response"]
    assert {"statistic", "value", "people_value"} <= {*found.to_pandas().columns}
    assert json.loads(json.dumps(found.to_dict()))["statistics"]["kappa"]["value"] == found.statistics["kappa"].value


def test_the_order_of_rows_and_raters_moves_no_digit() -> None:
    frame = judged()
    moved = frame.sample(frac=1, random_state=1).rename(columns={"annotator_1": "annotator_2", "annotator_2": "annotator_1"})
    for column in ("judge", "score"):
        one, other = (agreement(given, given, column=column, bootstrap=Bootstrap(rounds=50)) for given in (frame, moved))
        assert one.statistics == other.statistics
        assert one.people == other.people
        assert one.threshold == other.threshold


def test_scores_beside_labels() -> None:
    frame = judged()
    found = agreement(frame, frame, column="score", raters=["annotator_1"], bootstrap=Bootstrap(rounds=100), costs=(2, 1))
    is_good = frame["annotator_1"] == "pass"
    assert found.statistics["auroc"].value == pytest.approx(metrics.roc_auc_score(is_good, frame["score"]))
    assert found.statistics["auroc"].ci_low is not None
    assert found.threshold is not None
    assert found.threshold.costs == (2, 1)
    assert found.people["accuracy"].reason == "accuracy: no row was labelled by two people. Have some rows labelled twice."
    both = agreement(frame, frame, column="score", bootstrap=NO_ROUNDS)
    rows = frame.melt(id_vars=["id", "score"], value_vars=["annotator_1", "annotator_2"]).dropna()
    weight = 1 / rows.groupby("id")["id"].transform("count")
    expected = metrics.roc_auc_score(rows["value"] == "pass", rows["score"], sample_weight=weight)
    assert both.statistics["auroc"].value == pytest.approx(expected)


def test_numbers_on_both_sides_are_correlated() -> None:
    generator = np.random.default_rng(0)
    people = {f"c{row}": generator.integers(1, 6, size=3).tolist() for row in range(60)}
    scores = {id: float(np.mean(values) + generator.normal()) for id, values in people.items()}
    found = agreement(scores, people, bootstrap=NO_ROUNDS)
    means = [np.mean(values) for values in people.values()]
    assert found.statistics["pearson"].value == pytest.approx(np.corrcoef(list(scores.values()), means)[0, 1])
    assert {*found.people} == {"alpha", "pearson", "spearman", "kendall_b"}
    assert found.confusion is None
    ordinal = agreement(scores, people, order=["1", "2", "3", "4", "5"], bootstrap=NO_ROUNDS)
    assert {"alpha", "quadratic_kappa"} <= {*ordinal.people}


def test_the_majority_leaves_ties_out() -> None:
    people = {"a": ["pass", "pass", "fail"], "b": ["pass", "fail"], "c": ["fail"], "d": [None]}
    found = agreement(
        {"a": "pass", "b": "pass", "c": None, "d": "fail"}, people, human="majority", is_partial=True, bootstrap=NO_ROUNDS
    )
    accuracy = found.statistics["accuracy"]
    assert (accuracy.value, accuracy.n_scored, accuracy.n_unscored, accuracy.n_unrated) == (1, 1, 1, 1)
    assert found.unscored == {"unknown": 1}


def test_distance_counts_where_labels_have_an_order() -> None:
    labels = {"a": "bad", "b": "good", "c": "ok", "d": "good"}
    found = agreement({"a": "good", "b": "ok", "c": "ok", "d": "bad"}, labels, order=["bad", "ok", "good"], bootstrap=NO_ROUNDS)
    assert found.disagreements == [
        Disagreement("a", "a", 1.0, "good", ("bad",)),
        Disagreement("d", "d", 1.0, "bad", ("good",)),
        Disagreement("b", "b", 0.5, "ok", ("good",)),
    ]


def test_what_cannot_be_compared_is_refused() -> None:
    labels = {"a": "warm", "b": "cold", "c": "hot"}
    assert refusal(agreement, {"a": 0.5, "b": 1.5, "c": 2}, labels) == (
        "score: scores are numbers, and labels cold, hot, warm have no order. Give one by --order."
    )
    labels = {"a": "pass", "b": "fail"}
    assert refusal(agreement, {"a": None, "b": ""}, labels) == (
        "score: no row has a label and a score, so there is nothing to compare."
    )
    assert refusal(agreement, {"a": 1.5, "b": 2}, {"a": 3, "b": 4}, human="majority") == (
        "labels: numbers have no majority. Leave out --human majority, or give their --order."
    )


def several(n_people: int) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Labels of so many people, and the chance of a pass."""
    generator = np.random.default_rng(3)
    chances = {f"c{row // 2}:{row % 2}": float(generator.random()) for row in range(60)}
    people = {
        id: ["pass" if generator.random() < chance else "fail" for _ in range(n_people)] for id, chance in chances.items()
    }
    return people, chances


def test_agreement_with_the_distribution_of_several_people() -> None:
    people, chances = several(6)
    soft = agreement(chances, people, bootstrap=Bootstrap(rounds=50))
    hard = agreement({id: "pass" if chance > 0.5 else "fail" for id, chance in chances.items()}, people, bootstrap=NO_ROUNDS)
    assert soft.statistics["jsd"].value < hard.statistics["jsd"].value < soft.people["jsd"].value
    assert soft.statistics["jsd"].ci_low is not None
    shares = np.array([one.count("pass") / 6 for one in people.values()])
    q = np.array([*chances.values()])
    assert soft.statistics["cross_entropy"].value == pytest.approx(
        -np.mean(shares * np.log2(q) + (1 - shares) * np.log2(1 - q))
    )
    assert "cross_entropy" not in hard.statistics
    beyond = agreement({id: 10 * chance for id, chance in chances.items()}, people, bootstrap=NO_ROUNDS)
    assert "cross_entropy" not in beyond.statistics
    assert soft.labels_a_row == 6
    assert not any("coarse" in note for note in soft.table().notes)


@pytest.mark.parametrize(
    ("n_people", "said"),
    [
        (3, "jsd: 3.0 labels a row are a coarse distribution; with more people it falls."),
        (2, "jsd: no row has a score and 3 labels, so people's distribution is not known. Have rows labelled by more."),
    ],
)
def test_few_people_are_no_distribution_or_a_coarse_one(n_people: int, said: str) -> None:
    people, chances = several(n_people)
    assert said in agreement(chances, people, bootstrap=NO_ROUNDS).table().notes


def test_one_person_has_no_distribution() -> None:
    people, chances = several(1)
    assert "jsd" not in agreement(chances, people, bootstrap=NO_ROUNDS).statistics


def test_unscored_rows_and_rows_of_two_people_are_left_out_of_a_distribution() -> None:
    people, chances = several(4)
    first, second, *_ = people
    people[first] = people[first][:2]
    found = agreement({**chances, second: None}, people, bootstrap=NO_ROUNDS).statistics["jsd"]
    assert (found.n_scored, found.n_unscored, found.n_unrated) == (58, 1, 1)


def test_rows_of_several_people_without_a_score_are_unscored_where_there_is_no_distribution() -> None:
    people, chances = several(4)
    first, *others = people
    fewer = {first: people[first], **{id: people[id][:2] for id in others}}
    found = agreement({**chances, first: None}, fewer, bootstrap=NO_ROUNDS).statistics["jsd"]
    assert (found.value, found.n_scored, found.n_unscored, found.n_unrated) == (None, 0, 1, 59)


@pytest.mark.parametrize("is_number", [True, False])
def test_zero_and_one_change_places_where_lower_is_better(tmp_path: Path, is_number: bool) -> None:
    """0 and 1 are categories too, and -1 was taken for one."""
    path = tmp_path / "broken.jsonl"
    path.write_text("".join(json.dumps({"id": f"chat{k}:2", "score": k % 2}) + "\n" for k in range(40)), encoding="utf-8")
    meta = {"schema_version": 1, "main": "score", "orientation": "lower", "level": "turn", "signature": "method:mine"}
    meta_file(path).write_text(json.dumps(meta), encoding="utf-8")
    good, bad = (1, 0) if is_number else ("pass", "fail")
    people = {f"chat{k}:2": bad if k % 2 or k == 2 else good for k in range(40)}
    assert agreement(path, people, bootstrap=NO_ROUNDS).statistics["accuracy"].value == 39 / 40


def test_scores_that_are_all_the_same_have_no_auroc() -> None:
    people = {f"chat{k}:2": "pass" if k % 2 else "fail" for k in range(40)}
    found = agreement(dict.fromkeys(people, 0.7), people, bootstrap=NO_ROUNDS)
    assert found.statistics["auroc"].reason == "auroc: all 40 scores are 0.7. Give scores that differ."
    few = agreement({"chat0:2": 0.7, "chat1:2": 0.2}, {"chat0:2": "pass", "chat1:2": "fail"}, bootstrap=NO_ROUNDS)
    assert few.statistics["auroc"].reason == "auroc: 2 rows have a score and a label, and 3 are needed. Score more rows."
    assert json.loads(to_json(found.to_dict()))["statistics"]["auroc"]["value"] is None


def test_a_judge_that_always_says_the_same_has_no_interval_of_kappa() -> None:
    """It was 0.000 [-0.000, 0.000], of rounding errors, which claims certainty."""
    generator = np.random.default_rng(0)
    people = {f"chat{k}:2": list(generator.choice(["bad", "ok", "good"], 1 + k % 3)) for k in range(40)}
    found = agreement(dict.fromkeys(people, "ok"), people, order=["bad", "ok", "good"], bootstrap=Bootstrap(rounds=100))
    for name in ("kappa", "linear_kappa", "quadratic_kappa"):
        kappa = found.statistics[name]
        assert (kappa.value, kappa.ci_low, kappa.n_degenerate) == (0, None, 0)
        assert UNIFORM in str(kappa.reason)


def test_reasons_of_unscored_rows_are_in_the_record() -> None:
    """A Counter is not copied by `asdict`, but counted again."""
    people = {f"chat{k}:2": "pass" if k % 2 else "fail" for k in range(40)}
    found = agreement({id: label if id > "chat3" else None for id, label in people.items()}, people, bootstrap=NO_ROUNDS)
    assert (
        json.loads(to_json(found.to_dict()))["unscored"] == found.unscored == {"unknown": sum(id <= "chat3" for id in people)}
    )


def test_people_who_labelled_few_rows_each_are_taken_by_place() -> None:
    """Sixty people, three a row: no person has rows enough for a coefficient, the places of the rows have."""
    generator = np.random.default_rng(3)
    ratings = generator.normal(size=(120, 1)) + generator.normal(size=(120, 3))
    spread = np.full((120, 60), np.nan)
    for row, own in enumerate(ratings):
        spread[row, (row % 20) * 3 : (row % 20) * 3 + 3] = own
    found = []
    for labels in (spread, ratings):
        names = [f"p{number}" for number in range(labels.shape[1])]
        frame = pd.DataFrame(labels, columns=names)
        frame["id"], frame["judge"] = [f"c{row}:2" for row in range(120)], ratings.mean(axis=1)
        found.append(agreement(frame[["id", "judge"]], frame[["id", *names]], raters=names, bootstrap=NO_ROUNDS).people)
    assert found[0]["spearman"].value == found[1]["spearman"].value


def test_one_name_in_place_of_a_list_is_refused() -> None:
    """Its letters were columns: "there is no column 'a'"."""
    frame = judged(4)
    message = refusal(agreement, frame, frame, column="judge", raters="annotator_1")
    assert message == "raters: expected a list of names, as ['anna', 'ben'], got 'annotator_1'."


def test_unknown_words_and_options_are_refused() -> None:
    """Whatever was not "each" was the majority, and an unknown option showed the name of a private function."""
    frame = judged(4)
    message = refusal(agreement, frame, frame, column="judge", human="Each")
    assert message == "agreement: there is no human='Each'. Did you mean 'each'? Known are: each, majority."
    message = refusal(agreement, frame, frame, column="judge", rater=["annotator_1"])
    assert message.startswith("labels: there is no option 'rater'. Did you mean 'raters'? ")
