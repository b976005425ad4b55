"""Requests to an lm-eval model: retries, a limit on failures, and answers kept when other requests fail."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from typing import Any, Generic, TypeVar, cast

from tenacity import AsyncRetrying, Future, RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from dialeval_plugin.core.errors import DialevalError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.llm.language_model import NOT_ASKED, CutAnswer

from . import versions

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")
Result = TypeVar("Result")

MAX_FAILURES_IN_A_ROW = 5
LONGEST_PAUSE = 60.0
"""Longest pause in seconds that a server may impose before we retry."""
_PASSING = frozenset({408, 409, 425, 429})
"""HTTP client errors (RFC 9110, RFC 6585, RFC 8470) that may pass when the same request is repeated."""
_OF_EVERY_REQUEST = {
    401: "the server does not take the API key",
    404: "the server does not know the address or the model. Check base_url and model in llm_args",
    405: "the server has no chat or completions at this address. Check base_url in llm_args",
}
"""HTTP client errors that the next request would have too, and what they mean."""
USED_UP = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons for an answer that used up its tokens: OpenAI and compatible servers, Anthropic, Mistral."""
NO_ANSWER = Unscored(Reason.API_ERROR, "the model gave no answer")


class GaveUp(Exception):
    """So many requests failed in a row that the model is considered down."""


class NoLogProbabilities(Exception):
    """The model or its server did not return the requested log probabilities."""


NEVER_REPEATED = (AssertionError, NotImplementedError, DialevalError, NoLogProbabilities)
"""Errors of a wrong kind of request: every document would fail in the same way."""
NEVER_REPEATED_LOCALLY = (*NEVER_REPEATED, AttributeError, TypeError)
"""The same for a model in this process. From a served model, the two added errors mean an unexpected reply, and the next reply
may be fine.
"""


@dataclass
class RetryBudget:
    """Limits on retries: how often a request is repeated, how long to wait in between, and when to stop the run.

    Pauses grow by a factor of 2 and vary by half, so that many clients that failed together do not come back together (Brooker
    2015, "Exponential Backoff And Jitter"). A waiting time given by the server takes precedence.

    Attributes:
        attempts: attempts per request, the first one included.
        wait: seconds before the first repetition.
        never: errors that end the run.
        failures_in_a_row: requests that failed for good since the last answer.
    """

    attempts: int
    wait: float
    never: tuple[type[Exception], ...]
    failures_in_a_row: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether the model is considered down."""
        return self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW

    def call(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call `function` until it succeeds; after the last attempt, raise its error or `GaveUp`."""
        return Retrying(sleep=time.sleep, **self._rules)(function, *args)

    async def acall(self, function: Callable[..., Awaitable[Result]], *args: Any, **kwargs: Any) -> Result:
        """Do the same as `call` for a coroutine."""
        return await AsyncRetrying(sleep=asyncio.sleep, **self._rules)(function, *args, **kwargs)

    @property
    def _rules(self) -> dict[str, Any]:
        return {
            "before": self._refuse_if_spent,
            "retry": retry_if_exception(self._may_pass),
            "wait": self._pause,
            "stop": stop_after_attempt(max(1, self.attempts)),
            "retry_error_callback": self._fail,
        }

    def _refuse_if_spent(self, _: RetryCallState) -> None:
        if self.is_spent:
            raise GaveUp

    def _may_pass(self, error: BaseException) -> bool:
        """Whether the same request may succeed later: a transport, a server or a device may fail with any error."""
        if not isinstance(error, Exception) or isinstance(error, self.never):
            return False
        status = _status(error)
        if status is not None and 400 <= status < 500 and status not in _PASSING:
            # Any other refusal shows that the server is up, so it says nothing about the next request.
            self.failures_in_a_row += status in _OF_EVERY_REQUEST
            logger.warning("a request failed for good: %s", describe(error))
            return False
        return True

    def _pause(self, state: RetryCallState) -> float:
        if (asked_for := _retry_after(_error_of(state))) is not None:
            return min(asked_for, LONGEST_PAUSE)
        return wait_exponential(multiplier=self.wait, max=LONGEST_PAUSE)(state) * random.uniform(0.5, 1.5)

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
    """Seconds that a server asks to wait; RFC 9110 allows a number and a date."""
    headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None) or {}
    text = headers.get("Retry-After", "")
    try:
        seconds = float(text) if text[:1].isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return None
    return max(0.0, seconds)


def describe(error: Exception) -> str:
    """Return the error as a short text, without a transport's message, which may hold a key and varies from run to run."""
    if (status := _status(error)) is not None and status >= 400:
        return f"HTTP {status}" + (f": {meaning}" if (meaning := _OF_EVERY_REQUEST.get(status)) else "")
    if status is not None or isinstance(error, JSONDecodeError):
        return "the server's reply is no JSON"
    name = type(error).__name__
    if type(error).__module__.partition(".")[0] in versions.TRANSPORTS or not str(error):
        return name
    return f"{name}: {error}"


def note_cut_answers(lm: Any) -> None:
    """Let a model in this process (hf, vllm) note for `BatchedRequests` which answers of a batch were truncated, in order."""
    generate = getattr(lm, "_model_generate", None)
    if generate is None:
        return

    def noting(*args: Any, **kwargs: Any) -> Any:
        made = generate(*args, **kwargs)
        lm._dialeval_cuts = deque(_are_cut(lm, made, kwargs))
        return made

    lm._model_generate = noting


def _are_cut(lm: Any, made: Any, settings: Mapping[str, Any]) -> Iterator[bool]:
    """Yield for each answer of a batch whether it reached its length limit without an end token or stop string."""
    if isinstance(made, list):  # vllm reports this itself; outputs of other models are not known
        yield from (output.outputs[0].finish_reason in USED_UP for output in made if hasattr(output, "outputs"))
    elif {"context", "max_length", "stop"} <= settings.keys():
        n_shown = settings["context"].shape[1] if lm.backend == "causal" else 0
        for tokens in made.tolist():
            is_full = len(tokens) >= settings["max_length"] and tokens[-1] != lm.tokenizer.pad_token_id
            text = lm.tok_decode(tokens[n_shown:], skip_special_tokens=False) if is_full else ""
            yield is_full and not any(end in text for end in settings["stop"] if end)


@contextlib.contextmanager
def naming_absent_log_probabilities(*, asked: bool) -> Iterator[None]:
    """Raise a clear error if the host cannot request log probabilities, or cannot read a reply without them."""
    try:
        yield
    except (AssertionError, KeyError, NotImplementedError, TypeError) as error:
        if asked and (not isinstance(error, KeyError) or error.args == ("logprobs",)):
            raise NoLogProbabilities from error
        raise


@dataclass
class BatchedRequests(Generic[Answer]):
    """Requests of one call, and their answers as they arrive.

    A batch that fails is halved until the failing request is alone. Answers that arrived before the failure are kept: the host
    passes each one to its model's cache hook, which this object replaces during the call.
    """

    lm: Any
    kind: str
    arguments: Sequence[tuple[Any, Any]]
    budget: RetryBudget
    read: Callable[[Any], Answer | Unscored]
    on_answer: Callable[[int, Answer], None] | None
    _answers: dict[int, Answer | Unscored] = field(default_factory=dict)
    _under_way: dict[Any, deque[int]] = field(default_factory=dict)

    def run(self) -> list[Answer | Unscored]:
        """Send all requests; return one answer per request, in order."""
        self.budget.failures_in_a_row = 0
        places = list(range(len(self.arguments)))
        with replaced(self.lm, "cache_hook", self):
            if places:
                self._ask(places)
        return [self._answers[place] for place in places]

    def add_partial(self, kind: str, request: Any, answer: Any) -> None:
        """Take an answer from the host; the method has the name of the host's cache hook."""
        cuts = getattr(self.lm, "_dialeval_cuts", None) if kind == "generate_until" else None
        if cuts and cuts.popleft():
            answer = CutAnswer(answer)
        if places := self._under_way.get(_key(request)):
            self._settle(places.popleft(), answer)

    def _ask(self, places: list[int]) -> None:
        try:
            answers = self.budget.call(self._call, places) if len(places) == 1 else self._call(places)
        except self.budget.never:
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
            self._under_way[_key(self.arguments[place])].append(place)
        requests = [versions.request(self.kind, {}, self.arguments[place], task="judge", place=place) for place in places]
        if self.budget.is_spent:
            return [NOT_ASKED] * len(places)
        with naming_absent_log_probabilities(
            asked=self.kind == "loglikelihood" and versions.is_a(type(self.lm), "TemplateAPI")
        ):
            return _outside_a_loop(getattr(self.lm, self.kind), requests)

    def _settle(self, place: int, answer: Any) -> None:
        if place in self._answers:
            return
        if answer is None:
            answer = NO_ANSWER
        if not isinstance(answer, Unscored):
            self.budget.failures_in_a_row = 0
            answer = self.read(answer)
        self._answers[place] = answer
        if self.on_answer is not None and not isinstance(answer, Unscored):
            self.on_answer(place, answer)


def _outside_a_loop(ask: Callable[[Any], list[Any]], requests: Any) -> list[Any]:
    """Call the host in a thread if an event loop already runs here, as in a notebook: the host starts its own loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return ask(requests)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(ask, requests).result()


def _key(request: tuple[Any, Any]) -> tuple[Any, str | None]:
    first, second = request
    return first, second if isinstance(second, str) else None
