"""The lm-eval model `scripted-judge`: a rule-based judge, to run a task without weights.

    dialeval lm-eval run --model scripted-judge --model_args refuse=cats --tasks dstc10_dialog_mini

Its rules are those of scripted_judge.py; the scores mean nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.llm.language_model import Request, Text

from .scripted_judge import PromptContent, ScriptedLanguageModel, overlap_answer, overlap_log_probability

AnswerFunction = Callable[[str], Text | Unscored]
LogProbability = Callable[[str, str], float | Unscored]

FAILURES: dict[str, Callable[[str], str]] = {
    "refuse": lambda prompt: "I'm sorry, but I cannot rate this.",
    "garble": lambda prompt: "%& ##",
    "truncate": lambda prompt: prompt.rstrip().splitlines()[-1] if prompt.strip() else "",
    "overshoot": lambda prompt: "1000",
    "blank": lambda prompt: "",
}
"""Answer that each option gives in place of the rule's; `truncate` repeats the label without the number."""


class ScriptedJudgeLM(LM):  # type: ignore[misc]  # the host is not typed
    """`ScriptedLanguageModel`, kept as `double`, behind the host's interface; batch size and device are ignored.

    Args:
        answer: rule for answers.
        log_probability: rule for log probabilities.
        fail: requests whose context or response (or else whole prompt) contains this text raise a ConnectionError.
        **failures: name of one of `FAILURES` to a text; requests that contain it get this answer, or NaN as log probability.

    Raises:
        InputError: an option does not exist.
    """

    def __init__(
        self,
        answer: AnswerFunction = overlap_answer,
        log_probability: LogProbability = overlap_log_probability,
        *,
        fail: str | None = None,
        batch_size: int | str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
        **failures: str,
    ) -> None:
        super().__init__()
        if unknown := [name for name in failures if name not in FAILURES]:
            raise InputError(
                f"scripted-judge: there is no option {unknown[0]!r}. Accepted are {', '.join(['fail', *FAILURES])}."
            )
        # The host converts arguments: "refuse=7" arrives as 7.
        self._fail = None if fail is None else str(fail)
        self._failures = {name: str(text) for name, text in failures.items()}
        self._answer, self._log_probability = answer, log_probability
        self.double = ScriptedLanguageModel(self._answer_or_fail, self._log_probability_or_fail)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[Text | None]:
        """Answer by rule, truncated at the stop strings; None for a missing answer."""
        answers = self.double.generate(list(map(_request, requests)))
        return [None if isinstance(answer, Unscored) else answer for answer in answers]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool] | None]:
        """Return log probabilities by rule; "greedy" from a probability of one half on."""
        values = self.double.loglikelihood([(str(request.args[0]), str(request.args[1])) for request in requests])
        return [None if isinstance(value, Unscored) else (value, value > math.log(0.5)) for value in values]

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Raise an error, since there is no rule."""
        raise InputError(
            "scripted-judge: has no likelihood of a text, which the task asks for. "
            "Run it on the tasks of this package, for example dstc10_dialog_mini."
        )

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Join the messages by line breaks."""
        return "\n".join(message["content"] for message in chat_history)

    @property
    def tokenizer_name(self) -> str:
        """Name of the model in place of a tokenizer's."""
        return self.double.identity

    def get_model_info(self) -> dict[str, Any]:
        """Return entries for the result file's `config`."""
        return {"scripted": True, "failures": {"fail": self._fail, **self._failures}}

    def _answer_or_fail(self, prompt: str) -> Text | Unscored:
        failure = self._failure_of(prompt)
        return self._answer(prompt) if failure is None else FAILURES[failure](prompt)

    def _log_probability_or_fail(self, context: str, continuation: str) -> float | Unscored:
        return self._log_probability(context, continuation) if self._failure_of(context) is None else math.nan

    def _failure_of(self, prompt: str) -> str | None:
        content = PromptContent.read(prompt)
        judged = f"{content.context}\n{content.response}" if content.response else prompt
        if self._fail is not None and self._fail in judged:
            raise ConnectionError("scripted failure")
        return next((name for name, text in self._failures.items() if text in judged), None)


def _request(instance: Instance) -> Request:
    prompt, settings = instance.args
    until = settings.get("until") or ()
    return Request(str(prompt), int(settings.get("max_gen_toks", 256)), (until,) if isinstance(until, str) else tuple(until))
