"""Layouts of conversations: how each is recognised, and where its messages are. One record a layout; the first that fits is it.

A layout that leaves something open, as which of two answers is meant, is read only where the user names it (`--layout`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import advice_for_list
from dialeval_plugin.core.errors import InputError

from .messages import USUAL, Fields, is_message, parsed_cell, split_dialogue
from .order import current_of
from .roles import is_role

Value: TypeAlias = Mapping[str, Any]

PYTHON_LIST = re.compile(r"\s*\[\s*(?:'|\{\s*')")


class Logged(NamedTuple):
    """A conversation as its layout has it.

    Attributes:
        messages: as they are listed, whatever they are made of.
        id: None where the layout has none.
        n_history: so many of the messages are a request, of which nothing is scored.
        current: id of the last message that was shown, where messages branch.
        fields: names of a message's fields, where they are not the usual ones.
    """

    messages: Sequence[object]
    id: object = None
    n_history: int = 0
    current: object = None
    fields: Fields = USUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the conversations of a file are laid out.

    Attributes:
        name: as `--layout` takes it.
        about: whose files they are, for people.
        recognises: whether an object of a file is one.
        read: the conversations that the object holds.
        open_question: what has to be settled before such a file is read; "" where nothing has to.
    """

    name: str
    about: str
    recognises: Callable[[Value], bool]
    read: Callable[[Value], Iterable[Logged]]
    open_question: str = ""


WHOLE = ("messages", "conversations", "conversation", "turns")
"""What the messages of a conversation are called, where nothing else is known of it."""
IDS = (
    "id", "conversation_id", "conversationId", "uuid", "session_id", "sessionId", "thread_id", "threadId", "chat_id",
    "dialogue_id", "dialog_id", "conversation_hash", "trace_id", "traceId", "_id", "question_id",
)  # fmt: skip
_EXCHANGES = (
    ("input", "output"), ("inputs", "outputs"), ("request", "response"), ("prompt_messages", "completion_message"),
    ("prompt", "completion"), ("prompt", "response"), ("input_messages", "output_messages"),
)  # fmt: skip
_ANSWERS = ("output", "response", "completion", "answer", "choices", "generation", "outputs", "result", "prediction")
"""What an answer next to the messages that led to it is called."""
_PREFERENCES = (("chosen", "rejected"), ("preferred_output", "non_preferred_output"), ("conversation_a", "conversation_b"))


def at(value: Any, path: str) -> Any:
    """Return what is at a path of names and dots; None where there is nothing."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def id_of(value: Value) -> object:
    """Return the id of a conversation; None where it has none."""
    return next((value[name] for name in IDS if value.get(name) not in (None, "")), None)


def listed(value: Any) -> list[Any] | None:
    """Return the elements of a list, an array, or a cell that holds one as JSON; None of anything else."""
    value = parsed_cell(value.tolist() if hasattr(value, "tolist") else value)
    return list(value) if isinstance(value, (list, tuple)) else None


def _messages_at(path: str, *, id: str = "", fields: Fields = USUAL) -> Callable[[Value], list[Logged]]:
    def read(value: Value) -> list[Logged]:
        current = current_of(value) or current_of(next((one for one in value.values() if isinstance(one, Mapping)), {}))
        own = at(value, id) if id else None
        return [Logged(listed(at(value, path)) or [], own if own is not None else id_of(value), current=current, fields=fields)]

    return read


def _has_list(path: str) -> Callable[[Value], bool]:
    return lambda value: isinstance(at(value, path), list)


def plain(name: str, about: str, path: str, **settings: Any) -> Layout:
    """Return a layout with the messages of one conversation at `path`."""
    return Layout(name=name, about=about, recognises=_has_list(path), read=_messages_at(path, **settings))


def messages_of(value: Any, role: str) -> list[Any] | None:
    """Return the messages that a request or an answer consists of; None where it is no chat.

    Args:
        value: a list of messages, a message, an object of an API that holds them, or, of an answer, its text.
        role: of what is a text alone.
    """
    value = parsed_cell(value)
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if (elements := listed(value)) is not None:
        if len(elements) == 1 and isinstance(elements[0], list):  # LangSmith's batch of one
            return messages_of(elements[0], role)
        found = [one if isinstance(one, Mapping) else {"role": role, "content": one} for one in elements]
        return [one if "role" in one or is_message(one) or "type" in one else {"role": role, **one} for one in found]
    if not isinstance(value, Mapping):
        return None
    for name in ("messages", "contents", "generations", "candidates", "choices", "output", "input", "message"):
        if value.get(name) is None:
            continue
        inner = listed(value[name])
        if name == "choices" and inner is not None:
            if len(inner) > 1:
                raise InputError(f"has {len(inner)} choices, and nothing says which was shown. Keep one of them.")
            return messages_of(inner[0].get("message", inner[0].get("text")), role) if inner else []
        if name == "candidates" and inner is not None:
            return messages_of(inner[0].get("content"), role) if inner else []
        if name == "generations" and inner is not None:
            first = inner[0][0] if inner and isinstance(inner[0], list) and inner[0] else (inner or [{}])[0]
            return messages_of(first.get("message") or first.get("text"), role)
        return messages_of(value[name], role)
    if value.keys() & {"role", "parts", "content"} or is_message(value):
        return [{"role": role, **value}]
    text = next(
        (value[name] for name in ("output_text", "text", "answer", "response", "question", "query") if name in value), None
    )
    return [{"role": role, "content": text}] if isinstance(text, str) else None


def exchange(request: Any, answer: Any, id: object) -> list[Logged]:
    """Return the conversation of a request and its answer, of which the answer alone is scored."""
    asked, said = messages_of(request, "user"), messages_of(answer, "assistant")
    if asked is None or said is None:
        raise InputError(
            "has a request or an answer that is no chat. Say which fields hold them by --columns context=...,response=..."
        )
    return [Logged([*asked, *said], id, len(asked))]


def _is_chat(value: Any) -> bool:
    value = parsed_cell(value)
    if isinstance(value, list):
        return bool(value) and (
            is_message(value[0]) or _is_chat(value[0]) or (isinstance(value[0], Mapping) and "role" in value[0])
        )
    return isinstance(value, Mapping) and bool(
        is_message(value)
        or any(_is_chat(value.get(name)) for name in ("messages", "contents"))
        or value.keys() & {"choices", "generations"}
    )


def _exchange_names(value: Value) -> tuple[str, str] | None:
    for request, answer in _EXCHANGES:
        if (
            value.get(request) is not None
            and value.get(answer) is not None
            and (_is_chat(value[request]) or _is_chat(value[answer]))
        ):
            return request, answer
    messages = listed(value.get("messages"))
    if messages and isinstance(messages[-1], Mapping):
        for name in _ANSWERS:
            found = parsed_cell(value.get(name))
            if isinstance(found, str) or _is_chat(found) or (isinstance(found, Mapping) and is_message({"role": "", **found})):
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


def _preference_names(value: Value) -> tuple[str, str] | None:
    found = next((pair for pair in _PREFERENCES if value.get(pair[0]) is not None and value.get(pair[1]) is not None), None)
    messages = next((list_ for name in WHOLE if (list_ := listed(value.get(name)))), None)
    # A conversation that ends with an answer is what was said; which other answer people liked less stands next to it.
    if (
        found
        and messages
        and isinstance(messages[-1], Mapping)
        and is_role(role := messages[-1].get("role") or messages[-1].get("from"))
    ):
        return None if str(role).lower() in ("assistant", "gpt", "model") else found
    return found


def _preferred(side: int) -> Callable[[Value], list[Logged]]:
    def read(value: Value) -> list[Logged]:
        names = _preference_names(value)
        if names is None:
            raise InputError("has no pair of answers, as 'chosen' and 'rejected' are.")
        answer = value[names[side]]
        if isinstance(answer, str) and (messages := split_dialogue(answer)) is not None:
            return [Logged(messages, id_of(value), len(messages) - 1)]
        said = messages_of(answer, "assistant") or []
        asked: list[Any] = []
        if len(said) < 2:
            request = next((value[name] for name in ("prompt", "input", "question", *WHOLE) if value.get(name) is not None), "")
            asked = messages_of(request, "user") or []
        return [Logged([*asked, *said], id_of(value), len(asked) or (0 if names[0].startswith("conv") else len(said) - 1))]

    return read


_OPEN_PREFERENCE = (
    "each row has two answers. Score one of them by --layout preferred or --layout dispreferred; "
    "`dialeval compare FILE` says how often the preferred one scores higher"
)


_UNSEEN = ("thoughts", "reasoning_recap", "model_editable_context", "user_editable_context")


def _chatgpt(value: Value) -> list[Logged]:
    messages = []
    for key, node in value["mapping"].items():
        message = node.get("message") or {"author": {"role": "root"}, "content": ""}
        is_aside = message.get("recipient", "all") != "all" or at(message, "content.content_type") in _UNSEEN
        if is_aside or at(message, "metadata.is_visually_hidden_from_conversation"):
            message = {**message, "author": {"role": "tool"}}  # said to a tool, or shown to nobody
        messages.append({**message, "id": key, "parent": node.get("parent")})
    return [Logged(messages, id_of(value), current=current_of(value))]


def _open_webui(value: Value) -> list[Logged]:
    history = at(value, "chat.history") or {}
    messages = (
        list(history["messages"].values())
        if isinstance(history.get("messages"), Mapping)
        else listed(at(value, "chat.messages")) or []
    )
    return [Logged(messages, id_of(value), current=current_of(history))]


def _wrapped(name: str) -> Callable[[Value], bool]:
    def recognises(value: Value) -> bool:
        inner = value.get(name)
        return isinstance(inner, list) and bool(inner) and isinstance(inner[0], Mapping) and not is_message(inner[0]) and (
            find(inner[0]) is not None
        )  # fmt: skip

    return recognises


def _unwrapped(name: str) -> Callable[[Value], Iterator[Logged]]:
    def read(value: Value) -> Iterator[Logged]:
        for inner in value[name]:
            layout = find(inner)
            if layout is None or layout.open_question:
                raise InputError(
                    f"has something under {name!r} that is read no further. Write each conversation a row of its own."
                )
            yield from layout.read(inner)

    return read


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


_SPANS = (
    ("gen_ai.input.messages", "gen_ai.output.messages"), ("gen_ai.prompt", "gen_ai.completion"),
    ("llm.input_messages", "llm.output_messages"), ("input.value", "output.value"), ("mlflow.spanInputs", "mlflow.spanOutputs"),
)  # fmt: skip


def _attributes(value: Value) -> Value:
    attributes = value.get("attributes", value)
    if isinstance(attributes, list):  # OTLP: [{"key": ..., "value": {"stringValue": ...}}]
        attributes = {one.get("key"): next(iter((one.get("value") or {None: None}).values())) for one in attributes}
    return (
        {name.removeprefix("attributes."): one for name, one in attributes.items()} if isinstance(attributes, Mapping) else {}
    )


def _span_names(value: Value) -> tuple[str, str] | None:
    found = _attributes(value)
    return next((pair for pair in _SPANS if found.get(pair[0]) is not None and found.get(pair[1]) is not None), None)


def _read_span(value: Value) -> list[Logged]:
    names, attributes = _span_names(value) or _SPANS[0], _attributes(value)
    id = value.get("trace_id", value.get("context.span_id", id_of(value)))
    return exchange(attributes[names[0]], attributes[names[1]], id)


def _langsmith(value: Value) -> list[Logged]:
    return exchange(value["inputs"], value["outputs"], id_of(value))


def _of_people(name: str, about: str, *fields: str, bots: bool = False) -> Layout:
    """A chat of people, where nobody is known to be the assistant."""
    who = "its bots are read as the assistant" if bots else "each message but the first is scored"
    return Layout(
        name=name, about=about, recognises=lambda value: value.keys() >= set(fields), read=_messages_at("messages"),
        open_question=f"is a chat of people ({about}). Read it by --layout {name}: {who}",
    )  # fmt: skip


def _is_question_list(value: Value) -> bool:
    turns = value.get("turns")
    return "question_id" in value and isinstance(turns, list) and all(isinstance(one, str) for one in turns)


def _has_preference(value: Value) -> bool:
    return _preference_names(value) is not None


LAYOUTS: list[Layout] = [
    _of_people("discord", "Discord's export", "guild", "channel", "messages", bots=True),
    _of_people("meta", "Instagram's or Messenger's export", "participants", "messages"),
    Layout(
        name="mt-bench-questions",
        about="questions without answers",
        recognises=_is_question_list,
        read=_messages_at("turns"),
        open_question="holds questions without answers, as MT-Bench's do. Name the file of the answers",
    ),
    Layout(
        name="preferred",
        about="the preferred one of two answers",
        recognises=_has_preference,
        read=_preferred(0),
        open_question=_OPEN_PREFERENCE,
    ),
    Layout(
        name="dispreferred",
        about="the other one of two answers",
        recognises=_has_preference,
        read=_preferred(1),
        open_question=_OPEN_PREFERENCE,
    ),
    Layout(
        name="chatgpt",
        about="conversations.json of ChatGPT's export",
        recognises=lambda value: isinstance(value.get("mapping"), Mapping),
        read=_chatgpt,
    ),
    plain("claude", "conversations.json of Claude's export", "chat_messages"),
    Layout(
        name="open-webui",
        about="Open WebUI's export",
        recognises=lambda value: (
            isinstance(value.get("chat"), Mapping) and bool({"history", "messages"} & value["chat"].keys())
        ),
        read=_open_webui,
    ),
    plain("ai-studio", "Google AI Studio", "chunkedPrompt.chunks"),
    plain("gemini", "requests of Gemini's API", "contents"),
    Layout(
        name="langsmith",
        about="runs of LangSmith",
        recognises=lambda value: "run_type" in value and _is_chat(value.get("inputs")),
        read=_langsmith,
    ),
    Layout(
        name="spans",
        about="spans of OpenTelemetry, Phoenix and MLflow",
        recognises=lambda value: _span_names(value) is not None,
        read=_read_span,
    ),
    Layout(
        name="exchange",
        about="a request with its answer, as traces and logs of APIs have it",
        recognises=lambda value: "context" not in value and _exchange_names(value) is not None,
        read=_read_exchange,
    ),
    *(
        Layout(
            name=f"{name}-list",
            about=f"a list of conversations under {name!r}",
            recognises=_wrapped(name),
            read=_unwrapped(name),
        )
        for name in ("data", "conversations", "samples", "chats", "dialogues", "items", "rows", "results")
    ),
    Layout(
        name="messages",
        about="OpenAI, ShareGPT, LMSYS, WildChat, plain turns",
        recognises=lambda value: "context" not in value and _whole_name(value) is not None,
        read=_read_whole,
    ),
    plain("utterances", "Taskmaster and others with 'utterances'", "utterances"),
]


def find(value: Value, name: str | None = None) -> Layout | None:
    """Return the layout of an object of a file, or the one that the user names; None where there is none.

    Raises:
        InputError: there is no layout of that name.
    """
    if name is None:
        return next((layout for layout in LAYOUTS if layout.recognises(value)), None)
    found = next((layout for layout in LAYOUTS if layout.name == name), None)
    if found is None:
        raise InputError(f"--layout: there is no layout {name!r}. Known are: {', '.join(layout.name for layout in LAYOUTS)}.")
    return found
