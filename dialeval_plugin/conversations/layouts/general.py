"""Layouts that many have: a list of messages, or a request and its answer. They are tried last."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval_plugin.conversations.messages import is_message, parsed_cell
from dialeval_plugin.conversations.order import current_of
from dialeval_plugin.core.dialogue import advice_for_list
from dialeval_plugin.core.errors import InputError

from .layout import PYTHON_LIST, WHOLE, Layout, Logged, Value, exchange, id_of, is_chat, listed, plain

_EXCHANGES = (
    ("input", "output"), ("inputs", "outputs"), ("request", "response"), ("prompt_messages", "completion_message"),
    ("prompt", "completion"), ("prompt", "response"), ("input_messages", "output_messages"),
)  # fmt: skip
_ANSWERS = ("output", "response", "completion", "answer", "choices", "generation", "outputs", "result", "prediction")
"""Names of an answer next to the messages that led to it."""


def _exchange_names(value: Value) -> tuple[str, str] | None:
    for request, answer in _EXCHANGES:
        if (
            value.get(request) is not None
            and value.get(answer) is not None
            and (is_chat(value[request]) or is_chat(value[answer]))
        ):
            return request, answer
    messages = listed(value.get("messages"))
    if messages and isinstance(messages[-1], Mapping):
        for name in _ANSWERS:
            cell = parsed_cell(value.get(name))
            if isinstance(cell, str) or is_chat(cell) or (isinstance(cell, Mapping) and is_message({"role": "", **cell})):
                return "messages", name
    return None


def _read_exchange(value: Value) -> list[Logged]:
    names = _exchange_names(value) or _EXCHANGES[0]
    found = exchange(value[names[0]], value[names[1]], id_of(value))
    if names[0] == "messages":
        logged = found[0]
        last, answer = logged.messages[logged.n_history - 1], logged.messages[-1]
        if isinstance(last, Mapping) and last.get("role") == "assistant":
            if last.get("content") == answer.get("content"):  # type: ignore[attr-defined]
                return [Logged(logged.messages[: logged.n_history], logged.id)]
            raise InputError(
                f"has messages that end with an answer, and another answer in {names[1]!r}. Name the messages alone by "
                "--columns messages=messages, or take one of the two out."
            )
    return found


def _whole_name(value: Value) -> str | None:
    if "conversation" in value and value.keys() & {"text", "content"}:
        return None  # one turn of a conversation that has this id
    return next((name for name in WHOLE if name in value), None)


def _read_whole(value: Value) -> list[Logged]:
    name = _whole_name(value) or WHOLE[0]
    messages = listed(value[name])
    if messages is None:
        given = value[name]
        if isinstance(given, str) and PYTHON_LIST.match(given):
            raise InputError(f"{name}: is a list as Python prints it, {given!r:.60}. Write it as JSON, by json.dumps.")
        raise InputError(
            f"{name}: expected a list of messages, got {given!r:.80} ({type(given).__name__}). {advice_for_list(given)}"
        )
    return [Logged(messages, id_of(value), current=current_of(value))]


EXCHANGE = Layout(
    name="exchange",
    about="a request with its answer, as traces and logs of APIs have it",
    recognises=lambda value: "context" not in value and _exchange_names(value) is not None,
    read=_read_exchange,
)
MESSAGES = Layout(
    name="messages",
    about="OpenAI, ShareGPT, LMSYS, WildChat, plain turns",
    recognises=lambda value: not isinstance(value.get("context", {}), (str, list)) and _whole_name(value) is not None,
    read=_read_whole,
)
UTTERANCES = plain("utterances", "Taskmaster and others with 'utterances'", "utterances")
