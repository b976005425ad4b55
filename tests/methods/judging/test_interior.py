"""DRE's interior prompt: what it shows, what a response cannot do to it, and how its two answers are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.methods.judging.interior import Evidence, InteriorAnswer, InteriorPrompt, MeasuredAccuracy, read_interior
from dialeval_plugin.methods.judging.prompts import SCORING_PROMPTS

EXAMPLE = Example.from_texts(
    ["Do you have plans for Sunday?", "Not yet. Why?"], "There is a market by the river. Come with me!"
)
ACCURACY = MeasuredAccuracy(1.1, 80.0, 95.0, 87.5)
PROMPT = InteriorPrompt(ACCURACY).render(EXAMPLE, Evidence(0.66, 0.74))


def test_the_docs_print_the_prompt_as_it_is() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "judges.md").read_text(encoding="utf-8")
    assert f"```text\n{PROMPT}\n```" in docs


def test_it_begins_and_ends_as_the_plain_prompt_does() -> None:
    plain = SCORING_PROMPTS["dre"].render(EXAMPLE)
    opening, _, rest = plain.partition("\n\nPlease finish the following task")
    assert PROMPT.startswith(opening)
    assert rest.partition("\n")[2].removesuffix("\n\n1. LLM Overall Score:") in PROMPT
    assert PROMPT.endswith("\n\n1. LLM Overall Score:")


def test_numbers_have_two_decimals_and_add_up() -> None:
    def shown(probability: float, similarity: float) -> list[str]:
        text = InteriorPrompt().render(EXAMPLE, Evidence(probability, similarity))
        return [line.rpartition(": ")[2] for line in text.split("context:\n")[1].splitlines()[:3]]

    assert shown(0.576, 0.3249) == ["0.58", "0.32", "0.90"]
    assert shown(1e-9, -1e-9) == ["0.00", "0.00", "0.00"]
    assert shown(0.5000001, 0.25) == shown(0.5, 0.2500001)


def test_an_unmeasured_small_model_is_called_so() -> None:
    assert "\nThe classification accuracy of the SLM is not known.\n" in InteriorPrompt().render(EXAMPLE, Evidence(0.5, 0.5))


def test_the_id_pins_the_wording_and_the_accuracies() -> None:
    assert InteriorPrompt().id == "dre_interior-v1-a11de9fe1d44c54d"
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
        ("LLM Overall Score: 4.5\nInfluence degree: 0.3\nInfluence degree: 0.9", Reason.PARSE_FAILURE),
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
    assert read_interior("LLM Overall Score: 0.8", PROMPT, EXAMPLE) == Unscored(
        Reason.PARSE_FAILURE, "the answer has no influence degree: 'LLM Overall Score: 0.8'"
    )
