"""HTTP in the host's place: a request ends in time, has what the server takes, and a reply that is too long is not read whole.

The host's API models wait `timeout` seconds for each piece of a reply where they ask one request at a time, and they read a
reply whole. A server that drips, or that never stops sending, then takes hours or all memory.
"""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDoneInTime
from threading import Thread
from typing import Any

import aiohttp
import requests
from tenacity import retry_if_exception

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.redaction import redacted

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 16 * 2**20
"""Of a reply, decompressed. An answer of 4,096 tokens with log probabilities has less than one MiB."""
_PIECE_BYTES = 1024
_HEAD_START = 0.5
"""Seconds after the limit in which requests may still say itself what took too long: connecting or reading."""
_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_NAMED = re.compile(r"""['"`](max_tokens|max_completion_tokens|temperature|stop|seed)\\?['"`]""")
_UNSUPPORTED = re.compile(
    r"unsupported|not support|not (?:be )?(?:permitted|allowed|accepted)|unknown|unrecogni[sz]ed|unexpected", re.IGNORECASE
)
_FORM = re.compile("response_format|json.?schema|grammar", re.IGNORECASE)
_LONGEST_REFUSAL = 2000


class ReplyTooLong(Exception):
    """A server sent more than any answer has."""

    def __init__(self) -> None:
        super().__init__(f"the reply has more than {MAX_REPLY_BYTES} bytes")


def post(url: str, *, timeout: float, **options: Any) -> requests.Response:
    """Do as `requests.post` does, with a limit for the whole request and its reply."""
    replied: Future[requests.Response] = Future()
    bound = functools.partial(_bound, deadline=time.monotonic() + timeout)

    def ask() -> None:
        try:
            replied.set_result(requests.post(url, timeout=timeout, hooks={"response": bound}, **options))
        except BaseException as error:
            replied.set_exception(error)

    # A thread that waits for a server cannot be stopped; this one ends with the piece that it waits for, or with the process.
    Thread(target=ask, daemon=True).start()
    try:
        return replied.result(timeout + _HEAD_START)
    except NotDoneInTime:
        raise requests.ReadTimeout(f"no whole reply in {timeout} s") from None


def _bound(response: requests.Response, *, deadline: float, **_: Any) -> None:
    """Limit what requests reads when it has called its hooks."""
    stream = response.raw.stream

    def bounded(_: int, **options: Any) -> Iterator[bytes]:
        n_bytes = 0
        for piece in stream(_PIECE_BYTES, **options):
            n_bytes += len(piece)
            if n_bytes > MAX_REPLY_BYTES:
                raise ReplyTooLong
            if time.monotonic() > deadline:
                raise requests.ReadTimeout("no whole reply in time")
            yield piece

    response.raw.stream = bounded


class BoundedResponse(aiohttp.ClientResponse):
    """A response of at most `MAX_REPLY_BYTES`; the session's own timeout is one of the whole request."""

    async def read(self) -> bytes:
        """Return the body."""
        if self._body is None:
            body = bytearray()
            async for piece in self.content.iter_any():
                body += piece
                if len(body) > MAX_REPLY_BYTES:
                    raise ReplyTooLong
            self._body = bytes(body)
        return self._body

    def raise_for_status(self) -> None:
        """Raise aiohttp's error with the server's own words, which may name a parameter that it does not take."""
        try:
            super().raise_for_status()
        except aiohttp.ClientResponseError as error:
            error.body = self._body  # type: ignore[attr-defined]
            raise


class RequestParameters:
    """What one server takes of a request, and `extra` fields of every request for a text.

    OpenAI's newer models take `max_completion_tokens` for `max_tokens`, and neither `stop` nor a `temperature` of 0.
    """

    def __init__(self, extra: dict[str, Any]) -> None:
        self._extra = extra
        self._refused: set[str] = set()

    def adapted(self, payload: dict[str, Any], *, generate: bool) -> dict[str, Any]:
        """The host's request, with what this server has refused renamed or left out."""
        sent = payload | (self._extra if generate else {})
        renamed = {_OTHER_NAMES[name]: sent[name] for name in self._refused & sent.keys() & _OTHER_NAMES.keys()}
        return {name: value for name, value in sent.items() if name not in self._refused} | renamed

    @property
    def rules(self) -> dict[str, Any]:
        """Those of tenacity for one request: it is sent again for each parameter that the server refuses."""
        of_request: set[str] = set()

        def is_adapted(error: BaseException) -> bool:
            # The server's own words: aiohttp's error has them from `BoundedResponse`, that of requests has the whole reply.
            words = getattr(error, "body", None) or getattr(getattr(error, "response", None), "content", None)
            text = words[:_LONGEST_REFUSAL].decode(errors="replace") if isinstance(words, bytes) else ""
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

        return {"retry": retry_if_exception(is_adapted), "reraise": True}
