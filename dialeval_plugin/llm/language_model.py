"""What a method needs of a language model, whichever host runs it.

A scorer that prompts one makes requests in `prepare` and reads the answers in `finish`. In between it asks the model itself,
or, where the model under test is lm-eval's, the host does: a task calls both.
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
    """A text that ends where its tokens were used up, and not where the model had come to an end."""

    text: str


MORE_ROOM = "Give the model more room with max_gen_toks=... in llm_args"
Text: TypeAlias = str | CutAnswer
"""A model's answer, whole or cut."""
TextListener: TypeAlias = Callable[[int, Text], None]
NumberListener: TypeAlias = Callable[[int, float], None]
Continuation: TypeAlias = tuple[str, str]
"""A prompt and a text whose probability behind it is asked for."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt to be continued."""

    prompt: str
    max_tokens: int
    """Longest answer."""
    stop: tuple[str, ...] = ()
    """The answer ends before the first of these."""
    temperature: float = 0.0
    """0 takes the likeliest token; above it answers are drawn."""
    sample: int = 0
    """Number of a drawn answer; where a backend takes a seed, each number has another."""
    form: str = ""
    """JSON schemas of the answer's parts by their names, as a JSON object; none where the answer is a free text."""
    read: Callable[[Text | Unscored], Any] = field(default=lambda answer: answer, compare=False, repr=False)
    """Gives the verdict of an answer. One without a verdict is not kept, and where it was cut it is asked for once more."""


def rating_form(scales: Mapping[str, tuple[float, float]], *, is_whole: bool = False) -> str:
    """The `form` of a request that asks for a number on each of these scales; some servers take no blank in a name."""
    kind, number = ("integer", int) if is_whole else ("number", float)
    ends = {name.replace(" ", "_"): {"minimum": number(low), "maximum": number(high)} for name, (low, high) in scales.items()}
    return json.dumps({name: {"type": kind, **schema} for name, schema in ends.items()})


def label_form(name: str, labels: Sequence[str]) -> str:
    """The `form` of a request that asks for one of these labels."""
    return json.dumps({name: {"type": "string", "enum": list(labels)}})


class Question(NamedTuple):
    """Quality and scale that a request asks about."""

    quality: str
    scale: tuple[float, float]
    """Lowest and highest answer."""
    words: tuple[str, ...] = ()
    """The answers, where they are words, from 0 upwards on the scale."""


class AskedPrompt(str):
    """The text of a prompt, and what it asks of which item: stored verdicts are found by that, and not by the wording."""

    item: Item
    question: Question | None

    def __new__(cls, text: str, item: Item, question: Question | None) -> AskedPrompt:
        """Make the text; `question` is None where the answer is no rating."""
        self = super().__new__(cls, text)
        self.item, self.question = item, question
        return self

    def __getnewargs__(self) -> tuple[str, Item, Question | None]:  # type: ignore[override]  # those of str are fewer
        return str(self), self.item, self.question


class LanguageModel(Protocol):
    """A model that continues texts and says how likely a continuation is.

    A request that fails for good is an `Unscored` in its place; the others are not affected. `on_answer`, where it is given,
    is called once with the place of each request and its answer, as soon as the answer is there and in any order; it is not
    called for a failure. Whoever keeps answers uses it, so that a run that is killed loses only what was being asked.
    """

    @property
    def identity(self) -> str:
        """The model and its revision, for a signature."""

    def generate(self, requests: Sequence[Request], *, on_answer: TextListener | None = None) -> Sequence[Text | Unscored]:
        """Continue each prompt."""

    def loglikelihood(
        self, pairs: Sequence[Continuation], *, on_answer: NumberListener | None = None
    ) -> list[float | Unscored]:
        """Natural log of the probability of each continuation after its context."""


def notify_listener(answers: list[Any], on_answer: Callable[[int, Any], None] | None) -> list[Any]:
    """Return the answers, after the listener has heard of each that is no failure."""
    for place, answer in enumerate(answers if on_answer else ()):
        if on_answer and not isinstance(answer, Unscored):
            on_answer(place, answer)
    return answers


def count_tokens(model: LanguageModel | None, prompts: Sequence[str]) -> int | None:
    """Tokens of all prompts as the model is sent them; None where it has no method of this name, or no tokenizer at hand."""
    count: Callable[[Sequence[str]], int | None] | None = getattr(model, "count_tokens", None)
    return count(prompts) if count is not None else None


def require_language_model(llm: object, scorer: str, *, kind: str = "any lm-eval model") -> LanguageModel:
    """Return `llm` where it can be asked by the scorer of this name; a message says which `kind` of model would do."""
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
    """Make the `read` of a `Request` from a function that is told whether a text was cut; each answer is read once.

    `arguments` are the function's arguments behind the text.
    """

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
    """The text of an answer, whole or cut."""
    return answer.text if isinstance(answer, CutAnswer) else answer


def cut_at_stop(answer: str, stop: Sequence[str]) -> str:
    r"""Cut a continuation before the first stop string; some servers leave it in, or take only so many of them.

    Example:
        >>> cut_at_stop("4\nBecause", ["\n\n", "\n"])
        '4'
    """
    return answer[: min((place for text in stop if (place := answer.find(text)) >= 0), default=len(answer))]


@dataclass(frozen=True, slots=True)
class Pending:
    """An item that waits for the answers of a language model."""

    item: Item
    requests: tuple[Request, ...] | tuple[Continuation, ...] = ()
    """All texts or all continuations; none where the item has its row already."""
    row: Row = field(default_factory=dict)
    """Columns known before, as a small model's, or the reason why there is no score."""


class PromptingScorer(Scorer):
    """A scorer that is made of what a language model answers."""

    needs: ClassVar[tuple[str, ...]] = ("llm",)
    prompts_llm_itself: ClassVar[bool] = True
    llm: LanguageModel

    def unscorable(self, item: Item) -> Unscored | None:
        """A blank response, or a dialogue of blank turns."""
        is_empty = isinstance(item, Dialogue) and all(is_blank(turn.text) for turn in item.turns)
        return Unscored(Reason.EMPTY_INPUT, "no turn has a visible character") if is_empty else super().unscorable(item)

    @abstractmethod
    def prepare(self, items: Sequence[Item]) -> list[Pending]:
        """Return the requests for each item."""

    @abstractmethod
    def finish(self, pending: Pending, answers: Sequence[Any]) -> Row:
        """Return the row of an item, from the answer to each of its requests, or the `Unscored` in its place."""

    @abstractmethod
    def questions(self) -> Sequence[Question | None]:
        """Return the question of each request of an item, in their order; None where it is no rating."""

    @abstractmethod
    def verdicts(self) -> Mapping[str, Question]:
        """Return the columns that hold the language model's verdicts and nothing else, as they can be stored."""

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Ask for all items of the window in one call."""
        prepared = self.prepare(items)
        questions = self.questions()
        answers = iter(self._ask([request for pending in prepared for request in _asking(pending, questions)]))
        return [
            self.finish(pending, [next(answers) for _ in pending.requests]) if pending.requests else pending.row
            for pending in prepared
        ]

    def _ask(self, requests: Sequence[Request | Continuation]) -> Sequence[Any]:
        if not requests:
            return ()
        if isinstance(requests[0], Request):
            return self.llm.generate(cast("Sequence[Request]", requests))
        return self.llm.loglikelihood(cast("Sequence[Continuation]", requests))


def judge_of(scorer: Scorer) -> PromptingScorer | None:
    """Return what of a scorer asks a language model, itself or its judge; None where nothing does."""
    return next((one for one in (scorer, getattr(scorer, "llm", None)) if isinstance(one, PromptingScorer)), None)


def _asking(pending: Pending, questions: Sequence[Question | None]) -> Iterator[Request | Continuation]:
    """The requests of an item, whose prompts say what they ask."""
    for request, question in zip(pending.requests, questions, strict=False):  # an item that has its row already asks nothing
        if isinstance(request, Request):
            yield replace(request, prompt=AskedPrompt(request.prompt, pending.item, question))
        else:
            text, continuation = cast("Continuation", request)
            yield AskedPrompt(text, pending.item, question), continuation
