"""A language model with rules for answers: a test double for whatever asks a judge, with no weights and no network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.llm.answers import Answer
from dialeval_plugin.llm.language_model import Continuation, NumberListener, Request, TextListener, cut_at_stop


def _no_rule(*_: str) -> float:
    raise InputError("ScriptedLanguageModel: was asked for a log probability and has no rule for it. Give it log_probability.")


@dataclass
class ScriptedLanguageModel:
    """Answers by rule, and keeps what it was asked.

    A rule is called once a request, so that one with a memory can fail first and succeed later, or give each sample another
    answer.

    Example:
        >>> model = ScriptedLanguageModel(lambda prompt: "4" if "tea" in prompt else "1")
        >>> model.generate([Request("tea?", 1), Request("coal?", 1)]), model.batches
        (['4', '1'], [2])
    """

    answer: Callable[[str], str | Unscored]
    """Maps a prompt to an answer, or to the reason why there is none."""
    log_probability: Callable[[str, str], float | Unscored] = _no_rule
    """Maps a context and a continuation to a natural log in (-inf, 0]."""
    identity: str = "scripted@1"
    asked: list[str] = field(default_factory=list)
    """Prompts, and contexts with their continuation, in the order asked."""
    requests: list[Request] = field(default_factory=list)
    """The requests for texts among them."""
    batches: list[int] = field(default_factory=list)
    """How many requests each call brought."""

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> list[str | Unscored]:
        """Apply the rule; stop strings cut an answer as a real model's are cut."""
        self.requests += requests
        return self._answers([request.prompt for request in requests], lambda place: self._cut(requests[place]), on_answer)

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Apply the rule for log probabilities."""
        return self._answers(list(map("".join, pairs)), lambda place: self.log_probability(*pairs[place]), on_answer)

    def _cut(self, request: Request) -> str | Unscored:
        answer = self.answer(request.prompt)
        return cut_at_stop(answer, request.stop) if isinstance(answer, str) else answer

    def _answers(
        self, texts: Sequence[str], rule: Callable[[int], Answer | Unscored], on_answer: Callable[[int, Answer], None] | None
    ) -> list[Answer | Unscored]:
        self.batches.append(len(texts))
        answers: list[Answer | Unscored] = []
        for place, text in enumerate(texts):
            self.asked.append(text)
            answers.append(answer := rule(place))
            if on_answer is not None and not isinstance(answer, Unscored):
                on_answer(place, answer)
        return answers


def prefer(continuation: str, share: float) -> Callable[[str, str], float]:
    """A rule that gives one continuation the probability `share` and every other the rest."""
    return lambda _, offered: math.log(share if offered == continuation else 1 - share)
