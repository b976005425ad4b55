"""Layouts of conversations: how each is recognised, and where its messages are. The first layout that fits is used.

A layout that leaves a question open, for example which of two answers to score, is read only if the user names it (`--layout`).
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dialeval_plugin.conversations.messages import ASSISTANT, USER, at, is_message, is_role, named_lines, parsed_cell, sides_of
from dialeval_plugin.conversations.order import current_of
from dialeval_plugin.core.errors import InputError, unknown_name

from . import datasets, evals, exports, messengers, traces
from .layout import (
    ANSWERS,
    AS_IT_SHOULD_BE,
    PYTHON_LIST,
    WHOLE,
    Layout,
    Logged,
    Value,
    exchange,
    id_of,
    is_chat,
    is_pair,
    listed,
    messages_of,
    required_list,
    thread_of,
    trace_of,
)

_EXCHANGES = (
    ("input", "output"), ("input", "response"), ("input", "choices"),
    ("inputs", "outputs"), ("request", "response"), ("prompt_messages", "completion_message"),
    ("prompt", "completion"), ("prompt", "response"), ("input_messages", "output_messages"), ("input_messages", "choices"),
    ("input_messages", "output_message"), ("full_request", "full_response"),
)  # fmt: skip


_MAY_BE_A_STATUS = ("result", "message")
"""Names of an answer under which a text may say how the request went, such as "success"."""


def _exchange_names(value: Value) -> tuple[str, str] | None:
    for names in _EXCHANGES:
        halves = [value.get(name) for name in names]
        if all(half is not None for half in halves) and any(map(is_chat, halves)):
            return names
    messages = listed(value.get("messages"))
    if messages and isinstance(messages[-1], Mapping):
        for name in ANSWERS:
            cell = _answer(value, name)
            is_text = isinstance(cell, str) and name not in _MAY_BE_A_STATUS
            if is_text or is_chat(cell) or (isinstance(cell, Mapping) and is_message({"role": "", **cell})):
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
    answer_id = str(at(value, "response.id | id"))
    before = at(value, "previous_response_id | response.previous_response_id | request.previous_response_id")
    is_of_responses = answer_id.startswith("resp_")  # which a later one may continue
    answered = answer_id if is_of_responses else None
    return [logged._replace(once=trace_of(value), answer_id=answered, continues=before, thread=thread_of(value))]


def _whole_name(value: Value) -> str | None:
    if "conversation" in value and value.keys() & {"text", "content"}:
        return None  # one turn of the conversation with this id
    other = (name for name in _OTHER_NAMES if (elements := listed(value.get(name))) and is_message(elements[0]))
    return next((name for name in WHOLE if name in value), next(other, None))


_OTHER_NAMES = ("dialog", "dialogue", "utterances", "conversation_history")
"""Names of a conversation's messages in data sets; a data set may call something else so, too."""


def _read_whole(value: Value) -> list[Any]:
    name = _whole_name(value) or WHOLE[0]
    given = value[name]
    messages = datasets.marked(given) or named_lines(given) if isinstance(given, str) else None
    if isinstance(given, Mapping) and not (messages := _under_another_name(value)):
        inner = next((inner for inner, one in given.items() if isinstance(one, list)), "NAME")
        raise InputError(f"{name}: is an object. Name the list of messages in it, such as --columns messages={name}.{inner}")
    if messages is None and isinstance(given, str) and listed(given) is None and not PYTHON_LIST.match(given):
        raise InputError(
            f"{name}: is a text without roles. Begin each turn with 'User:' or 'Assistant:', or write a list of turns."
        )
    messages = messages or required_list(given, name, "messages")
    if len(messages) == 2 and all(isinstance(one, str) for one in messages) and is_role(messages[0]):
        raise InputError(
            f"{name}: is one message, a role and a text. Write all of them in a list, {{'messages': [[...], ...]}}."
        )
    return [cell if isinstance(one, str) and is_message(cell := parsed_cell(one)) else one for one in messages]


def _only_list(value: Value, is_wanted: Callable[[list[Any]], bool]) -> list[Any]:
    """Return the only list of a kind in an object, or in an object that it has; [] if there is none, or several."""
    within = [*value.values(), *(inner for one in value.values() if isinstance(one, Mapping) for inner in one.values())]
    found = [one for one in within if isinstance(one, list) and one and is_wanted(one)]
    return found[0] if len(found) == 1 else []


def _under_another_name(value: Value) -> list[Any]:
    """Return the only conversation in an object, whatever it is called; [] if something else may be another answer."""
    has_answer = any(value.get(name) for name in _OF_ANSWERS)
    return [] if has_answer else _only_list(value, lambda one: {USER, ASSISTANT} <= sides_of(one))


_OF_ANSWERS = {name for names in _EXCHANGES for name in names} | {*ANSWERS, "question", "query", "instruction", "text"}

LAYOUTS: list[Layout] = [
    *messengers.LAYOUTS,
    *exports.LAYOUTS,
    *evals.LAYOUTS,
    *datasets.LAYOUTS,
    *traces.LAYOUTS,
    Layout("exchange", "a request with its answer, as traces and logs of APIs have it",
           lambda value: "context" not in value and _exchange_names(value) is not None, _read_exchange),
    Layout("pairs", "turns that are lists of a question and its answer, as of Gradio",
        lambda value: all(map(is_pair, listed(value[_whole_name(value) or ""]) or [0])),
        lambda value: messages_of(listed(value[_whole_name(value) or ""]), USER) or [],
        open_question="has turns that are lists of two texts, which may be a question and its answer, or a name and what was "
        "said. If they are the former, read it by --layout pairs"),
    Layout("messages", "OpenAI, ShareGPT, LMSYS, WildChat, Taskmaster, PRISM, plain turns",
           lambda value: not isinstance(value.get("context", {}), (str, list)) and _whole_name(value) is not None, _read_whole,
           is_of_any_product=True),
    *datasets.LAST,
    Layout("other-name", "messages of a user and an assistant under any other name, as of Continue, LlamaIndex or ElevenLabs",
           lambda value: bool(_under_another_name(value)), _under_another_name, is_of_any_product=True),
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
        found = next((layout for layout in _possible(value, is_message=is_message) if layout.fits(value)), None)
        if not is_message and (found is None or found.is_of_any_product):
            return _of_rows(value) or _of_lists(value) or found or _of_each(value)
        return found
    named = [layout for layout in LAYOUTS if layout.name == name]
    if not named:
        raise unknown_name(f"layout: there is no {name!r}", name, list(dict.fromkeys(layout.name for layout in LAYOUTS)))
    fitting = next((layout for layout in named if layout.fits(value)), None)
    return fitting or _of_rows(value, named) or _of_lists(value, named) or _of_each(value, named) or named[0]


def _of_rows(value: Value, layouts: Iterable[Layout] | None = None) -> Layout | None:
    """Return the layout of an object whose only list of objects has messages of a layout with a message a row."""
    rows = _only_list(value, lambda one: isinstance(one[0], Mapping))
    if not rows:
        return None
    among = _possible(rows[0], is_message=True) if layouts is None else layouts
    layout = next((one for one in among if one.message and not one.rows and one.fits(rows[0])), None)
    # A message that does not fit would be left out.
    if layout is None or layout.message is None or any(is_message(one) and not layout.fits(one) for one in rows):
        return None
    message = layout.message

    def read(value: Value) -> Iterator[Logged]:
        conversations: dict[object, list[Value]] = {}
        for row in rows:
            said = message(row)
            unsaid = [{"role": "event"}] if said else []
            for one in unsaid if isinstance(said, str) else said if isinstance(said, list) else [said]:
                conversations.setdefault(one.get("conversation"), []).append(one)
        own = id_of(value) if len(conversations) == 1 else None
        for id, messages in conversations.items():
            yield Logged(messages, id if own is None else own, current=current_of(messages[-1]))

    return replace(layout, message=None, read=read)


def _of_lists(value: Value, layouts: Iterable[Layout] = ()) -> Layout | None:
    """Return the layout of an object that has conversations in lists, and no messages of its own; None for any other."""
    name = _whole_name(value)
    if name is not None and (own := listed(value[name])) and (is_message(own[0]) or not isinstance(own[0], Mapping)):
        return None

    within = [value, *(one for one in value.values() if isinstance(one, Mapping))]
    lists = [one[name] for one in within for name in _LISTS if isinstance(one.get(name), list) and one[name]]
    return _of_several(
        [(None, one, _of_one(one, layouts)) for of_list in lists if _of_one(of_list[0], layouts) for one in of_list]
    )


def _of_one(value: Any, layouts: Iterable[Layout]) -> Layout | None:
    """Return the layout of an object that is a conversation; None for any other, such as a message."""
    if not isinstance(value, Mapping) or is_message(value):
        return None
    layout = next((layout for layout in layouts if layout.fits(value)), None) or find(value)
    return None if layout is None or layout.message else layout


def _of_several(conversations: Sequence[tuple[object, Any, Layout | None]]) -> Layout | None:
    """Return the layout of an object with these conversations, each with its id or None, and its layout; None without any."""
    found = [layout for _, _, layout in conversations if layout]
    if not found:
        return None
    question = next((layout.open_question for layout in found if layout.open_question), "")

    def read(value: Value) -> Iterator[Logged]:
        for id, one, layout in conversations:
            if layout is None or layout.open_question not in ("", question):
                raise InputError("has a list of conversations, of which one is none. Write each conversation a row of its own.")
            yield from (logged._replace(id=id if logged.id is None else logged.id) for logged in layout.logged(one))

    return replace(found[0], read=read, open_question=question, joined_by="", is_of_any_product=False)


_LISTS = (
    "data", "conversations", "samples", "chats", "dialogues", "items", "rows", "results", "simulations", "sessions", "threads",
    "chat", "chat-sessions", "list", "histories", "conversationHistoryRecords", "request_states", "testCases",
    "conversationalTestCases", "paragraphs", "tabs", "train", "dev", "valid", "validation", "test", "calls", "tickets", "users",
    "contacts", "history",
)  # fmt: skip
"""Names of lists of conversations; a list of another name may have several answers to one request."""


def _of_each(value: Value, layouts: Iterable[Layout] = ()) -> Layout | None:
    """Return the layout of conversations by their ids, which are no usual names, in an object or in the only one it has."""
    objects = [one for one in value.values() if isinstance(one, Mapping)]
    for by_id in (value, *objects) if len(objects) == 1 else (value,):
        others = (re.search(AS_IT_SHOULD_BE, str(name), re.IGNORECASE) for name in by_id)
        if by_id.keys() & _OF_ANSWERS or any(others):
            continue
        conversations = []
        for id, one in by_id.items():
            if (layout := _of_one(whole := _whole(one), layouts)) is None:
                break
            conversations.append((id, whole, layout))
        else:
            return _of_several(conversations)
    return None


def _whole(value: Any) -> Any:
    """Return a list of messages as an object that has them; other values unchanged."""
    return {"messages": value} if isinstance(value, list) and value and is_message(value[0]) else value


def text_layouts() -> dict[str, Layout]:
    """Return the layouts of files that are not JSON, by name."""
    return {layout.name: layout for layout in LAYOUTS if layout.rows}
