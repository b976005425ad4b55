"""A rule-based language model: a test double for judges, without weights or network.

The default rules answer any prompt of this package from the words that context and response share, in the form that the prompt
requests. The answers say nothing about quality.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.llm.language_model import Continuation, NumberListener, Request, Text, TextListener, cut_at_stop
from dialeval_plugin.methods.judging.goodness import NO, YES

_WORD = re.compile(r"[^\W_]+")
_MIN_WORD_LENGTH = 3
"""Shorter words are mostly function words ("is", "of", "to")."""

_CONTEXT_HEADING = re.compile(
    r"^(?:(?:conversation|dialogue|dialog)(?: history)?|context):[ \t]*", re.IGNORECASE | re.MULTILINE
)
_RESPONSE_HEADING = re.compile(r"^(?:dialogue )?response:\s*", re.IGNORECASE | re.MULTILINE)
_NUMBER = r"\d+(?:\.\d+)?"
_SCALE = re.compile(rf"(?:scale (?:of|from) |\()({_NUMBER})(?:\s*[-–]\s*| to )({_NUMBER})", re.IGNORECASE)
_LABELLED_TASK = re.compile(rf"^[ \t]*\d+\.[ \t]*([^:\n]+):.*{_SCALE.pattern}", re.IGNORECASE | re.MULTILINE)
_TO_WRITE = re.compile(r"^Context:\n(?P<context>(?:.+\n)*)\nPositive response:\Z", re.MULTILINE)
_MISFITS = (
    "Zebras dislike quartz.",
    "Basalt floats nowhere.",
    "Nine violins rusted.",
    "Turbines hum overnight.",
    "Glaciers calve icebergs.",
)
_WORDS_TO_CHOOSE = re.compile(r"^Answer with one of these words and nothing else[^:\n]*: (.+)\.$", re.MULTILINE)
_CLASSES = re.compile(r"\bpositive\b.*\bnegative\b", re.IGNORECASE | re.DOTALL)

_LEAST_PROBABILITY = 0.02
"""Minimum probability of any answer, since no answer is impossible for a real model."""
_N_FORMS = 4
"""Number of spellings that share an answer's probability: with and without a space, upper and lower case."""


def _no_rule(*_: str) -> float:
    raise InputError("ScriptedLanguageModel: was asked for a log probability and has no rule for it. Give it log_probability.")


@dataclass
class ScriptedLanguageModel:
    """A model that answers by rule, once per request, and keeps the requests.

    Example:
        >>> model = ScriptedLanguageModel(lambda prompt: "4" if "tea" in prompt else "1")
        >>> model.generate([Request("tea?", 1), Request("coal?", 1)]), model.batches
        (['4', '1'], [2])
    """

    answer: Callable[[str], Text | Unscored]
    """Function from a prompt to an answer, or to the reason for none."""
    log_probability: Callable[[str, str], float | Unscored] = _no_rule
    """Function from a context and a continuation to a natural log in (-inf, 0]."""
    identity: str = "scripted@1"
    asked: list[str] = field(default_factory=list)
    """Prompts, and contexts with their continuations, in order."""
    requests: list[Request] = field(default_factory=list)
    """Requests for texts, in order."""
    batches: list[int] = field(default_factory=list)
    """Number of requests of each call."""

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> list[Text | Unscored]:
        """Answer by rule, truncated at the stop strings."""
        self.requests += requests
        return self._answers([request.prompt for request in requests], lambda place: self._cut(requests[place]), on_answer)

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Return log probabilities by rule."""
        return self._answers(list(map("".join, pairs)), lambda place: self.log_probability(*pairs[place]), on_answer)

    def _cut(self, request: Request) -> Text | Unscored:
        answer = self.answer(request.prompt)
        return cut_at_stop(answer, request.stop) if isinstance(answer, str) else answer

    def _answers(
        self, texts: Sequence[str], rule: Callable[[int], Any], on_answer: Callable[[int, Any], None] | None
    ) -> list[Any]:
        self.batches.append(len(texts))
        answers: list[Any] = []
        for place, text in enumerate(texts):
            self.asked.append(text)
            answers.append(answer := rule(place))
            if on_answer is not None and not isinstance(answer, Unscored):
                on_answer(place, answer)
        return answers


@dataclass(frozen=True, slots=True)
class PromptContent:
    """Parts of a prompt."""

    context: str
    response: str
    instructions: str
    """The prompt without context and response; it may also mention scales."""

    @classmethod
    def read(cls, prompt: str) -> PromptContent:
        """Read the last block of a prompt; without a response, its last turn is the response."""
        contexts, responses = list(_CONTEXT_HEADING.finditer(prompt)), list(_RESPONSE_HEADING.finditer(prompt))
        if not contexts:
            return cls("", "", prompt)
        start = contexts[-1].end()
        if responses and responses[-1].start() >= start:
            middle, begin = responses[-1].start(), responses[-1].end()
            end = f"{prompt}\n".index("\n", begin)
            return cls(prompt[start:middle], prompt[begin:end], prompt[:start] + prompt[middle:begin] + prompt[end:])
        turns = prompt[start:].partition("\nQuestion:")[0].rstrip()
        before, _, last = turns.rpartition("\n")
        return cls(before, last, prompt[:start] + prompt[start + len(turns) :])

    @property
    def overlap(self) -> float:
        """Share of the response's content words that are in the context, in [0, 1]; 0 without any."""
        words = _content_words(self.response)
        return len(words & _content_words(self.context)) / len(words) if words else 0.0

    @property
    def scales(self) -> list[tuple[str | None, float, float]]:
        """Label, lowest and highest rating of each requested number; a single number has no label."""
        tasks = [(match[1].strip(), float(match[2]), float(match[3])) for match in _LABELLED_TASK.finditer(self.instructions)]
        if len(tasks) > 1:
            return list(tasks)
        match = _SCALE.search(self.instructions)
        return [(None, float(match[1]), float(match[2]))] if match else []


def overlap_answer(prompt: str) -> str:
    r"""Answer `prompt` with the overlap of context and response, in the requested form.

    That is the number at this share of a scale (a whole one if it has three or more), a line "label: number" for each of
    several tasks, the word at this share of a list, or positive or negative, or yes or no, from an overlap of one half on. A
    prompt that ends with "Positive response:" gets two lists of responses. Anything else gets "I do not know.".

    Example:
        >>> overlap_answer("Rate on a scale of 1-5.\nContext:\nDo you like black tea?\nResponse:\nBlack tea, please.\nScore:")
        '4'
    """
    if (to_write := _TO_WRITE.search(prompt)) is not None:
        return _response_lists(to_write["context"])
    content = PromptContent.read(prompt)
    if (to_choose := _WORDS_TO_CHOOSE.search(content.instructions)) is not None:
        words = to_choose[1].split(", ")
        return words[math.floor(content.overlap * (len(words) - 1) + 0.5)]
    if scales := content.scales:
        ratings = [(label, _rating(content.overlap, low, high)) for label, low, high in scales]
        return "\n".join(rating if label is None else f"{label}: {rating}" for label, rating in ratings)
    is_good = content.overlap >= 0.5
    if _CLASSES.search(content.instructions):
        return "Positive" if is_good else "Negative"
    if "?" in content.instructions:
        return "Yes" if is_good else "No"
    return "I do not know."


def overlap_log_probability(context: str, continuation: str) -> float:
    """Return a log probability: yes and positive get the overlap, no and negative the rest, ratings more the nearer they are.

    Any other continuation gets less the longer it is. The spellings of an answer share its probability.
    """
    content, answer = PromptContent.read(context), continuation.strip().casefold()
    if answer in {YES, "positive", NO, "negative"}:
        share = content.overlap if answer in {YES, "positive"} else 1 - content.overlap
        return _log_share(share)
    if answer.isdecimal() and (scales := content.scales):
        _, low, high = scales[0]
        peak = low + content.overlap * (high - low)
        weights = {rating: math.exp(-abs(rating - peak)) for rating in range(math.ceil(low), math.floor(high) + 1)}
        if int(answer) in weights:
            return _log_share(weights[int(answer)] / math.fsum(weights.values()))
    return -float(len(continuation) + 1)


def _log_share(share: float) -> float:
    return math.log(min(max(share, _LEAST_PROBABILITY), 1 - _LEAST_PROBABILITY) / _N_FORMS)


def _rating(share: float, low: float, high: float) -> str:
    value = low + share * (high - low)
    return f"{value:.2f}" if high - low < 2 or not (low.is_integer() and high.is_integer()) else str(math.floor(value + 0.5))


def _response_lists(context: str) -> str:
    words = [word for word in _WORD.findall(context) if len(word) >= _MIN_WORD_LENGTH]
    fitting = [
        " ".join([*words[start:], *words[:start]][:6]).capitalize() + "." for start in range(min(len(words), len(_MISFITS)))
    ]
    lists = (fitting, _MISFITS)
    first, second = ("\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1)) for texts in lists)
    return f"{first}\n\nAdversarial Negative Responses:\n{second}"


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word for word in map(str.casefold, _WORD.findall(text)) if len(word) >= _MIN_WORD_LENGTH)
