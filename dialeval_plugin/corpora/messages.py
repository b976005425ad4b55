"""Chat messages as turns: OpenAI's `{role, content}`, ShareGPT's `{from, value}`, plain `{speaker, text}`, and strings.

What a user and an assistant said are turns; `user` and `assistant` are then their speakers, however the log calls them. What
the system, a developer or a tool put in is no turn, and neither is what has no text, an image say: both are left out and
counted, as are the reasoning that an assistant wrote before its answer, and tokens that end it. Any other role is the name of a
speaker.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialeval_plugin.core.dialogue import Turn, check_text
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.llm.reasoning import split_reasoning

from .rows import tagged_turn

USER, ASSISTANT = "user", "assistant"
SYSTEM = "system"

TEXTLESS = "textless message"
"""What counts messages without any text: calls of tools, images."""

_SPEAKERS = {
    **dict.fromkeys(("user", "human"), USER),
    **dict.fromkeys(("assistant", "ai", "gpt", "chatgpt", "chatbot", "model", "bot"), ASSISTANT),
}
_NO_SPEAKERS = frozenset(
    {"developer", "tool", "tool_call", "tool_response", "function", "function_call", "function_response", "observation"}
)
_LAYOUTS = (("role", "content"), ("type", "content"), ("from", "value"), ("speaker", "text"))
"""The field of who says something and the field of what, as each layout names them."""
_CALLS = frozenset({"tool_calls", "function_call"})
_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""The parts of a content that are text, by type, each with the field that holds it."""


def is_message(value: object) -> bool:
    """Whether `value` is an object with the two fields of a chat message."""
    return isinstance(value, Mapping) and any(speaker in value and text in value for speaker, text in _LAYOUTS)


def turn_of(value: object, where: str, left_out: Counter[str]) -> Turn | None:
    """Return a string or a chat message as a turn; None where it is none, which `left_out` then counts.

    Raises:
        InputError: `value` is neither, or a part of it has another type; the message begins with `where`.
    """
    # Whether it is a text is asked first: the other question takes ten times as long.
    if isinstance(value, str) or not isinstance(value, Mapping):
        return _plain_turn(check_text(value, where))
    speaker_field, text_field = _layout(value, where)
    given = value.get(speaker_field)
    if given is None and speaker_field != "speaker":
        raise InputError(f"{where}: has no {speaker_field!r}. Say who wrote it: user, assistant, system, or a speaker's name.")
    speaker = None if given is None else check_text(given, f"{where}: {speaker_field}").strip()
    role = (speaker or "").lower()
    # In a transcript of speakers the system may be the chatbot: `spoken` decides when it has seen the others.
    if role in _NO_SPEAKERS or (role == SYSTEM and speaker_field != "speaker"):
        left_out[f"{role} message"] += 1
        return None
    text = _text(value.get(text_field), f"{where}: {text_field}", left_out)
    # Many servers write "" beside a call.
    if text is None or (not text.strip() and any(map(value.get, _CALLS))):
        left_out[TEXTLESS] += 1
        return None
    speaker = _SPEAKERS.get(role, SYSTEM if role == SYSTEM else speaker) or None
    return Turn(_answer(text, left_out) if speaker == ASSISTANT else text, speaker)


def _answer(text: str, left_out: Counter[str]) -> str:
    """What an assistant said to the user; "" where it was cut off while it reasoned."""
    if not any(mark in text for mark in "<[◁") and not text.lstrip().startswith("analysis"):
        return text  # without a mark of any kind
    reply = split_reasoning(text)
    if not reply.has_reasoning and reply.text == text.strip():
        return text
    left_out["reasoning passage" if reply.has_reasoning else "end token"] += 1
    return reply.text


_plain_turn = functools.lru_cache(maxsize=1024, typed=True)(Turn)
"""A file has a context once for each of its responses."""


def numbered_turns(messages: Iterable[tuple[str, object]], left_out: Counter[str]) -> list[tuple[int, Turn]]:
    """Return the turns of a conversation, each with the number of its message, from 1.

    Where a transcript of `{speaker, text}` has a `system` and nobody else who is an assistant, that is the assistant.

    Args:
        messages: each with the place that an error of it names.
        left_out: counts what is no turn.
    """
    found = [(number, turn_of(value, where, left_out)) for number, (where, value) in enumerate(messages, start=1)]
    turns = [(number, turn) for number, turn in found if turn is not None]
    if SYSTEM not in {turn.speaker for _, turn in turns}:
        return turns
    if assistant([turn for _, turn in turns]) == SYSTEM:
        return [(number, Turn(turn.text, ASSISTANT) if turn.speaker == SYSTEM else turn) for number, turn in turns]
    left_out["system message"] += sum(turn.speaker == SYSTEM for _, turn in turns)
    return [(number, turn) for number, turn in turns if turn.speaker != SYSTEM]


def assistant(turns: Iterable[Turn]) -> str | None:
    """Return who of the speakers is an assistant, as the turns call it; None where nobody is known to be one.

    Example:
        >>> assistant([Turn("Hi.", "Human"), Turn("Hello.", "Chatbot")])
        'Chatbot'
    """
    speakers = {turn.speaker.strip().lower(): turn.speaker for turn in turns if turn.speaker}
    found = [name for role, name in speakers.items() if _SPEAKERS.get(role) == ASSISTANT]
    return found[0] if found else speakers.get(SYSTEM)


def context_and_response(
    context: Sequence[object], response: object, names: tuple[str, str], left_out: Counter[str]
) -> tuple[tuple[Turn, ...], Turn]:
    """Return the turns before a response, and the response, each given as a string or a chat message.

    A plain response to chat messages is the assistant's. A message without text is a blank response, which has no score. Where
    a plain response begins with `System: `, as those of FED do, it and the plain turns lose such tags.

    Args:
        context: oldest first.
        response: what was said then.
        names: what errors call the two.
        left_out: counts what is no turn.
    """
    if isinstance(response, str):
        if response.startswith("System: "):
            context, response = [_untagged(value, left_out) for value in context], _untagged(response, left_out)
        response = _answer(check_text(response, names[1]), left_out)
    places = ((f"{names[0]}[{index}]", value) for index, value in enumerate(context))
    turns = tuple(turn for _, turn in numbered_turns(places, left_out))
    without_text = left_out[TEXTLESS]
    answer = turn_of(response, names[1], left_out)
    if answer is None and left_out[TEXTLESS] == without_text:
        raise InputError(
            f"{names[1]}: expected a response, got a message of the role {_role(response)!r}. Pass the assistant's."
        )
    is_chat = any(turn.speaker in (USER, ASSISTANT) for turn in turns)
    if answer is None or (answer.speaker is None and is_chat):
        answer = Turn("" if answer is None else answer.text, ASSISTANT)
    return turns, answer


def _untagged(value: object, left_out: Counter[str]) -> object:
    if not isinstance(value, str) or (turn := tagged_turn(value)) is None:
        return value
    left_out["speaker tag"] += 1
    return turn.text


def left_out_text(left_out: Mapping[str, int]) -> str:
    """Say what was left out.

    Example:
        >>> left_out_text({"system message": 2, "image_url part": 1})
        '2 system messages, 1 image_url part'
    """
    return ", ".join(f"{n} {what}{'s' if n != 1 else ''}" for what, n in left_out.items() if n)


def _role(message: object) -> object:
    return next((message[name] for name, _ in _LAYOUTS if name in message), None) if isinstance(message, Mapping) else None


def _layout(value: Mapping[Any, Any], where: str) -> tuple[str, str]:
    layouts = [layout for layout in _LAYOUTS if layout[1] in value]
    layout = next((layout for layout in layouts if layout[0] in value), layouts[0] if layouts else None)
    # A call of a tool may come without any content.
    if layout is None and "role" in value and value.keys() & _CALLS:
        layout = _LAYOUTS[0]
    if layout is None:
        known = ", ".join(map(repr, value)) or "nothing"
        raise InputError(f"{where}: is no chat message, it has only {known}. Give 'role' and 'content', as OpenAI's have them.")
    return layout


def _text(content: Any, where: str, left_out: Counter[str]) -> str | None:
    """The text of a content, its parts joined by line breaks; None where it has none."""
    if content is None or isinstance(content, str):
        return content if content is None else check_text(content, where)
    if hasattr(content, "tolist"):
        content = content.tolist()
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        raise InputError(
            f"{where}: expected a string or a list of parts, got {content!r:.80} ({type(content).__name__}). "
            "Give text, or parts as {'type': 'text', 'text': ...}."
        )
    texts = []
    for index, part in enumerate(content):
        place = f"{where}[{index}]"
        if isinstance(part, str):
            texts.append(check_text(part, place))
        elif not isinstance(part, Mapping):
            raise InputError(f"{place}: expected a part as {{'type': 'text', 'text': ...}}, got {part!r:.80}. Give text.")
        elif (kind := str(part.get("type", "text"))) in _TEXT_PARTS:
            texts.append(check_text(part.get(_TEXT_PARTS[kind]), f"{place}: {_TEXT_PARTS[kind]}"))
        else:
            left_out[f"{kind} part"] += 1
    return "\n".join(texts) if texts else None
