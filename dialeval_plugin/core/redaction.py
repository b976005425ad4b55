"""What must not be shown of arguments, addresses and messages: keys, tokens and passwords, by their names and by their values.

Results are published and logs are sent around. A name decides as a whole or by its last word, since half of the tokenizers'
arguments have "token" in their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
SHORTEST_VALUE = 8
"""Of a secret in the environment that is looked for in texts: a shorter one would be found in words."""

_LAST_WORDS = (
    r"(?:api|access|secret|private|auth)?keys?|secrets?|passwords?|passwd|pwd|passphrase|credentials?|auth|authorization|bearer|"
    r"headers?|cookies?|access_key_id"
)
# Of the tokenizers and of the models' templates; a token of any other name lets somebody in.
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
_NAME_BEFORE_VALUE = re.compile(r"""(?<![\w-])([A-Za-z][\w-]*)['"]?\s*[:=]\s*""")
_VALUE = re.compile(r"""(['"])[^'"]*\1?|[^\s'",;&)}\]]+""")
# Keys of OpenAI and Anthropic, Hugging Face, GitHub, Google, AWS and Groq, whatever they are called.
_KEY = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|gh[opsu]_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{16}|"
    r"gsk_[A-Za-z0-9]{20,})"
)


def is_secret(name: str) -> bool:
    """Whether an argument or a variable of this name holds a secret.

    Example:
        >>> [name for name in ("api_key", "hf_token", "X-Api-Key", "clientSecret", "access_key_id") if not is_secret(name)]
        []
        >>> [name for name in ("tokenizer", "prefix_token_id", "think_end_token", "add_bos_token", "monkey") if is_secret(name)]
        []
    """
    words = _WORD_IN_CAMEL_CASE.sub("_", name).replace("-", "_").lower()
    return bool(_NAME.fullmatch(words)) and not _OWN_TOKEN.fullmatch(words)


def without_secrets(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments without those that are secrets, and with what is secret inside the others hidden, however deep.

    Example:
        >>> without_secrets({"model": "m", "api_key": "x", "client_kwargs": {"api_key": "x", "retries": 2}})
        {'model': 'm', 'client_kwargs': {'retries': 2}}
    """
    return {str(name): _shown(value) for name, value in arguments.items() if not _is_secret_argument(str(name), value)}


def redacted(text: str) -> str:
    """Return a text with every secret in it hidden: after its name, inside an address, or where its value is known.

    Example:
        >>> redacted("api_key=abc, https://me:pw@host/v1?key=abc and {'Authorization': 'Bearer abc'}")
        "api_key=***, https://host/v1 and {'Authorization': '***'}"
    """
    for value in _values():
        text = text.replace(value, HIDDEN)
    text = _ADDRESS.sub(lambda match: match["scheme"] + match["place"], text)
    text = _KEY.sub(HIDDEN, _BEARER.sub(rf"\1 {HIDDEN}", text))
    return _without_named_values(text)


def _is_secret_argument(name: str, value: Any) -> bool:
    # `token=True` says where to look for one.
    return is_secret(name) and not isinstance(value, bool) and value is not None


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_secrets(value)
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    return redacted(value) if isinstance(value, str) else value


def _without_named_values(text: str) -> str:
    shown, place, start = [], 0, 0
    while (named := _NAME_BEFORE_VALUE.search(text, start)) is not None:
        # What stands after another name may be a secret's name itself: "ValueError: api_key=...".
        start = named.end()
        if is_secret(named[1]) and (value := _VALUE.match(text, start)) is not None:
            quote = value[1] or ""
            shown += [text[place:start], quote, HIDDEN, quote]
            place = start = value.end()
    return "".join([*shown, text[place:]])


def _values() -> list[str]:
    """Secrets in the environment, the longest first: one may begin with another."""
    # The shell's PWD is a folder.
    found = {value for name, value in os.environ.items() if name != "PWD" and is_secret(name) and len(value) >= SHORTEST_VALUE}
    return sorted(found, key=len, reverse=True)
