"""The option `encoder` of `assistant`: a head for another encoder beside the model's own, on random and on true weights."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from dialeval_plugin import load_scorer
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.signature import LARGER_ENCODER_FILE, content_hash
from dialeval_plugin.methods.assistant.judging import LARGER_ENCODER, REPOSITORY, ReadAnswers
from dialeval_plugin.methods.assistant.scorer import JUDGED, AssistantScorer
from dialeval_plugin.models.compact import original_hash
from dialeval_plugin.models.manifest import changing
from tests.refusals import refusal, refused

EXAMPLES = [
    Example.from_texts(["Who wrote Emma?", "Jane Austen.", "And when?"], answer, id=str(place))
    for place, answer in enumerate(("In 1815. It came out in December.", "I am not sure", "Emma, Emma, Emma.", "In 1815."))
]
WIDTH, OWN, OFFSET, WEIGHT = 16, 0.5, -0.25, 0.4


@pytest.fixture(scope="module")
def model(tiny_assistant: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a head for the tiny encoder."""
    folder = shutil.copytree(tiny_assistant, tmp_path_factory.mktemp("larger") / "assistant")
    generator = np.random.default_rng(0)
    settings = {
        "encoder": original_hash(tiny_encoder),
        "vectors": {name: generator.normal(size=WIDTH).tolist() for name in ("mean", "last", "product", "difference")},
        "own": OWN,
        "offset": OFFSET,
        "defects": dict.fromkeys(JUDGED, 0.1),
        "defect_weight": WEIGHT,
    }
    with changing(folder, LARGER_ENCODER_FILE):
        write_text(folder / LARGER_ENCODER_FILE, to_json(settings))
    return folder


def test_helpfulness_and_main_score_are_those_of_the_head(model: Path, tiny_encoder: Path) -> None:
    scorer = AssistantScorer(str(model), encoder=str(tiny_encoder), device="cpu")
    found, without = (one.score(EXAMPLES) for one in (scorer, AssistantScorer(str(model), device="cpu")))
    larger = scorer.larger
    assert larger is not None
    (read, _) = larger.reader.read(
        [(tuple(t.text for t in one.context[:-1]), "And when?", one.response.text) for one in EXAMPLES]
    )
    of = ReadAnswers.of(read).blocks()
    by_vectors = sum(of[name] @ np.array(larger.settings["vectors"][name]) for name in of)
    helpfulness = by_vectors + OWN * logit(without.columns["helpfulness"]) + OFFSET
    assert found.columns["helpfulness"] == pytest.approx(expit(helpfulness), abs=1e-6)
    above = sum(np.maximum(0, logit(without.columns[name]) - 0.1) for name in JUDGED)
    insult = 0.3 * (logit(without.columns["insult"]) + 5)
    assert found.values == pytest.approx(expit(helpfulness - WEIGHT * above - insult), abs=1e-6)
    for name in (*JUDGED, "refusal", "asked_refusal", "response_tokens_cut"):
        assert found.columns[name] == without.columns[name]


def test_neighbours_and_backends_move_no_score(model: Path, tiny_encoder: Path) -> None:
    for backend in ("torch", "onnx", "openvino"):
        scorer = load_scorer("assistant", model=str(model), encoder=str(tiny_encoder), backend=backend)
        alone = [scorer.score([one]).values[0] for one in EXAMPLES]
        scorer.reset_cache()
        assert scorer.score(EXAMPLES).values == pytest.approx(alone, abs=1e-5)
        if backend == "torch":
            by_torch = alone
        assert alone == pytest.approx(by_torch, abs=1e-5)


def test_the_head_changes_the_signature_only_where_it_is_used(model: Path, tiny_assistant: Path, tiny_encoder: Path) -> None:
    fields = AssistantScorer(str(model), encoder=str(tiny_encoder)).signature_fields()
    assert fields["encoder"] == original_hash(tiny_encoder)[:16]
    assert isinstance(fields["encoder_head"], str)
    plain = AssistantScorer(str(model)).signature_fields()
    assert plain == AssistantScorer(str(tiny_assistant)).signature_fields()
    assert {name for name in fields if name not in plain} == {"encoder", "encoder_head"}
    assert content_hash(model) == content_hash(tiny_assistant)


def test_another_encoder_is_refused(model: Path, tmp_path: Path) -> None:
    from tests.tiny.models import write_tiny_encoder

    other = write_tiny_encoder(tmp_path / "other", max_position_embeddings=128)
    message = refusal(AssistantScorer, str(model), encoder=str(other), error=ModelLoadError)
    assert message.startswith(
        f"{other}: holds other weights than the encoder of {model / LARGER_ENCODER_FILE}, whose SHA-256 is "
    )
    assert message.endswith(f"and give encoder=./{LARGER_ENCODER}.")


def test_a_model_without_a_head_is_refused(tiny_assistant: Path, tiny_encoder: Path) -> None:
    with refused(
        f"assistant: encoder is {str(tiny_encoder)!r}, but the model {tiny_assistant} has no {LARGER_ENCODER_FILE}. "
        "Leave encoder out."
    ):
        AssistantScorer(str(tiny_assistant), encoder=str(tiny_encoder))


def test_how_to_get_the_encoder_is_said(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = refusal(AssistantScorer, str(model), encoder=LARGER_ENCODER, error=MissingPrerequisite)
    assert message.startswith(
        f"assistant: the hub did not give the encoder {LARGER_ENCODER}. Get it once, by `hf download {REPOSITORY} "
    )


def test_with_the_true_encoder_a_good_answer_is_above_a_bad_one() -> None:
    folder = os.environ.get("DIALEVAL_LARGER_ENCODER")
    if not folder:
        pytest.skip(f"DIALEVAL_LARGER_ENCODER is not set: the test reads the folder of {LARGER_ENCODER} that it names")
    scorer = AssistantScorer("assistant", encoder=folder)
    good = "Put the eggs into boiling water for eight minutes, then into cold water, so that they are easy to peel."
    items = [
        Example.from_texts(["How do I boil eggs?"], answer, id=str(place))
        for place, answer in enumerate((good, "I like eggs.", good[:60]))
    ]
    scores = scorer.score(items)
    first, *others = scores.values
    assert first is not None
    assert all(other is not None and first > other for other in others)
    assert all(0 <= value <= 100 for value in scores.columns[PERCENTILE] if value is not None)
    assert scores.columns[PERCENTILE][0] is not None
