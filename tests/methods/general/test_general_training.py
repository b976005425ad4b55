"""Training the general evaluator on a toy corpus with a tiny encoder: what it learns, its record, and what it refuses."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.methods.general.conversations import Conversation, GeneralSources, Pair, conversation
from dialeval_plugin.methods.general.model import GeneralRecipe, TrainedGeneral
from dialeval_plugin.methods.general.objective import SampledResponse, make_step
from dialeval_plugin.methods.general.signals import NEGATIVES
from dialeval_plugin.methods.general.training import GeneralTrainingOptions, train
from dialeval_plugin.training.checkpoints import read_history
from dialeval_plugin.training.run import TrainingResult
from tests.refusals import refused

THINGS = ["fig", "oak", "jam", "zip", "wax", "gum", "keg", "vat", "hob", "yak"]


def toy(number: int = 60, *, facts: bool = True) -> list[Conversation]:
    """Dialogues in which a response repeats what the context speaks of, in words that are always in one order."""
    generator = random.Random(4)
    found = []
    for place in range(number):
        first, second = generator.sample(THINGS, 2)
        turns = [
            f"{first} or {second} {place}?",
            f"the {first} for me now",
            f"so no {second} today {place}?",
            f"only the {first} then",
        ]
        told = [(f"i like {first}",), (f"i like {first}",), (f"i like {second}",), (f"i like {first}",)]
        item = conversation("toy", turns, told if facts else ())
        assert item is not None
        found.append(item)
    return found


def options(encoder: Path, **changes: object) -> GeneralTrainingOptions:
    recipe = GeneralRecipe(n_epochs=2, batch_size=16, learning_rate=3e-3, head_learning_rate=3e-3, max_validation_pairs=60)
    found = GeneralTrainingOptions(
        backbone=str(encoder), recipe=recipe, validation_fraction=0.3, precision="float32", checkpoint_steps=3
    )
    return replace(found, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def trained(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    """A model that has read the toy corpus often enough to have learnt something."""
    made = options(tiny_encoder)
    made = replace(made, recipe=replace(made.recipe, n_epochs=8, max_validation_pairs=300))
    folder = tmp_path_factory.mktemp("trained") / "general"
    return train(GeneralSources(toy(300)), folder, made, left_out={"toy": 2})


@pytest.mark.long
def test_the_heads_learn_what_they_are_there_for(trained: TrainingResult) -> None:
    areas = trained.record["validation"]["auroc"]
    assert min(areas["fit"][kind] for kind in ("random", "in_dialogue", "keyword", "splice")) > 0.85
    # One layer over letters that are averaged does not see their order, so that nothing is asked of shuffled words.
    assert min(areas["fluency"][kind] for kind in ("dropped", "repeated")) > 0.8
    assert min(areas["specificity"][kind] for kind in ("generic", "unspecific")) > 0.65
    assert areas["knowledge"]["other_facts"] > 0.85
    assert min(areas["general"][kind] for kind in ("random", "keyword", "repeated", "generic")) > 0.85
    assert areas["coherence"]["shuffled_turns"] > 0.85
    # A head that does not read what is wrong cannot see it.
    assert [areas[head]["other_facts"] for head in ("fit", "fluency")] == pytest.approx([0.5, 0.5], abs=1e-9)


@pytest.mark.long
def test_what_is_frozen_stays_as_the_backbone_has_it(trained: TrainingResult, tiny_encoder: Path) -> None:
    """A third of one layer is none: the embeddings alone."""
    found, start = (load_file(str(folder / "model.safetensors")) for folder in (trained.folder, tiny_encoder))
    assert {name for name in found if found[name].equal(start[name])} >= {name for name in start if "embeddings" in name}
    assert not any(found[name].equal(start[name]) for name in start if "encoder.layer" in name and "weight" in name)


@pytest.mark.long
def test_every_kind_of_wrong_text_is_in_the_record(trained: TrainingResult) -> None:
    record = trained.record["validation"]
    kinds = {kind for group in NEGATIVES.values() for kind in group}
    assert set(record["rows"]) == {"real", *kinds}
    # Nobody wrote misleading responses for this corpus.
    assert {kind for kind, number in record["rows"].items() if not number} == {"written"}
    assert all(set(areas) == kinds for head, areas in record["auroc"].items() if head != "coherence")
    assert set(record["auroc"]["coherence"]) == {"shuffled_turns", "replaced_turn"}


@pytest.mark.long
def test_the_folder_opens_and_says_what_it_was_made_of(trained: TrainingResult) -> None:
    record = json.loads((trained.folder / "general.json").read_text())["training"]
    assert {path.suffix for path in trained.folder.rglob("*") if path.is_file()} <= {".json", ".safetensors", ".txt"}
    assert SentenceTransformer(str(trained.folder)).encode(["Hello."]).shape == (1, 16)
    sizes = {"training_dialogues": 210, "validation_dialogues": 90, "pairs_per_epoch": 630, "left_out_as_leaks": 2}
    assert {name: record["counts"][name] for name in sizes} == {name: {"toy": size} for name, size in sizes.items()}
    assert record["options"]["recipe"]["loss_weights"]["fit"] == 1.0
    assert record["options"]["seed"] == 13
    assert len(record["backbone_hash"]) == 16
    assert trained.history == read_history(trained.folder)
    assert (trained.history[-1].step, trained.history[-1].epoch) == (record["counts"]["steps"], 8)
    first, last = trained.history[0].figures, trained.history[-1].figures
    assert last["training_rank"] < first["training_rank"]
    assert last["training_loss"] < first["training_loss"]
    terms = {"loss", "rank", "fit", "fluency", "specificity", "knowledge", "words", "separate"}
    assert set(first) == {f"training_{name}" for name in terms}
    loaded = TrainedGeneral.load(str(trained.folder))
    assert loaded.model.config.has_knowledge
    assert loaded.mixing.with_facts is not None
    assert {item.key for item in toy(300)} == loaded.training_dialogues


def test_without_facts_nothing_is_learnt_of_knowledge(tiny_encoder: Path, tmp_path: Path) -> None:
    done = train(GeneralSources(toy(facts=False)), tmp_path / "general", options(tiny_encoder))
    loaded = TrainedGeneral.load(str(done.folder))
    assert not loaded.model.config.has_knowledge
    assert loaded.mixing.with_facts is None
    assert "training_knowledge" not in done.history[0].figures
    assert set(done.record["validation"]["auroc"]["knowledge"].values()) == {None}


@pytest.mark.long
def test_the_mixture_is_fitted_on_validation_dialogues_alone(tiny_encoder: Path, tmp_path: Path) -> None:
    """Other validation dialogues leave what the heads have learnt as it is, and move the weights that mix them."""
    held_out = [replace(item, turns=tuple(f"{text}!" for text in item.turns)) for item in toy(140)[100:]]
    found = [
        train(GeneralSources(toy(60), part), tmp_path / str(number), options(tiny_encoder))
        for number, part in enumerate((held_out[:20], held_out[20:]))
    ]
    one, other = (TrainedGeneral.load(str(done.folder)) for done in found)
    for name, weight in one.model.head.vectors.state_dict().items():
        assert weight.equal(other.model.head.vectors.state_dict()[name])
    assert one.mixing.plain != other.mixing.plain
    assert not one.model.head.blend["fit"].equal(other.model.head.blend["fit"])


def test_a_run_with_a_limit_ends_by_it_with_a_learning_rate_of_nothing(tiny_encoder: Path, tmp_path: Path) -> None:
    done = train(GeneralSources(toy()), tmp_path / "general", options(tiny_encoder, max_minutes=1e-6))
    assert done.record["counts"]["steps"] == 1
    assert (tmp_path / "general" / "general.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": GeneralRecipe(max_pairs=1)}, "max_pairs: expected at least 2, got 1."),
        ({"recipe": GeneralRecipe(batch_size=1)}, "batch_size: expected at least 2, got 1."),
        ({"recipe": GeneralRecipe(n_epochs=0)}, "epochs: expected at least 1, got 0."),
        ({"max_minutes": 0.0}, "max_minutes: expected more than 0, got 0.0."),
        ({"precision": "half"}, "training: precision is 'half'. Give one of auto, float32, bfloat16."),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, object], message: str, tiny_encoder: Path, tmp_path: Path) -> None:
    with refused(message):
        train(GeneralSources(toy()), tmp_path / "general", options(tiny_encoder, **changes))


def test_too_few_validation_dialogues_are_refused_before_a_folder_is_written(tiny_encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        train(GeneralSources(toy(20), toy(40)[39:]), tmp_path / "general", options(tiny_encoder))
    assert "rows cannot be halved by their dialogues, one half to fit weights and one to measure." in str(refused.value)
    assert not (tmp_path / "general" / "general.json").exists()


def test_corpora_of_one_response_each_are_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    one = conversation("toy", ["fig or oak?", "the fig for me now"])
    assert one is not None
    with refused(
        "training data: no corpus has two responses in an epoch, each wrong in place of the other. Give more dialogues, or "
        "a larger max_pairs."
    ):
        train(GeneralSources([one], toy(20)), tmp_path / "general", options(tiny_encoder))


def test_a_response_is_not_wrong_in_its_own_place() -> None:
    """Next to a row of another dialogue with the same text, it was right and wrong for one context."""
    said = ("Yes.", "yes", "Near the station.", "Yes.")
    found = [conversation("toy", [f"Is it {n}?", response]) for n, response in enumerate(said)]
    rows = [SampledResponse(Pair(one, 1), ()) for one in found if one is not None]
    texts = SimpleNamespace(contexts=lambda texts: [SimpleNamespace(ids=[]) for _ in texts], responses=list)
    fit = make_step(cast("Any", SimpleNamespace(texts=texts)), rows).labelled["fit"]
    texts_of = list(dict.fromkeys(said))
    pairs = [(owner, texts_of[place], label) for owner, place, label in zip(*fit, strict=True)]
    assert pairs == [
        *((0, "Yes.", 1.0), (0, "Near the station.", 0.0), (1, "yes", 1.0), (1, "Near the station.", 0.0)),
        *((2, "Near the station.", 1.0), (2, "Yes.", 0.0), (3, "Yes.", 1.0), (3, "Near the station.", 0.0)),
    ]
