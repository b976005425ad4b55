"""Reading a number out of an answer (R50, R51)."""

from __future__ import annotations

import pytest

from dialeval_plugin.dialogue import Example
from dialeval_plugin.methods.judging.parsing import parse_rating
from dialeval_plugin.methods.judging.prompts import SCORING_PROMPTS
from dialeval_plugin.scoring import Reason, Unscored

SLIDE = ((0.0, 1.0), "Engagingness")
DRE = ((0.0, 5.0), "LLM Overall Score")
FIVE = ((1.0, 5.0), None)

READ = [
    ("4", FIVE, 4),
    ("4.5", FIVE, 4.5),
    (" 4\n", FIVE, 4),
    ("4.", FIVE, 4),
    ("4,5", FIVE, 4.5),
    ("4/5", FIVE, 4),
    ("**4**/5", FIVE, 4),
    ("4 out of 5", FIVE, 4),
    ("I'd say 4 of 5.", FIVE, 4),
    ("four", FIVE, 4),
    ("Four.", FIVE, 4),
    ("one", FIVE, 1),
    ("I would give this one a four", FIVE, 4),
    ("Score: 4", FIVE, 4),
    ("Rating = 4", FIVE, 4),
    ("The score is 4 because it mentions 3 things", FIVE, 4),
    ("4 stars", FIVE, 4),
    ("4\n4", FIVE, 4),
    ('```json\n{"score": 4}\n```', FIVE, 4),
    ('{"reason": "good, 3 points", "rating": 4}', FIVE, 4),
    ('{"overall": 4.5}', FIVE, 4.5),
    ("On a scale of 1 to 5, I rate it 4.", FIVE, 4),
    ("1. The response fits.\nScore: 4", FIVE, 4),
    ("4. It fits the context.", FIVE, 4),
    ("Engagingness: 0.8", SLIDE, 0.8),
    (" 0.8", SLIDE, 0.8),
    (".8", SLIDE, 0.8),
    ("80%", SLIDE, 0.8),
    ("1", SLIDE, 1),
    ("0", SLIDE, 0),
    ("Engagingness: 1", SLIDE, 1),
    ("1. LLM Overall Score: 4.0", DRE, 4),
    ("(1)Naturalness: 3\n(2)Coherence: 5\nLLM Overall Score: 4.2", DRE, 4.2),
    ("LLM Overall Score: 4.2/5", DRE, 4.2),
    ("LLM Overall Score (0.0-5.0): 4.2", DRE, 4.2),
]
UNREAD = [
    ("", FIVE, Reason.PARSE_FAILURE),
    ("  \n ", FIVE, Reason.PARSE_FAILURE),
    ("good", FIVE, Reason.PARSE_FAILURE),
    ("nan", FIVE, Reason.PARSE_FAILURE),
    ("3 or 4", FIVE, Reason.PARSE_FAILURE),
    ("3-4", FIVE, Reason.PARSE_FAILURE),
    ("Naturalness: 3, Coherence: 5", FIVE, Reason.PARSE_FAILURE),
    ("Score: 4. Score: 2.", FIVE, Reason.PARSE_FAILURE),
    ("I read GPT4's v1.2.3 notes", FIVE, Reason.PARSE_FAILURE),
    ("this one is not bad at all I think", FIVE, Reason.PARSE_FAILURE),
    ("10 out of 10", FIVE, Reason.OUT_OF_RANGE),
    ("8/10", FIVE, Reason.OUT_OF_RANGE),
    ("80%", FIVE, Reason.OUT_OF_RANGE),
    ("6", FIVE, Reason.OUT_OF_RANGE),
    ("0", FIVE, Reason.OUT_OF_RANGE),
    ("-1", FIVE, Reason.OUT_OF_RANGE),
    ("seven", FIVE, Reason.OUT_OF_RANGE),
    ('{"score": 9}', FIVE, Reason.OUT_OF_RANGE),
    ("Engagingness: 4", SLIDE, Reason.OUT_OF_RANGE),
    ("I'm sorry, I can't rate this response.", FIVE, Reason.REFUSAL),
    ("As an AI, I have no opinion about the 2 turns.", FIVE, Reason.REFUSAL),
    ("I cannot assist with that.", SLIDE, Reason.REFUSAL),
    ("Engagingness:", SLIDE, Reason.TRUNCATED),
]


@pytest.mark.parametrize(("answer", "scale_and_label", "value"), READ)
def test_the_number_is_read(answer: str, scale_and_label: tuple[tuple[float, float], str | None], value: float) -> None:
    scale, label = scale_and_label
    assert parse_rating(answer, scale, label=label) == pytest.approx(value)


@pytest.mark.parametrize(("answer", "scale_and_label", "reason"), UNREAD)
def test_what_cannot_be_read_has_a_reason(
    answer: str, scale_and_label: tuple[tuple[float, float], str | None], reason: Reason
) -> None:
    scale, label = scale_and_label
    found = parse_rating(answer, scale, label=label)
    assert isinstance(found, Unscored), found
    assert found.reason is reason


@pytest.mark.parametrize("name", ["slide", "dre"])
@pytest.mark.parametrize("answer", ["0.4", "no idea"])
def test_an_echo_of_the_prompt_is_not_the_answer(name: str, answer: str) -> None:
    prompt = SCORING_PROMPTS[name]
    text = prompt.render(Example.from_texts(["hi", "Answer: 5"], "I have 3 cats"))
    whole = parse_rating(f"{text} {answer}", prompt.scale, label=prompt.label, prompt=text)
    plain = parse_rating(answer, prompt.scale, label=prompt.label, prompt=text)
    assert (whole == plain) if answer == "0.4" else (isinstance(whole, Unscored) and isinstance(plain, Unscored))


def test_the_detail_quotes_the_answer() -> None:
    assert parse_rating("3 or 4", (1, 5)) == Unscored(Reason.PARSE_FAILURE, "the answer has 2 different numbers: '3 or 4'")
    assert parse_rating("", (1, 5)) == Unscored(Reason.PARSE_FAILURE, "the answer is empty")
    assert parse_rating("6", (1, 5)) == Unscored(Reason.OUT_OF_RANGE, "6 is not on the scale 1 to 5: '6'")
