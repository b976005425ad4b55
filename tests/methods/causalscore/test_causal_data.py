"""Training rows, splits, leaks and the selection of pseudo-labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.methods.causalscore.classifiers import Probabilities
from dialeval_plugin.methods.causalscore.data import (
    LabelledRow,
    OtherUtterances,
    Sources,
    UnlabelledResponse,
    conditional_rows,
    pair_hash,
    prepare,
    unconditional_rows,
    unlabelled_responses,
)
from dialeval_plugin.methods.causalscore.recipes import Filter
from dialeval_plugin.methods.causalscore.self_training import Pool, choose
from dialeval_plugin.methods.causalscore.stages import classification_figures
from tests.refusals import refusal


def pair(dialogue: str, n_turns: int, causes: tuple[int, ...]) -> CausePair:
    return CausePair(
        f"{dialogue}{n_turns}", tuple(Turn(f"{dialogue} {place}") for place in range(n_turns)), Turn(f"{dialogue} r"), causes
    )


PAIRS = [pair("x", 5, (1, 4)), pair("y", 4, (2,)), pair("z", 3, ())]


def test_responses_of_one_dialogue_share_a_key() -> None:
    assert pair_hash(pair("x", 5, ())) == pair_hash(pair("x", 3, ())) != pair_hash(pair("y", 3, ()))


def test_unconditional_rows_are_causes_and_the_preceding_turn() -> None:
    rows = unconditional_rows(PAIRS, OtherUtterances(PAIRS), seed=0)
    positive = [row.texts for row in rows if row.label == 1]
    assert positive == [("x 1", "x r"), ("x 4", "x r"), ("y 2", "y r"), ("y 3", "y r"), ("z 2", "z r")]
    negative = [row.texts for row in rows if row.label == 0]
    assert [utterance for utterance, _ in negative] == [utterance for utterance, _ in positive]
    assert all(utterance[0] != response[0] for utterance, response in negative)


def test_conditional_rows_put_the_cause_first_and_a_dependent_turn_second() -> None:
    chances = [np.array([0.9, 0.8, 0.1, 0.2, 0.3]), np.array([0.1, 0.4, 0.2, 0.3]), np.zeros(3)]
    rows = conditional_rows(PAIRS, chances, OtherUtterances(PAIRS), seed=0)
    positive = [row.texts for row in rows if row.label == 1]
    assert positive[0] == ("x 1", "x 0", "x r")
    assert positive[1][0] == "x 4"
    assert positive[1][1] in {"x 0", "x 1"}
    # No other turn of y is dependent: the likeliest one is the condition.
    assert positive[2] == ("y 2", "y 1", "y r")
    negative = [row.texts for row in rows if row.label == 0]
    assert [row[1:] for row in negative] == [row[1:] for row in positive]
    assert all(cause not in {"x 1", "x 4", "y 2", condition} for cause, condition, _ in negative)
    assert all(cause[0] == response[0] for cause, _, response in negative)


def test_rows_without_annotated_causes_take_the_two_preceding_turns() -> None:
    chances = [np.zeros(5), np.zeros(4), np.zeros(3)]
    rows = conditional_rows(PAIRS, chances, OtherUtterances(PAIRS), labels="preceding_2", seed=0)
    assert [row.texts[0] for row in rows if row.label == 1] == ["x 3", "x 4", "y 2", "y 3", "z 1", "z 2"]
    assert all(row.texts[0][0] != row.texts[2][0] for row in rows if row.label == 0)


def test_a_cause_without_another_turn_is_left_out_and_one_without_innocent_turns_gets_a_stranger() -> None:
    pairs = [pair("x", 1, (0,)), pair("y", 2, (0, 1))]
    rows = conditional_rows(pairs, [np.ones(1), np.ones(2)], OtherUtterances(pairs), seed=0)
    assert [row.texts[:2] for row in rows if row.label == 1] == [("y 0", "y 1"), ("y 1", "y 0")]
    assert all(row.texts[0].startswith("x") for row in rows if row.label == 0)


def test_figures_by_hand() -> None:
    figures = classification_figures(np.array([0.9, 0.6, 0.7, 0.1]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert figures == {"auroc": 0.75, "f1": pytest.approx(0.8), "accuracy": 0.75}


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (OtherUtterances, [PAIRS[:1]],
         "training data: all responses come from one dialogue, so there are no negatives. Add a file."),
        (classification_figures, [np.array([0.9]), np.array([1.0])],
         "validation data: 1 positive and 0 negative rows, at least one of each is needed. Add a file."),
        (classification_figures, [np.array([np.nan]), np.array([1.0])],
         "classifier: gives probabilities that are not finite, so its training diverged. Train again with a lower rate."),
    ],
)  # fmt: skip
def test_what_cannot_be_learnt_from_is_said(call: Any, given: list[Any], message: str) -> None:
    assert refusal(call, *given) == message


def test_unlabelled_responses_have_the_turns_before_them() -> None:
    turns = [Turn(str(number)) for number in range(12)]
    responses = unlabelled_responses([turns, turns[:2]])
    assert [item.response for item in responses] == [str(number) for number in range(2, 12)]
    assert responses[0].context == ("0", "1")
    assert responses[-1].context == tuple(str(number) for number in range(3, 11))
    sample = unlabelled_responses([turns], most=4, seed=3)
    assert len(sample) == 4
    assert sample == unlabelled_responses([turns], most=4, seed=3)
    assert set(sample) < set(responses)


class Oracle:
    """Stands in for the conditional classifier: the probability that a table has for (cause, condition)."""

    def __init__(self, table: dict[tuple[str, str], float]) -> None:
        self.table = table
        self.asked: list[tuple[str, str]] = []

    def probabilities(self, texts: Sequence[str], indices: Any) -> Probabilities:
        rows = [tuple(texts[index] for index in row) for row in indices]
        self.asked += [(row[0], row[1]) for row in rows]
        return Probabilities(np.array([self.table[row[0], row[1]] for row in rows]), np.zeros(len(rows), dtype=bool))


def pseudo_labels(chances: list[float], oracle: Oracle, filter: Filter) -> list[LabelledRow]:
    """Of the response r after turns a, b, … with these unconditional probabilities."""
    pool = Pool([UnlabelledResponse("hash", tuple("abcdefgh"[: len(chances)]), "r")], [np.array(chances)])
    return choose(pool, oracle, OtherUtterances(PAIRS), filter=filter, seed=0)  # type: ignore[arg-type]


def test_the_papers_filter_takes_sure_causes_at_two_places_only() -> None:
    # Places from the end: e is t-1, d t-2, c t-3, b t-4.
    classifier = Oracle({("d", "e"): 0.95, ("c", "e"): 0.85})
    rows = pseudo_labels([0.2, 0.9, 0.6, 0.7, 0.8 + 0.15], classifier, "paper")
    assert classifier.asked == [("d", "e"), ("c", "e")]
    assert rows == [LabelledRow(("d", "e", "r"), 1), LabelledRow(("a", "e", "r"), 0)]


def test_a_candidate_that_is_not_dependent_is_not_asked_about() -> None:
    classifier = Oracle({("c", "e"): 0.95})
    rows = pseudo_labels([0.9, 0.9, 0.9, 0.5, 0.95], classifier, "paper")
    assert classifier.asked == [("c", "e")]
    assert rows[1].texts[0] == "d"


def test_a_pseudo_negative_comes_from_another_dialogue_where_all_turns_are_dependent() -> None:
    assert pseudo_labels([0.6, 0.9], Oracle({("a", "b"): 0.95}), "paper")[1].texts[0][0] in "xyz"


def test_the_codes_filter_wants_three_causes_that_hold_on_every_condition() -> None:
    chances = [0.9, 0.2, 0.8, 0.7]
    table = {(c, k): 0.6 for c in "acd" for k in "acd" if c != k}
    assert [row.texts[0] for row in pseudo_labels(chances, Oracle(table), "code") if row.label == 1] == ["a", "c", "d"]
    assert pseudo_labels(chances, Oracle({**table, ("a", "d"): 0.5}), "code") == []
    assert pseudo_labels([0.9, 0.9], Oracle({}), "code") == []


@pytest.mark.real_data
def test_the_published_leaks_are_found(data_dir: Path) -> None:
    folder = data_dir / cgdialog.CORPUS.name
    read = {
        name: [cgdialog.read_causes(folder / f"{name}_response_cause_{split}.json") for split in ("train", "valid")]
        for name in ("DREAM", "ESConv", "msc")
    }
    shared = {
        name: len({pair_hash(item) for item in training} & {pair_hash(item) for item in validation})
        for name, (training, validation) in read.items()
    }
    assert shared == {"DREAM": 1, "ESConv": 10, "msc": 0}
    data = prepare(Sources(*read["ESConv"]))
    assert data.counts["n_leaking_training_pairs"] > 0
    assert not {pair_hash(item) for item in data.training} & {pair_hash(item) for item in data.validation}
