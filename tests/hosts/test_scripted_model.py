"""`scripted-judge`: every prompt, reading and failure runs through the host with no weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.hosts.lm_eval.backend import LmEvalLanguageModel, load_language_model
from dialeval_plugin.methods.judging.goodness import goodness_of_forms
from dialeval_plugin.methods.judging.judge import PromptedJudge
from dialeval_plugin.methods.judging.prompts import goodness_prompt
from dialeval_plugin.testing.scripted_judge import PromptContent, overlap_answer, overlap_log_probability
from dialeval_plugin.testing.scripted_lm import FAILURES, ScriptedJudgeLM
from tests.hosts.through_lm_eval import evaluate
from tests.refusals import refused
from tests.requests_for import requests_for

CONTEXT = ["Hello.", "Would you like some black tea?"]
FITS = Example.from_texts(CONTEXT, "I like black tea.", id="fits")
HALF = Example.from_texts(CONTEXT, "Black trousers, please like!", id="half")
MISLEADS = Example.from_texts(CONTEXT, "My trousers cost 5 pounds.", id="misleads")


def test_a_response_is_read_out_of_the_block_that_is_asked() -> None:
    asked = PromptContent.read(goodness_prompt(MISLEADS, [(FITS, True), (HALF, False)]))
    assert asked.context == "\nPerson B: Hello.\nPerson A: Would you like some black tea?\n"
    assert asked.response == "My trousers cost 5 pounds."
    assert MISLEADS.response.text not in asked.instructions
    # The last turn of a dialogue is judged by those before it.
    asked = PromptContent.read(goodness_prompt(Dialogue("0", (Turn("Black tea?"), Turn("Yes, black.")))))
    assert (asked.context, asked.response) == ("\nPerson B: Black tea?", "Person A: Yes, black.")
    assert asked.instructions.endswith("\nQuestion: Is the overall quality of the above conversation good?\nAnswer:")


ANSWERS = {
    "Rate on a scale of 0-1.": "0.50",
    "Rate on a scale from 0.0 to 5.0.": "3",
    "Rate on a scale of 1 to 5.": "3",
    "Naturalness (1-3)": "2",
    "1. Score: on a scale from 0 to 5\n2. Influence: on a scale from 0.0 to 1.0": "Score: 3\nInfluence: 0.50",
    "Say whether it is positive or negative.": "Positive",
    "Is it good?": "Yes",
    "Write five responses.": "I do not know.",
}


@pytest.mark.parametrize(("instructions", "answer"), ANSWERS.items())
def test_an_answer_is_spelled_as_the_prompt_asks(instructions: str, answer: str) -> None:
    assert overlap_answer(f"{instructions}\nContext:\nblack coffee\nResponse:\nblack trousers\nScore:") == answer


def test_the_spellings_of_an_answer_have_at_most_its_probability() -> None:
    prompt = goodness_prompt(HALF)
    logs = {form: overlap_log_probability(prompt, form) for form in ("Yes", " yes", "No", " no")}
    assert goodness_of_forms(logs) == pytest.approx(0.5)
    assert math.fsum(map(math.exp, logs.values())) <= 1
    ratings = [overlap_log_probability("Rate from (1-5)\nContext:\nblack\nResponse:\nblack", f" {value}") for value in range(7)]
    assert ratings[1] < ratings[2] < ratings[3] < ratings[4] < ratings[5]
    assert ratings[0] == ratings[6] == -3.0


def test_a_judge_asks_it_like_any_other_model() -> None:
    scores = PromptedJudge(load_language_model("scripted-judge"), prompt="slide").score([FITS, MISLEADS])
    assert scores.values == (1.0, 0.0)
    assert "llm:scripted-judge:@unknown" in str(scores.signature)


REASONS = {"refuse": Reason.REFUSAL, "truncate": Reason.TRUNCATED, "overshoot": Reason.OUT_OF_RANGE, "fail": Reason.API_ERROR}
REASONS |= dict.fromkeys(("garble", "blank"), Reason.PARSE_FAILURE)


def served(lm: ScriptedJudgeLM) -> LmEvalLanguageModel:
    return LmEvalLanguageModel(lm, "scripted", wait=0.0)


@pytest.mark.parametrize("failure", ["fail", *FAILURES])
def test_a_chosen_request_fails_and_the_others_do_not(failure: str) -> None:
    scores = PromptedJudge(served(ScriptedJudgeLM(**{failure: "trousers"}))).score([FITS, MISLEADS, HALF])  # type: ignore[arg-type]
    assert {index: item.reason for index, item in scores.unscored.items()} == {1: REASONS[failure], 2: REASONS[failure]}
    assert scores.values[0] == 1.0


def test_a_chosen_request_has_no_log_probability() -> None:
    found = served(ScriptedJudgeLM(garble="trousers", fail="tea")).loglikelihood(
        [("black trousers", " Yes"), ("black tea", " Yes"), ("else", " maybe")]
    )
    assert math.isnan(found[0])  # type: ignore[arg-type]
    assert found[1:] == [Unscored(Reason.API_ERROR, "ConnectionError: scripted failure"), -7.0]


def test_a_rule_that_has_a_reason_gives_no_answer() -> None:
    lm = ScriptedJudgeLM(lambda prompt: Unscored(Reason.REFUSAL), lambda context, continuation: Unscored(Reason.TRUNCATED))
    model = served(lm)
    none = Unscored(Reason.API_ERROR, "the model gave no answer")
    assert model.generate(requests_for(["?"], max_tokens=1)) == [none]
    assert model.loglikelihood([("?", " Yes")]) == [none]
    assert lm.double.asked == ["?", "? Yes"]


def test_what_it_does_not_have_is_refused() -> None:
    with refused(
        "scripted-judge: there is no option 'explode'. Accepted are fail, refuse, garble, truncate, overshoot, blank."
    ):
        ScriptedJudgeLM(explode="cats")
    with refused(
        "scripted-judge: has no likelihood of a text, which the task asks for. "
        "Run it on the tasks of this package, for example dstc10_dialog_mini."
    ):
        ScriptedJudgeLM().loglikelihood_rolling([])


def run_task(**options: Any) -> Any:
    return evaluate("scripted-judge", "dstc10_dialog_tu", log_samples=False, **options)


@pytest.mark.parametrize("as_chat", [False, True])
def test_a_task_runs_on_it(as_chat: bool, use_tiny_data: Path) -> None:
    found = run_task(apply_chat_template=as_chat)["results"]["dstc10_dialog_tu"]
    assert (found["n_scored,none"], found["sample_len"]) == (12, 12)
    assert found["spearman,none"] > 0.9


def test_what_it_garbles_is_unscored_in_the_task(use_tiny_data: Path) -> None:
    result = run_task(model_args="garble=trains")
    found = result["results"]["dstc10_dialog_tu"]
    assert (found["n_scored,none"], found["sample_len"]) == (10, 12)
    assert result["config"]["failures"] == {"fail": None, "garble": "trains"}
