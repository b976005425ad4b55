"""HTTP in the host's place: a request ends in time, and a reply that is too long is not read to its end.

The host's API models wait `timeout` seconds for each piece of a reply where they ask one request at a time, and they read a
reply whole. A server that drips, or that never stops sending, then takes hours or all memory.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDoneInTime
from threading import Thread
from typing import Any

import aiohttp
import requests

MAX_REPLY_BYTES = 16 * 2**20
"""Of a reply, decompressed. An answer of 4,096 tokens with log probabilities has less than one MiB."""
_PIECE_BYTES = 1024
_HEAD_START = 0.5
"""Seconds after the limit in which requests may still say itself what took too long: connecting or reading."""


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
