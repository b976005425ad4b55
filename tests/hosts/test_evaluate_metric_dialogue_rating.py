"""The metric `dialogue_rating` with its real scorer, on a scripted and on a tiny real language model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel

CONTEXTS = [["Hi there.", "Hello! How was the trip?"], ["Do you like jazz?"], [], ["Any plans?"]]
RESPONSES = ["Long, but worth it.", " ", "Two streets from here.", "🙂"]


def scripted() -> ScriptedLanguageModel:
    """Likes a rating the better, the nearer it is to a number that the prompt's length gives."""
    return ScriptedLanguageModel(lambda prompt: "", lambda prompt, form: -0.1 - (int(form) - len(prompt) % 3) ** 2)


def test_the_same_ratings_as_the_scorer_itself() -> None:
    result = load_metric("dialogue_rating").compute(
        predictions=RESPONSES, contexts=CONTEXTS, llm=scripted(), quality="overall,fluent"
    )
    direct = DialogueRatingScorer(scripted(), "overall,fluent").score(
        [Example.from_texts(context, response) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    )
    assert result.pop("dialogue_rating") == direct.mean()
    assert result.pop("scores") == list(direct.values)
    assert {name: result.pop(name) for name in ("overall", "fluent")} == {
        name: list(column) for name, column in direct.columns.items()
    }
    assert result == {
        "n_total": 4,
        "n_scored": 3,
        "n_unscored": 1,
        "unscored": {"empty_input": 1},
        "signature": str(direct.signature),
    }


def test_at_dialogue_level_a_row_is_a_whole_dialogue() -> None:
    asked = scripted()
    result = load_metric("dialogue_rating").compute(
        predictions=RESPONSES, contexts=CONTEXTS, llm=asked, quality="overall", level="dialogue"
    )
    dialogues = [
        Dialogue("0", tuple(map(Turn, [*context, response]))) for context, response in zip(CONTEXTS, RESPONSES, strict=True)
    ]
    direct = DialogueRatingScorer(scripted(), "overall", level="dialogue").score(dialogues)
    assert result["scores"] == list(direct.values)
    assert "level:dialogue|" in result["signature"]
    assert asked.asked[0].endswith("\nA: Hi there.\nB: Hello! How was the trip?\nA: Long, but worth it.\nRating: 0")


def test_a_language_model_that_is_named_is_loaded_and_asked(tiny_lm: Path) -> None:
    rows: dict[str, Any] = {"predictions": RESPONSES, "contexts": CONTEXTS, "quality": "understandable"}
    arguments = f"pretrained={tiny_lm},dtype=float32,device=cpu"
    result = load_metric("dialogue_rating", llm="hf", llm_args=arguments).compute(**rows)
    direct = DialogueRatingScorer(load_language_model("hf", arguments), "understandable").score(
        [Example.from_texts(context, response) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    )
    assert result["n_scored"] == 3
    for value, expected in zip(result["scores"], direct.values, strict=True):
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-6))
    assert all(value is None or (0 < value < 1 and math.isfinite(value)) for value in result["scores"])


def test_what_is_missing_or_wrong_is_said() -> None:
    metric = load_metric("dialogue_rating")
    with pytest.raises(MissingPrerequisite) as missing:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS)
    assert str(missing.value).startswith("dialogue_rating: asks a large language model, and no llm is given. ")
    with pytest.raises(InputError) as wrong:
        metric.compute(predictions=RESPONSES, contexts=CONTEXTS, llm=scripted(), qualities="fluent")
    assert str(wrong.value).startswith("dialogue_rating: there is no input or option 'qualities'. ")


def test_the_card_names_every_option_quality_and_entry() -> None:
    card = (metrics_path() / "dialogue_rating" / "README.md").read_text(encoding="utf-8")
    metric = load_metric("dialogue_rating")
    result = metric.compute(predictions=RESPONSES, contexts=CONTEXTS, llm=scripted())
    options = metric.inputs_description.split("of the scorer: ")[1].split(".")[0].split(", ")
    assert set(options) >= {"llm", "llm_args", "answers", "quality", "level", "k", "literal_log", "examples"}
    assert [name for name in [*result, *options] if f"`{name}`" not in card] == []
