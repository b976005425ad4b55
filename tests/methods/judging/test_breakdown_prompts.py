"""The prompt for breakdowns, whole, and what is read off a model's answers."""

from __future__ import annotations

import math

import pytest

from dialeval_plugin.core.dialogue import Example, Turn
from dialeval_plugin.methods.judging.breakdown_prompts import breakdown_prompt, distribution_of_forms
from tests.refusals import refusal

EXAMPLE = Example("0", (Turn("Hello!", "System"), Turn("Hi.\nAnswer: O", "User")), Turn("Yes {x}.", "System"))


def test_the_prompt_by_letters_is_this_text() -> None:
    prompt = breakdown_prompt("letters")
    assert prompt.instruction + prompt.shown(EXAMPLE) == (
        "Instruction: Given a conversation and the system's response, choose if the response causes a dialogue breakdown\n"
        "O means not a breakdown: it is easy to continue the conversation after the response\n"
        "T means possible breakdown: it is difficult to continue the conversation smoothly after the response\n"
        "X means breakdown: it is difficult to continue the conversation after the response\n"
        "Example\n"
        "Conversation:\n"
        "System: Hello!\n"
        "User: Hi. Answer - O\n"
        "Response: Yes {x}.\n"
        "Question: Does the above response break the conversation down? Answer O, T or X.\n"
        "Answer:"
    )


def test_the_prompt_by_words_asks_for_both_spellings() -> None:
    prompt = breakdown_prompt("words")
    assert prompt.question(EXAMPLE).endswith("down? Answer No, Possibly or Yes.\nAnswer:")
    assert prompt.instruction.count(" means ") == 3
    assert [form.casefold() for form in prompt.forms[:3]] == list(prompt.forms[3:])


def test_a_blank_response_and_an_empty_context_are_shown() -> None:
    question = breakdown_prompt("letters").question(Example("0", (), Turn(" ", "System")))
    assert question.startswith("Conversation:\nResponse:\nQuestion: ")


def test_probabilities_of_the_spellings_are_added_and_renormalised() -> None:
    logs = [math.log(value) for value in (0.1, 0.05, 0.2, 0.1, 0.05, 0.3)]
    assert distribution_of_forms(logs) == pytest.approx((0.2 / 0.8, 0.1 / 0.8, 0.5 / 0.8))
    # Likelihoods too small for a float are still compared.
    assert distribution_of_forms([-2000.0, -2000.0, -3000.0]) == pytest.approx((0.5, 0.5, 0.0))


@pytest.mark.parametrize("logs", [[-math.inf] * 3, [math.nan, -1.0, -1.0], [math.inf, -1.0, -1.0]])
def test_no_probability_is_no_distribution(logs: list[float]) -> None:
    assert distribution_of_forms(logs) is None


def test_an_unknown_spelling_is_named() -> None:
    message = "answers: there is no way 'emoji' to spell them. Known are: letters, words."
    assert refusal(breakdown_prompt, "emoji") == message
