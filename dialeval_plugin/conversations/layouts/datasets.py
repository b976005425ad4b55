"""Rows of published data sets, and of those that people train on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dialeval_plugin.conversations.messages import split_dialogue
from dialeval_plugin.conversations.roles import is_role
from dialeval_plugin.core.errors import InputError

from .layout import WHOLE, Layout, Logged, Value, id_of, listed, messages_at, messages_of

_PREFERENCES = (("chosen", "rejected"), ("preferred_output", "non_preferred_output"), ("conversation_a", "conversation_b"))


def preference_names(value: Value) -> tuple[str, str] | None:
    """Return the fields that hold two answers of which people preferred one; None where there are none."""
    return next((pair for pair in _PREFERENCES if value.get(pair[0]) is not None and value.get(pair[1]) is not None), None)


def _has_preference(value: Value) -> bool:
    messages = next((list_ for name in WHOLE if (list_ := listed(value.get(name)))), None)
    # A conversation that ends with an answer is what was said; which other answer people liked less stands next to it.
    last = messages[-1] if messages and isinstance(messages[-1], Mapping) else {}
    ends = is_role(role := last.get("role") or last.get("from")) and str(role).lower() in ("assistant", "gpt", "model")
    return preference_names(value) is not None and not ends


def _preferred(side: int) -> Callable[[Value], list[Logged]]:
    def read(value: Value) -> list[Logged]:
        names = preference_names(value)
        if names is None:
            raise InputError("has no pair of answers, as 'chosen' and 'rejected' are.")
        answer = value[names[side]]
        if isinstance(answer, str) and (messages := split_dialogue(answer)) is not None:
            return [Logged(messages, id_of(value), len(messages) - 1)]
        said = messages_of(answer, "assistant") or []
        asked: list[Any] = []
        if len(said) < 2:
            request = next((value[name] for name in ("prompt", "input", "question", *WHOLE) if value.get(name) is not None), "")
            # TRL has HH-RLHF's transcript, up to its last "Assistant:", as the prompt.
            if isinstance(request, str) and isinstance(answer, str) and (messages := split_dialogue(f"{request} {answer}")):
                return [Logged(messages, id_of(value), len(messages) - 1)]
            asked = messages_of(request, "user") or []
        return [Logged([*asked, *said], id_of(value), len(asked) or (0 if names[0].startswith("conv") else len(said) - 1))]

    return read


_OPEN_PREFERENCE = (
    "each row has two answers. Score one of them by --layout preferred or --layout dispreferred; "
    "`dialeval compare FILE` says how often the preferred one scores higher"
)


def _is_question_list(value: Value) -> bool:
    turns = value.get("turns")
    return "question_id" in value and isinstance(turns, list) and all(isinstance(one, str) for one in turns)


LAYOUTS = [
    Layout(
        name="mt-bench-questions",
        about="questions without answers",
        recognises=_is_question_list,
        read=messages_at("turns"),
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
]
