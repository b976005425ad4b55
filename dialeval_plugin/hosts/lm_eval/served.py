"""Models behind HTTP: the host's class with limits on each request, adaptation to the server, and no answer lost."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from tenacity import AsyncRetrying, retry_if_exception
from yarl import URL

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.llm.language_model import NOT_ASKED, CutAnswer
from dialeval_plugin.terminal import Progress

from . import versions
from .asking import (
    MAX_FAILURES_IN_A_ROW,
    NEVER_REPEATED,
    USED_UP,
    GaveUp,
    RetryBudget,
    describe,
    naming_absent_log_probabilities,
)

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 16 * 2**20
"""Size limit of a decompressed reply. An answer of 4,096 tokens with log probabilities has less than one MiB."""
_FILTERED = frozenset({"content_filter", "refusal"})
"""Finish reasons for an answer that a filter removed or broke off: OpenAI and compatible servers, Anthropic."""
_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_NAMED = re.compile(r"""['"`](max_tokens|max_completion_tokens|temperature|stop|seed)\\?['"`]""")
_UNSUPPORTED = re.compile(
    r"unsupported|not support|not (?:be )?(?:permitted|allowed|accepted)|unknown|unrecogni[sz]ed|unexpected", re.IGNORECASE
)
_FORM = re.compile("response_format|json.?schema|grammar", re.IGNORECASE)
_LONGEST_REFUSAL, _LONGEST_ERROR = 2000, 500
"""Characters of a server's error message that are read, and that are logged."""


class ReplyTooLong(Exception):
    """A server sent a reply longer than any answer."""

    def __init__(self) -> None:
        super().__init__(f"the reply has more than {MAX_REPLY_BYTES} bytes")


class ErrorReply(Exception):
    """A server reported success (HTTP 200) and sent an error in place of an answer."""


class _BoundedResponse(aiohttp.ClientResponse):
    """A response of at most `MAX_REPLY_BYTES`; the session's own timeout covers the whole request."""

    async def read(self) -> bytes:
        if self._body is None:
            body = bytearray()
            async for piece in self.content.iter_any():
                body += piece
                if len(body) > MAX_REPLY_BYTES:
                    raise ReplyTooLong
            self._body = bytes(body)
        return self._body

    def raise_for_status(self) -> None:
        """Raise aiohttp's error with the server's message, which may name a parameter that it refuses."""
        try:
            super().raise_for_status()
        except aiohttp.ClientResponseError as error:
            error.body = self._body  # type: ignore[attr-defined]
            raise


if TYPE_CHECKING:
    _Host = Any
else:
    _Host = object


def served(kind: type[Any], extra_fields: dict[str, Any]) -> type[Any]:
    """Return a subclass of the host's class with the requests of `ServedModel`."""
    return type(kind.__name__, (ServedModel, kind), {"extra_fields": extra_fields})


class ServedModel(_Host):  # type: ignore[misc]  # the host is not typed
    """The part of a served model that replaces the host's: request fields, reading of replies, and handling of failures.

    The host retries without jitter, and when one of several concurrent requests fails for good it drops all of them; here that
    one becomes an `Unscored` among the answers. OpenAI's newer models take `max_completion_tokens` for `max_tokens`, and
    neither `stop` nor a `temperature` of 0: a parameter that a server refused is not sent to it again.

    Attributes:
        budget: limits on retries.
        extra_fields: fields of every request for a text.
    """

    extra_fields: dict[str, Any]
    _concurrent: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.budget = RetryBudget(self.max_retries, 1.0, NEVER_REPEATED)
        self._refused: set[str] = set()
        self._n_at_once = max(1, self._concurrent)
        # The host sends single requests by another path, whose timeout does not cover the whole reply.
        self._concurrent = max(2, self._concurrent)

    async def get_batched_requests(
        self, requests: Any, cache_keys: Any, *, generate: bool = True, ctxlens: Any = None, **kwargs: Any
    ) -> list[list[Any]]:
        """Send all requests and return the answers of each batch, or the same `Unscored` for all of it."""
        from lm_eval.models.utils import chunks

        turns = asyncio.Semaphore(self._n_at_once)
        columns = (requests, cache_keys, ctxlens or [None] * len(requests))
        batches = list(zip(*(chunks(column, n=self._batch_size) for column in columns), strict=True))
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._n_at_once, ssl=self.verify_certificate),
            proxy=_proxy_of(self.base_url or ""),
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            response_class=_BoundedResponse,
            trace_configs=[_refusing_redirects()],
        ) as session:
            sent = {"session": session, "sem": asyncio.Semaphore(self._n_at_once), "generate": generate, **kwargs}
            with Progress(total=len(batches), desc="asking", disable=len(batches) == 1) as bar:

                async def ask(messages: Any, keys: Any, lengths: Any) -> list[Any]:
                    answers = await self._answers(turns, messages=messages, cache_keys=keys, ctxlens=lengths, **sent)
                    bar.update()
                    return answers

                return await asyncio.gather(*(ask(*batch) for batch in batches))

    async def _answers(self, turns: asyncio.Semaphore, **sent: Any) -> list[Any]:
        async def once() -> list[Any]:
            with naming_absent_log_probabilities(asked=not sent["generate"]):
                rules = AsyncRetrying(retry=retry_if_exception(self._adaptation()), reraise=True)
                answers: list[Any] = await rules(self.amodel_call, **sent)
            return answers

        # Requests wait for their turn here and not in the host's call, so that those not yet begun see that others failed.
        async with turns:
            try:
                return await self.budget.acall(once)
            except self.budget.never:
                if not self.budget.is_spent:
                    self.budget.failures_in_a_row = MAX_FAILURES_IN_A_ROW
                    raise
                failure = NOT_ASKED  # asyncio would print the errors of the other requests that were in flight
            except GaveUp:
                failure = NOT_ASKED
            except Exception as error:
                failure = Unscored(Reason.API_ERROR, describe(error))
        return [failure] * len(sent["messages"])

    def _create_payload(self, *args: Any, generate: bool = False, **kwargs: Any) -> dict[str, Any]:
        """Return the host's request, with parameters that this server has refused renamed or left out."""
        payload = versions.plain_messages(super()._create_payload(*args, generate=generate, **kwargs))
        sent: dict[str, Any] = payload | (self.extra_fields if generate else {})
        renamed = {_OTHER_NAMES[name]: sent[name] for name in self._refused & sent.keys() & _OTHER_NAMES.keys()}
        return {name: value for name, value in sent.items() if name not in self._refused} | renamed

    def _adaptation(self) -> Callable[[BaseException], bool]:
        """Return the rule that allows one repetition for each parameter that the server refuses."""
        of_request: set[str] = set()

        def is_adapted(error: BaseException) -> bool:
            body = getattr(error, "body", None) or b""
            text = body[:_LONGEST_REFUSAL].decode(errors="replace")
            named = _NAMED.search(text) if _UNSUPPORTED.search(text) else None
            if named is None or named[1] in of_request:
                if _FORM.search(text):
                    raise InputError(
                        f"llm_args: the server refuses what structured_output=true sends: {redacted(text)}. "
                        "Leave structured_output out, or choose a server and a model that take response_format."
                    ) from error
                return False
            if named[1] not in self._refused:
                change = f"sent as {_OTHER_NAMES[named[1]]!r}" if named[1] in _OTHER_NAMES else "not sent"
                logger.warning("the server does not take %r: it is %s from here on", named[1], change)
            of_request.add(named[1])
            self._refused.add(named[1])
            return True

        return is_adapted

    def parse_generations(self, outputs: Any, **kwargs: Any) -> list[str | CutAnswer | Unscored]:
        """Return the texts of replies without the thinking; mark truncated ones, and leave out those that a filter ended."""
        reasons = []
        for output in _checked(outputs):
            # A reply of Anthropic is one message; the others have a list of choices.
            for choice in sorted(output.get("choices") or [output], key=lambda choice: choice.get("index", 0)):
                message = choice.get("message") or choice
                if isinstance(parts := message.get("content"), list):
                    text = "".join(part["text"] for part in parts if part.get("type") == "text")
                    message["content"] = text if message is not output else [{"text": text}]
                # OpenAI's models may have a refusal in the place of a text.
                message["content"] = message.get("content") or message.get("refusal")
                reasons.append(choice.get("finish_reason") or choice.get("stop_reason"))
        answers = super().parse_generations(outputs=outputs, **kwargs)
        return [_answer(text or "", reason) for text, reason in zip(answers, reasons, strict=True)]

    def parse_logprobs(self, outputs: Any, **kwargs: Any) -> list[tuple[float, bool]]:
        """Return the host's log probabilities of replies without errors."""
        _checked(outputs)
        answers: list[tuple[float, bool]] = super().parse_logprobs(outputs=outputs, **kwargs)
        return answers


def _refusing_redirects() -> aiohttp.TraceConfig:
    """Stop the run where a server redirects to another one: aiohttp would send it the conversation and Anthropic's key."""

    async def check(_: Any, __: Any, reply: aiohttp.TraceRequestRedirectParams) -> None:
        there = reply.url.join(URL(reply.response.headers.get("Location", reply.response.headers.get("URI", ""))))
        if there.origin() != reply.url.origin():
            raise InputError(
                f"base_url: the server redirects to {redacted(str(there.origin()))}. "
                "Give that address, if you trust it with the conversations and the key."
            )

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(check)
    return trace


def _proxy_of(address: str) -> str | None:
    """Return the proxy that the environment names for a server on another machine."""
    # aiohttp's own reading (trust_env) also takes a password from ~/.netrc, in the place of the API key.
    url = urlsplit(address)
    if url.hostname in {"localhost", "::1"} or (url.hostname or "").startswith("127."):
        return None
    # Also with the port, which an entry of no_proxy may have.
    if any(map(proxy_bypass, (url.hostname or "", url.netloc.rpartition("@")[2]))):
        return None
    return getproxies().get(url.scheme)


def _answer(text: str, reason: str | None) -> str | CutAnswer | Unscored:
    """Return an answer by the reason why it ended."""
    if reason in _FILTERED:
        return Unscored(Reason.REFUSAL, f"the server's filter ended the answer ({reason})")
    return CutAnswer(text) if reason in USED_UP else text


def _checked(outputs: Any) -> list[Any]:
    """Return replies as a list; the host would read an error sent with HTTP 200 as an empty text."""
    replies = outputs if isinstance(outputs, list) else [outputs]
    for reply in replies or [None]:
        if not isinstance(reply, dict) or not reply.get("choices", True):
            raise ErrorReply("the server's reply has no answer")
        if error := reply.get("error"):
            # Only the log has the server's message, which may differ from run to run.
            logger.warning("the server sent an error in the place of an answer: %s", redacted(str(error))[:_LONGEST_ERROR])
            raise ErrorReply("the server sent an error in the place of an answer")
    return replies
