"""Checks of an lm-eval model's arguments, API key and packages before the first request."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from pydantic import Json

from dialeval_plugin.core.errors import InputError, MissingPrerequisite, unknown_name
from dialeval_plugin.core.files import checked
from dialeval_plugin.core.options import Positive, make_options
from dialeval_plugin.core.redaction import redacted

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
_EXTRA = re.compile(r"lm[-_]eval\[\w+\]")
_PATHS = {
    f"{server}-{path.replace('/', '-')}": path for server in ("local", "openai") for path in ("completions", "chat/completions")
}
"""Paths of servers by the models whose `base_url` is posted to as it is; the host completes those of other models."""


@dataclass(frozen=True)
class OwnArguments:
    """Arguments of `llm_args` that every kind of model takes and that say how to prompt it."""

    max_gen_toks: Positive | None = None
    apply_chat_template: bool | None = None
    chat_template_kwargs: str | None = None
    """A JSON object."""
    structured_output: bool = False
    """Whether to request each answer as JSON with a schema (`response_format`), which only chat servers support."""


_OWN = tuple(field.name for field in fields(OwnArguments))


def split_arguments(
    model: str, kind: type[Any], arguments: Mapping[str, Any]
) -> tuple[OwnArguments, dict[str, Any], dict[str, Any]]:
    """Split the arguments into our own, those of the host's model, and fields of every request to a server.

    A server reads the arguments of a chat template from the request, a model in this process from its own arguments.
    """
    of_host, where = dict(arguments), f"llm {model!r}"
    own = make_options(OwnArguments, where, **{name: of_host.pop(name) for name in _OWN if name in of_host})
    advice = 'Give a JSON object, as {"thinking": false}.'
    template = checked(own.chat_template_kwargs or "{}", Json[dict[str, Any]], f"{where}: chat_template_kwargs", advice=advice)
    if own.structured_output and not is_a(kind, "LocalChatCompletion"):
        raise InputError(
            f"{where}: structured_output is for chat servers that take response_format. "
            "Leave it out, or choose llm='local-chat-completions' or 'openai-chat-completions'."
        )
    if not is_a(kind, "TemplateAPI"):
        return own, of_host | ({"chat_template_args": template} if template else {}), {}
    if "enable_thinking" in of_host:
        template["enable_thinking"] = of_host.pop("enable_thinking")
    return own, of_host, {"chat_template_kwargs": template} if template else {}


def check_arguments(model: str, kind: type[Any], arguments: Mapping[str, Any]) -> None:
    """Raise an error for arguments that a kind of model does not know, required ones that are missing, and half an address.

    A served model ignores unknown arguments. Other models pass them to their library, which raises an error when the model is
    made; see `refused_argument`.
    """
    known = _known(kind)
    required = {name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty}
    if is_a(kind, "TemplateAPI"):
        for name in arguments:
            if name not in known:
                raise _unknown(model, name, known)
        # The host's default is None: it then looks for a tokenizer without a name and posts to no address.
        required |= {name for name in ("model", "base_url") if known[name].default is None}
        if "pretrained" in arguments:  # the host's other name of the model
            required.discard("model")
    if missing := [name for name in known if name in required and name not in arguments]:
        example = ",".join(f"{name}=..." for name in missing)
        raise InputError(f"llm {model!r}: llm_args lacks {' and '.join(missing)}. Give llm_args='{example}'.")
    if "base_url" in arguments and (path := _PATHS.get(model)):
        address = str(arguments["base_url"])
        url = urlsplit(address)
        if url.scheme not in ("http", "https") or url.path.rstrip("/") in ("", "/v1"):
            raise InputError(f"llm {model!r}: base_url is {redacted(address)!r}. Give all of it, as http://HOST/v1/{path}.")


def refused_argument(model: str, kind: type[Any], arguments: Iterable[str], error: TypeError) -> InputError | None:
    """Return the error for a user's argument that the model's library does not take; None for any other error."""
    match = _UNEXPECTED.search(str(error))
    return _unknown(model, match[1], _known(kind)) if match is not None and match[1] in arguments else None


def check_key(identity: str, lm: Any) -> None:
    """Read a served model's API key, so that a missing key stops the run instead of every row."""
    try:
        getattr(lm, "api_key", None)
    except ValueError as error:
        raise MissingPrerequisite(f"llm {identity}: {error}") from None


def missing_package(model: str, error: ImportError | NameError) -> MissingPrerequisite:
    """Return an error with what to install: a package by its name, or the extra that the host's own error names in its text."""
    # Without aiohttp, 0.4.13's API models fail when they first use a name from it, and on 0.5 ours do, which import it.
    if isinstance(error, NameError) or error.name == "aiohttp":
        needed: str | None = "lm-eval[api]"
    elif extra := _EXTRA.search(str(error)):
        needed = extra[0]
    else:
        needed = error.name if isinstance(error, ModuleNotFoundError) else None
    if not needed:
        return MissingPrerequisite(f"llm {model!r}: {' '.join(str(error).split())}")
    return MissingPrerequisite(
        f"llm {model!r}: needs packages that are not installed. Run pip install '{needed}', or choose another model."
    )


def is_a(kind: type[Any], name: str) -> bool:
    """Whether a class is, or is derived from, the host's class of this name; all served models derive from `TemplateAPI`."""
    # By name: the module of the host's class cannot be imported without the packages of served models.
    return any(base.__name__ == name for base in kind.__mro__)


def _known(kind: type[Any]) -> Mapping[str, inspect.Parameter]:
    """Parameters of a class and, if it passes on unknown ones, those of its base classes."""
    known: dict[str, inspect.Parameter] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        parameters = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        known = {parameter.name: parameter for parameter in parameters if parameter.kind in _NAMED} | known
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            break
    return known


def _unknown(model: str, name: str, known: Iterable[str]) -> InputError:
    return unknown_name(f"llm {model!r}: there is no argument {name!r}", name, [*known, *_OWN])
