"""The cross-encoder of `assistant`, on random weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit
from transformers import AutoTokenizer

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.methods.assistant.cross_encoder import FOLDER, SETTINGS_FILE, CrossEncoder, CrossEncoderSettings, joined
from dialeval_plugin.methods.assistant.scorer import AssistantScorer
from dialeval_plugin.models.encoders import embed, load_encoder
from dialeval_plugin.models.folders import write_manifest
from dialeval_plugin.models.runtimes.runtime import ON_TORCH
from dialeval_plugin.pretrained.catalogue import export

EXAMPLES = [
    Example.from_texts(["Who wrote Emma?", "Jane Austen.", "And when?"], answer, id=str(place))
    for place, answer in enumerate(("In 1815. It came out in December.", "I am not sure", "Emma, Emma, Emma.", "In 1815."))
]
SETTINGS = CrossEncoderSettings(
    max_question_tokens=6, max_tokens=12, weights=np.random.default_rng(0).normal(size=16).tolist(), length=0.5, offset=-0.25
)


@pytest.fixture(scope="module")
def model(tiny_assistant: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the tiny encoder as a cross-encoder."""
    folder = shutil.copytree(tiny_assistant, tmp_path_factory.mktemp("cross") / "assistant")
    shutil.copytree(tiny_encoder, folder / FOLDER)
    write_text(folder / FOLDER / SETTINGS_FILE, to_json(SETTINGS))
    write_manifest(folder)
    return folder


def test_its_log_odds_are_added_to_those_of_helpfulness(model: Path, tiny_assistant: Path, tiny_encoder: Path) -> None:
    found, without = (AssistantScorer(str(one), device="cpu").score(EXAMPLES) for one in (model, tiny_assistant))
    encoder = load_encoder(str(tiny_encoder), device="cpu")
    rows = joined(
        AutoTokenizer.from_pretrained(str(tiny_encoder)), [("And when?", e.response.text) for e in EXAMPLES], SETTINGS
    )
    log_odds = embed(encoder, rows).detach().numpy() @ np.array(SETTINGS["weights"]) - 0.25
    log_odds += 0.5 * np.log([7, 4, 3, 2])
    assert found.columns["helpfulness"] == pytest.approx(expit(logit(without.columns["helpfulness"]) + log_odds), abs=1e-6)
    moved = logit(found.values) - logit(without.values)
    assert moved == pytest.approx(log_odds, abs=1e-5)
    assert found.columns["off_topic"] == without.columns["off_topic"]
    assert found.signature != without.signature


def test_a_long_question_and_a_long_answer_lose_their_middle(tiny_encoder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(str(tiny_encoder))
    (asked,), (answered,) = (tokenizer([text * 20], add_special_tokens=False)["input_ids"] for text in ("a b c ", "d e f "))
    ((first, *row),) = joined(tokenizer, [("a b c " * 20, "d e f " * 20)], SETTINGS)
    assert (first, len(row)) == (tokenizer.cls_token_id, 11)
    assert row == [*asked[:3], *asked[-3:], tokenizer.sep_token_id, *answered[:1], *answered[-2:], tokenizer.sep_token_id]


def test_bold_type_headings_and_a_missing_full_stop_count_for_nothing(model: Path) -> None:
    plain, *others = (
        [((), "How do I boil eggs?", f"{start}Put the eggs into boiling water, and take them out after {end}")]
        for start, end in (("", "eight minutes."), ("## ", "**eight** minutes."), ("", "eight minutes"), ("", "eight or"))
    )
    encoder = CrossEncoder(model / FOLDER, ON_TORCH)
    bold, unended, truncated = (encoder.log_odds(one)[0] - encoder.log_odds(plain)[0] for one in others)
    assert (bold, unended) == pytest.approx((0, 0), abs=1e-6)
    assert abs(truncated) > 1e-3


def test_neighbours_and_backends_move_no_score(model: Path) -> None:
    by_torch: list[float | None] = []
    for backend in ("torch", "onnx", "openvino"):
        scorer = load_scorer("assistant", model=str(model), backend=backend)
        alone = [scorer.score([one]).values[0] for one in EXAMPLES]
        by_torch = by_torch or alone
        assert scorer.score(EXAMPLES).values == pytest.approx(alone, abs=1e-5)
        assert alone == pytest.approx(by_torch, abs=1e-5)


def test_an_exported_model_keeps_it(model: Path, tmp_path: Path) -> None:
    export(str(model), tmp_path / "whole")
    whole, packed = (AssistantScorer(str(one), device="cpu").score(EXAMPLES) for one in (tmp_path / "whole", model))
    assert whole.values == packed.values


def test_a_changed_cross_encoder_is_refused(model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "assistant")
    write_text(folder / FOLDER / SETTINGS_FILE, to_json({**SETTINGS, "offset": 1.0}))
    with pytest.raises(ModelLoadError, match=r"cross_encoder\.json: is damaged or was changed"):
        AssistantScorer(str(folder))
