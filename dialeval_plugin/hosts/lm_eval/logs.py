"""Keeps keys out of what lm-eval logs: where a request fails it writes down the request with its headers."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from dialeval_plugin.core.redaction import redacted

_LOGGERS = ("lm_eval", "asyncio", "aiohttp", "httpx", "requests", "urllib3")
"""The host's, and of those through which it asks: asyncio logs the error of a request that nobody waited for."""


@cache
def redact_host_logs() -> None:
    """Hide secrets in every record of the host's loggers and of those through which it asks, until the process ends.

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
