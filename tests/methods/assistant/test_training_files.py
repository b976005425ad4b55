"""Files that the evaluator of assistants is trained on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.methods.assistant import training
from dialeval_plugin.methods.assistant.judging import DEFECTS, HEADS
from dialeval_plugin.methods.assistant.model import AssistantHead
from dialeval_plugin.methods.assistant.spoiling import LEFT_OPEN
from dialeval_plugin.methods.assistant.training import (
    AssistantRecipe,
    AssistantSources,
    KnownAnswer,
    RatedAnswer,
    _calibrate_preferences,
    _spoiled_texts,
    train,
)
from tests.refusals import refused

ELSEWHERE = "of other first turns, or another share for validation."
FEW_ANSWERS = f"at least 8 are needed. Give more lines of answers without defects, {ELSEWHERE}"
FEW_PREFERENCES = f"Give more preferences, {ELSEWHERE}"


def test_an_unknown_defect_is_refused_with_its_line(tmp_path: Path) -> None:
    answers, rows = tmp_path / "answers.jsonl", [{"context": ["Hi."], "response": "Go away.", "defects": {"insult": 1}}]
    write_text(answers, to_json(rows[0]) + "\n")
    assert AssistantSources.read([], [answers]).answers == (KnownAnswer(("Hi.",), "Go away.", {"insult": 1.0}),)
    rows.append({"context": ["Hi."], "response": "Go away.", "defects": {"rude": 1}})
    write_text(answers, "".join(to_json(row) + "\n" for row in rows))
    names = ", ".join(defect.name for defect in DEFECTS)
    with refused(f"{answers}:2: there is no defect 'rude'. Choose one of {names}."):
        AssistantSources.read([], [answers])


def test_blank_responses_are_left_out_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "answers.jsonl"
    write_text(file, "".join(to_json({"context": ["Hi."], "response": text}) + "\n" for text in ("Hello.", " \u200b", "")))
    assert AssistantSources.read([], [file]).answers == (KnownAnswer(("Hi.",), "Hello.", {}),)
    assert caplog.messages == ["training data: 2 blank responses are left out"]


def test_what_is_known_of_an_answer_or_a_request_is_1_or_0(tmp_path: Path) -> None:
    requests = tmp_path / "requests.jsonl"
    write_text(requests, "".join(to_json({"context": ["Hi."], "asked_refusal": value}) + "\n" for value in (0, 1.0, 0.5)))
    with refused(
        f"{requests}:3: asked_refusal: input should be a multiple of 1. `dialeval train assistant --help` names the fields."
    ):
        AssistantSources.read([], [], [requests])


def test_a_spoiled_answer_lacks_the_defects_that_its_spoiling_does_not_cause() -> None:
    """The heads learnt to see bad answers in general: a refusal in English was in another language, with .97."""
    context = ("Hi!", "Hello, what can I do for you today?", "How long does an egg have to boil?")
    good = KnownAnswer(context, "It takes eight minutes. Put it into cold water then. It is easy to peel.", {})
    clean, *texts = _spoiled_texts(good, ["Paris is the capital of France."], np.random.default_rng(0), None)
    assert np.nansum(clean.labels) == 0
    assert len(texts) > 10
    for text in texts:
        labels = dict(zip(HEADS, text.labels.tolist(), strict=True))
        (name,) = (name for name, value in labels.items() if value == 1)
        assert {other for other in LEFT_OPEN if np.isnan(labels[other])} == set(LEFT_OPEN[name])


@pytest.mark.parametrize(("n_equal", "score", "expected"), [(10, 1.0, {"pairs": 1.0, "right": 0.0}), (0, 0.4, {"pairs": 0.0})])
def test_preferences_are_calibrated_on_groups_that_have_a_better_answer(
    n_equal: int, score: float, expected: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training ended in a ValueError, each time again, if the first groups had none."""
    monkeypatch.setattr(training, "_validation_experts", lambda _, texts: np.zeros((len(texts), len(HEADS), 2)))
    rated = [RatedAnswer((f"{n}?",), f"It is {k}.", 0.1 * k, str(n)) for n in range(n_equal) for k in range(2)]
    rated += [RatedAnswer(("Last?",), f"It is {k}.", score * k, "last") for k in range(2)]
    model: Any = SimpleNamespace(head=AssistantHead(8))
    recipe = AssistantRecipe(max_validation_answers=5)
    found = _calibrate_preferences(model, AssistantSources(tuple(rated), ()), recipe, np.random.default_rng(0))
    assert found == expected


@pytest.mark.parametrize(
    ("n_good", "score", "expected"),
    [
        (9, 2.0, f"training data: good answers are 7, {FEW_ANSWERS}"),
        (20, 0.4, f"training data: no two answers of a group have scores that differ by more than 0.5. {FEW_PREFERENCES}"),
        (0, 2.0, f"training data: good answers are 0, {FEW_ANSWERS}"),
    ],
)
def test_too_little_to_learn_from_is_said(n_good: int, score: float, expected: str, tmp_path: Path) -> None:
    rated = [RatedAnswer((f"{n}?",), f"It is {k}.", score * k, str(n)) for n in range(30) for k in range(2)]
    good = [KnownAnswer((f"What is {n}?",), f"It is {n}.", {}) for n in range(n_good)]
    with refused(expected):
        train(AssistantSources(tuple(rated), tuple(good)), tmp_path / "model")
    assert not (tmp_path / "model").exists()
