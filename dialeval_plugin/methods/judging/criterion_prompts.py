"""The prompts of G-EVAL (Liu et al. 2023) and of LLM-Chiang (Chiang and Lee 2023), one for each criterion of a response.

G-EVAL prints one prompt for dialogue, for engagingness (appendix); its repository has those for summaries only. Here
engagingness is the printed prompt, with its misspelling of "criteria" mended and without the fact where a response has
none. The other three are this project's wording in the same form, on the same scale, after SLIDE's and DRE's four criteria.

Chiang and Lee print a prompt for stories: task, note, text, and one question a criterion on a scale of 1-5. Here it speaks
of a dialogue response, as SLIDE's appendix A.1 does, whose question for engagingness it takes; the other questions are this
project's, and so is the last line, which gives a model without a chat template a place for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.llm.neutralise import neutralise

from .prompts import ScoringPrompt

CriterionPrompts: TypeAlias = Mapping[str, ScoringPrompt]
"""Criterion to its prompt, in the order of the columns."""


# A question, and what the scores 1, 2 and 3 mean.
_G_EVAL_RUBRICS = {
    "naturalness": (
        "Is the response naturally written?",
        "(unnatural) means that the response does not read like something a person would say.",
        "(somewhat natural) means the response is strange in places, but could be said by a person.",
        "(natural) means the response reads like something a person would say.",
    ),
    "coherence": (
        "Is the response a logical and meaningful continuation of the conversation?",
        "(incoherent) means that the response ignores the conversation or contradicts it.",
        "(somewhat coherent) means the response refers to the conversation only in a generic way or changes the topic.",
        "(coherent) means the response is on topic and takes up what was said before.",
    ),
    "engagingness": (
        "Is the response dull/interesting?",
        "(dull) means that the response is generic and dull.",
        "(somewhat interesting) means the response is somewhat interesting and could engage you in the conversation (e.g., an "
        "opinion, thought)",
        "(interesting) means the response is very interesting or presents an interesting fact",
    ),
    "groundedness": (
        "Is the response grounded in facts that are given?",
        "(not grounded) means that the response uses none of the facts that are given, or contradicts them.",
        "(somewhat grounded) means the response refers to the facts that are given vaguely or with mistakes.",
        "(grounded) means the response uses the facts that are given, and uses them correctly.",
    ),
}

_CHIANG_QUESTIONS = {
    "naturalness": "How natural is the text of the dialogue response?",
    "coherence": "How well does the dialogue response fit the conversation history?",
    "engagingness": "How engaging is the text of the dialogue response?",
    "groundedness": "How well is the dialogue response grounded in the facts and the conversation history?",
}
_CHIANG_LABEL = "Rating"


def _g_eval(criterion: str, question: str, *levels: str) -> Callable[[Example], str]:
    name = criterion.capitalize()
    scores = "\n".join(f"- A score of {score} {meaning}" for score, meaning in enumerate(levels, start=1))

    def render(example: Example) -> str:
        facts = _facts(example)
        introduction = (
            "You will be given a conversation between two individuals. You will then be given one potential response for the "
            "next turn in the conversation."
        )
        if facts:
            introduction += " The response concerns an interesting fact, which will be provided as well."
        return "\n\n".join(
            [
                introduction,
                "Your task is to rate the responses on one metric.",
                "Please make sure you read and understand these instructions carefully. Please keep this document open while "
                "reviewing, and refer to it as needed.",
                "Evaluation Criteria:",
                f"{name} (1-3) {question}\n{scores}",
                "Evaluation Steps:",
                f"1. Read the conversation{', the corresponding fact' if facts else ''} and the response carefully.\n"
                f"2. Rate the response on a scale of 1-3 for {criterion}, according to the criteria above.\n"
                "3. Provide a brief explanation for your rating, referring to specific aspects of the response and the "
                "conversation.",
                "Example:",
                "Conversation History:",
                *_history(example),
                *(["Corresponding Fact:", facts] if facts else []),
                "Response:",
                neutralise(example.response.text),
                "Evaluation Form (scores ONLY):",
                f"- {name}:",
            ]
        )

    return render


def _chiang(question: str) -> Callable[[Example], str]:
    def render(example: Example) -> str:
        facts = _facts(example)
        return "\n\n".join(
            [
                "Please rate the dialogue response.",
                "The goal of this task is to rate dialogue responses.",
                "Note: Please take the time to fully read and understand the dialogue response. We will reject submissions "
                "from workers that are clearly spamming the task.",
                *(["Facts:", facts] if facts else []),
                "Conversation History:",
                *_history(example),
                "Dialogue Response:",
                neutralise(example.response.text),
                f"{question} (on a scale of 1-5, with 1 being the lowest)",
                f"{_CHIANG_LABEL}:",
            ]
        )

    return render


def _history(example: Example) -> list[str]:
    """The turns, one a line, as one block; none where there is no context."""
    turns = "\n".join(neutralise(turn.text) for turn in example.context)
    return [turns] if turns else []


def _facts(example: Example) -> str:
    return "\n".join(filter(None, map(neutralise, example.facts)))


# G-EVAL's code allows 5 tokens; a chat model may repeat the form, which is cut out of the answer.
G_EVAL_PROMPTS: CriterionPrompts = {
    criterion: ScoringPrompt(
        f"g_eval_{criterion}", 1, (1.0, 3.0), criterion.capitalize(), _g_eval(criterion, *rubric), max_tokens=24
    )
    for criterion, rubric in _G_EVAL_RUBRICS.items()
}
# Its models answer in sentences ("I would rate the grammar ... as a 4.").
CHIANG_PROMPTS: CriterionPrompts = {
    criterion: ScoringPrompt(f"llm_chiang_{criterion}", 1, (1.0, 5.0), _CHIANG_LABEL, _chiang(question), max_tokens=64)
    for criterion, question in _CHIANG_QUESTIONS.items()
}
CRITERIA = tuple(_G_EVAL_RUBRICS)
