"""The scorer `dialogue_reconstruction`: its columns, what it leaves out, its options, and model folders that it refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.methods.reconstruction.layers import LatentNoise
from dialeval_plugin.methods.reconstruction.scorer import DialogueReconstructionScorer
from dialeval_plugin.methods.reconstruction.vocabulary import make_batch
from dialeval_plugin.models.folders import write_manifest
from tests.refusals import refusal, refused
from tests.sealed import poison, seal
from tests.tiny.reconstruction import KINDS, SIZES, write_tiny_model

Make = Callable[..., DialogueReconstructionScorer]
TEXTS = ["Hi there!", "Do you like jazz?", "I do not. You?", "Where is the station?"]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    base = tmp_path_factory.mktemp("models")
    folders = {kind: str(write_tiny_model(base / kind, kind)) for kind in KINDS}
    return lambda kind, **options: DialogueReconstructionScorer(folders[kind], device="cpu", **options)


def dialogue(*texts: str) -> Dialogue:
    return Dialogue("0", tuple(map(Turn, texts)))


def row(scorer: DialogueReconstructionScorer, *texts: str) -> dict[str, Any]:
    return next(iter(scorer.score([dialogue(*texts)]).rows()))


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_the_score_is_the_mean_over_utterances_of_the_mean_over_tokens(kind: str, make: Make) -> None:
    scorer = make(kind)
    ids = [scorer.trained.vocabulary.encode(text, max_tokens=30).ids for text in TEXTS]
    losses = scorer.trained.model(make_batch([ids])).losses.sum(-1).tolist()
    lengths = [len(utterance) for utterance in ids[1:]]
    assert lengths == [6, 7, 6]
    found = row(scorer, *TEXTS)
    means = [loss / length for loss, length in zip(losses, lengths, strict=True)]
    assert found["loss_token_mean"] == pytest.approx(math.fsum(means) / 3, rel=1e-6)
    assert found["loss_sum"] == pytest.approx(math.fsum(losses), rel=1e-6)
    counts = {"n_utterances": 3.0, "n_tokens": 19.0, "unknown_share": 0.0, "n_cut": 0.0}
    assert {name: found[name] for name in counts} == counts
    assert scorer.columns == ("loss_token_mean", "loss_sum", "n_utterances", "n_tokens", "unknown_share", "n_cut")
    assert (scorer.orientation, scorer.range) == ("lower", (0.0, math.inf))


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_at_turn_level_has_the_loss_that_it_has_in_its_dialogue(kind: str, make: Make) -> None:
    whole, single = (make(kind, reduction="sum", level=level) for level in ("dialogue", "turn"))
    found = next(iter(single.score([Example.from_texts(TEXTS[:-1], TEXTS[-1])]).rows()))
    difference = row(whole, *TEXTS)["loss_sum"] - row(whole, *TEXTS[:-1])["loss_sum"]
    assert found["loss_sum"] == pytest.approx(difference, abs=1e-4)
    assert found["loss_token_mean"] == pytest.approx(difference / 6, abs=1e-4)
    assert (found["n_utterances"], found["n_tokens"]) == (1.0, 6.0)


def test_reductions_choose_the_main_column(make: Make) -> None:
    mean, total = (make("hred", reduction=reduction) for reduction in ("token_mean", "sum"))
    assert (mean.columns[0], total.columns[0]) == ("loss_token_mean", "loss_sum")
    assert row(mean, *TEXTS) == row(total, *TEXTS)
    assert total.score([dialogue(*TEXTS)]).values == (row(mean, *TEXTS)["loss_sum"],)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["vhred", "vhcr"])
def test_the_posterior_is_drawn_with_a_seed_and_reports_its_divergence(kind: str, make: Make) -> None:
    prior = make(kind)
    first, again, other = (make(kind, latent="posterior", seed=seed) for seed in (1, 1, 2))
    assert first.columns == ("loss_token_mean", "loss_sum", "kl", "n_utterances", "n_tokens", "unknown_share", "n_cut")
    found = row(first, *TEXTS)
    assert found == row(again, *TEXTS)
    assert len({row(scorer, *TEXTS)["loss_token_mean"] for scorer in (prior, first, other)}) == 3
    batch = make_batch([[first.trained.vocabulary.encode(text, max_tokens=30).ids for text in TEXTS]])
    expected = first.trained.model(batch, LatentNoise.repeated(batch, 3, seed=1))
    assert found["kl"] == pytest.approx((expected.response_kl.sum() + expected.dialogue_kl.sum()).item(), rel=1e-5)
    assert found["kl"] > 0
    assert [str(scorer.score([]).signature).count("latent:posterior|seed:1|") for scorer in (first, other, prior)] == [1, 0, 0]


def test_a_cut_utterance_of_the_context_is_counted_too(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """TRIAL section 2, S1: neither a cut context was counted, nor did anybody learn of a cut response."""
    long = "you " * 45
    items = [Example.from_texts([context], response) for context, response in (("Hi.", "Hi."), (long, long))]
    scores = make("seq2seq", level="turn").score(items)
    assert scores.columns["n_cut"] == (0.0, 2.0)
    assert caplog.messages == [
        "dialogue_reconstruction: in 1 of 2 examples an utterance is longer than 30 tokens; its end was not read"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_dialogues_of_any_length_are_scored(kind: str, make: Make) -> None:
    scorer = make(kind)
    long = row(scorer, *(TEXTS * 15))
    assert (long["n_utterances"], long["n_cut"]) == (59.0, 0.0)
    wide = row(scorer, "Hi.", "you " * 45)
    assert (wide["n_tokens"], wide["n_cut"]) == (30.0, 1.0)
    assert wide["loss_sum"] == row(scorer, "Hi.", "you " * 29)["loss_sum"]
    unknown = row(scorer, "Zebras graze.", "Gnus galop", "hi 🙂")
    assert (unknown["unknown_share"], unknown["n_tokens"]) == (3 / 4, 6.0)
    assert math.isfinite(unknown["loss_token_mean"])


def test_turns_without_a_visible_character_are_left_out(make: Make) -> None:
    assert row(make("hred"), TEXTS[0], " ", "\u200b", TEXTS[1]) == row(make("hred"), *TEXTS[:2])


def test_the_first_utterances_only(make: Make) -> None:
    first = make("hred", max_utterances=3)
    assert row(first, *TEXTS) == row(make("hred"), *TEXTS[:3])
    assert "max_utterances:3|" in str(first.score([]).signature)


def test_a_loss_that_is_no_number_is_no_score(tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model", "hred")
    poison(folder / "model.safetensors")
    found = DialogueReconstructionScorer(str(seal(folder)), device="cpu").score([dialogue(*TEXTS)])
    assert found.unscored_by_reason == {"non_finite": 1}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"latent": "posterior"}, "hred has no latent variables. Leave the option latent out."),
        ({"max_utterances": 1}, "max_utterances is 1. Give a whole number from 2."),
        ({"max_utterances": 10, "level": "turn"},
         "max_utterances goes with level='dialogue' only. Leave it out to score all utterances."),
    ],
)  # fmt: skip
def test_wrong_options_are_said(options: dict[str, Any], problem: str, make: Make) -> None:
    assert refusal(make, "hred", **options) == f"dialogue_reconstruction: {problem}"


def test_without_a_model_one_is_told_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_RECONSTRUCTION", raising=False)
    with refused(
        "dialogue_reconstruction: no model is named. Pass model='FOLDER', or set DIALEVAL_RECONSTRUCTION; "
        "`dialeval train reconstruction` makes one.",
        MissingPrerequisite,
    ):
        load_scorer("dialogue_reconstruction")


def change(folder: Path, **fields: Any) -> None:
    path = folder / "reconstruction.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda folder: (folder / "model.safetensors").rename(folder / "model.bin"),
         "/model.bin: pickled weights run code when they are read, so they are never opened. Convert them to "
         "safetensors where you trust them: `safetensors.torch.save_file(state_dict, 'model.safetensors')`."),
        (lambda folder: (folder / "reconstruction.json").unlink(),
         ": has no reconstruction.json, so it is not a trained model of dialogues (or its training did not end). "
         "Train one with `dialeval train reconstruction`."),
        (lambda folder: change(folder, format_version=9),
         "/reconstruction.json: format_version is 9, this release reads 2. Update dialeval-plugin or train again."),
        (lambda folder: change(folder, tokenizer="words_9"),
         "/reconstruction.json: tokenizer is 'words_9', this release has 'words_1'. "
         "Update dialeval-plugin or train again."),
        (lambda folder: (folder / "vocabulary.json").write_text('["hi"]'),
         "/vocabulary.json: has 5 entries, the weights 20. Copy the folder again."),
        (lambda folder: change(folder, model="hred"),
         "/model.safetensors: the tensor 'posterior.deviation.bias' is not the model's. Copy the model folder again."),
        (lambda folder: change(folder, architecture={"n_tokens": 20, **SIZES, "embedding": -3}),
         ": cannot be opened as a trained model of dialogues (Trying to create tensor with negative dimension -3: "
         "[20, -3]). Copy the folder again."),
    ],
    ids=["pickle", "no settings", "format", "tokenizer", "words", "kind", "sizes"],
)  # fmt: skip
def test_a_folder_that_is_damaged_or_unsafe_is_refused(spoil: Callable[[Path], object], problem: str, tmp_path: Path) -> None:
    folder = write_tiny_model(tmp_path / "model", "vhred")
    spoil(folder)
    write_manifest(folder)
    said = refusal(load_scorer, "dialogue_reconstruction", model=str(folder), error=ModelLoadError)
    assert said == f"{folder}{problem}"
