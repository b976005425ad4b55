"""The lm-eval model `scripted-judge`: a judge with rules for answers, so that a task runs through the host with no weights.

    dialeval lm-eval run --model scripted-judge --model_args refuse=cats --tasks dstc10_dialog_mini

Its default rules answer by the words that context and response share (scripted_judge.py). They test the
way from prompt to score; the scores mean nothing.
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
"""Option to the answer that it gives in place of the rule's. `truncate` repeats the label and stops before the number."""


class ScriptedJudgeLM(LM):  # type: ignore[misc]  # the host is not typed
    """The shipped `ScriptedLanguageModel` behind the host's interface.

    `answer` and `log_probability` are the rules; `double` keeps what it was asked; batch size and device are the host's.

    Args:
        fail: requests whose context or response holds this text raise a ConnectionError, as a server that is down does.
        **failures: name of one of `FAILURES` to a text; requests whose context or response holds it are answered so. Where
            a prompt shows neither, the whole prompt is looked at. Asked for a log probability, they get NaN.

    Raises:
        InputError: an option that does not exist.
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
        # The host reads numbers out of its arguments: "refuse=7" comes as 7.
        self._fail = None if fail is None else str(fail)
        self._failures = {name: str(text) for name, text in failures.items()}
        self._answer, self._log_probability = answer, log_probability
        self.double = ScriptedLanguageModel(self._answer_or_fail, self._log_probability_or_fail)

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[Text | None]:
        """Answer by rule, cut at the request's stop strings; None where the rule has a reason for no answer."""
        answers = self.double.generate(list(map(_request, requests)))
        return [None if isinstance(answer, Unscored) else answer for answer in answers]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool] | None]:
        """Log probabilities by rule; "greedy" where the continuation has more than half of the probability."""
        values = self.double.loglikelihood([(str(request.args[0]), str(request.args[1])) for request in requests])
        return [None if isinstance(value, Unscored) else (value, value > math.log(0.5)) for value in values]

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Refuse: there is no rule for the likelihood of a text."""
        raise InputError(
            "scripted-judge: has no likelihood of a text, which the task asks for. "
            "Run it on the tasks of this package, for example dstc10_dialog_mini."
        )

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Put the messages below one another, with nothing that marks them."""
        return "\n".join(message["content"] for message in chat_history)

    @property
    def tokenizer_name(self) -> str:
        """Name of the model, in the place of a tokenizer's."""
        return self.double.identity

    def get_model_info(self) -> dict[str, Any]:
        """What the host writes into the result file's `config`."""
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
