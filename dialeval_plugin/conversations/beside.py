"""Fields next to the turns of a conversation that may hold its last answer, which the turns then lack."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.core.errors import InputError

from .layouts.layout import AS_IT_SHOULD_BE, listed
from .messages import ASSISTANT, USER, numbered_turns, sides_of

_UNSAID = f"{AS_IT_SHOULD_BE}|correct|chosen|rejected|system"


def _names(last_words: str) -> re.Pattern[str]:
    """Return a pattern of names in snake case by their last words, without names of what should have been said."""
    return re.compile(rf"(?!.*(?:{_UNSAID}))(?:[a-z0-9]+_)*(?:{last_words})(?:_(?:text|message|content|turn|input|query))?")


_ANSWER = _names(
    r"(?:answer|response|resp|res|reply|replie|output|completion|prediction|predicted|generation|generated|candidate|utterance|artifact)s?"
    r"|assistant|bot|ai|result|message"
)
_QUESTION = _names("question|query|prompt|input|request|message|turn|user|human|customer")
_GREETING = re.compile("(?:first|opening|welcome|initial)_(?:mes|message)|greeting")
_MAY_BE_NAMES = ("assistant", "bot", "ai", "user", "human", "customer", "input", "message", "result")
"""Names under which one word may be the name of a person or a model, or say how a request went."""


def answer_beside(row: Mapping[str, Any], messages: Sequence[object], turns: Sequence[Turn]) -> str | None:
    """Say which field of a row may have the answer to its turns, or to a question next to them; None without one."""
    if other := _other_list(row, messages, turns):
        return f"has other messages in {other!r}. Read these by --columns messages={shlex.quote(other)}."
    if (greeting := _field(row, _GREETING, turns)) is not None:
        return f"has {greeting!r} next to its turns, which may have been said before them. Add it to the turns."
    if (answer := _field(row, _ANSWER, turns)) is None:
        return None
    if turns[-1].speaker == USER:
        option = shlex.quote(f"context=NAME,response={answer}")
        return f"has {answer!r} next to its turns, which may be the last answer. Say so by --columns {option}."
    if (question := _field(row, _QUESTION, turns)) in (None, answer):
        return None
    return f"has {question!r} and {answer!r} next to its turns, which may be the last two. Add them to the turns."


def _other_list(row: Mapping[str, Any], messages: Sequence[object], turns: Sequence[Turn]) -> str | None:
    """Return the field of a list of other messages, with an answer that is no turn; None without one."""
    texts = {turn.text for turn in turns}
    for name, value in row.items():
        others = listed(value) or []
        if others not in ([], messages) and not re.search(_UNSAID, str(name)) and {USER, ASSISTANT} <= sides_of(others):
            with contextlib.suppress(InputError):
                read = [turn for _, turn in numbered_turns(((str(name), one) for one in others), Counter())]
                if any(turn.speaker == ASSISTANT and turn.text not in texts for turn in read):
                    return str(name)
    return None


def _field(row: Mapping[str, Any], names: re.Pattern[str], turns: Sequence[Turn]) -> str | None:
    """Return the first field of such a name with words that are no turn."""
    for name, value in row.items():
        spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+", "_", str(name)).lower()
        if not names.fullmatch(spelled):
            continue
        texts = {" ".join(text.split()) for text in _texts(value)}
        if spelled in _MAY_BE_NAMES:
            texts = {text for text in texts if " " in text}
        if any(texts) and not texts & {" ".join(turn.text.split()) for turn in turns}:
            return str(name)
    return None


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a field, also those inside of it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)
