"""Checks of an lm-eval model's arguments, key and packages before it is asked anything, in words that say what to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pydantic import Json

from dialeval_plugin.core.errors import InputError, MissingPrerequisite, unknown_name
from dialeval_plugin.core.files import checked
from dialeval_plugin.core.options import Positive, make_options

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
_EXTRA = re.compile(r"lm[-_]eval\[\w+\]")


@dataclass(frozen=True)
class OwnArguments:
    """Arguments of `llm_args` that say how a model is asked, and that any kind of model takes."""

    max_gen_toks: Positive | None = None
    apply_chat_template: bool | None = None
    chat_template_kwargs: str | None = None
    """A JSON object."""
    structured_output: bool = False
    """Whether each answer is asked for as JSON with a schema, which chat servers alone take (`response_format`)."""


_OWN = tuple(field.name for field in fields(OwnArguments))


def split_arguments(
    model: str, kind: type[Any], arguments: Mapping[str, Any]
) -> tuple[OwnArguments, dict[str, Any], dict[str, Any]]:
    """Part the arguments into ours, those of the host's model, and fields of every request to a server.

    What a chat template is given, a server reads from the request, and a model in this process from its arguments.
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


def check_arguments(model: str, kind: type[Any], arguments: Iterable[str]) -> None:
    """Refuse arguments that a kind of model does not know, and ask for those that it needs.

    A served model swallows what it does not know. Others hand it to the library behind them, which says what it does not take
    when the model is made; see `refused_argument`.
    """
    known = _known(kind)
    required = {name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty}
    if is_a(kind, "TemplateAPI"):
        for name in arguments:
            if name not in known:
                raise _unknown(model, name, known)
        # The host's default is None, with which it looks for a tokenizer of no name and posts to no address.
        required |= {name for name in ("model", "base_url") if known[name].default is None}
        if "pretrained" in arguments:  # the host's other name of the model
            required.discard("model")
    if missing := [name for name in known if name in required and name not in arguments]:
        example = ",".join(f"{name}=..." for name in missing)
        raise InputError(f"llm {model!r}: llm_args lacks {' and '.join(missing)}. Give llm_args='{example}'.")


def refused_argument(model: str, kind: type[Any], arguments: Iterable[str], error: TypeError) -> InputError | None:
    """The error for an argument of the user's that the library behind a model did not take; None where it is another error."""
    match = _UNEXPECTED.search(str(error))
    return _unknown(model, match[1], _known(kind)) if match is not None and match[1] in arguments else None


def check_key(identity: str, lm: Any) -> None:
    """Ask a served model for its key, so that one that has none stops the run and not each of its rows."""
    try:
        getattr(lm, "api_key", None)
    except ValueError as error:
        raise MissingPrerequisite(f"llm {identity}: {error}") from None


def missing_package(model: str, error: ImportError | NameError) -> MissingPrerequisite:
    """Say what to install: a package by its name, or the host's extra, which an error of the host's own names in its text."""
    if isinstance(error, NameError):  # the host's API models go on without aiohttp, up to the first use of a name from it
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
    """Whether a class is, or is derived from, the host's class of this name; that of every served model is `TemplateAPI`."""
    # By name: without the packages of served models, the module of the host's class cannot be imported.
    return any(base.__name__ == name for base in kind.__mro__)


def _known(kind: type[Any]) -> Mapping[str, inspect.Parameter]:
    """Arguments of a class and, where it hands on what it does not know, of those that it is derived from."""
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
