"""A language model with rules for answers: a test double for whatever asks a judge, with no weights and no network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.llm.language_model import NumberListener, TextListener, cut_at_stop


def _no_rule(*_: str) -> float:
    raise InputError("ScriptedLanguageModel: was asked for a log probability and has no rule for it. Give it log_probability.")


@dataclass
class ScriptedLanguageModel:
    """Answers by rule, and keeps what it was asked.

    A rule is called once a request, so that one with a memory can fail first and succeed later, or give each sample another
    answer.

    Attributes:
        answer: maps a prompt to an answer, or to the reason why there is none.
        log_probability: maps a context and a continuation to a natural log in (-inf, 0].
        identity: as in a signature.
        asked: prompts, and contexts with their continuation, in the order asked.
        batches: how many requests each call brought.

    Example:
        >>> model = ScriptedLanguageModel(lambda prompt: "4" if "tea" in prompt else "1")
        >>> model.generate(["tea?", "coal?"], max_tokens=1, stop=()), model.batches
        (['4', '1'], [2])
    """

    answer: Callable[[str], str | Unscored]
    log_probability: Callable[[str, str], float | Unscored] = _no_rule
    identity: str = "scripted@1"
    asked: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, stop: Sequence[str], on_answer: TextListener | None = None
    ) -> list[str | Unscored]:
        """Apply the rule; stop strings cut an answer as a real model's are cut."""
        self.batches.append(len(prompts))
        answers: list[str | Unscored] = []
        for place, prompt in enumerate(prompts):
            self.asked.append(prompt)
            answer = self.answer(prompt)
            if isinstance(answer, str):
                answer = cut_at_stop(answer, stop)
                if on_answer is not None:
                    on_answer(place, answer)
            answers.append(answer)
        return answers

    def sample(
        self,
        prompts: Sequence[str],
        *,
        n_samples: int,
        temperature: float,
        max_tokens: int,
        stop: Sequence[str],
        first_sample: int = 0,
        on_answer: TextListener | None = None,
    ) -> list[list[str | Unscored]]:
        """Apply the rule `n_samples` times to each prompt."""
        repeated = [prompt for prompt in prompts for _ in range(n_samples)]
        answers = self.generate(repeated, max_tokens=max_tokens, stop=stop, on_answer=on_answer)
        return [answers[start : start + n_samples] for start in range(0, len(answers), n_samples)]

    def loglikelihood(
        self, pairs: Sequence[tuple[str, str]], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Apply the rule for log probabilities."""
        self.batches.append(len(pairs))
        answers: list[float | Unscored] = []
        for place, (context, continuation) in enumerate(pairs):
            self.asked.append(context + continuation)
            answer = self.log_probability(context, continuation)
            if not isinstance(answer, Unscored) and on_answer is not None:
                on_answer(place, answer)
            answers.append(answer)
        return answers


def prefer(continuation: str, share: float) -> Callable[[str, str], float]:
    """Return a rule that gives one continuation the probability `share` and every other the rest.

    Example:
        >>> rule = prefer(" Yes", 0.75)
        >>> round(math.exp(rule("?", " Yes")), 6), round(math.exp(rule("?", " No")), 6)
        (0.75, 0.25)
    """
    return lambda _, offered: math.log(share if offered == continuation else 1 - share)
