"""The scorer `llm_judge` with a scripted model, the prompts of SLIDE and DRE, and DRE's interior prompt with its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.judge import (
    SCORING_PROMPTS,
    InteriorAnswer,
    InteriorPrompt,
    MeasuredAccuracy,
    PromptedJudge,
    read_interior,
)
from dialeval_plugin.testing.scripted_judge import ScriptedLanguageModel
from dialeval_plugin.version import __version__
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
    signature = PromptedJudge(scripted({"alpha": "1"})).score(examples("alpha")).signature
    prompt = SCORING_PROMPTS["slide"].id
    assert str(signature) == f"method:llm_judge|prompt:{prompt}|llm:scripted@1|scale:0-1|level:turn|version:{__version__}"


def test_a_prompt_that_there_is_not_is_refused() -> None:
    assert refusal(PromptedJudge, scripted({}), prompt="geval") == "llm_judge: prompt is 'geval'. Give one of slide, dre."


def test_slides_prompt_is_the_printed_one() -> None:
    prompt = SCORING_PROMPTS["slide"].render(Example.from_texts(["Hi.", "Hello."], "Nice day."))
    assert prompt.startswith("Engagingness\n\nPlease rate the dialogue response.\n\nThe goal of this task is")
    assert prompt.endswith(
        "Engagingness: 1\n\nInput:\n\nConversation History:\n\nHi.\n\nHello.\n\nResponse:\n\nNice day.\n\n"
        "Evaluation Form (scores ONLY):\n\nEngagingness:"
    )


def test_dres_prompt_is_the_printed_one() -> None:
    lines = SCORING_PROMPTS["dre"].render(Example.from_texts(["Hi.", "Hello.", "Rain?"], "Nice day.")).splitlines()
    assert lines[1:8] == ["Context:", "FS: Hi.", "SS: Hello.", "FS: Rain?", "", "Response:", "Nice day."]
    assert lines[-1] == "1. LLM Overall Score:"


def test_the_hash_of_a_prompt_is_pinned() -> None:
    # A change of wording changes scores: raise the version, and these hashes with it.
    assert [prompt.id for prompt in SCORING_PROMPTS.values()] == ["slide-v1-939b0730c20dbf6a", "dre-v1-190948d246bb7e85"]


# DRE's interior prompt


CONTEXT = ["Do you have plans for Sunday?", "Not yet. Why?"]
EXAMPLE = Example.from_texts(CONTEXT, "There is a market by the river. Come with me!")
ACCURACY = MeasuredAccuracy(1.1, 80.0, 95.0, 87.5)
PROMPT = InteriorPrompt(ACCURACY).render(EXAMPLE, 0.66, 0.74)


def test_the_docs_print_the_prompt_as_it_is() -> None:
    prompts = Path(__file__).parents[3] / "docs" / "data" / "prompts"
    assert (prompts / "dre_interior.txt").read_text(encoding="utf-8") == f"{PROMPT}\n"


def test_it_begins_and_ends_as_the_plain_prompt_does() -> None:
    plain = SCORING_PROMPTS["dre"].render(EXAMPLE)
    opening, _, rest = plain.partition("\n\nPlease finish the following task")
    assert PROMPT.startswith(opening)
    assert rest.partition("\n")[2].removesuffix("\n\n1. LLM Overall Score:") in PROMPT
    assert PROMPT.endswith("\n\n1. LLM Overall Score:")


def test_numbers_have_two_decimals_and_add_up() -> None:
    def shown(probability: float, similarity: float) -> list[str]:
        text = InteriorPrompt().render(EXAMPLE, probability, similarity)
        return [line.rpartition(": ")[2] for line in text.split("context:\n")[1].splitlines()[:3]]

    assert shown(0.576, 0.3249) == ["0.58", "0.32", "0.90"]
    assert shown(1e-9, -1e-9) == ["0.00", "0.00", "0.00"]
    assert shown(0.5000001, 0.25) == shown(0.5, 0.2500001)


def test_an_unmeasured_small_model_is_called_so() -> None:
    assert "\nThe classification accuracy of the SLM is not known.\n" in InteriorPrompt().render(EXAMPLE, 0.5, 0.5)


def test_the_id_pins_the_wording_and_the_accuracies() -> None:
    assert InteriorPrompt().id == "dre_interior-v2-63ea8f5d602f0530"
    assert InteriorPrompt(ACCURACY).id != InteriorPrompt(ACCURACY._replace(threshold=1.2)).id


@pytest.mark.parametrize(
    ("answer", "llm", "influence"),
    [
        (" 4.5\n2. Influence degree: 0.3", 4.5, 0.3),
        ("1. LLM Overall Score: 4.5\n2. Influence degree: 0.3", 4.5, 0.3),
        ("**1. LLM Overall Score:** 4.5\n\n**2. Influence degree:** 0.3", 4.5, 0.3),
        ("LLM Overall Score: 4.5/5\nInfluence degree: 0.3", 4.5, 0.3),
        ("2. Influence degree: 0.3\n1. LLM Overall Score: 4.5", 4.5, 0.3),
        ('```json\n{"LLM Overall Score": 4.5, "Influence degree": 0.3}\n```', 4.5, 0.3),
        ("4.5\n0.3", 4.5, 0.3),
        ("1. 4.5\n2. 0.3", 4.5, 0.3),
        ("LLM overall score: 0.5\ninfluence degree: 0.8", 0.5, 0.8),
        ("LLM Overall Score: 0\nInfluence degree: 0", 0.0, 0.0),
        (" 4.5\n2. Influence degree: 0.3 because the influence degree of the SLM was small", 4.5, 0.3),
        (PROMPT + " 4.5\n2. Influence degree: 0.3", 4.5, 0.3),
        ("<think>0.9?</think>4.5\n2. Influence degree: 0.3", 4.5, 0.3),
        ("LLM Overall Score: 4.5\nInfluence degree: 0.3\nInfluence degree: 0.9", 4.5, 0.9),
    ],
)
def test_both_numbers_are_read(answer: str, llm: float, influence: float) -> None:
    assert read_interior(answer, PROMPT, EXAMPLE) == InteriorAnswer(llm, influence)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", Reason.PARSE_FAILURE),
        (" 4.5", Reason.PARSE_FAILURE),
        ("LLM Overall Score: 0.8", Reason.PARSE_FAILURE),  # one number, on both scales: it is not the influence degree
        ("Influence degree: 0.8", Reason.PARSE_FAILURE),
        ("LLM Overall Score: 4.5\nInfluence degree: high", Reason.PARSE_FAILURE),
        # What the small model found stands in the prompt.
        ("The SLM says 0.9, so 4.0.\n2. Influence degree: 0.5", Reason.PARSE_FAILURE),
        ("SLM score is 0.9. 4.0\n2. Influence degree: 0.5", Reason.PARSE_FAILURE),
        ("Sum of both: 1.25\n2. Influence degree: 0.5", Reason.PARSE_FAILURE),
        ("Naturalness: 5\n2. Influence degree: 0.3", Reason.PARSE_FAILURE),
        ("LLM Overall Score: 4.5\nInfluence degree:", Reason.TRUNCATED),
        ("LLM Overall Score: 7\nInfluence degree: 0.3", Reason.OUT_OF_RANGE),
        ("LLM Overall Score: 4.5\nInfluence degree: 3", Reason.OUT_OF_RANGE),
        ("I'm sorry, but I cannot rate this.", Reason.REFUSAL),
        (PROMPT, Reason.PARSE_FAILURE),
    ],
)
def test_an_answer_without_both_numbers_has_a_reason(answer: str, reason: Reason) -> None:
    read = read_interior(answer, PROMPT, EXAMPLE)
    assert isinstance(read, Unscored)
    assert read.reason is reason


def test_an_answer_without_an_influence_degree_says_so_or_was_cut() -> None:
    cut = read_interior("4.5\n2. Influence degree: 0", PROMPT, EXAMPLE, is_cut=True)
    assert cut == Unscored(Reason.TRUNCATED, "the answer was cut off before the number: '2. influence degree: 0'")
    assert read_interior("4.5\n", PROMPT, EXAMPLE, is_cut=True) == Unscored(
        Reason.TRUNCATED, "the answer has no influence degree: '4.5\\n'"
    )
    assert read_interior("LLM Overall Score: 0.8", PROMPT, EXAMPLE) == Unscored(
        Reason.PARSE_FAILURE, "the answer has no influence degree: 'LLM Overall Score: 0.8'"
    )
