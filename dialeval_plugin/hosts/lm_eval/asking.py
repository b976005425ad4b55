"""Asking an lm-eval model for many answers: one request that fails costs no other its answer, and none is asked for ever."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import random
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from tenacity import AsyncRetrying, Future, RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from dialeval_plugin.core.errors import DialevalError
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.llm.language_model import CutAnswer
from dialeval_plugin.terminal.progress import Progress

from . import versions
from .arguments import is_a

if TYPE_CHECKING:
    from .bounded_http import RequestParameters

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Result = TypeVar("Result")

MAX_FAILURES_IN_A_ROW = 5
LONGEST_PAUSE = 60.0
"""Seconds that a server may make us wait before we ask again."""
_PASSING = frozenset({408, 409, 425, 429})
"""Client errors (RFC 9110, RFC 6585, RFC 8470) that the same request may not meet again."""
_LONGEST_ERROR = 500
"""Characters of a server's own words that are logged."""
_USED_UP = frozenset({"length", "max_tokens", "model_length"})
"""What servers call the end of an answer whose tokens were used up: OpenAI and those like it, Anthropic, Mistral."""
_TRANSPORTS = ("requests", "urllib3", "aiohttp", "httpx")
NO_ANSWER = Unscored(Reason.API_ERROR, "the model gave no answer")
NOT_ASKED = Unscored(Reason.API_ERROR, "not asked: the requests before failed one after the other")


class GaveUp(Exception):
    """So many requests failed one after the other that the model is taken to be down."""


class NoLogProbabilities(Exception):
    """The model or its server does not give the log probabilities that it was asked for."""


class ErrorReply(Exception):
    """A server said that all is well (HTTP 200) and sent an error in the place of an answer."""


NEVER_REPEATED = (AssertionError, NotImplementedError, DialevalError, NoLogProbabilities)
"""A request of the wrong kind fails in the same way for every document, so it is not a document's failure."""
NEVER_REPEATED_LOCALLY = (*NEVER_REPEATED, AttributeError, TypeError)
"""From a served model these two mean that its reply is not what the host expects, which the next one may be."""


class RetryBudget:
    """How often a request is repeated, how long is waited between, and when to stop asking altogether.

    Pauses grow by a factor of 2 and vary by half, so that many clients that failed together do not come back together
    (Brooker 2015, "Exponential Backoff And Jitter"); where the server says how long to wait, that counts.

    Args:
        attempts: of each request, the first one included.
        wait: seconds before the first repetition.
        never: errors that end the run.
    """

    def __init__(self, attempts: int, wait: float, never: tuple[type[Exception], ...]) -> None:
        self.never = never
        self.failures_in_a_row = 0
        self._attempts = max(1, attempts)
        self._growing = wait_exponential(multiplier=wait, max=LONGEST_PAUSE)

    @property
    def is_spent(self) -> bool:
        """Whether the model is taken to be down."""
        return self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW

    def call(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call `function` until it succeeds; where it does not, the last error, or `GaveUp`, is raised."""
        return Retrying(sleep=time.sleep, **self._rules)(function, *args)

    async def acall(self, function: Callable[..., Awaitable[Result]], *args: Any, **kwargs: Any) -> Result:
        """As `call`, for a coroutine."""
        return await AsyncRetrying(sleep=asyncio.sleep, **self._rules)(function, *args, **kwargs)

    @property
    def _rules(self) -> dict[str, Any]:
        return {
            "before": self._refuse_if_spent,
            "retry": retry_if_exception(self._may_pass),
            "wait": self._pause,
            "stop": stop_after_attempt(self._attempts),
            "retry_error_callback": self._fail,
        }

    def _refuse_if_spent(self, _: RetryCallState) -> None:
        if self.is_spent:
            raise GaveUp

    def _may_pass(self, error: BaseException) -> bool:
        """Whether the same request may succeed later: a transport, a server or a device may fail with any error of its own."""
        if not isinstance(error, Exception) or isinstance(error, self.never):
            return False
        status = _status(error)
        if status is not None and 400 <= status < 500 and status not in _PASSING:
            # That a server refuses a request says nothing about the next one: the server is there.
            logger.warning("a request failed for good: %s", describe(error))
            return False
        return True

    def _pause(self, state: RetryCallState) -> float:
        told = _retry_after(_error_of(state))
        return min(told, LONGEST_PAUSE) if told is not None else self._growing(state) * random.uniform(0.5, 1.5)

    def _fail(self, state: RetryCallState) -> Any:
        self.failures_in_a_row += 1
        error = _error_of(state)
        logger.warning("a request failed for good: %s", describe(error))
        raise error


def _error_of(state: RetryCallState) -> Exception:
    return cast("Exception", cast("Future", state.outcome).exception())


def _status(error: Exception) -> int | None:
    """The HTTP status in an error of requests (`response.status_code`) or aiohttp (`status`)."""
    status = getattr(error, "status", None) or getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _retry_after(error: Exception) -> float | None:
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        seconds = float(headers.get("Retry-After", "nan"))
    except ValueError:  # a date
        return None
    return seconds if seconds >= 0 else None


def describe(error: Exception) -> str:
    """The error in a few words; a transport's own name addresses, which may hold a key and differ from run to run."""
    if (status := _status(error)) is not None:
        return f"HTTP {status}"
    name = type(error).__name__
    if type(error).__module__.partition(".")[0] in _TRANSPORTS or not str(error):
        return name
    return f"{name}: {error}"


def take_over_requests(lm: Any, budget: RetryBudget, parameters: RequestParameters) -> None:
    """Let a served model ask within our budget instead of the host's, which has no jitter and knows no refusal.

    With several requests at once the host drops all that are under way when one fails for good; here that one becomes an
    `Unscored` among the answers. A request is sent as the server takes it, and an answer says whether it was cut.
    """
    lm.max_retries = 1
    lm.parse_generations, lm.parse_logprobs = map(_reading_replies, (lm.parse_generations, lm.parse_logprobs))
    create, one_by_one, original = lm._create_payload, lm.model_call, lm.amodel_call
    lm._create_payload = lambda *args, generate=False, **kwargs: parameters.adapted(
        versions.plain_messages(create(*args, generate=generate, **kwargs)), generate=generate
    )
    lm.model_call = lambda *args, **kwargs: Retrying(**parameters.rules)(one_by_one, *args, **kwargs)

    async def once(*args: Any, **kwargs: Any) -> list[Any]:
        with _naming_absent_log_probabilities(asked=not kwargs["generate"]):
            answers: list[Any] = await AsyncRetrying(**parameters.rules)(original, *args, **kwargs)
        return answers

    async def ask(*args: Any, **kwargs: Any) -> list[Any]:
        # Waiting for a turn in here, and not in the host's call, lets requests that have not started see that others failed.
        async with _turns(lm):
            try:
                return await budget.acall(once, *args, **kwargs)
            except budget.never:
                if not budget.is_spent:
                    budget.failures_in_a_row = MAX_FAILURES_IN_A_ROW
                    raise
                failure = NOT_ASKED  # asyncio would print the errors of the requests that were under way beside the first
            except GaveUp:
                failure = NOT_ASKED
            except Exception as error:
                failure = Unscored(Reason.API_ERROR, describe(error))
        return [failure] * len(kwargs["messages"])

    lm.amodel_call = ask


def _reading_replies(parse: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Let the host read replies that are answers only, and of those the text without the thinking; mark what was cut.

    Of a chat API the host reads any other reply as an empty text. Log probabilities are of one token, and cut by no limit.
    """

    def parsed(*, outputs: Any, **kwargs: Any) -> list[Any]:
        are_cut = []
        for output in outputs if isinstance(outputs, list) else [outputs]:
            if isinstance(output, dict) and (sent := output.get("error")):
                # The log alone has the server's own words, which may differ from one run to the next.
                logger.warning("the server sent an error in the place of an answer: %s", redacted(str(sent))[:_LONGEST_ERROR])
                raise ErrorReply("the server sent an error in the place of an answer")
            # Anthropic's replies are one message, and the others' have a list of choices.
            for choice in sorted(output.get("choices") or [output], key=lambda choice: choice.get("index", 0)):
                message = choice.get("message") or choice
                if isinstance(parts := message.get("content"), list):
                    text = "".join(part["text"] for part in parts if part.get("type") == "text")
                    message["content"] = text if message is not output else [{"text": text}]
                are_cut.append((choice.get("finish_reason") or choice.get("stop_reason")) in _USED_UP)
        answers = parse(outputs=outputs, **kwargs)
        return [
            CutAnswer(answer or "") if is_cut and not isinstance(answer, tuple) else answer
            for answer, is_cut in zip(answers, are_cut, strict=True)
        ]

    return parsed


def note_cut_answers(lm: Any) -> None:
    """Let a model in this process note which answers of a batch were cut, in their order, for `Asking`; hf and vllm can."""
    generate = getattr(lm, "_model_generate", None)
    if generate is None:
        return

    def noting(*args: Any, **kwargs: Any) -> Any:
        made = generate(*args, **kwargs)
        lm._dialeval_cuts = deque(_are_cut(lm, made, kwargs))
        return made

    lm._model_generate = noting


def _are_cut(lm: Any, made: Any, settings: Mapping[str, Any]) -> Iterator[bool]:
    """For each answer of a batch whether it fills its length, and neither the model nor a stop string ended it before."""
    if isinstance(made, list):  # of vllm, which says so itself; another model's outputs are not known
        yield from (output.outputs[0].finish_reason in _USED_UP for output in made if hasattr(output, "outputs"))
    elif {"context", "max_length", "stop"} <= settings.keys():
        n_shown = settings["context"].shape[1] if lm.backend == "causal" else 0
        for tokens in made.tolist():
            is_full = len(tokens) >= settings["max_length"] and tokens[-1] != lm.tokenizer.pad_token_id
            text = lm.tok_decode(tokens[n_shown:], skip_special_tokens=False) if is_full else ""
            yield is_full and not any(end in text for end in settings["stop"] if end)


def _turns(lm: Any) -> asyncio.Semaphore:
    """As many turns as the model may have requests under way; a semaphore belongs to the event loop that it is made in."""
    loop = asyncio.get_running_loop()
    known = getattr(lm, "_dialeval_turns", None)
    if known is None or known[0] is not loop:
        known = lm._dialeval_turns = (loop, asyncio.Semaphore(lm._concurrent))
    semaphore: asyncio.Semaphore = known[1]
    return semaphore


@contextlib.contextmanager
def _naming_absent_log_probabilities(*, asked: bool) -> Iterator[None]:
    """Name what is wrong where the host cannot ask for log probabilities, or cannot read a reply because it lacks them."""
    try:
        yield
    except (AssertionError, KeyError, NotImplementedError, TypeError) as error:
        if asked and (not isinstance(error, KeyError) or error.args == ("logprobs",)):
            raise NoLogProbabilities from error
        raise


class Asking(Generic[Answer]):
    """The requests of one call, and their answers as they come.

    A batch that fails is halved until the request that fails is alone. Answers that came before the failure are kept: the
    host hands each to its model's cache hook, in whose place this object stands while it asks.
    """

    def __init__(
        self,
        lm: Any,
        kind: str,
        arguments: Sequence[tuple[Any, Any]],
        budget: RetryBudget,
        read: Callable[[Any], Answer | Unscored],
        on_answer: Callable[[int, Answer], None] | None,
    ) -> None:
        self._lm = lm
        self._kind = kind
        self._arguments = arguments
        self._budget = budget
        self._read = read
        self._on_answer = on_answer
        self._answers: dict[int, Answer | Unscored] = {}
        self._under_way: dict[Any, deque[int]] = {}

    def run(self, step: int) -> list[Answer | Unscored]:
        """Ask for everything, `step` requests in a call of the host; one answer a request, in their order."""
        self._budget.failures_in_a_row = 0
        places = list(range(len(self._arguments)))
        starts = range(0, len(places), max(1, step))
        our_way = _ASKING_OUR_WAY if is_a(type(self._lm), "TemplateAPI") else contextlib.nullcontext()
        with replaced(self._lm, "cache_hook", self), our_way:
            for start in Progress(starts, desc="asking", disable=len(starts) == 1):
                self._ask(places[start : start + step])
        return [self._answers[place] for place in places]

    def add_partial(self, kind: str, request: Any, answer: Any) -> None:
        """Take an answer from the host; the name is that of the host's cache hook."""
        cuts = getattr(self._lm, "_dialeval_cuts", None) if kind == "generate_until" else None
        if cuts and cuts.popleft():
            answer = CutAnswer(answer)
        if places := self._under_way.get(_key(request)):
            self._settle(places.popleft(), answer)

    def _ask(self, places: list[int]) -> None:
        try:
            answers = self._budget.call(self._call, places) if len(places) == 1 else self._call(places)
        except self._budget.never:
            raise
        except GaveUp:
            self._settle(places[0], NOT_ASKED)
        except Exception as error:
            if len(places) == 1:
                self._settle(places[0], Unscored(Reason.API_ERROR, describe(error)))
                return
            missing = [place for place in places if place not in self._answers]
            middle = (len(missing) + 1) // 2
            for part in filter(None, (missing[:middle], missing[middle:])):
                self._ask(part)
        else:
            for place, answer in zip(places, answers, strict=True):
                self._settle(place, answer)

    def _call(self, places: list[int]) -> list[Any]:
        self._under_way = defaultdict(deque)
        for place in places:
            self._under_way[_key(self._arguments[place])].append(place)
        requests = [versions.request(self._kind, {}, self._arguments[place], task="judge", place=place) for place in places]
        if self._budget.is_spent:
            return [NOT_ASKED] * len(places)
        with _naming_absent_log_probabilities(asked=self._kind == "loglikelihood" and is_a(type(self._lm), "TemplateAPI")):
            answers: list[Any] = getattr(self._lm, self._kind)(requests)
        return answers

    def _settle(self, place: int, answer: Any) -> None:
        if place in self._answers:
            return
        if answer is None:
            answer = NO_ANSWER
        if not isinstance(answer, Unscored):
            self._budget.failures_in_a_row = 0
            answer = self._read(answer)
        self._answers[place] = answer
        if self._on_answer is not None and not isinstance(answer, Unscored):
            self._on_answer(place, answer)


class _AskingOurWay:
    """Lets the host's API models ask with bounds of time and size, and without a bar for each batch that they are handed.

    The names are those of the host's module: the first of several threads puts ours there, the last one puts the host's back.
    """

    def __init__(self) -> None:
        self._lock, self._n_asking = threading.Lock(), 0
        self._theirs: dict[str, Any] = {}

    def __enter__(self) -> None:
        api_models: Any = importlib.import_module("lm_eval.models.api_models")
        from .bounded_http import BoundedResponse, post

        with self._lock:
            if not self._n_asking:
                ours = {
                    "tqdm": functools.partial(api_models.tqdm, disable=True),
                    "requests": SimpleNamespace(post=post),
                    "ClientSession": functools.partial(api_models.ClientSession, response_class=BoundedResponse),
                }
                self._theirs = {name: getattr(api_models, name) for name in ours}
                vars(api_models).update(ours)
            self._n_asking += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_asking -= 1
            if not self._n_asking:
                vars(sys.modules["lm_eval.models.api_models"]).update(self._theirs)


_ASKING_OUR_WAY = _AskingOurWay()


def _key(request: tuple[Any, Any]) -> tuple[Any, str | None]:
    """What the host names a request by; the settings of a generation are the same in all of one call."""
    first, second = request
    return first, second if isinstance(second, str) else None
