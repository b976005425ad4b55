"""Judges by criterion and by rating: through the host's tasks, on a tiny real model, and the prompts that the docs print."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.judges import load_scorer_with_judge
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.methods.judging.criterion_judges import CHIANG_PROMPTS, G_EVAL_PROMPTS, LlmChiang
from dialeval_plugin.methods.judging.dialogue_rating import DialogueRatingScorer
from tests.hosts.through_lm_eval import evaluate

CONTEXTS = [["Hello.", "Would you like black tea?"]] * 3
RESPONSES = ["Black tea, please.", "", "My shoes are old."]
LLM = {"llm": "scripted-judge", "answers": False}


def test_a_judge_runs_on_the_tasks_of_other_judges(use_tiny_data: Path) -> None:
    options = {**LLM, "mode": "weighted", "criteria": "coherence"}
    result = evaluate(DialogueMetricLM("g_eval", **options), "dstc10_dialog_tu")
    values = load_scorer_with_judge("g_eval", options).score(dstc10.read("tu")).values
    g = [sample["spearman"].score for sample in result["samples"]["dstc10_dialog_tu"]]
    assert g == [value for value in values if value is not None]
    assert len(set(values)) > 1


@pytest.mark.parametrize("mode", ["sampled", "weighted"])
def test_a_tiny_model_is_drawn_from_and_weighed(tiny_lm: Path, mode: Any) -> None:
    model = load_language_model("hf", f"pretrained={tiny_lm}", device="cpu", batch_size=4)
    scores = LlmChiang(model, mode=mode, n_samples=3, criteria="coherence").score(
        [Example.from_texts(CONTEXTS[0], RESPONSES[0], id="0"), Example.from_texts(CONTEXTS[0], RESPONSES[2], id="1")]
    )
    assert scores.n_scored + scores.n_unscored == 2
    if mode == "weighted":
        assert scores.n_scored == 2
        assert all(value is not None and 1 < value < 5 for value in scores.values)


def test_a_language_model_that_is_named_is_loaded_and_asked(tiny_lm: Path) -> None:
    rows: dict[str, Any] = {
        "predictions": [*RESPONSES, "🙂"],
        "contexts": [*CONTEXTS, ["Any plans?"]],
        "quality": "understandable",
    }
    arguments = f"pretrained={tiny_lm},dtype=float32,device=cpu"
    result = load_metric("dialogue_rating", llm="hf", llm_args=arguments).compute(**rows)
    direct = DialogueRatingScorer(load_language_model("hf", arguments), "understandable").score(
        [
            Example.from_texts(context, response)
            for context, response in zip([*CONTEXTS, ["Any plans?"]], [*RESPONSES, "🙂"], strict=True)
        ]
    )
    assert result["n_scored"] == 3
    for value, expected in zip(result["scores"], direct.values, strict=True):
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-6))
    assert all(value is None or (0 < value < 1 and math.isfinite(value)) for value in result["scores"])


def test_the_docs_print_the_prompts() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "judges.md").read_text(encoding="utf-8")
    example = Example.from_texts(
        ["Do you have plans for Sunday?", "Not yet. Why?"], "There is a market by the river. Come with me!"
    )
    for prompts in (G_EVAL_PROMPTS, CHIANG_PROMPTS):
        assert prompts["engagingness"].render(example) in docs
        whole = prompts["engagingness"].render(example).casefold().splitlines()
        for criterion, prompt in prompts.items():
            lines = prompt.render(example).splitlines()
            own = [line for line in lines if line.casefold().replace(criterion, "engagingness") not in whole]
            assert all(line in docs.splitlines() for line in own)
            assert own or criterion == "engagingness"
