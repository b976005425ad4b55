"""`Layout`, and common parts of the layouts' declarations."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from dialeval_plugin.conversations.messages import (
    ASSISTANT,
    USER,
    alternating,
    at,
    is_message,
    is_role,
    name_in,
    parsed_cell,
    plain_text,
    split_dialogue,
)
from dialeval_plugin.conversations.order import current_of
from dialeval_plugin.core.dialogue import advice_for_list
from dialeval_plugin.core.errors import InputError

Value: TypeAlias = Mapping[str, Any]

PYTHON_LIST = re.compile(r"\s*\[\s*(?:'|\{\s*')")
_PYTHON_MESSAGE = re.compile(r"(?:\w+Message(?:Chunk)?\()?content=['\"]")


class Logged(NamedTuple):
    """A conversation as read by its layout.

    Attributes:
        messages: the listed messages, of any type.
        id: id of the conversation; None if the layout has none.
        n_history: number of first messages that are the request, in which nothing is scored.
        current: id of the last message shown, if messages branch.
        left_out: kind of an object that is no conversation, which is counted and not read.
        answer_id, continues: id of the answer, and that of an earlier one in the file, which was said before.
        thread: id of the conversation of which a request is a part; None: unknown, it may be told from the history.
        once: a key, such as a trace or a question; a second conversation with the same key and turns is left out. None: no key.
    """

    messages: Sequence[object]
    id: object = None
    n_history: int = 0
    current: object = None
    left_out: str = ""
    once: object = None
    answer_id: object = None
    continues: object = None
    thread: object = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Position of conversations in a file's objects.

    Attributes:
        name: name for `--layout`.
        about: the product or data set, as text.
        recognises: whether an object of a file has this layout: a function, or the fields that it has, see `shape`.
        read: yields the conversations in the object, or returns the list of messages of one.
        message: for a file with one message per row, returns the message, with the id of its conversation under 'conversation';
            or several messages; or a text, the kind under which a row without a message is counted, "" for an uncounted one.
            None: an object is read by `read`.
        rows: for a file that is not JSON, yields the rows in its lines, each with the number of its line, from 1. Such a file
            is read if the user names the layout.
        joined_by: field that joins the rows of one object, for example a question and its answer in separate files.
        open_question: question that the user must settle before such a file is read, with `{name}` and `{about}` for the
            layout's own; "" if there is none.
        told_by: what tells its `rows` from other texts: a line, messages of several speakers, or one of them who speaks again.
        may_have_chats: whether a text of such `rows` may have several chats below each other, without times of their own.
        is_of_any_product: whether its fields have names that any product may use, next to fields that are not known.
    """

    name: str
    about: str
    recognises: Callable[[Value], bool] | str = lambda value: False
    read: Callable[[Value], Iterable[Any]] = lambda value: ()
    _: KW_ONLY
    message: Callable[[Value], Value | list[Any] | str] | None = None
    rows: Callable[[Iterable[str]], Iterator[tuple[int, Value]]] | None = None
    joined_by: str = ""
    open_question: str = ""
    told_by: Literal["line", "speakers", "speaker again"] = "line"
    may_have_chats: bool = False
    is_of_any_product: bool = False

    def fits(self, value: Value) -> bool:
        """Whether an object has this layout."""
        recognises = shape(self.recognises) if isinstance(self.recognises, str) else self.recognises
        try:
            return recognises(value)
        except (LookupError, TypeError, AttributeError, ValueError):
            return False  # a field has another type there

    def conversations(self, value: Value, where: str) -> list[Logged]:
        """Return the conversations in an object; its errors begin with `where`."""
        with self.reading(where):
            conversations = self.logged(value)
            if not all(isinstance(one.messages, list) for one in conversations):
                raise TypeError
            return conversations

    def logged(self, value: Value) -> list[Logged]:
        """Return the conversations in an object."""
        found = self.read(value)
        if isinstance(found, list) and not any(isinstance(one, Logged) for one in found):
            return [logged_in(value, found)]
        return list(found)

    def ask(self, where: str, named: str | None) -> None:
        """Raise an error for an object whose layout leaves a question open, unless the user named the layout."""
        if self.open_question and named is None:
            raise InputError(f"{where}: {self.open_question.format(name=self.name, about=self.about)}.")

    @contextlib.contextmanager
    def reading(self, where: str) -> Iterator[None]:
        """Add to an object's errors its location and its assumed layout."""
        try:
            yield
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise InputError(
                f"{where}: is not as the layout {self.name!r} ({self.about}) has it. Name another by --layout, or say what its "
                "fields are by --columns."
            ) from error


AS_IT_SHOULD_BE = "expected|reference|target|ideal|gold|truth"
"""Pattern of names of what should have been said, in place of what was."""
WHOLE = ("messages", "conversations", "conversation", "turns")
"""Field names of a conversation's messages in unknown layouts."""
CONVERSATION_IDS = (
    "conversation", "conversation_id", "conversationId", "session_id", "sessionId", "thread_id", "threadId", "chat_id",
    "chatId", "dialogue_id", "dialog_id", "convId", "conv_id", "call_id", "ticket_id",
)  # fmt: skip
"""Field names of the id of a row's conversation."""
IDS = ("id", *CONVERSATION_IDS[1:], "uuid", "conversation_hash", "trace_id", "traceId", "_id", "question_id")


def id_of(value: Value) -> object:
    """Return the id of a conversation; None if it has none."""
    return next((id for name in IDS if (id := value.get(name)) is not None and not (isinstance(id, str) and not id)), None)


def listed(value: Any) -> list[Any] | None:
    """Return the elements of a list, an array, or a cell that holds one as JSON; None for anything else."""
    value = parsed_cell(value.tolist() if hasattr(value, "tolist") else value)
    return list(value) if isinstance(value, (list, tuple)) else None


def required_list(values: Any, where: str, what: str) -> list[Any]:
    """Return the elements of a list or an array, which `what` names; an InputError begins with `where`."""
    if isinstance(values, str) and PYTHON_LIST.match(values):
        raise InputError(f"{where}: is a list as Python prints it, {values!r:.60}. Write it as JSON, by json.dumps.")
    if (elements := listed(values)) is None:
        raise InputError(
            f"{where}: expected a list of {what}, got {values!r:.80} ({type(values).__name__}). {advice_for_list(values)}"
        )
    if printed := next((one for one in elements if isinstance(one, str) and _PYTHON_MESSAGE.match(one)), None):
        raise InputError(f"{where}: has a message as Python prints it, {printed!r:.60}. Write it as JSON.")
    return elements


def elements(value: Any) -> list[Any]:
    """Return the elements of a list; raise a TypeError for anything else, such as a text, whose letters are no messages."""
    if (found := listed(value)) is None:
        raise TypeError
    return found


def logged_in(value: Value, messages: list[Any], id: str = "") -> Logged:
    """Return the conversation of an object, which has its id at the path `id` or in one of the usual fields."""
    own = at(value, id) if id else None
    current = current_of(value) or current_of(next((one for one in value.values() if isinstance(one, Mapping)), {}))
    return Logged(messages, id_of(value) if own is None else own, current=current)


def messages_at(path: str, *, id: str = "", each: Callable[[Any], Any] | None = None) -> Callable[[Value], list[Logged]]:
    """Return a reader of one conversation with its messages at `path`, and its id as of `logged_in`.

    `each` converts an element of the list to a usual message, or to several.
    """

    def read(value: Value) -> list[Logged]:
        messages = elements(at(value, path))
        if each is not None:
            made = map(each, messages)
            messages = [message for one in made for message in (one if isinstance(one, list) else [one])]
        return [logged_in(value, messages, id)]

    return read


def has(value: object, *names: str) -> bool:
    """Whether a value is an object with all these fields."""
    return isinstance(value, Mapping) and value.keys() >= set(names)


ANSWERS = (
    "output", "response", "completion", "answer", "choices", "generation", "outputs", "result", "prediction", "message",
    "output_message", "model_output", "generated_text", "reply",
)  # fmt: skip
"""Field names of the answer to a list of messages."""

_FIELD = re.compile(r'([^\s\[{"]+)(?:(\[)([^\]]*)\]|(\{)([^}]*)\}|(""))?')


@functools.cache
def shape(fields: str) -> Callable[[Value], bool]:
    """Return a function that recognises an object by its fields.

    `id a.b` are fields, or paths, that the object has; `a""` is a text; `a{b,c}` an object with these fields; `a[b,c]` a list
    whose first element has these fields, `a[]` any list. A bar separates alternatives: `a b | c`.
    """

    def holds(value: Value, path: str, is_list: str, of_list: str, is_object: str, of_object: str, is_text: str) -> bool:
        if not (is_list or is_object or is_text or "." in path):
            return path in value
        there = at(value, path)
        if is_list:
            return isinstance(there, list) and (not of_list or (bool(there) and has(there[0], *of_list.split(","))))
        if is_object:
            return has(there, *filter(None, of_object.split(",")))
        return isinstance(there, str) if is_text else there is not None

    alternatives = [_FIELD.findall(alternative) for alternative in fields.split(" | ")]
    return lambda value: any(all(holds(value, *field) for field in alternative) for alternative in alternatives)


def plain(name: str, about: str, path: str, *of_messages: str, **settings: Any) -> Layout:
    """Return a layout with the messages of one conversation at `path`, the first of which has the fields `of_messages`."""
    shapes = " | ".join(f"{one}[{','.join(of_messages)}]" for one in path.split(" | "))
    return Layout(name, about, shapes, messages_at(path, **settings))


def as_message(role: object, text: object, *unseen: str, **others: object) -> dict[str, Any]:
    """Return a usual message with a text and parts of the kinds `unseen`, which are counted; without a text it is no turn."""
    parts = [*({"type": kind} for kind in unseen), *([{"type": "text", "text": text}] if text else [])]
    return {"role": role, "content": parts if unseen else text or None, **others}


_HOLDERS = (
    "messages", "contents", "generations", "candidates", "choices", "output", "outputs", "input", "inputs", "message",
    "input_messages", "output_messages", "prompt",
)  # fmt: skip
"""Fields that hold the messages of a request or an answer."""


def messages_of(value: Any, role: str) -> list[Any] | None:
    """Return the messages of a request or an answer; None if it is no chat.

    Args:
        value: a list of messages, a message, an API's object that holds them or, for an answer, its text.
        role: role of a value that is only a text.
    """
    if isinstance(value, str):
        parsed = parsed_cell(value)
        if isinstance(parsed, dict) or is_chat(parsed):
            return messages_of(parsed, role) or [{"role": role, "content": value}]  # a text may itself be JSON
        value = parsed if isinstance(parsed, str) else value
        if role == USER and (marked := split_dialogue(value)) is not None:
            return marked
        return [{"role": role, "content": value}]
    if (elements := listed(value)) is not None:
        return _of_list(elements, role)
    if not isinstance(value, Mapping):
        return None
    if "kwargs" in value:  # a message written by LangChain's dumpd
        return [value]
    for name in ("chat_history", "history"):
        if (earlier := listed(value.get(name))) is not None:
            rest = {one: value[one] for one in value if one != name}
            before, last = messages_of(earlier, USER) or [], messages_of(rest, role) if rest else []
            if before and last and _content(before[-1]) == _content(last[0]):
                before = before[:-1]  # the history ends with the question
            return None if last is None else [*before, *last]
    for name in _HOLDERS:
        if value.get(name) is not None:
            return _held(name, value[name], role)
    if value.keys() & {"role", "parts", "content"} or is_message(value):
        return [{"role": role, **value}]
    text = next(
        (value[name] for name in ("output_text", "text", "answer", "response", "reply", "question", "query") if name in value),
        None,
    )
    return [{"role": role, "content": text}] if isinstance(text, str) else None


_OF_MESSAGES = {"role", "type", "from", "kwargs", "data", "message"}
"""One of these fields is in any message or part, and in none of several answers."""


def _of_list(elements: list[Any], role: str) -> list[Any] | None:
    if elements and all(is_pair(one) for one in elements):  # Gradio's history
        return alternating(text for pair in elements for text in pair)
    if len(elements) == 1 and isinstance(elements[0], (list, str)):  # a batch of one
        return messages_of(elements[0], role)
    are_messages = any(isinstance(one, Mapping) and _OF_MESSAGES & one.keys() for one in elements)
    if role == ASSISTANT and len(elements) > 1 and not are_messages:
        raise InputError(f"has {len(elements)} answers, and nothing says which was shown. Keep one of them.")
    messages = (one if isinstance(one, Mapping) else {"role": role, "content": one} for one in elements)
    return [one if "role" in one or is_message(one) or "type" in one else {"role": role, **one} for one in messages]


def is_pair(value: Any) -> bool:
    """Whether a value is a list of two texts, the first of which is no role."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and not is_role(value[0])


def _held(name: str, value: Any, role: str) -> list[Any] | None:
    """Return the messages that an API's object has under `name`."""
    inner = listed(value)
    if inner is None or name not in ("choices", "candidates", "generations"):
        return messages_of(value, role)
    if name == "choices" and len(inner) > 1:
        raise InputError(f"has {len(inner)} choices, and nothing says which was shown. Keep one of them.")
    if not inner:
        return []
    first = inner[0][0] if isinstance(inner[0], list) else inner[0]
    return messages_of(first.get("content") if name == "candidates" else first.get("message") or first.get("text"), role)


def exchange(request: Any, answer: Any, id: object) -> list[Logged]:
    """Return the conversation of a request and its answer, in which only the answer is scored.

    An answer that repeats the request, as agents' states do, adds only what follows it.
    """
    before, answers = messages_of(request, USER), messages_of(answer, ASSISTANT)
    if before is None or answers is None:
        raise InputError(
            "has a request or an answer that is no chat. Give each as a text, messages, or in a field 'question' or 'answer'. "
            "Or say which fields hold them by --columns context=NAME,response=NAME"
        )
    are_repeated = (_content(one) == _content(other) for one, other in zip(before, answers, strict=False))
    if before and len(answers) > len(before) and all(are_repeated):
        answers = answers[len(before) :]
    return [Logged([*before, *answers], id, len(before))]


def _content(message: Any) -> Any:
    held = message.get("kwargs") or message.get("data") or message
    return next((held[name] for name in ("content", "parts", "text") if name in held), None)


def trace_of(value: Value) -> object:
    """Return a key of the trace of which a request is a part, as are the steps that repeat it; None without one."""
    id = next((value[name] for name in ("trace_id", "traceId", "root_span_id") if value.get(name)), None)
    return None if id is None else ("trace", id)


_THREADS = " | ".join((*CONVERSATION_IDS, *(f"metadata.{name}" for name in CONVERSATION_IDS)))


def thread_of(value: Value, path: str = _THREADS) -> object:
    """Return the id of the conversation of which a request is a part; None without one."""
    return id if isinstance(id := at(value, path), (str, int)) else None


def exchange_at(name: str, about: str, request: str, answer: str, *marks: str, thread: str = _THREADS) -> Layout:
    """Return a layout of requests and answers at these paths, for objects that also have the fields `marks`, see `shape`.

    The id of their conversation is at the path `thread`.
    """

    def read(value: Value) -> list[Logged]:
        if at(value, answer) is None:
            return [Logged([], left_out="request without an answer")]
        (one,) = exchange(at(value, request), at(value, answer), id_of(value))
        return [one._replace(once=trace_of(value), thread=thread_of(value, thread))]

    return Layout(
        name=name, about=about, read=read,
        recognises=lambda value: shape(" ".join(marks) or answer.partition(".")[0])(value) and at(value, request) is not None,
    )  # fmt: skip


def is_chat(value: Any) -> bool:
    """Whether a value is a message, a list of messages, or an API's object that holds some."""
    value = parsed_cell(value)
    if isinstance(value, list):
        # A call of a tool, or reasoning, may come before the first message.
        are_messages = any(is_message(one) or (isinstance(one, Mapping) and "role" in one) for one in value)
        return are_messages or (bool(value) and is_chat(value[0]))
    return isinstance(value, Mapping) and bool(
        is_message(value)
        or any(is_chat(value.get(name)) for name in ("messages", "contents"))
        or value.keys() & {"choices", "generations", "candidates"}
        or value.get("object") == "response"
        or isinstance(at(value, "output.message"), Mapping)
    )


def flat(messages: Iterable[Any], children: str, id: str, parent: object = None) -> list[Any]:
    """Return the messages of a tree, in which each has its id and contains its successors, with the id of the one before."""
    found = []
    for one in messages:
        own = one if isinstance(one, Mapping) else {}
        found += [{"parent": parent, **own} if own else one, *flat(own.get(children) or (), children, id, own.get(id))]
    return found


def said(
    role: str,
    text: str,
    roles: Mapping[Any, str] = {},
    *,
    otherwise: str | None = None,
    only: tuple[str, Container[Any]] | None = None,
    is_html: bool = False,
    **others: str,
) -> Callable[[Value], dict[str, Any]]:
    """Return a function that makes a usual message of one whose role, text and other fields are at these paths.

    Args:
        role: path of the role.
        text: path of the text.
        roles: roles that the product calls otherwise.
        otherwise: role of all that are not among `roles`; None: as they are called.
        only: a path, and what is there in a message that somebody said.
        is_html: whether texts are HTML.
        others: paths of the fields of the usual message, such as its timestamp.
    """

    def usual(message: Value) -> dict[str, Any]:
        given, words = name_in(at(message, role)), at(message, text)
        name = roles.get(given, otherwise or (str(given) if isinstance(given, int) else given))
        if only is not None and at(message, only[0]) not in only[1]:
            name = "event"
        words = plain_text(words) if is_html and isinstance(words, str) else words
        return as_message(name, words, **{field: at(message, path) for field, path in others.items()})

    return usual


def answered(question: str, answer: str, **others: str) -> Callable[[Value], list[dict[str, Any]]]:
    """Return a function that makes two usual messages of a question and its answer at these paths."""

    def both(value: Value) -> list[dict[str, Any]]:
        place = {field: at(value, path) for field, path in others.items()}
        return [as_message(USER, at(value, question), **place), as_message(ASSISTANT, at(value, answer), **place)]

    return both


def ask_who(who: str = "each message but the first is scored") -> str:
    """Return the question that a chat between people leaves open."""
    return f"is a chat of people ({{about}}). Read it by --layout {{name}}: {who}"
