"""The interface between methods and language models, independent of the host that runs them.

A scorer makes requests in `prepare` and reads the answers in `finish`. In between it prompts the model itself; if the model
under test is the judge, an lm-eval task calls both and lm-eval prompts the model.
"""

from __future__ import annotations

import functools
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, cast

from dialeval_plugin.core.dialogue import Dialogue, Item, is_blank
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """An answer truncated by the limit on its tokens."""

    text: str


NOT_ASKED = Unscored(Reason.API_ERROR, "not asked: the requests before failed one after the other")
MORE_ROOM = "Give the model more room with max_gen_toks=... in llm_args"
Text: TypeAlias = str | CutAnswer
"""A model's answer, complete or truncated."""
TextListener: TypeAlias = Callable[[int, Text], None]
NumberListener: TypeAlias = Callable[[int, float], None]
Continuation: TypeAlias = tuple[str, str]
"""A prompt, and a text whose probability after it is requested."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt for a model to continue."""

    prompt: str
    max_tokens: int
    """Maximum length of the answer."""
    stop: tuple[str, ...] = ()
    """The answer ends before the first of these."""
    temperature: float = 0.0
    """0 selects the most likely token; above 0 answers are sampled."""
    sample: int = 0
    """Number of a sampled answer; backends that take a seed use a different one for each number."""
    form: str = ""
    """JSON object of the JSON schema of each named part of the answer; empty for free text."""
    read: Callable[[Text | Unscored], Any] = field(default=lambda answer: answer, compare=False, repr=False)
    """Returns the verdict of an answer. Answers without one are not kept; a truncated one is requested once more."""


def rating_form(scales: Mapping[str, tuple[float, float]], *, is_whole: bool = False) -> str:
    """Return the `form` of a request for a number on each of these scales; some servers refuse spaces in a name."""
    kind, number = ("integer", int) if is_whole else ("number", float)
    ends = {name.replace(" ", "_"): {"minimum": number(low), "maximum": number(high)} for name, (low, high) in scales.items()}
    return json.dumps({name: {"type": kind, **schema} for name, schema in ends.items()})


def label_form(name: str, labels: Sequence[str]) -> str:
    """Return the `form` of a request for one of these labels."""
    return json.dumps({name: {"type": "string", "enum": list(labels)}})


class Question(NamedTuple):
    """Quality and scale of a requested rating."""

    quality: str
    scale: tuple[float, float]
    """Lowest and highest answer."""
    words: tuple[str, ...] = ()
    """Labels of the scale's values from 0 upwards; empty if answers are numbers."""


class AskedPrompt(str):
    """A prompt with its item and question, by which stored verdicts are looked up; the wording does not matter."""

    item: Item
    question: Question | None
    """None if the answer is not a rating."""

    @classmethod
    def of(cls, text: str, item: Item, question: Question | None) -> AskedPrompt:
        """Return the text with its item and question."""
        prompt = cls(text)
        prompt.item, prompt.question = item, question
        return prompt


class LanguageModel(Protocol):
    """A model that continues texts and computes the probability of a continuation.

    A request that fails permanently gives an `Unscored` in its place; the others are not affected. `on_answer` is called once
    for each other request, in any order, with its place and its answer as soon as that arrives. A cache uses it to keep the
    answers of a run that is killed.
    """

    @property
    def identity(self) -> str:
        """Model and revision, for a signature."""

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> Sequence[Text | Unscored]:
        """Return the continuation of each prompt."""

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Return the natural log of the probability of each continuation after its context."""


def notify_listener(answers: list[Any], on_answer: Callable[[int, Any], None] | None) -> list[Any]:
    """Return the answers after calling the listener with each that is not a failure."""
    for place, answer in enumerate(answers if on_answer else ()):
        if on_answer and not isinstance(answer, Unscored):
            on_answer(place, answer)
    return answers


def count_tokens(model: LanguageModel | None, prompts: Sequence[str]) -> int | None:
    """Return the tokens of all prompts as sent to the model; None if it has no such method or no tokenizer."""
    count: Callable[[Sequence[str]], int | None] | None = getattr(model, "count_tokens", None)
    return count(prompts) if count is not None else None


def require_language_model(llm: object, scorer: str, *, kind: str = "any lm-eval model") -> LanguageModel:
    """Return `llm` if it can be prompted; errors name the scorer and the `kind` of model that it needs."""
    if llm is None:
        raise MissingPrerequisite(
            f"{scorer}: asks a large language model, and no llm is given. Pass llm='hf', llm_args='pretrained=MODEL' ({kind})."
        )
    if not callable(getattr(llm, "generate", None)):
        raise InputError(
            f"{scorer}: llm: expected a language model, got {llm!r} ({type(llm).__name__}). "
            "Make one with dialeval_plugin.hosts.lm_eval.backend.load_language_model."
        )
    return cast("LanguageModel", llm)


def reader(read: Callable[..., Any], *arguments: object) -> Callable[[Text | Unscored], Any]:
    """Make the `read` of a `Request` from a function, called as `read(text, *arguments, is_cut=...)` once per answer."""

    @functools.cache
    def read_once(answer: Text | Unscored) -> Any:
        if isinstance(answer, Unscored):
            return answer
        if not isinstance(answer, CutAnswer):
            return read(answer, *arguments)
        verdict = read(answer.text, *arguments, is_cut=True)
        if isinstance(verdict, Unscored) and verdict.reason in {Reason.TRUNCATED, Reason.PARSE_FAILURE}:
            return Unscored(Reason.TRUNCATED, f"{verdict.detail}. {MORE_ROOM}")
        return verdict

    return read_once


def text_of(answer: Text) -> str:
    """Return the text of an answer, complete or truncated."""
    return answer.text if isinstance(answer, CutAnswer) else answer


def cut_at_stop(answer: str, stop: Sequence[str]) -> str:
    r"""Return a continuation up to its first stop string; some servers leave it in, or accept only a few stop strings.

    Example:
        >>> cut_at_stop("4\nBecause", ["\n\n", "\n"])
        '4'
    """
    return answer[: min((place for text in stop if (place := answer.find(text)) >= 0), default=len(answer))]


@dataclass(frozen=True, slots=True)
class Pending:
    """An item that waits for the answers of a language model."""

    item: Item
    requests: tuple[Any, ...] = ()
    """All `Request` or all `Continuation`; empty if the item already has its row."""
    row: Row = field(default_factory=dict)
    """Columns known already, such as a small model's, or the reason why there is no score."""


class PromptingScorer(Scorer):
    """A scorer that reads its columns from the answers of a language model."""

    needs: ClassVar[tuple[str, ...]] = ("llm",)
    prompts_llm_itself: ClassVar[bool] = True
    llm: LanguageModel
    questions: Sequence[Question | None]
    """Question of each request of an item, in order; None if its answer is not a rating."""
    verdicts: Mapping[str, Question]
    """Question of each column that contains verdicts of the language model only, for storing them."""

    def unscorable(self, item: Item) -> Unscored | None:
        """Return a reason for a blank response or a dialogue of blank turns."""
        is_empty = isinstance(item, Dialogue) and all(is_blank(turn.text) for turn in item.turns)
        return Unscored(Reason.EMPTY_INPUT, "no turn has a visible character") if is_empty else super().unscorable(item)

    @abstractmethod
    def prepare(self, items: Sequence[Item]) -> list[Pending]:
        """Return the requests for each item."""

    @abstractmethod
    def finish(self, pending: Pending, answers: Sequence[Any]) -> Row:
        """Return the row of an item from the answer to each of its requests: as `Request.read` reads it, or `Unscored`."""

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score all items of the window with one call of the model."""
        prepared = self.prepare(items)
        answers = self._answers([request for pending in prepared for request in _asking(pending, self.questions)])
        return [
            self.finish(pending, [next(answers) for _ in pending.requests]) if pending.requests else pending.row
            for pending in prepared
        ]

    def _answers(self, requests: Sequence[Any]) -> Iterator[Any]:
        if requests and isinstance(requests[0], Request):
            return (request.read(answer) for request, answer in zip(requests, self.llm.generate(requests), strict=True))
        return iter(self.llm.loglikelihood(requests) if requests else ())


def judge_of(scorer: Scorer) -> PromptingScorer | None:
    """Return the scorer or its judge, whichever prompts a language model; None if neither does."""
    return next((one for one in (scorer, getattr(scorer, "llm", None)) if isinstance(one, PromptingScorer)), None)


def _asking(pending: Pending, questions: Sequence[Question | None]) -> Iterator[Request | Continuation]:
    for request, question in zip(pending.requests, questions, strict=False):  # an item that has its row makes no requests
        if isinstance(request, Request):
            yield replace(request, prompt=AskedPrompt.of(request.prompt, pending.item, question))
        else:
            text, continuation = request
            yield AskedPrompt.of(text, pending.item, question), continuation
