"""What a layout is, and what the declarations of layouts have in common."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, NamedTuple, TypeAlias

from dialeval_plugin.conversations.messages import USUAL, Fields, is_message, parsed_cell
from dialeval_plugin.conversations.order import current_of
from dialeval_plugin.core.errors import InputError

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
        message: where a file has a message a row, the message that the object is, with what it is part of under
            'conversation'; or the messages; or a text: what the row is counted as that is none, "" of what is not counted.
            None: an object is read by `read`.
        rows: of a file that is no JSON, the rows that its lines hold, each with the number of its line, from 1. Such a file is
            read where the user names the layout.
        open_question: what has to be settled before such a file is read; "" where nothing has to.
    """

    name: str
    about: str
    recognises: Callable[[Value], bool]
    read: Callable[[Value], Iterable[Logged]] = lambda value: ()
    message: Callable[[Value], Value | list[Value] | str] | None = None
    rows: Callable[[Iterable[str]], Iterator[tuple[int, Value]]] | None = None
    open_question: str = ""

    def fits(self, value: Value) -> bool:
        """Whether an object is of this layout."""
        try:
            return self.recognises(value)
        except (LookupError, TypeError, AttributeError):
            return False  # a field is something else there

    def conversations(self, value: Value, where: str) -> list[Logged]:
        """Return the conversations that an object holds; an error of it begins with `where`."""
        with self.reading(where):
            found = list(self.read(value))
            if not all(isinstance(one.messages, list) for one in found):
                raise TypeError
            return found

    def ask(self, where: str, named: str | None) -> None:
        """Refuse an object whose layout leaves a question open, unless the user named the layout."""
        if self.open_question and named is None:
            raise InputError(f"{where}: {self.open_question}.")

    @contextlib.contextmanager
    def reading(self, where: str) -> Iterator[None]:
        """Say of an object that cannot be read where it is, and what it was taken for."""
        try:
            yield
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise InputError(
                f"{where}: is not as the layout {self.name!r} ({self.about}) has it. Name another by --layout, or say what its "
                "fields are by --columns."
            ) from error


WHOLE = ("messages", "conversations", "conversation", "turns")
"""What the messages of a conversation are called, where nothing else is known of it."""
IDS = (
    "id", "conversation_id", "conversationId", "uuid", "session_id", "sessionId", "thread_id", "threadId", "chat_id",
    "dialogue_id", "dialog_id", "conversation_hash", "trace_id", "traceId", "_id", "question_id",
)  # fmt: skip


def at(value: Any, path: str) -> Any:
    """Return what is at a path of names and dots; None where there is nothing."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def id_of(value: Value) -> object:
    """Return the id of a conversation; None where it has none."""
    return next((id for name in IDS if (id := value.get(name)) is not None and not (isinstance(id, str) and not id)), None)


def listed(value: Any) -> list[Any] | None:
    """Return the elements of a list, an array, or a cell that holds one as JSON; None of anything else."""
    value = parsed_cell(value.tolist() if hasattr(value, "tolist") else value)
    return list(value) if isinstance(value, (list, tuple)) else None


def list_at(value: Value, path: str) -> list[Any]:
    """Return the elements of the list at a path; a TypeError says that there is none."""
    if (found := listed(at(value, path))) is None:
        raise TypeError
    return found


def messages_at(
    path: str, *, id: str = "", fields: Fields = USUAL, each: Callable[[Any], Any] | None = None
) -> Callable[[Value], list[Logged]]:
    """Return what reads one conversation whose messages are at `path`, and its id at `id` or where ids usually are.

    What each message of the list says in a way of its own `each` makes a usual message.
    """

    def read(value: Value) -> list[Logged]:
        current = current_of(value) or current_of(next((one for one in value.values() if isinstance(one, Mapping)), {}))
        own = at(value, id) if id else None
        messages = list_at(value, path)
        found = messages if each is None else [each(one) for one in messages]
        return [Logged(found, own if own is not None else id_of(value), current=current, fields=fields)]

    return read


def has_list(path: str, *names: str) -> Callable[[Value], bool]:
    """Return what recognises an object by a list at `path`, whose first element has fields of these names."""

    def recognises(value: Value) -> bool:
        found = at(value, path)
        return isinstance(found, list) and (not names or (bool(found) and has(found[0], *names)))

    return recognises


def has(value: object, *names: str) -> bool:
    """Whether a value is an object with fields of these names."""
    return isinstance(value, Mapping) and value.keys() >= set(names)


def plain(name: str, about: str, path: str, *of_messages: str, **settings: Any) -> Layout:
    """Return a layout with the messages of one conversation at `path`, the first of which has fields of these names."""
    return Layout(name=name, about=about, recognises=has_list(path, *of_messages), read=messages_at(path, **settings))


def said(role: object, text: object, *unseen: str, **others: object) -> dict[str, Any]:
    """Return a usual message of a text and of parts of these kinds, which are counted; without a text it is no turn."""
    parts = [*({"type": kind} for kind in unseen), *([{"type": "text", "text": text}] if text else [])]
    return {"role": role, "content": parts if unseen else text or None, **others}


def plain_text(html: str) -> str:
    r"""Return what a text with tags of HTML says.

    Example:
        >>> plain_text("<p>Tea &amp; cake.</p><p>Or <b>rain</b>?</p>")
        'Tea & cake.\nOr rain?'
    """
    text = re.sub(r"(?i)<br\s*/?>|</(?:p|div|li|h\d|tr|pre)>", "\n", html)
    return unescape(re.sub(r"<[^>]*>", "", text)).strip()


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


def is_chat(value: Any) -> bool:
    """Whether a value is a message, a list of messages, or an object of an API that holds some."""
    value = parsed_cell(value)
    if isinstance(value, list):
        return bool(value) and (
            is_message(value[0]) or is_chat(value[0]) or (isinstance(value[0], Mapping) and "role" in value[0])
        )
    return isinstance(value, Mapping) and bool(
        is_message(value)
        or any(is_chat(value.get(name)) for name in ("messages", "contents"))
        or value.keys() & {"choices", "generations"}
    )


def ask_who(name: str, about: str, who: str = "each message but the first is scored") -> str:
    """Return the question that a chat of people leaves open."""
    return f"is a chat of people ({about}). Read it by --layout {name}: {who}"
