"""Data of a language model, and training for a moment: the folder's files, limits, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.methods.breakdown.calibration import Calibration, weights_hash
from dialeval_plugin.methods.breakdown.data import (
    IGNORED,
    Key,
    LanguageModelSources,
    PadRows,
    RowsByLength,
    TokenNoise,
    TokenRows,
    natural_spacing,
    ordinary_tokens,
    prepare,
    token_blocks,
)
from dialeval_plugin.methods.breakdown.training import LanguageModelTrainingOptions, train
from dialeval_plugin.models.language_models import OpenedModel, open_model
from dialeval_plugin.training import checkpoints
from dialeval_plugin.training.checkpoints import read_history
from tests.refusals import refusal, refused
from tests.tiny.breakdown import SIZES, TinyModels, options, sources
from tests.tiny.language_models import END
from tests.tiny.likelihood import write_likelihood_model
from tests.training_processes import files_of


def dialogue(*turns: str, id: str = "0") -> Dialogue:
    return Dialogue(id, tuple(map(Turn, turns)))


@pytest.fixture(scope="module")
def opened(tiny_breakdown_models: TinyModels) -> OpenedModel:
    return open_model(str(tiny_breakdown_models.lm), device="cpu")


def test_a_dialogue_is_its_turns_each_with_the_end_of_text(opened: OpenedModel) -> None:
    end, turns = opened.tokenizer.eos_token_id, ["Hello there.", f"Hi {END} you!"]
    one, two = opened.token_ids(turns)
    assert end not in two
    (row,) = token_blocks(opened, [turns], 200)
    assert row == [*one, end, *two, end]
    blocks = token_blocks(opened, [turns], 8)
    assert [token for block in blocks for token in block] == row[: sum(map(len, blocks))]
    assert len(row) - sum(map(len, blocks)) <= 1
    assert {len(block) for block in blocks[:-1]} == {8}


def test_noise_depends_on_epoch_and_row_alone_and_targets_are_clean(opened: OpenedModel) -> None:
    blocks = [list(range(1, 200)), list(range(1, 200)), [opened.tokenizer.eos_token_id] * 50]
    rows = TokenRows(blocks, TokenNoise(0.5, ordinary_tokens(opened), seed=3))
    first, again, later, other, special = (list(rows[Key(*key)].inputs) for key in ((1, 0), (1, 0), (2, 0), (1, 1), (1, 2)))
    assert list(rows[Key(1, 0)].labels) == blocks[0]
    assert first == again
    assert all(first != differing for differing in (blocks[0], later, other))
    assert list(rows[0].inputs) == list(rows[Key(0, 0)].inputs)
    assert special == blocks[2]


def test_padding_is_neither_predicted_nor_perturbed(opened: OpenedModel) -> None:
    rows = TokenRows([[5, 6, 7, 8], [9, 10]], TokenNoise(0.9, ordinary_tokens(opened), seed=1))
    batch = PadRows(opened.pad)([rows[0], rows[1]])
    assert batch["labels"].tolist() == [[5, 6, 7, 8], [9, 10, IGNORED, IGNORED]]
    assert batch["input_ids"][1, 2:].tolist() == [opened.pad] * 2


def test_batches_hold_rows_of_one_length_and_every_row_once() -> None:
    lengths = np.random.default_rng(0).integers(2, 250, size=1003).tolist()
    sampler = RowsByLength(lengths, 16, seed=5)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
        assert {key.epoch for key in orders[-1]} == {epoch}
        assert sorted(key.row for key in orders[-1]) == list(range(1003))
    assert orders[0] == orders[2]
    assert [key.row for key in orders[0]] != [key.row for key in orders[1]]
    batches = [[lengths[key.row] for key in orders[0][start : start + 16]] for start in range(0, 1003, 16)]
    assert sum(max(batch) * len(batch) for batch in batches) < 1.06 * sum(lengths)


@pytest.mark.parametrize(
    ("published", "natural"),
    [
        ("Say , Jim , how about a beer ?", "Say, Jim, how about a beer?"),
        ("It ’ s late ; isn't it ? I 'll go .", "It's late; isn't it? I'll go."),
        ("right.But what", "right.But what"),
        ("a price of .5 and :) fine", "a price of .5 and :) fine"),
    ],
)
def test_natural_spacing_undoes_tokenisation_only(published: str, natural: str) -> None:
    assert natural_spacing(published) == natural
    assert natural_spacing(natural) == natural


def test_what_is_reported_on_is_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    same = [dialogue("Hello , you !", "Hi .", id="a"), dialogue("hello you", " ", "HI", id="b")]
    other = [dialogue(f"turn {n}", "answer") for n in range(20)]
    data = prepare(
        LanguageModelSources([*same, *other], [other[3]], [same[0]]), validation_fraction=0.1, seed=0, spacing="published"
    )
    assert data.n_left_out == 3
    assert [turns[0] for turns in data.training] == [f"turn {n}" for n in range(20) if n != 3]
    assert [message.partition(",")[0] for message in caplog.messages] == [
        "2 of 22 training dialogues are in the evaluation data too",
        "1 of 20 training dialogues open like a validation dialogue and are left out",
    ]


def test_copies_of_a_dialogue_are_validated_on_or_trained_on_not_both() -> None:
    dialogues = [dialogue(f"turn {n % 10}", "answer") for n in range(30)]
    data = prepare(LanguageModelSources(dialogues), validation_fraction=0.2, seed=0, spacing="natural")
    assert (len(data.training), len(data.validation)) == (24, 6)
    assert not {turns[0] for turns in data.training} & {turns[0] for turns in data.validation}


def test_too_few_dialogues_are_refused() -> None:
    with refused(
        "training data: 1 dialogues to train on and 0 to validate on are left, at least 1 of each is needed. "
        "Give more dialogues."
    ):
        prepare(
            LanguageModelSources([dialogue("only one turn"), dialogue("a", "b")]),
            validation_fraction=0.5,
            seed=0,
            spacing="natural",
        )


@pytest.mark.parametrize("objective", ["lm", "odin", "background"])
def test_every_objective_ends_with_a_folder_that_transformers_opens(tiny_breakdown_models: TinyModels, objective: str) -> None:
    folder: Path = getattr(tiny_breakdown_models, objective)
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    model, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.eos_token == END
    assert model.config.vocab_size == len(tokenizer)
    record = json.loads((folder / "language_model.json").read_text(encoding="utf-8"))
    assert (record["format_version"], record["objective"]) == (2, objective)
    (epoch,) = read_history(folder)
    assert (epoch.stage, epoch.epoch) == (objective, 1.0)
    assert epoch.figures["perplexity"] == pytest.approx(2.718281828 ** epoch.figures["loss"], rel=1e-6)
    assert record["training"]["counts"]["n_training_dialogues"] == 12
    assert (folder / "odin_head.safetensors").exists() == (objective == "odin")
    if objective == "odin":
        shapes = {name: tuple(tensor.shape) for name, tensor in load_file(folder / "odin_head.safetensors").items()}
        assert shapes == {"weight": (1, SIZES["width"]), "bias": (1,)}


@pytest.mark.parametrize(
    ("objective", "aggregations"),
    [
        ("lm", {"max_probability": {"mean", "all", "logsum"}}),
        ("odin", {"odin_h": {"mean", "all"}, "odin_g": {"mean", "all"}}),
        ("background", {"likelihood_ratio": {"sum", "mean", "code_bug"}}),
    ],
)
def test_training_stores_the_calibration_of_every_reading(
    tiny_breakdown_models: TinyModels, objective: str, aggregations: dict[str, set[str]]
) -> None:
    folder: Path = getattr(tiny_breakdown_models, objective)
    stored = Calibration.load(folder / "breakdown.json")
    found = {method: {name: set(one) for name, one in ranges.items()} for method, ranges in stored.ranges.items()}
    assert found == {method: {"full": names, "pair": names} for method, names in aggregations.items()}
    assert stored.max_tokens == SIZES["block"]
    read = [tiny_breakdown_models.lm, folder] if objective == "background" else [folder]
    assert list(stored.models) == [weights_hash(model) for model in read]


def test_a_model_learns(tmp_path: Path) -> None:
    history = train(sources(), tmp_path / "model", options(sizes={**SIZES, "n_epochs": 4, "learning_rate": 1e-2})).history
    assert history[-1].figures["perplexity"] < 0.8 * history[0].figures["perplexity"]


def test_training_ends_when_the_time_is_over(tmp_path: Path) -> None:
    chosen = options(sizes={**SIZES, "n_epochs": 50})
    (row,) = train(sources(), tmp_path / "model", chosen, max_minutes=1e-6).history
    assert row.epoch is not None
    assert row.epoch < 1


def test_training_ends_where_validation_gains_nothing(tmp_path: Path) -> None:
    chosen = options(sizes={**SIZES, "n_epochs": 30, "learning_rate": 1e-12, "patience": 1})
    assert len(train(sources(), tmp_path / "model", chosen).history) < 30


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"objective": "gan"}, "training: objective is 'gan'. Give one of lm, odin, background."),
        ({"spacing": "wide"}, "training: spacing is 'wide'. Give one of natural, published."),
        ({"objective": "background"},
         "background: name the model that it is compared with in --backbone. They have to share a tokenizer."),
        ({"mu": 1.5}, "training: mu is 1.5. Give a number above 0 below 1."),
        ({"recipe": "huge"}, "training: recipe is 'huge'. Give one of small, continue."),
        ({"sizes": {"n_epochs": 0}}, "n_epochs: expected a positive number, got 0."),
        ({"sizes": {"width": 200}}, "width: 200 is no multiple of 64. Give one, or less than 64."),
        ({"backbone": "folder", "sizes": {"width": 64}},
         "width: the backbone has its own. Leave the option out, or train from scratch."),
    ],
)  # fmt: skip
def test_an_option_that_does_not_fit_is_said(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    assert refusal(train, sources(), tmp_path / "model", LanguageModelTrainingOptions(**given)) == message
    assert not (tmp_path / "model").exists()


def test_recipes_are_chosen_by_the_backbone() -> None:
    assert LanguageModelTrainingOptions().find_recipe().name == "small"
    assert LanguageModelTrainingOptions(backbone="folder").find_recipe().name == "continue"


def test_a_backbone_must_be_causal_and_as_long_as_a_row(tiny_breakdown_models: TinyModels, tmp_path: Path) -> None:
    said = refusal(train, sources(), tmp_path / "a", options("odin", tiny_breakdown_models.lm, sizes={"block": 65}))
    assert said == "block: 65 tokens are more than the 64 that the backbone reads. Give less."
    masked = write_likelihood_model(tmp_path / "masked", "masked_bert")
    assert refusal(train, sources(), tmp_path / "b", options("lm", masked), error=ModelLoadError) == (
        f"{masked}: is no causal language model, since it sees the tokens that it is asked about. "
        "Choose another model, or train this one with is_decoder=true in its config.json."
    )


def test_a_training_that_goes_on_says_from_which_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TRIAL 5: a training that went on did not say so."""
    chosen = options(sizes={**SIZES, "n_epochs": 3})
    with patch.object(checkpoints, "remove_old", side_effect=[None, KeyboardInterrupt]), pytest.raises(KeyboardInterrupt):
        train(sources(), tmp_path / "model", chosen)
    steps = sorted(int(path.name.rpartition("-")[2]) for path in (tmp_path / "model").glob(".training/*/checkpoint-*"))
    capsys.readouterr()
    train(sources(), tmp_path / "model", chosen, progress=True)
    said = [line for line in capsys.readouterr().err.splitlines() if "resuming" in line]
    assert len(steps) == 2
    assert [line.strip() for line in said] == [
        f"{tmp_path / 'model' / '.training'}: resuming an unfinished run",
        f"lm: resuming from step {steps[1]} of {3 * steps[0]}",
    ]


def test_a_relative_output_is_gone_on_with_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host keeps the best checkpoint by the path that it had: elsewhere it would end with the last epoch's weights."""
    chosen = options(sizes={**SIZES, "n_epochs": 2})
    train(sources(), tmp_path / "whole", chosen)
    monkeypatch.chdir(tmp_path)
    with patch("dialeval_plugin.training.run.save_weights", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        train(sources(), Path("model"), chosen)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    loaded: list[str | None] = []
    original = Trainer._load_best_model

    def load_best(self: Trainer) -> None:
        loaded.append(self.state.best_model_checkpoint)
        original(self)

    monkeypatch.setattr(Trainer, "_load_best_model", load_best)
    train(sources(), tmp_path / "model", chosen)
    assert [Path(name).is_relative_to(tmp_path / "model") for name in loaded if name is not None] == [True]
    assert files_of(tmp_path / "model") == files_of(tmp_path / "whole")
