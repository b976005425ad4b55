"""Data of the classifiers, and training with a tiny encoder: recipes, rounds, leaks, and refusals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers import cgdialog
from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.methods.causalscore import training
from dialeval_plugin.methods.causalscore.classifiers import (
    IndependenceClassifier,
    Probabilities,
    RowEncoder,
    load_classifier,
    new_classifier,
)
from dialeval_plugin.methods.causalscore.data import (
    CausalSources,
    LabelledRow,
    OtherUtterances,
    UnlabelledResponse,
    conditional_rows,
    pair_hash,
    prepare,
    unconditional_rows,
    unlabelled_responses,
)
from dialeval_plugin.methods.causalscore.model import CAUSAL_FOLDER, CausalModel
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from dialeval_plugin.methods.causalscore.training import (
    RECIPES,
    CausalTrainingOptions,
    Filter,
    Pool,
    choose,
    classification_figures,
    train,
    train_stage,
)
from dialeval_plugin.training.checkpoints import read_history
from dialeval_plugin.training.run import TrainingRun
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


def test_a_turn_that_says_what_a_cause_says_is_no_negative() -> None:
    said = [Turn("go on"), Turn("why"), Turn("go on"), Turn("because")]
    pairs = [CausePair("x", tuple(said), Turn("x r"), (2,)), pair("y", 2, (0,))]
    chances, others = [np.ones(4), np.ones(2)], OtherUtterances(pairs)
    rows = [row for seed in range(20) for row in conditional_rows(pairs, chances, others, seed=seed) if row.texts[2] == "x r"]
    assert {row.texts[0] for row in rows if row.label == 0} == {"why", "because"}


def test_figures_by_hand() -> None:
    figures = classification_figures(np.array([0.9, 0.6, 0.7, 0.1]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert figures == {"auroc": 0.75, "f1": pytest.approx(0.8), "accuracy": 0.75}


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (OtherUtterances, [PAIRS[:1]],
         "training data: one dialogue has all utterances, so there are no negatives for it. Add a file."),
        # The draw of a negative for the second dialogue never ended.
        (OtherUtterances, [[PAIRS[2], CausePair("all", (PAIRS[2].response, *PAIRS[2].context), Turn("more"), ())]],
         "training data: one dialogue has all utterances, so there are no negatives for it. Add a file."),
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
    with_blanks = [turn for one in turns for turn in (one, Turn(" "))]
    of_all, of_some = (list(map(astuple, unlabelled_responses([one]))) for one in (turns, with_blanks))
    assert [row[1:] for row in of_some] == [row[1:] for row in of_all]
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
    """Return the pseudo-labels of the response r after turns a, b, … with these unconditional probabilities."""
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
    data = prepare(CausalSources(*read["ESConv"]))
    assert data.counts["n_leaking_training_pairs"] > 0
    assert not {pair_hash(item) for item in data.training} & {pair_hash(item) for item in data.validation}


def pairs_of(split: Any, number: int) -> list[CausePair]:
    """Contexts with their first fitting response, whose last turn and, in every other one, first turn count as causes."""
    found = []
    for index, item in enumerate(mini.read_response_sets(split)[:number]):
        context = tuple(Turn(text[:40]) for text in item.context)
        causes = (0, len(context) - 1) if index % 2 and len(context) > 1 else (len(context) - 1,)
        found.append(CausePair(item.id, context, Turn(item.positive[0][:40]), causes))
    return found


def dialogues(split: Any, number: int) -> list[list[Turn]]:
    return [[*pair.context, pair.response] for pair in pairs_of(split, number)]


SOURCES = CausalSources(pairs_of("train", 10), pairs_of("validation", 8), dialogues("train", 24)[10:], pairs_of("test", 4))


def options(encoder: Path, recipe: str = "default", **changes: Any) -> CausalTrainingOptions:
    settings = {"n_epochs": 2, "n_round_epochs": 1, "n_rounds": 2, "learning_rate": 1e-2, "precision": "float32", **changes}
    return CausalTrainingOptions(recipe, str(encoder), max_tokens=128, **settings)


@pytest.mark.long
@pytest.mark.parametrize("recipe", ["default", "paper", "code"])
def test_every_recipe_ends_with_a_folder_that_opens_and_scores(recipe: str, tiny_encoder: Path, tmp_path: Path) -> None:
    trained = train(SOURCES, tmp_path / "model", options(tiny_encoder, recipe))

    record = json.loads((tmp_path / "model" / "causalscore.json").read_text())["training"]
    assert record == trained.record
    assert (record["counts"]["n_training_pairs"], record["counts"]["n_unlabelled_dialogues"]) == (10, 14)
    assert [entry["round"] for entry in record["rounds"]] == list(range(len(record["rounds"])))
    for figures in (record["unconditional"], *record["rounds"]):
        for part in ("validation", "evaluation"):
            assert set(figures[part]) == {"auroc", "f1", "accuracy"}
            assert all(0 <= value <= 1 for value in figures[part].values())
    suffixes = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert suffixes <= {".json", ".safetensors", ".txt"}
    assert CrossEncoder(str(tmp_path / "model" / "conditional"), device="cpu").num_labels == 2
    model = CausalModel.load(str(tmp_path / "model"))
    assert (model.config.recipe, model.config.layout) == (recipe, "literal" if recipe == "code" else "delimited")
    assert CausalScorer(str(tmp_path / "model")).score(mini.read_examples("test")[:6]).n_scored == 6


def test_training_learns_what_the_rows_say(tiny_encoder: Path, tmp_path: Path) -> None:
    pairs = [
        CausePair(str(n), (Turn(f"{'xyz'[n % 3] * 9} {n}"), Turn(f"b {n}"), Turn(f"c {n}")), Turn(f"{'xyz'[n % 3] * 9}"), (0,))
        for n in range(30)
    ]
    chosen = options(tiny_encoder, n_epochs=6, learning_rate=5e-3)
    figures = train(CausalSources(pairs[:20], pairs[20:]), tmp_path / "model", chosen).record
    assert figures["rounds"][0]["validation"]["auroc"] > 0.9


def choose_all(pool: Pool, *_: Any, **__: Any) -> list[LabelledRow]:
    """Pseudo-labels for all unlabelled responses: an untrained classifier is sure of none."""
    return [
        LabelledRow((item.context[0], item.context[-1], item.response), place % 2) for place, item in enumerate(pool.responses)
    ]


@pytest.mark.long
def test_rounds_have_the_pseudo_labels_of_their_own(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "choose", choose_all)
    record = train(SOURCES, tmp_path / "model", options(tiny_encoder, "code", n_epochs=1, n_round_epochs=3)).record
    assert [entry["n_pseudo"] > 0 for entry in record["rounds"]] == [False, True, True]
    assert record["best_round"] == 2
    history = read_history(tmp_path / "model")
    stages = [row.stage for row in history if row.epoch == 1.0]
    # As those of all trainings, the figures by epoch are per cent; those of the record are shares.
    last = {row.stage: row.figures["accuracy"] for row in history}
    assert last["round_2"] == pytest.approx(100 * record["rounds"][2]["validation"]["accuracy"])
    assert stages == ["unconditional", "round_0", "round_1", "round_2"]


def test_dialogues_that_are_measured_on_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    given, validation = pairs_of("train", 10), pairs_of("validation", 8)
    shouted = tuple(Turn(f" {turn.text} ".upper()) for turn in given[0].context)
    leaking = CausePair("other id", shouted, given[0].response, (0,))
    sources = CausalSources(
        given,
        [*validation, leaking],
        [*dialogues("train", 12), *dialogues("validation", 2)],
        held_out=[Dialogue("held out", tuple(dialogues("train", 2)[1]))],
    )
    assert {name: count for name, count in prepare(sources).counts.items() if "leaking" in name} == {
        "n_leaking_training_pairs": 2,
        "n_leaking_validation_pairs": 0,
        "n_leaking_unlabelled_dialogues": 4,
    }
    assert [message.partition(",")[0] for message in caplog.messages if "left out" in message] == [
        "1 of 10 training pairs are in the evaluation data too",
        "1 of 9 training dialogues open like a validation dialogue and are left out",
        "1 of 14 unlabelled dialogues are in the evaluation data too",
        "3 of 13 unlabelled dialogues open like a validation dialogue and are left out",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": "best"}, "training: recipe is 'best'. Give one of vectors, default, paper, code."),
        ({"labels": "all"}, "training: labels is 'all'. Give one of annotated, preceding_2."),
        ({"n_epochs": 0}, "n_epochs: expected a positive number, got 0."),
        ({"n_rounds": -1}, "n_rounds: expected 0 or more, got -1."),
        ({"precision": "half"}, "training: precision is 'half'. Give one of auto, float32, bfloat16."),
        ({"learning_rate": 2.0}, "learning_rate: expected a number between 0 and 1, got 2.0."),
    ],
)
def test_unknown_options_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert refusal(train, SOURCES, tmp_path / "model", CausalTrainingOptions(**changes)) == message


def test_the_losing_round_is_not_kept(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = ({"validation": {"auroc": auroc, "f1": 0.0, "accuracy": 0.0}} for auroc in (0.5, 0.7, 0.6))
    chosen = [LabelledRow(("a", "b", "c"), 1), LabelledRow(("d", "b", "c"), 0)]
    monkeypatch.setattr(training, "figures", lambda *_: next(figures))
    monkeypatch.setattr(training, "choose", lambda *_, **__: chosen)
    record = train(SOURCES, tmp_path / "model", options(tiny_encoder, n_epochs=1)).record
    assert [(entry["round"], entry["n_pseudo"]) for entry in record["rounds"]] == [(0, 0), (1, 2)]
    assert record["best_round"] == 0
    assert not np.isnan(record["rounds"][1]["validation"]["auroc"])


def test_training_in_bfloat16_leaves_a_classifier_that_computes_in_float32(tiny_encoder: Path, tmp_path: Path) -> None:
    encoder = new_classifier(tiny_encoder)
    texts = RowEncoder(encoder.tokenizer, "delimited", "utterances", 128)
    rows = [
        LabelledRow((pair.context[-1].text, pair.response.text), place % 2) for place, pair in enumerate(pairs_of("train", 16))
    ]
    recipe = replace(RECIPES["paper"], max_training_tokens=128)
    with TrainingRun.open(tmp_path / "run", CAUSAL_FOLDER, CausalTrainingOptions(precision="bfloat16")) as run:
        run.start()
        train_stage(encoder, "stage", 1, rows, rows, recipe, run)

    encoder.save_pretrained(str(tmp_path / "saved"))
    again = load_classifier(tmp_path / "saved")
    ids = [texts.encode(texts.rows(rows[0].texts, np.array([[0, 1]])), 0)]
    with torch.inference_mode():
        trained, opened = (IndependenceClassifier(model.eval(), texts).logits(ids) for model in (encoder, again))
    assert trained.dtype == torch.float32
    assert torch.allclose(trained, opened, rtol=0, atol=1e-8)
