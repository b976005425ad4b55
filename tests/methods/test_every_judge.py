"""Whatever a language model answers, each item of each judge is scored, or unscored with a reason (R50, R54)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.registry import load_scorer, scorer_factory, scorer_names
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.judge import SCORING_PROMPTS, PromptedJudge
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel, overlap_answer, overlap_log_probability
from tests.refusals import refusal

MAKERS: dict[str, Callable[[ScriptedLanguageModel, Path], Scorer]] = {
    **{
        f"llm_judge {name}": lambda llm, slm, name=name: load_scorer("llm_judge", llm=llm, prompt=name)
        for name in SCORING_PROMPTS
    },
    "slide": lambda llm, slm: load_scorer("slide", slm=str(slm), llm=PromptedJudge(llm)),
    "cascade": lambda llm, slm: load_scorer(
        "cascade", small=load_scorer("slide", slm=str(slm), variant="slm_probability"), llm=PromptedJudge(llm), cascade=1.0
    ),
    **{
        f"dre {variant}": lambda llm, slm, variant=variant: load_scorer("dre", slm=str(slm), llm=llm, variant=variant)
        for variant in ("dre", "in_dre", "ex_dre", "non_dre")
    },
    "dialogue_rating": lambda llm, slm: load_scorer("dialogue_rating", llm=llm),
    "rubric words": lambda llm, slm: load_scorer("rubric", llm=llm, rubric="Does it fit?"),
    "rubric numbers": lambda llm, slm: load_scorer("rubric", llm=llm, rubric="How well does it fit?", scale="1-5"),
    **{
        f"{name} {mode}": lambda llm, slm, name=name, mode=mode: load_scorer(name, llm=llm, mode=mode, n_samples=2)
        for name in ("g_eval", "llm_chiang")
        for mode in ("sampled", "weighted")
    },
}
BAD_WORD = "zeppelin"
CONTEXT = ["Hello.", "Would you like black tea?"]
ANSWERS: dict[str, Callable[[str], str | Unscored]] = {
    "refusal": lambda prompt: "I'm sorry, but I cannot rate this.",
    "no number": lambda prompt: "%& ##",
    "two numbers": lambda prompt: "It is 0 or 1",
    "beyond the scale": lambda prompt: "1000",
    "the label alone": lambda prompt: prompt.splitlines()[-1],
    "an echo": lambda prompt: prompt,
    "nothing": lambda prompt: "",
    "reasoning without an end": lambda prompt: "<think>the first turn",
    **{f"the reason {reason.value}": lambda prompt, reason=reason: Unscored(reason, "scripted") for reason in Reason},
}
LOGS: dict[str, float | Unscored] = {
    "not a number": math.nan,
    "impossible": -math.inf,
    **{f"the reason {reason.value}": Unscored(reason, "scripted") for reason in Reason},
}


class Failing(ScriptedLanguageModel):
    """Fails where the bad word is in the prompt, and answers by rule elsewhere."""

    def __init__(self) -> None:
        super().__init__(overlap_answer, overlap_log_probability)

    def fail_with(self, answer: Callable[[str], str | Unscored], log: float | Unscored) -> None:
        self.answer = lambda prompt: answer(prompt) if BAD_WORD in prompt else overlap_answer(prompt)
        self.log_probability = lambda context, form: log if BAD_WORD in context else overlap_log_probability(context, form)


def examples() -> list[Example]:
    responses = ["Black tea, please.", f"A {BAD_WORD} is tea.", "\u200b ", "No tea, thanks.", f"The {BAD_WORD} is black."]
    return [Example.from_texts(CONTEXT, response, id=str(index)) for index, response in enumerate(responses)]


def check(scorer: Scorer, reason: Reason | None) -> None:
    scores = scorer.score(examples())
    assert scores.n_scored + scores.n_unscored == scores.n_total == 5
    assert [value is None for value in scores.values] == [index in scores.unscored for index in range(5)]
    assert sum(scores.unscored_by_reason.values()) == scores.n_unscored
    assert all(isinstance(item.reason, Reason) and item.detail for item in scores.unscored.values())
    assert {0, 3}.isdisjoint(scores.unscored), scores.unscored
    assert scores.unscored[2].reason is Reason.EMPTY_INPUT
    assert {1, 4} <= set(scores.unscored)
    assert reason is None or {scores.unscored[index].reason for index in (1, 4)} == {reason}


@pytest.mark.parametrize("name", MAKERS)
def test_every_failing_answer_is_accounted_for(name: str, tiny_slm: Path) -> None:
    model = Failing()
    scorer = MAKERS[name](model, tiny_slm)
    for kind, answer in ANSWERS.items():
        model.fail_with(answer, LOGS.get(kind, math.nan))
        check(scorer, Reason(kind.removeprefix("the reason ")) if kind.startswith("the reason") else None)


@pytest.mark.parametrize("name", ["dialogue_rating", "g_eval weighted", "llm_chiang weighted"])
def test_every_failing_log_probability_is_accounted_for(name: str, tiny_slm: Path) -> None:
    model = Failing()
    scorer = MAKERS[name](model, tiny_slm)
    for log in LOGS.values():
        model.fail_with(lambda prompt: "never asked", log)
        check(scorer, log.reason if isinstance(log, Unscored) else Reason.NON_FINITE)


@pytest.mark.parametrize("name", MAKERS)
def test_a_window_is_one_call_and_nobody_is_asked_about_a_blank_response(name: str, tiny_slm: Path) -> None:
    first, second = Failing(), Failing()
    MAKERS[name](first, tiny_slm).score(examples())
    MAKERS[name](second, tiny_slm).score([example for example in examples() if example.id != "2"])
    assert len(first.batches) == 1
    assert first.asked == second.asked


@pytest.mark.parametrize("name", MAKERS)
def test_a_judge_of_responses_refuses_a_dialogue(name: str, tiny_slm: Path) -> None:
    scorer = MAKERS[name](Failing(), tiny_slm)
    option = ", or set its option, as by --option level=dialogue" if scorer.levels else ""
    assert refusal(scorer.score, [Dialogue("0", (Turn("hi"),))]) == (
        f"{scorer.name}: item 0 is a whole dialogue, but this scorer works at turn level. Pass Example objects{option}."
    )


@pytest.mark.parametrize("name", sorted({name.partition(" ")[0] for name in MAKERS} - {"slide", "cascade"}))
def test_a_judge_without_a_model_says_how_to_name_one(name: str) -> None:
    kind = "any lm-eval model that has log probabilities" if name == "dialogue_rating" else "any lm-eval model"
    assert refusal(load_scorer, name, error=MissingPrerequisite) == (
        f"{name}: asks a large language model, and no llm is given. Pass llm='hf', llm_args='pretrained=MODEL' ({kind})."
    )
    assert refusal(load_scorer, name, llm=3) == (
        f"{name}: llm: expected a language model, got 3 (int). "
        "Make one with dialeval_plugin.hosts.lm_eval.backend.load_language_model."
    )


def asks_a_language_model(name: str) -> bool:
    factory: Any = scorer_factory(name)
    parameters = inspect.signature(factory).parameters
    return "llm" in parameters or any("LanguageModel" in str(parameter.annotation) for parameter in parameters.values())


def test_every_judge_of_the_package_is_here() -> None:
    ours = [name for name in scorer_names() if scorer_factory(name).__module__.startswith("dialeval_plugin.")]
    assert {name for name in ours if asks_a_language_model(name)} == {name.partition(" ")[0] for name in MAKERS}
