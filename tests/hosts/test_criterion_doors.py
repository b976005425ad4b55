"""`g_eval` and `llm_chiang` give the same numbers through every door; the docs print the prompts that are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin import load_metric
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.hosts.judges import load_scorer_with_judge
from dialeval_plugin.hosts.lm_eval.backend import load_language_model
from dialeval_plugin.hosts.lm_eval.model import DialogueMetricLM
from dialeval_plugin.methods.judging.criterion_judges import CriterionJudge, GEval, LlmChiang
from dialeval_plugin.methods.judging.criterion_prompts import CHIANG_PROMPTS, G_EVAL_PROMPTS
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.testing.scripted_rules import overlap_answer, overlap_log_probability

CONTEXTS = [["Hello.", "Would you like black tea?"]] * 3
RESPONSES = ["Black tea, please.", "", "My shoes are old."]
LLM = {"llm": "scripted-judge", "answers": False}


@pytest.mark.parametrize("mode", ["sampled", "weighted"])
@pytest.mark.parametrize("kind", [GEval, LlmChiang])
def test_the_metric_gives_the_scorers_numbers(kind: type[CriterionJudge], mode: Any) -> None:
    direct = kind(ScriptedLanguageModel(overlap_answer, overlap_log_probability), mode=mode, n_samples=2).score(
        [Example.from_texts(context, response) for context, response in zip(CONTEXTS, RESPONSES, strict=True)]
    )
    found = load_metric(kind.name, **LLM).compute(predictions=RESPONSES, contexts=CONTEXTS, mode=mode, n_samples=2)
    assert found["scores"] == list(direct.values)
    assert found[kind.name] == direct.mean()
    assert found["coherence"] == list(direct.columns["coherence"])
    assert (found["n_scored"], found["unscored"]) == (2, {"empty_input": 1})
    assert found["scores"][0] > found["scores"][2]


def test_a_metric_without_a_model_says_how_to_name_one() -> None:
    with pytest.raises(MissingPrerequisite) as caught:
        load_metric("g_eval").compute(predictions=["a"], contexts=[["b"]])
    assert str(caught.value) == (
        "g_eval: asks a large language model, and no llm is given. "
        "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model)."
    )


def test_a_judge_runs_on_the_tasks_of_other_judges(use_tiny_data: Path) -> None:
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    options = {**LLM, "mode": "weighted", "criteria": "coherence"}
    result = simple_evaluate(
        model=DialogueMetricLM("g_eval", **options),
        tasks=["dstc10_dialog_tu"],
        task_manager=TaskManager(include_path=str(tasks_path()), include_defaults=False),
        bootstrap_iters=0,
    )
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
