"""The scorer `llm_judge` with a scripted model."""

from __future__ import annotations

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from tests.refusals import refusal


def scripted(answers: dict[str, str | Unscored], *, echo: bool = False) -> ScriptedLanguageModel:
    """Answers by the response in the prompt."""

    def answer(prompt: str) -> str | Unscored:
        found = next(answer for key, answer in answers.items() if key in prompt)
        return f"{prompt} {found}" if echo and isinstance(found, str) else found

    return ScriptedLanguageModel(answer)


ANSWERS: dict[str, str | Unscored] = {
    "alpha": "0.8",
    "beta": "3 or 4",
    "gamma": "I'm sorry, I cannot rate this.",
    "delta": "7",
    "epsilon": Unscored(Reason.API_ERROR, "TimeoutError: slow"),
}


def examples(*responses: str) -> list[Example]:
    return [Example.from_texts(["hi"], response, id=str(index)) for index, response in enumerate(responses)]


# SLIDE's prompt stops an answer at its first line, so that an echo never gets to its end.
@pytest.mark.parametrize(("prompt", "echo", "value"), [("slide", False, 0.8), ("dre", False, 0.16), ("dre", True, 0.16)])
def test_what_cannot_be_read_is_unscored_with_its_reason(prompt: str, echo: bool, value: float) -> None:
    scores = PromptedJudge(scripted(ANSWERS, echo=echo), prompt).score(examples(*ANSWERS, " "))
    assert scores.columns["llm"] == scores.values == (pytest.approx(value), None, None, None, None, None)
    reasons = {index: item.reason.value for index, item in scores.unscored.items()}
    assert reasons == {1: "parse_failure", 2: "refusal", 3: "out_of_range", 4: "api_error", 5: "empty_input"}


def test_the_signature_names_prompt_model_and_scale() -> None:
    judge = PromptedJudge(scripted({"alpha": "1"}))
    assert str(judge.score(examples("alpha")).signature) == (
        f"method:llm_judge|prompt:slide-v1-{judge.prompt.hash}|llm:scripted@1|scale:0-1|level:turn|version:0.1.0"
    )


def test_a_prompt_that_there_is_not_is_refused() -> None:
    assert refusal(PromptedJudge, scripted({}), prompt="geval") == "llm_judge: prompt is 'geval'. Give one of slide, dre."
