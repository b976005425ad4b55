"""Asking an lm-eval model for many answers: one request that fails costs no other its answer, and none is asked for ever."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar, cast

from tenacity import AsyncRetrying, Future, RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from dialeval_plugin.core.errors import DialevalError
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.llm.language_model import CutAnswer

from . import versions
from .arguments import is_a

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Result = TypeVar("Result")

MAX_FAILURES_IN_A_ROW = 5
LONGEST_PAUSE = 60.0
"""Seconds that a server may make us wait before we ask again."""
_PASSING = frozenset({408, 409, 425, 429})
"""Client errors (RFC 9110, RFC 6585, RFC 8470) that the same request may not meet again."""
USED_UP = frozenset({"length", "max_tokens", "model_length"})
"""Servers' names for the end of an answer whose tokens were used up: OpenAI and those like it, Anthropic, Mistral."""
_TRANSPORTS = ("requests", "urllib3", "aiohttp", "httpx")
_LOGGERS = ("lm_eval", "asyncio", *_TRANSPORTS)
"""The host's, and of those through which it asks: asyncio logs the error of a request that nobody waited for."""
NO_ANSWER = Unscored(Reason.API_ERROR, "the model gave no answer")
NOT_ASKED = Unscored(Reason.API_ERROR, "not asked: the requests before failed one after the other")


class GaveUp(Exception):
    """So many requests failed one after the other that the model is taken to be down."""


class NoLogProbabilities(Exception):
    """The model or its server does not give the log probabilities that it was asked for."""


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
        wait = _retry_after(_error_of(state))
        return min(wait, LONGEST_PAUSE) if wait is not None else self._growing(state) * random.uniform(0.5, 1.5)

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


def note_cut_answers(lm: Any) -> None:
    """Let a model in this process (hf, vllm) note for `BatchedRequests` which answers of a batch were cut, in their order."""
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
        yield from (output.outputs[0].finish_reason in USED_UP for output in made if hasattr(output, "outputs"))
    elif {"context", "max_length", "stop"} <= settings.keys():
        n_shown = settings["context"].shape[1] if lm.backend == "causal" else 0
        for tokens in made.tolist():
            is_full = len(tokens) >= settings["max_length"] and tokens[-1] != lm.tokenizer.pad_token_id
            text = lm.tok_decode(tokens[n_shown:], skip_special_tokens=False) if is_full else ""
            yield is_full and not any(end in text for end in settings["stop"] if end)


@contextlib.contextmanager
def naming_absent_log_probabilities(*, asked: bool) -> Iterator[None]:
    """Name what is wrong where the host cannot ask for log probabilities, or cannot read a reply because it lacks them."""
    try:
        yield
    except (AssertionError, KeyError, NotImplementedError, TypeError) as error:
        if asked and (not isinstance(error, KeyError) or error.args == ("logprobs",)):
            raise NoLogProbabilities from error
        raise


class BatchedRequests(Generic[Answer]):
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

    def run(self) -> list[Answer | Unscored]:
        """Ask for everything; return one answer a request, in their order."""
        self._budget.failures_in_a_row = 0
        places = list(range(len(self._arguments)))
        with replaced(self._lm, "cache_hook", self):
            if places:
                self._ask(places)
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
        with naming_absent_log_probabilities(asked=self._kind == "loglikelihood" and is_a(type(self._lm), "TemplateAPI")):
            return _outside_a_loop(getattr(self._lm, self._kind), requests)

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


def _outside_a_loop(ask: Callable[[Any], list[Any]], requests: Any) -> list[Any]:
    """Call the host, which runs an event loop of its own, in a thread where one runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ask(requests)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(ask, requests).result()


def _key(request: tuple[Any, Any]) -> tuple[Any, str | None]:
    """Return the host's name of a request; the settings of a generation are the same in all of one call."""
    first, second = request
    return first, second if isinstance(second, str) else None


@functools.cache
def redact_host_logs() -> None:
    """Hide secrets in what the host's loggers and those through which it asks write, until the process ends.

    Where a request fails the host writes down the request with its headers.

    A filter of one logger does not see its children's records, and some are made later, so the place is where records are made.
    """
    make = logging.getLogRecordFactory()

    def record(*arguments: Any, **options: Any) -> logging.LogRecord:
        made = make(*arguments, **options)
        if made.name.partition(".")[0] in _LOGGERS:
            made.msg, made.args = redacted(made.getMessage()), ()
            if made.exc_info:
                # A formatter does not format again what it finds here.
                made.exc_text = redacted(logging.Formatter().formatException(made.exc_info))
        return made

    logging.setLogRecordFactory(record)
