"""Asking a language model whether a system's turn breaks a dialogue down, with the three labels of DBDC as answers.

No paper prints a prompt for this. The definitions are those by which the challenge's annotators chose (Higashinaka et al.
2016): it is easy to continue the conversation (O), difficult to continue it smoothly (T), or difficult to continue it (X).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.llm.neutralise import neutralise

from .goodness import log_sum
from .prompts import EXAMPLE_HEADING

N_LABELS = 3
_MEANINGS = (
    "not a breakdown: it is easy to continue the conversation after the response",
    "possible breakdown: it is difficult to continue the conversation smoothly after the response",
    "breakdown: it is difficult to continue the conversation after the response",
)
_INSTRUCTION = "Instruction: Given a conversation and the system's response, choose if the response causes a dialogue breakdown"
_QUESTION = "Does the above response break the conversation down?"


@dataclass(frozen=True, slots=True)
class BreakdownPrompt:
    """One way to spell the answers."""

    name: str
    forms: tuple[str, ...]
    """Continuations that are asked for; form i stands for label i mod 3, so that further ones are other spellings."""

    @property
    def instruction(self) -> str:
        """First lines of the prompt: what is asked, and what each answer means."""
        meanings = "".join(f"{form} means {meaning}\n" for form, meaning in zip(self.forms, _MEANINGS, strict=False))
        return f"{_INSTRUCTION}\n{meanings}"

    def question(self, example: Example) -> str:
        """The block of one response, from `Conversation:` to `Answer:`; a blank response is shown as it is."""
        lines = [f"{neutralise(turn.speaker or '') or 'Speaker'}: {neutralise(turn.text)}" for turn in example.context]
        response = f"Response: {neutralise(example.response.text)}".rstrip()
        *choices, last = self.forms[:N_LABELS]
        question = f"Question: {_QUESTION} Answer {', '.join(choices)} or {last}."
        return "\n".join(["Conversation:", *lines, response, question, "Answer:"])

    def shown(self, example: Example) -> str:
        """The block of a response that is shown with its answer."""
        return EXAMPLE_HEADING + self.question(example)


PROMPTS: Mapping[str, BreakdownPrompt] = MappingProxyType(
    {
        prompt.name: prompt
        for prompt in (
            BreakdownPrompt("letters", ("O", "T", "X")),
            BreakdownPrompt("words", ("No", "Possibly", "Yes", "no", "possibly", "yes")),
        )
    }
)
"""By letters, the challenge's own labels, or by words."""


def breakdown_prompt(name: str) -> BreakdownPrompt:
    """The prompt of this name."""
    if name not in PROMPTS:
        raise InputError(f"answers: there is no way {name!r} to spell them. Known are: {', '.join(PROMPTS)}.")
    return PROMPTS[name]


def distribution_of_forms(log_probabilities: Sequence[float]) -> tuple[float, float, float] | None:
    """P(NB), P(PB), P(B), renormalised, from the log probability of each form of a prompt, in their order.

    None where all forms have probability 0, or one is not a number: such a turn is unscored.
    """
    if any(math.isnan(value) or value == math.inf for value in log_probabilities):
        return None
    labels = [log_sum(log_probabilities[place::N_LABELS]) for place in range(N_LABELS)]
    total = log_sum(labels)
    if total == -math.inf:
        return None
    no, possible, yes = (math.exp(value - total) for value in labels)
    return no, possible, yes
