"""Removal of keys, tokens and passwords from arguments, addresses and messages, by their names and by their values.

A name is judged as a whole or by its last word, since many arguments of tokenizers have "token" in their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
SHORTEST_VALUE = 8
"""Minimum length of an environment variable's secret to search for; shorter ones occur in words."""

_LAST_WORDS = (
    r"(?:api|access|secret|private|auth)?keys?|secrets?|passwords?|passwd|pwd|passphrase|credentials?|auth|authorization|bearer|"
    r"headers?|cookies?|access_key_id"
)
# Tokens of tokenizers and templates; any other token is a secret.
_OWN_TOKENS = (
    "add_bos|add_eos|assistant|audio|bos|cls|end|eos|eot|image|mask|pad|prefix|sep|special|start|stop|think_end|think_start|"
    "unk|video"
)
_NAME = re.compile(rf"(?:.*[^a-z0-9])?(?:{_LAST_WORDS}|tokens?)")
_OWN_TOKEN = re.compile(rf"(?:.*[^a-z0-9])?(?:{_OWN_TOKENS})_tokens?|(?:max|min|n|num|new)_(?:.*_)?tokens?|tokens?_per_.*")
_WORD_IN_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_ADDRESS = re.compile(
    r"\b(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]{0,15}://)(?:[^\s/'\"]*@)?(?P<place>[^\s?#'\"]*)(?P<rest>[?#][^\s'\",)]*)?"
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[^\s'\",;)]+", re.IGNORECASE)
# The latter is an option of a command line, whose value is told from a sentence about the option by its length.
_NAME_BEFORE_VALUE = re.compile(
    r"""(?<![\w-])([A-Za-z][\w-]*)['"]?\s*[:=]\s*|(?<![\w-])--([A-Za-z][\w-]*)['"]?(?:,\s*|\s+)(?=['"]?[^\s'"-][^\s'"]{7})"""
)
_VALUE = re.compile(r"""(['"])(?:(?!\1).)*\1?|[^\s'",;&)}\]]+""", re.DOTALL)
# Keys of OpenAI and Anthropic, Hugging Face, GitHub, Google, AWS and Groq.
_KEY = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|gh[opsu]_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{16}|"
    r"gsk_[A-Za-z0-9]{20,})"
)


def is_secret(name: str) -> bool:
    """Whether an argument or variable of this name holds a secret.

    Example:
        >>> [name for name in ("api_key", "hf_token", "X-Api-Key", "clientSecret", "access_key_id") if not is_secret(name)]
        []
        >>> [name for name in ("tokenizer", "prefix_token_id", "think_end_token", "add_bos_token", "monkey") if is_secret(name)]
        []
    """
    words = _WORD_IN_CAMEL_CASE.sub("_", name).replace("-", "_").lower()
    return bool(_NAME.fullmatch(words)) and not _OWN_TOKEN.fullmatch(words)


def without_secrets(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments without secrets, also nested ones, and with secrets in texts hidden.

    Example:
        >>> without_secrets({"model": "m", "api_key": "x", "client_kwargs": {"api_key": "x", "retries": 2}})
        {'model': 'm', 'client_kwargs': {'retries': 2}}
    """
    # `token=True` only tells a library to look for a token.
    return {
        str(name): _without_secrets(value)
        for name, value in arguments.items()
        if isinstance(value, bool) or value is None or not is_secret(str(name))
    }


def redacted(text: str) -> str:
    """Return a text with its secrets hidden: after their names, in addresses, and those of the environment.

    Example:
        >>> redacted("api_key=abc, https://me:pw@host/v1?key=abc and {'Authorization': 'Bearer abc'}")
        "api_key=***, https://host/v1 and {'Authorization': '***'}"
    """
    # The shell's PWD is a folder. Longest first: one secret may begin with another.
    secrets = {value for name, value in os.environ.items() if name != "PWD" and is_secret(name)}
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= SHORTEST_VALUE:
            text = text.replace(value, HIDDEN)
    text = _ADDRESS.sub(lambda match: match["scheme"] + match["place"], text)
    text = _KEY.sub(HIDDEN, _BEARER.sub(rf"\1 {HIDDEN}", text))
    return _without_named_values(text)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_secrets(value)
    if isinstance(value, (list, tuple)):
        return [_without_secrets(item) for item in value]
    return redacted(value) if isinstance(value, str) else value


def _without_named_values(text: str) -> str:
    parts, place, start = [], 0, 0
    while (named := _NAME_BEFORE_VALUE.search(text, start)) is not None:
        # Another name may be followed by a secret's: "ValueError: api_key=...".
        start = named.end()
        if is_secret(named[1] or named[2]) and (value := _VALUE.match(text, start)) is not None:
            quote = value[1] or ""
            parts += [text[place:start], quote, HIDDEN, quote]
            place = start = value.end()
    return "".join([*parts, text[place:]])
