"""Layouts of conversations: how each is recognised, and where its messages are. The first layout that fits is used.

A layout that leaves a question open, for example which of two answers to score, is read only if the user names it (`--layout`).
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dialeval_plugin.conversations.messages import has_both_sides, is_message, parsed_cell
from dialeval_plugin.conversations.order import current_of
from dialeval_plugin.core.errors import InputError, unknown_name

from . import agents, datasets, evals, exports, messengers, platforms, traces
from .layout import (
    ANSWERS,
    AS_IT_SHOULD_BE,
    WHOLE,
    Layout,
    Logged,
    Value,
    exchange,
    id_of,
    is_chat,
    list_at,
    listed,
    plain,
    required_list,
)

_EXCHANGES = (
    ("input", "output"), ("inputs", "outputs"), ("request", "response"), ("prompt_messages", "completion_message"),
    ("prompt", "completion"), ("prompt", "response"), ("input_messages", "output_messages"),
)  # fmt: skip


def _exchange_names(value: Value) -> tuple[str, str] | None:
    for names in _EXCHANGES:
        halves = [value.get(name) for name in names]
        if all(half is not None for half in halves) and any(map(is_chat, halves)):
            return names
    messages = listed(value.get("messages"))
    if messages and isinstance(messages[-1], Mapping):
        for name in ANSWERS:
            cell = _answer(value, name)
            if isinstance(cell, str) or is_chat(cell) or (isinstance(cell, Mapping) and is_message({"role": "", **cell})):
                return "messages", name
    return None


def _answer(value: Value, name: str) -> Any:
    """Return the answer in a field; choices get back the object from which they were taken."""
    answer = parsed_cell(value.get(name))
    return {name: answer} if name == "choices" and answer else answer


def _read_exchange(value: Value) -> list[Logged]:
    request, answer = _exchange_names(value) or _EXCHANGES[0]
    (logged,) = exchange(value[request], _answer(value, answer), id_of(value))
    last: Any = logged.messages[logged.n_history - 1]
    if request == "messages" and isinstance(last, Mapping) and last.get("role") == "assistant":
        if last.get("content") != logged.messages[-1].get("content"):  # type: ignore[attr-defined]
            raise InputError(
                f"has messages that end with an answer, and another answer in {answer!r}. Name the messages alone by "
                "--columns messages=messages, or take one of the two out."
            )
        return [Logged(logged.messages[: logged.n_history], logged.id)]
    return [logged]


def _whole_name(value: Value) -> str | None:
    if "conversation" in value and value.keys() & {"text", "content"}:
        return None  # one turn of the conversation with this id
    return next((name for name in WHOLE if name in value), None)


def _read_whole(value: Value) -> list[Logged]:
    name = _whole_name(value) or WHOLE[0]
    messages = datasets.marked(value[name]) if isinstance(value[name], str) else None
    if messages is None and isinstance(value[name], str) and listed(value[name]) is None and "\n" in value[name].strip():
        raise InputError(
            f"{name}: is a text without roles. Begin each turn with 'User:' or 'Assistant:', or write a list of turns."
        )
    messages = required_list(value[name], name, "messages") if messages is None else messages
    return [Logged(messages, id_of(value), current=current_of(value))]


def _list_under(name: str) -> Layout:
    """Return the layout of an object with conversations in a list."""

    def recognises(value: Value) -> bool:
        first = list_at(value, name)[0]
        return isinstance(first, Mapping) and not is_message(first) and find(first) is not None

    def read(value: Value) -> Iterator[Logged]:
        for inner in list_at(value, name):
            layout = find(inner)
            if layout is None or layout.open_question or layout.message:
                raise InputError(
                    f"has something under {name!r} that is read no further. Write each conversation a row of its own."
                )
            yield from layout.read(inner)

    return Layout(f"{name.rpartition('.')[2]}-list", f"a list of conversations under {name!r}", recognises, read)


def _lists_of_both_sides(value: Value, depth: int = 1) -> Iterator[list[Any]]:
    """Yield the lists of a user's and an assistant's messages in an object, or in an object that it has."""
    for one in value.values():
        if isinstance(one, list) and has_both_sides(one):
            yield one
        elif depth and isinstance(one, Mapping):
            yield from _lists_of_both_sides(one, depth - 1)


def _is_under_another_name(value: Value) -> bool:
    """Whether an object has one conversation, whatever it is called, and nothing that may be another answer."""
    return not any(value.get(name) for name in _OF_ANSWERS) and len(list(_lists_of_both_sides(value))) == 1


def _read_other_name(value: Value) -> list[Logged]:
    (messages,) = _lists_of_both_sides(value)
    return [Logged(messages, id_of(value), current=current_of(value))]


_OF_ANSWERS = {name for names in _EXCHANGES for name in names} | {*ANSWERS, "question", "query", "instruction", "text"}

LAYOUTS: list[Layout] = [
    *messengers.LAYOUTS,
    *exports.LAYOUTS,
    *platforms.LAYOUTS,
    *evals.LAYOUTS,
    *datasets.LAYOUTS,
    *traces.LAYOUTS,
    *agents.LAYOUTS,
    Layout(
        "exchange", "a request with its answer, as traces and logs of APIs have it",
        lambda value: "context" not in value and _exchange_names(value) is not None, _read_exchange,
    ),
    *map(
        _list_under,
        ("data", "conversations", "samples", "chats", "data.chats", "dialogues", "items", "rows", "results", "simulations",
         "sessions", "threads", "chat-next-web-store.sessions"),
    ),
    Layout(
        "messages", "OpenAI, ShareGPT, LMSYS, WildChat, plain turns",
        lambda value: not isinstance(value.get("context", {}), (str, list)) and _whole_name(value) is not None, _read_whole,
    ),
    plain("utterances", "Taskmaster and others with 'utterances'", "utterances"),
    *datasets.LAST,
    Layout(
        "other-name", "messages of a user and an assistant under any other name", _is_under_another_name, _read_other_name
    ),
]  # fmt: skip


class _Watched(UserDict[str, Any]):
    """An object that remembers whether any of its values was read, and not only the names of its fields."""

    was_read = False

    def __getitem__(self, name: str) -> Any:
        value = self.data[name]
        self.was_read = True
        return value


_POSSIBLE: dict[tuple[object, ...], list[Layout]] = {}
"""Candidate layouts of objects by their field names, so that a table's rows are checked once and not each."""


def _possible(value: Value, *, is_message: bool) -> list[Layout]:
    key = (is_message, *value)
    if (layouts := _POSSIBLE.get(key)) is None:
        if len(_POSSIBLE) > 1000:
            _POSSIBLE.clear()
        layouts = _POSSIBLE[key] = []
        for layout in LAYOUTS:
            watched = _Watched(value)
            if (layout.message or not is_message) and (layout.fits(watched) or watched.was_read):
                layouts.append(layout)
    return layouts


def find(value: Value, name: str | None = None, *, is_message: bool = False) -> Layout | None:
    """Return the layout of an object of a file, or the one that the user names; None if there is none.

    Args:
        value: the object.
        name: the name given by the user. Several layouts share one if a product writes files of several kinds.
        is_message: whether the object is one message, judged by its fields.

    Raises:
        InputError: there is no layout of that name.
    """
    if name is None:
        fitting = (layout for layout in _possible(value, is_message=is_message) if layout.fits(value))
        return next(fitting, None) or (None if is_message else _of_each(value, LAYOUTS))
    named = [layout for layout in LAYOUTS if layout.name == name]
    if not named:
        raise unknown_name(f"layout: there is no {name!r}", name, list(dict.fromkeys(layout.name for layout in LAYOUTS)))
    return next((layout for layout in named if layout.fits(value)), None) or _of_each(value, named) or named[0]


def _of_each(value: Value, layouts: Iterable[Layout]) -> Layout | None:
    """Return the layout of conversations in an object by their ids, which are no usual names; None if the object is none."""
    first = next(iter(value.values()), None)
    others = (re.search(AS_IT_SHOULD_BE, str(name), re.IGNORECASE) for name in value)
    if not isinstance(first, Mapping) or value.keys() & _OF_ANSWERS or any(others):
        return None
    layout = next((one for one in layouts if one.message is None and one.rows is None and one.fits(first)), None)
    if layout is None or not all(isinstance(one, Mapping) and layout.fits(one) for one in value.values()):
        return None
    inner = layout.read

    def read(value: Value) -> Iterator[Logged]:
        for id, one in value.items():
            yield from (logged._replace(id=id if logged.id is None else logged.id) for logged in inner(one))

    return replace(layout, read=read)


def nearest(value: Value) -> tuple[Layout, list[str]] | None:
    """Return the layout that shares most fields with an object, and those missing from it; None if less than half are there."""
    shares = [(sum(mark in value for mark in layout.marks) / len(layout.marks), layout) for layout in LAYOUTS if layout.marks]
    share, layout = max(shares, key=lambda one: one[0])
    return (layout, [mark for mark in layout.marks if mark not in value]) if 0.5 <= share < 1 else None


def text_layouts() -> dict[str, Layout]:
    """Return the layouts of files that are not JSON, by name."""
    return {layout.name: layout for layout in LAYOUTS if layout.rows}
