"""The scorer on tiny trained models: every method against the model itself, batches, windows, calibration, and refusals."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.breakdown.scorer import AGGREGATIONS, DialogueBreakdownScorer
from dialeval_plugin.methods.breakdown.training import train
from dialeval_plugin.models.language_models import open_model
from tests.refusals import refusal, refused
from tests.sealed import poison, seal
from tests.tiny.breakdown import TinyModels, options, sources
from tests.tiny.likelihood import write_likelihood_model

Make = Callable[..., DialogueBreakdownScorer]
METHODS = tuple(AGGREGATIONS)
TURNS = ["Do you like tea?", "I do. Green tea!", "With milk or without?", "Without, thank you."]


@pytest.fixture
def make(tiny_breakdown_models: TinyModels) -> Make:
    """Makes the scorer of a method over the model that was trained for it."""
    lm, odin, background = map(str, tiny_breakdown_models)

    def made(method: Any = "max_probability", **given: Any) -> DialogueBreakdownScorer:
        models = {"model": odin if method.startswith("odin") else lm}
        if method == "likelihood_ratio":
            models["background"] = background
        return DialogueBreakdownScorer(method=method, device="cpu", **{**models, **given})

    return made


def examples(number: int = 12) -> list[Example]:
    draw = random.Random(3)
    return [
        Example.from_texts([draw.choice(TURNS) for _ in range(draw.randint(1, 4))], draw.choice(TURNS), id=str(index))
        for index in range(number)
    ]


def by_hand(tiny: TinyModels, method: str, aggregation: str, context: list[str], response: str) -> float:
    """The score from the model's own answers on the whole sequence, as the equations say."""
    main = open_model(str(tiny.odin if method.startswith("odin") else tiny.lm), device="cpu")
    end = main.tokenizer.eos_token_id
    *before, last = ([*ids, end] for ids in main.token_ids([*context, response]))
    ids = [token for piece in before for token in piece] + last
    start = len(ids) - len(last) - 1
    places = slice(0, len(ids)) if aggregation == "all" else slice(start, len(ids) - 1)
    with torch.no_grad():
        output = main.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
        if method == "odin_h":
            return float(output.logits[0].amax(-1)[places].mean())
        if method == "odin_g":
            head = load_file(str(tiny.odin / "odin_head.safetensors"))
            features = output.hidden_states[-1][0]
            return float(torch.sigmoid(features @ head["weight"].T + head["bias"])[places].mean())
        logs = output.logits[0].log_softmax(-1)
        if method == "max_probability":
            maxima = logs.amax(-1)[places]
            return float(maxima.sum() if aggregation == "logsum" else maxima.exp().mean())
        back = open_model(str(tiny.background), device="cpu").model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    ratios = [float(logs[place, ids[place + 1]] - back[place, ids[place + 1]]) for place in range(start, len(ids) - 1)]
    if aggregation == "code_bug":
        outside = [*range(start), len(ids) - 1]
        return sum(ratios) + float((logs - back)[outside, -1].sum())
    return sum(ratios) / (len(ratios) if aggregation == "mean" else 1)


@pytest.mark.parametrize(("method", "aggregation"), [(name, one) for name, known in AGGREGATIONS.items() for one in known])
@pytest.mark.parametrize("context", ["full", "pair"])
def test_every_method_scores_as_its_equation_says(
    make: Make, tiny_breakdown_models: TinyModels, method: str, aggregation: str, context: str
) -> None:
    found = make(method, aggregation=aggregation, context=context)
    scores = found.score([Example.from_texts(TURNS[:3], TURNS[3])])
    row = {name: values[0] for name, values in scores.columns.items()}
    score = by_hand(tiny_breakdown_models, method, aggregation, TURNS[:3] if context == "full" else TURNS[2:3], TURNS[3])
    assert row["score"] == pytest.approx(score, abs=1e-5, rel=1e-5)
    assert (scores.main, scores.orientation, row["n_cut"]) == ("breakdown", "lower", 0.0)
    assert found.extremes is not None
    expected = 1 - (row["score"] - found.extremes.low) / (found.extremes.high - found.extremes.low)  # type: ignore[operator]
    assert row["breakdown"] == pytest.approx(min(1.0, max(0.0, expected)))
    assert [row["p_nb"], row["p_pb"], row["p_b"]] == [pytest.approx(1 - row["breakdown"]), 0.0, row["breakdown"]]  # type: ignore[operator]


def test_what_cannot_be_scored_has_a_reason_and_leaves_the_others_alone(make: Make) -> None:
    items = [
        Example.from_texts(TURNS[:1], TURNS[1], id="good"),
        Example.from_texts([], TURNS[0], id="first turn"),
        Example.from_texts(TURNS[:1], "very " * 400, id="long response"),
        Example.from_texts(["tea " * 400], TURNS[1], id="long context"),
        Example.from_texts([TURNS[0], " ", TURNS[0]], TURNS[0], id="identical turns"),
    ]
    for method in METHODS:
        scores = make(method).score(items)
        reasons = {items[place].id: found.reason for place, found in scores.unscored.items()}
        assert reasons == {"first turn": Reason.EMPTY_INPUT, "long response": Reason.CONTEXT_TOO_LONG}
        assert dict(zip(scores.ids, scores.columns["n_cut"], strict=True))["long context"] == 1.0
        alone = make(method).score(items[:1]).values[0]
        assert scores.values[0] == pytest.approx(alone, abs=1e-5)  # R45: the others decide how far it is padded


def test_weights_that_are_not_numbers_leave_no_score(make: Make, tiny_breakdown_models: TinyModels, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_breakdown_models.lm, tmp_path / "poisoned")
    poison(folder / "model.safetensors")
    scores = make(model=str(seal(folder)), transductive=True).score([Example.from_texts(TURNS[:1], TURNS[1])])
    assert scores.unscored == {0: Unscored(Reason.NON_FINITE, "score is nan")}


def test_transductive_takes_the_extremes_of_what_is_scored(make: Make) -> None:
    items = [*examples(), Example.from_texts([], "first", id="first")]
    scores = make(transductive=True).score(items)
    raw = np.array(scores.columns["score"][:-1], dtype=float)
    expected = 1 - (raw - raw.min()) / (raw.max() - raw.min())
    assert scores.values[:-1] == pytest.approx(expected.tolist())
    assert (min(scores.values[:-1]), max(scores.values[:-1]), scores.values[-1]) == (0.0, 1.0, None)  # type: ignore[type-var]
    assert scores.signature.fields["calibration"] == "transductive"
    with refused("calibration: 1 responses have 1 different scores, two are needed. Give more dialogues."):
        make(transductive=True).score(items[:1])


def test_a_calibration_of_ones_own_takes_the_place_of_the_stored_one(
    make: Make, tiny_breakdown_models: TinyModels, tmp_path: Path
) -> None:
    lm, odin, background = map(str, tiny_breakdown_models)
    stored = json.loads(Path(lm, "breakdown.json").read_text(encoding="utf-8"))
    stored["ranges"]["max_probability"]["full"]["mean"] = {"low": -1.0, "high": 1.0}
    path = tmp_path / "own.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    scores = make(calibration=str(path)).score(examples(3))
    assert scores.values == pytest.approx([1 - (raw + 1) / 2 for raw in scores.columns["score"]])  # type: ignore[operator]
    said = refusal(make, model=background, calibration=str(path))
    assert said == f"{path}: was learnt with other models. Make one for these with `dialeval train breakdown`."
    said = refusal(make, "odin_g", calibration=str(Path(odin, "breakdown.json")), max_tokens=32)
    assert said == (
        "dialogue_breakdown: max_tokens is 32, but the calibration was learnt with 64. "
        "Leave the option out, or calibrate again."
    )
    del stored["ranges"]["max_probability"]["pair"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert refusal(make, calibration=str(path), context="pair") == (
        "dialogue_breakdown: max_probability was not calibrated with context='pair' and aggregation='mean'. "
        "Calibrate it with `dialeval train breakdown`."
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"method": "softmax"}, "method is 'softmax'. Give one of max_probability, odin_h, odin_g, likelihood_ratio."),
        ({"method": "likelihood_ratio", "aggregation": "logsum"},
         "aggregation is 'logsum'. Did you mean 'sum'? Give one of sum, mean, code_bug."),
        ({"transductive": True, "calibration": "c.json"},
         "transductive scores need no calibration. Leave one of the options out."),
        ({"cut": 1.5}, "cut is 1.5. Give a number from 0 to 1."),
        ({"background": "folder"}, "max_probability has no background model. Leave the option background out."),
    ],
)  # fmt: skip
def test_an_option_that_does_not_fit_is_said(make: Make, given: dict[str, Any], problem: str) -> None:
    assert refusal(make, **given) == f"dialogue_breakdown: {problem}"


def test_models_are_found_by_variable_or_it_is_said_how_to_get_one(
    make: Make, tiny_breakdown_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALEVAL_LANGUAGE_MODEL", str(tiny_breakdown_models.lm))
    for given, objective, option, variable in (
        ({"method": "odin_h"}, "odin", "model", "DIALEVAL_ODIN_MODEL"),
        ({"method": "likelihood_ratio"}, "background", "background", "DIALEVAL_BACKGROUND_MODEL"),
    ):
        assert refusal(load_scorer, "dialogue_breakdown", **given, error=MissingPrerequisite) == (
            f"dialogue_breakdown: no {option} is named. Train one with `dialeval train language-model --objective {objective} "
            f"--data FILE --output FOLDER`, pass {option}='FOLDER', or set {variable}."
        )
        monkeypatch.setenv(variable, str(getattr(tiny_breakdown_models, objective)))
    items = examples(3)
    for method in METHODS:
        found = DialogueBreakdownScorer(method=method, device="cpu")  # type: ignore[arg-type]
        assert found.score(items).values == make(method).score(items).values


def test_foreign_and_uncalibrated_models_are_refused(make: Make, tiny_breakdown_models: TinyModels, tmp_path: Path) -> None:
    lm, foreign = tiny_breakdown_models.lm, write_likelihood_model(tmp_path / "foreign", "gpt2")
    assert refusal(make, "likelihood_ratio", background=str(foreign)) == (
        f"dialogue_breakdown: {foreign} has another tokenizer than {lm}. "
        "Train the background model with this one as its --backbone."
    )
    assert refusal(make, model=str(foreign), error=ModelLoadError) == (
        f"{foreign}: has no breakdown.json, so its scores are no probabilities. Make one with `dialeval train breakdown`, "
        "pass calibration='FILE', or transductive=true for the extremes of what is scored."
    )
    assert refusal(make, "odin_g", model=str(lm), error=ModelLoadError) == (
        f"{lm}: has no odin_head.safetensors, so it has no component g of ODIN. Train one with "
        "`dialeval train language-model --objective odin --data FILE --output FOLDER`."
    )
    odin = shutil.copytree(tiny_breakdown_models.odin, tmp_path / "odin")
    save_file({"weight": torch.zeros(1, 3), "bias": torch.zeros(1)}, str(odin / "odin_head.safetensors"))
    assert refusal(make, "odin_g", model=str(seal(odin)), error=ModelLoadError) == (
        f"{odin / 'odin_head.safetensors'}: holds {{'bias': (1,), 'weight': (1, 3)}}, the model needs "
        "{'bias': (1,), 'weight': (1, 16)}. Copy the model folder again."
    )


@pytest.mark.parametrize("architecture", ["gpt2", "roberta_decoder"])
def test_other_architectures_score(make: Make, tmp_path: Path, architecture: str) -> None:
    folder = write_likelihood_model(tmp_path / "model", architecture)
    trained = train(sources(), tmp_path / "odin", options("odin", folder))
    odin = trained.folder
    # Training goes on from the architecture.
    assert trained.history[0].figures["perplexity"] > 1
    assert load_file(str(odin / "odin_head.safetensors"))["weight"].shape == (1, 16)
    for method in METHODS:
        background = {"background": str(folder)} if method == "likelihood_ratio" else {}
        model = str(odin if method.startswith("odin") else folder)
        found = make(method, model=model, transductive=True, **background).score_batch(examples(6))
        scores = [row["score"] for row in found if not isinstance(row, Unscored)]
        assert len(scores) == 6
        # A model beside itself has a ratio of 1.
        assert set(scores) == {0.0} if method == "likelihood_ratio" else len(set(scores)) > 1


def test_the_signature_pins_what_moves_a_number(make: Make) -> None:
    base = make().signature_fields()
    for given in ({"context": "pair"}, {"aggregation": "logsum"}, {"transductive": True}, {"cut": 0.3}):
        assert make(**given).signature_fields() != base, given
    fields = make("likelihood_ratio").signature_fields()
    assert fields["model"] != fields["background"]
