"""Training on the embedded corpus with a tiny encoder: recipes, self-training rounds, leaks, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora import mini
from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.methods.causalscore import self_training
from dialeval_plugin.methods.causalscore.classifiers import IndependenceClassifier, RowEncoder, load_classifier, new_classifier
from dialeval_plugin.methods.causalscore.data import LabelledRow, Sources, prepare
from dialeval_plugin.methods.causalscore.model import CAUSAL_FOLDER, CausalModel
from dialeval_plugin.methods.causalscore.recipes import RECIPES
from dialeval_plugin.methods.causalscore.scorer import CausalScorer
from dialeval_plugin.methods.causalscore.self_training import Pool
from dialeval_plugin.methods.causalscore.stages import train_stage
from dialeval_plugin.methods.causalscore.training import CausalTrainingOptions, train
from dialeval_plugin.training.history import read_history
from dialeval_plugin.training.run import TrainingRun
from tests.refusals import refusal


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


SOURCES = Sources(pairs_of("train", 10), pairs_of("validation", 8), dialogues("train", 24)[10:], pairs_of("test", 4))


@pytest.fixture(autouse=True)
def own_last_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))


def options(encoder: Path, recipe: str = "default", **changes: Any) -> CausalTrainingOptions:
    settings = {"n_epochs": 2, "n_round_epochs": 1, "n_rounds": 2, "learning_rate": 1e-2, "precision": "float32", **changes}
    return CausalTrainingOptions(recipe, str(encoder), max_tokens=128, **settings)


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
    assert CausalScorer().score(mini.read_examples("test")[:6]).n_scored == 6
    assert (tmp_path / "xdg" / "dialeval" / "last_causalscore").read_text() == f"{(tmp_path / 'model').resolve()}\n"


def test_training_learns_what_the_rows_say(tiny_encoder: Path, tmp_path: Path) -> None:
    pairs = [
        CausePair(str(n), (Turn(f"{'xyz'[n % 3] * 9} {n}"), Turn(f"b {n}"), Turn(f"c {n}")), Turn(f"{'xyz'[n % 3] * 9}"), (0,))
        for n in range(30)
    ]
    chosen = options(tiny_encoder, n_epochs=6, learning_rate=5e-3)
    figures = train(Sources(pairs[:20], pairs[20:]), tmp_path / "model", chosen).record
    assert figures["rounds"][0]["validation"]["auroc"] > 0.9


def choose_all(pool: Pool, *_: Any, **__: Any) -> list[LabelledRow]:
    """Pseudo-labels for all unlabelled responses: an untrained classifier is sure of none."""
    return [
        LabelledRow((item.context[0], item.context[-1], item.response), place % 2) for place, item in enumerate(pool.responses)
    ]


def test_rounds_have_the_pseudo_labels_of_their_own(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_training, "choose", choose_all)
    record = train(SOURCES, tmp_path / "model", options(tiny_encoder, "code", n_epochs=1, n_round_epochs=3)).record
    assert [entry["n_pseudo"] > 0 for entry in record["rounds"]] == [False, True, True]
    assert record["best_round"] == 2
    stages = [row.stage for row in read_history(tmp_path / "model") if row.epoch == 1.0]
    assert stages == ["unconditional", "round_0", "round_1", "round_2"]


def test_dialogues_that_are_measured_on_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    given, validation = pairs_of("train", 10), pairs_of("validation", 8)
    shouted = tuple(Turn(f" {turn.text} ".upper()) for turn in given[0].context)
    leaking = CausePair("other id", shouted, given[0].response, (0,))
    sources = Sources(
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
        ({"recipe": "best"}, "recipe: there is no 'best'. Choose one of default, paper, code."),
        ({"labels": "all"}, "labels: there are no 'all'. Choose one of annotated, preceding_2."),
        ({"n_epochs": 0}, "n_epochs: expected a positive number, got 0."),
        ({"n_rounds": -1}, "n_rounds: expected 0 or more, got -1."),
        ({"precision": "half"}, "precision: there is no 'half'. Choose one of auto, float32, bfloat16."),
        ({"learning_rate": 2.0}, "learning_rate: expected a number between 0 and 1, got 2.0."),
    ],
)
def test_unknown_options_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert refusal(train, SOURCES, tmp_path / "model", CausalTrainingOptions(**changes)) == message


def test_the_losing_round_is_not_kept(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = ({"validation": {"auroc": auroc, "f1": 0.0, "accuracy": 0.0}} for auroc in (0.5, 0.7, 0.6))
    chosen = [LabelledRow(("a", "b", "c"), 1), LabelledRow(("d", "b", "c"), 0)]
    monkeypatch.setattr(self_training.SelfTraining, "_figures", lambda *_: next(figures))
    monkeypatch.setattr(self_training, "choose", lambda *_, **__: chosen)
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
