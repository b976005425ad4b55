"""The scorer `dialogue_reconstruction`: its columns, what it leaves out, its options, and model folders that it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import DialevalError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.scorer import load_scorer
from dialeval_plugin.methods.reconstruction.batches import make_batch
from dialeval_plugin.methods.reconstruction.latent import Noise
from dialeval_plugin.methods.reconstruction.scorer import DialogueReconstructionScorer
from tests.refusals import refused
from tests.sealed import seal
from tests.tiny.reconstruction import KINDS, write_tiny_model

TEXTS = ["Hi there!", "Do you like jazz?", "I do not. You?", "Where is the station?"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    base = tmp_path_factory.mktemp("models")
    return {kind: str(write_tiny_model(base / kind, kind)) for kind in KINDS}


def dialogue(*texts: str) -> Dialogue:
    return Dialogue("0", tuple(map(Turn, texts)))


def row(scorer: DialogueReconstructionScorer, *texts: str) -> dict[str, Any]:
    return next(iter(scorer.score([dialogue(*texts)]).rows()))


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_the_mean_over_utterances_of_the_mean_over_tokens(kind: str, models: dict[str, str]) -> None:
    scorer = DialogueReconstructionScorer(models[kind], device="cpu")
    ids = [scorer.trained.vocabulary.encode(text, max_tokens=30).ids for text in TEXTS]
    losses = scorer.trained.model(make_batch([ids])).losses.sum(-1).tolist()
    lengths = [len(utterance) for utterance in ids[1:]]
    assert lengths == [6, 7, 6]
    found = row(scorer, *TEXTS)
    means = [loss / length for loss, length in zip(losses, lengths, strict=True)]
    assert found["loss_token_mean"] == pytest.approx(math.fsum(means) / 3, rel=1e-6)
    assert found["loss_sum"] == pytest.approx(math.fsum(losses), rel=1e-6)
    assert {name: found[name] for name in ("n_utterances", "n_tokens", "unknown_share", "n_cut")} == {
        "n_utterances": 3.0,
        "n_tokens": 19.0,
        "unknown_share": 0.0,
        "n_cut": 0.0,
    }
    assert scorer.columns == ("loss_token_mean", "loss_sum", "n_utterances", "n_tokens", "unknown_share", "n_cut")
    assert (scorer.orientation, scorer.range) == ("lower", (0.0, math.inf))


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_at_turn_level_has_the_loss_that_it_has_in_its_dialogue(kind: str, models: dict[str, str]) -> None:
    whole = DialogueReconstructionScorer(models[kind], device="cpu", reduction="sum")
    single = DialogueReconstructionScorer(models[kind], device="cpu", reduction="sum", level="turn")
    context = tuple(map(Turn, TEXTS[:-1]))
    found = next(iter(single.score([Example("0", context, Turn(TEXTS[-1]))]).rows()))
    difference = row(whole, *TEXTS)["loss_sum"] - row(whole, *TEXTS[:-1])["loss_sum"]
    assert found["loss_sum"] == pytest.approx(difference, abs=1e-4)
    assert found["loss_token_mean"] == pytest.approx(difference / 6, abs=1e-4)
    assert (found["n_utterances"], found["n_tokens"]) == (1.0, 6.0)


def test_reductions_choose_the_main_column(models: dict[str, str]) -> None:
    mean, total = (
        DialogueReconstructionScorer(models["hred"], device="cpu", reduction=reduction) for reduction in ("token_mean", "sum")
    )
    assert (mean.columns[0], total.columns[0]) == ("loss_token_mean", "loss_sum")
    first, second = row(mean, *TEXTS), row(total, *TEXTS)
    assert first == second
    assert total.score([dialogue(*TEXTS)]).values == (first["loss_sum"],)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["vhred", "vhcr"])
def test_the_posterior_is_drawn_with_a_seed_and_reports_its_divergence(kind: str, models: dict[str, str]) -> None:
    prior = DialogueReconstructionScorer(models[kind], device="cpu")
    first, again, other = (
        DialogueReconstructionScorer(models[kind], device="cpu", latent="posterior", seed=seed) for seed in (1, 1, 2)
    )
    assert first.columns == ("loss_token_mean", "loss_sum", "kl", "n_utterances", "n_tokens", "unknown_share", "n_cut")
    found = row(first, *TEXTS)
    assert found == row(again, *TEXTS)
    assert len({row(scorer, *TEXTS)["loss_token_mean"] for scorer in (prior, first, other)}) == 3
    batch = make_batch([[first.trained.vocabulary.encode(text, max_tokens=30).ids for text in TEXTS]])
    expected = first.trained.model(batch, Noise.repeated(batch, 3, seed=1))
    assert found["kl"] == pytest.approx((expected.response_kl.sum() + expected.dialogue_kl.sum()).item(), rel=1e-5)
    assert found["kl"] > 0
    assert [str(scorer.score([]).signature).count("latent:posterior|seed:1|") for scorer in (first, other, prior)] == [1, 0, 0]


def test_a_cut_utterance_of_the_context_is_counted_too(models: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """TRIAL section 2, S1: neither a cut context was counted, nor did anybody learn of a cut response."""
    long = "you " * 45
    scorer = DialogueReconstructionScorer(models["seq2seq"], level="turn", device="cpu")
    scores = scorer.score([Example.from_texts(context, response) for context, response in ((["Hi."], "Hi."), ([long], long))])
    assert scores.columns["n_cut"] == (0.0, 2.0)
    assert caplog.messages == [
        "dialogue_reconstruction: in 1 of 2 examples an utterance is longer than 30 tokens; its end was not read"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_dialogues_of_any_length_are_scored(kind: str, models: dict[str, str]) -> None:
    scorer = DialogueReconstructionScorer(models[kind], device="cpu")
    long = row(scorer, *(TEXTS * 15))
    assert (long["n_utterances"], long["n_cut"]) == (59.0, 0.0)
    wide = row(scorer, "Hi.", "you " * 45)
    assert (wide["n_tokens"], wide["n_cut"]) == (30.0, 1.0)
    assert wide["loss_sum"] == row(scorer, "Hi.", "you " * 29)["loss_sum"]
    unknown = row(scorer, "Zebras graze.", "Gnus galop", "hi 🙂")
    assert (unknown["unknown_share"], unknown["n_tokens"]) == (3 / 4, 6.0)
    assert math.isfinite(unknown["loss_token_mean"])


def test_turns_without_a_visible_character_are_left_out(models: dict[str, str]) -> None:
    scorer = DialogueReconstructionScorer(models["hred"], device="cpu")
    assert row(scorer, TEXTS[0], " ", "\u200b", TEXTS[1]) == row(scorer, *TEXTS[:2])


def test_the_first_utterances_only(models: dict[str, str]) -> None:
    every = DialogueReconstructionScorer(models["hred"], device="cpu")
    first = DialogueReconstructionScorer(models["hred"], device="cpu", max_utterances=3)
    assert row(first, *TEXTS) == row(every, *TEXTS[:3])
    assert "max_utterances:3|" in str(first.score([]).signature)


def test_a_loss_that_is_no_number_is_no_score(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model", "hred")
    weights = load_file(str(folder / "model.safetensors"))
    weights["words.bias"][5] = math.nan
    save_file(weights, str(folder / "model.safetensors"))
    found = DialogueReconstructionScorer(str(seal(folder)), device="cpu").score([dialogue(*TEXTS)])
    assert found.unscored_by_reason == {"non_finite": 1}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"latent": "posterior"}, "hred has no latent variables. Leave the option latent out."),
        ({"max_utterances": 1}, "max_utterances is 1. Give a whole number from 2."),
        (
            {"max_utterances": 10, "level": "turn"},
            "max_utterances goes with level='dialogue' only. Leave it out to score all utterances.",
        ),
    ],
)
def test_wrong_options_are_said(options: dict[str, Any], problem: str, models: dict[str, str]) -> None:
    with refused(f"dialogue_reconstruction: {problem}"):
        load_scorer("dialogue_reconstruction", model=models["hred"], **options)


def test_without_a_model_one_is_told_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("DIALEVAL_RECONSTRUCTION", raising=False)
    with refused(
        "dialogue_reconstruction: no model is named. Pass model='FOLDER', or set DIALEVAL_RECONSTRUCTION; "
        "`dialeval train reconstruction` makes one.",
        MissingPrerequisite,
    ):
        load_scorer("dialogue_reconstruction")


def spoil(folder: Path, how: str) -> None:
    settings = json.loads((folder / "reconstruction.json").read_text())
    weights = folder / "model.safetensors"
    if how == "pickle":
        weights.rename(folder / "model.bin")
    elif how == "cut off":
        weights.write_bytes(weights.read_bytes()[:200])
    elif how == "no settings":
        (folder / "reconstruction.json").unlink()
    elif how == "words":
        (folder / "vocabulary.json").write_text('["hi"]')
    else:
        settings |= {
            "format": {"format_version": 9},
            "tokenizer": {"tokenizer": "words_9"},
            "kind": {"model": "hred"},
            "sizes": {"architecture": {**settings["architecture"], "embedding": -3}},
        }[how]
        (folder / "reconstruction.json").write_text(json.dumps(settings))


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        (
            "pickle",
            "{folder}/model.bin: pickled weights run code when they are read, so they are never opened. Convert them to "
            "safetensors where you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`.",
        ),
        (
            "no settings",
            "{folder}: has no reconstruction.json, so it is not a trained model of dialogues (or its training did not end). "
            "Train one with `dialeval train reconstruction`.",
        ),
        (
            "format",
            "{folder}/reconstruction.json: format_version is 9, this release reads 2. Update dialeval-plugin or train again.",
        ),
        (
            "tokenizer",
            "{folder}/reconstruction.json: tokenizer is 'words_9', this release has 'words_1'. "
            "Update dialeval-plugin or train again.",
        ),
        ("words", "{folder}/vocabulary.json: has 5 entries, the weights 20. Copy the folder again."),
        (
            "kind",
            "{folder}/model.safetensors: the tensor 'posterior.deviation.bias' is not the model's. "
            "Copy the model folder again.",
        ),
        (
            "sizes",
            "{folder}: cannot be opened as a trained model of dialogues (Trying to create tensor with negative dimension -3: "
            "[20, -3]). Copy the folder again.",
        ),
    ],
)
def test_a_folder_that_is_damaged_or_unsafe_is_refused(how: str, problem: str, tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model", "vhred")
    spoil(folder, how)
    with pytest.raises(DialevalError) as error:
        load_scorer("dialogue_reconstruction", model=str(folder))
    assert isinstance(error.value, ModelLoadError)
    assert str(error.value) == problem.format(folder=folder)


def test_weights_that_are_cut_off_are_refused(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model", "vhred")
    spoil(folder, "cut off")
    with pytest.raises(ModelLoadError) as error:
        load_scorer("dialogue_reconstruction", model=str(seal(folder)))
    assert str(error.value).startswith(f"{folder}/model.safetensors: is damaged (")
    assert str(error.value).endswith(". Copy the model folder again.")
