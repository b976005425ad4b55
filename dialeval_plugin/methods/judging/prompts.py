"""Common parts of the judges' prompts, and the prompts for labels: good or not, and breakdowns.

Content is neutralised and then joined, not formatted, so braces in it do no harm.

No paper prints a prompt for breakdowns. The labels are defined as for the challenge's annotators (Higashinaka et al. 2016): it
is easy to continue the conversation (O), difficult to continue it smoothly (T), or difficult to continue it (X).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn, context_turns
from dialeval_plugin.core.errors import unknown_name
from dialeval_plugin.llm.neutralise import neutralise

WORDINGS: Mapping[str, Any] = json.loads(Path(__file__).with_name("wordings.json").read_text(encoding="utf-8"))
"""Wording of each criterion or quality in the prompts of a method."""

NO_FACTS = "none"
EXAMPLE_HEADING = "Example\n"
BLOCK_END = "\n\n"

_INSTRUCTION: dict[Level, str] = {
    "turn": "Given a conversation and a response, choose if the response is a good response to the context",
    "dialogue": "Given a conversation, choose if the overall quality of the conversation is good",
}
_QUESTION: dict[Level, str] = {
    "turn": "Is the above response a good response to the conversation?",
    "dialogue": "Is the overall quality of the above conversation good?",
}


def level_of(item: Item) -> Level:
    """Return the level at which `item` is judged."""
    return "dialogue" if isinstance(item, Dialogue) else "turn"


def content_of(item: Item) -> tuple[str, ...]:
    """Return the texts of an item as its prompts show them, by which a parser recognises quotations."""
    turns = item.turns if isinstance(item, Dialogue) else (*item.context, item.response)
    facts = item.facts if isinstance(item, Example) else ()
    return tuple(filter(None, map(neutralise, (*(turn.text for turn in turns), *facts))))


def goodness_instruction(level: Level) -> str:
    """Return the first line of the DSTC10 prompt (Huynh et al. 2023, Appendix C); the one for dialogues is this project's."""
    return f"Instruction: {_INSTRUCTION[level]}\n"


def goodness_question(item: Item) -> str:
    """Return the block of the DSTC10 prompt for one item, from `Background info:` to `Answer:`."""
    return question_block(item, _QUESTION[level_of(item)])


def question_block(item: Item, question: str) -> str:
    """Return an item's facts, turns and a question in the form of the DSTC10 prompt; Person A speaks before the response."""
    turns = context_turns(item)
    facts = item.facts if isinstance(item, Example) else ()
    background = " ".join(filter(None, map(neutralise, facts))) or NO_FACTS
    lines = [f"Background info: {background}", "Conversation:"]
    lines += [f"Person {letter}: {neutralise(turn.text)}" for letter, turn in zip(speaker_letters(turns), turns, strict=True)]
    if isinstance(item, Example):
        lines.append(f"Response: {neutralise(item.response.text)}")
    lines += [f"Question: {question}", "Answer:"]
    return "\n".join(lines)


def goodness_prompt(item: Item, examples: Iterable[tuple[Item, bool]] = ()) -> str:
    """Return the whole DSTC10 prompt: instruction, examples with their answers, and the item."""
    solved = "".join(
        f"{EXAMPLE_HEADING}{goodness_question(example)} {'Yes' if is_good else 'No'}{BLOCK_END}"
        for example, is_good in examples
    )
    return goodness_instruction(level_of(item)) + solved + goodness_question(item)


def speaker_letters(turns: Sequence[Turn]) -> list[str]:
    """Return the letter of each turn's speaker, A for the last turn's; turns alternate if not all have a speaker."""
    if all(turn.speaker is not None for turn in turns):
        order = list(dict.fromkeys(turn.speaker for turn in reversed(turns)))
        # From the 26th on speakers are Z: a label is one letter.
        return [chr(ord("A") + min(order.index(turn.speaker), 25)) for turn in turns]
    return ["AB"[(len(turns) - 1 - index) % 2] for index in range(len(turns))]


N_BREAKDOWN_LABELS = 3
_BREAKDOWN_INSTRUCTION = (
    "Instruction: Given a conversation and the system's response, choose if the response causes a dialogue breakdown"
)
_BREAKDOWN_MEANINGS = (
    "not a breakdown: it is easy to continue the conversation after the response",
    "possible breakdown: it is difficult to continue the conversation smoothly after the response",
    "breakdown: it is difficult to continue the conversation after the response",
)


@dataclass(frozen=True, slots=True)
class BreakdownPrompt:
    """The question whether a system's turn breaks a dialogue down, with one spelling of its answers, the labels of DBDC."""

    forms: tuple[str, ...]
    """Requested continuations; form i is a spelling of label i mod 3."""

    @property
    def instruction(self) -> str:
        """First lines of the prompt: the task and the meaning of each answer."""
        meanings = "".join(f"{form} means {meaning}\n" for form, meaning in zip(self.forms, _BREAKDOWN_MEANINGS, strict=False))
        return f"{_BREAKDOWN_INSTRUCTION}\n{meanings}"

    def question(self, example: Example) -> str:
        """Return the block of one response, which may be blank, from `Conversation:` to `Answer:`."""
        lines = [f"{neutralise(turn.speaker or '') or 'Speaker'}: {neutralise(turn.text)}" for turn in example.context]
        response = f"Response: {neutralise(example.response.text)}".rstrip()
        *choices, last = self.forms[:N_BREAKDOWN_LABELS]
        question = f"Question: Does the above response break the conversation down? Answer {', '.join(choices)} or {last}."
        return "\n".join(["Conversation:", *lines, response, question, "Answer:"])

    def shown(self, example: Example) -> str:
        """Return the block of an example, before its answer."""
        return EXAMPLE_HEADING + self.question(example)


BREAKDOWN_PROMPTS: Mapping[str, BreakdownPrompt] = {
    "letters": BreakdownPrompt(("O", "T", "X")),
    "words": BreakdownPrompt(("No", "Possibly", "Yes", "no", "possibly", "yes")),
}
"""Prompts by letters, the challenge's labels, and by words."""


def breakdown_prompt(name: str) -> BreakdownPrompt:
    """Return the prompt of this name."""
    if name not in BREAKDOWN_PROMPTS:
        raise unknown_name(f"answers: there is no way {name!r} to spell them", name, BREAKDOWN_PROMPTS)
    return BREAKDOWN_PROMPTS[name]
