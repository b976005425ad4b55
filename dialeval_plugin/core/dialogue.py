"""`Turn`, `Example` and `Dialogue`: frozen, and validated when they are made.

A value of the wrong type is an error that names field and index. For an empty response or context a scorer returns `Unscored`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from .errors import InputError

Level: TypeAlias = Literal["turn", "dialogue"]
"""Level of a scorer or rating: single responses or whole dialogues."""

Ratings: TypeAlias = Mapping[str, tuple[float, ...]]
"""Raters' values by quality, in the raters' order; () if nobody rated it."""

_FROM_TEXTS = "Make plain strings into an example with Example.from_texts."


def check_text(value: object, where: str) -> str:
    """Return `value` if it is a string of valid Unicode."""
    if isinstance(value, str) and value.isascii():
        return value
    if isinstance(value, Mapping) and "content" in value:
        raise InputError(
            f"{where}: expected a string, got the chat message {value!r}. Pass its 'content' alone, "
            "or whole conversations to dialeval_plugin.examples_from."
        )
    if not isinstance(value, str):
        raise _wrong_type(where, "a string", value, "Pass text.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: the lone surrogate {value[error.start]!r} at character {error.start} is not valid Unicode. "
            "Decode the source again, for example with errors='replace'."
        ) from None
    return value


def _wrong_type(where: str, expected: str, value: object, advice: str) -> InputError:
    return InputError(f"{where}: expected {expected}, got {value!r} ({type(value).__name__}). {advice}")


def is_blank(text: str) -> bool:
    """Whether `text` has no visible character: only white space, control and zero-width characters."""
    if text.isprintable():
        return not text or text.isspace()
    return not any(character.isprintable() and not character.isspace() for character in text)


def _check_ratings(ratings: Mapping[str, Iterable[float]], where: str) -> dict[str, tuple[float, ...]]:
    if not isinstance(ratings, Mapping):
        expected = "a mapping of quality to the raters' numbers"
        raise _wrong_type(f"{where}: ratings", expected, ratings, "Pass a dictionary.")
    checked = {}
    for quality, numbers in ratings.items():
        check_text(quality, f"{where}: a quality")
        if not isinstance(numbers, Iterable):
            raise _wrong_type(f"{where}: ratings of {quality!r}", "the raters' numbers", numbers, "Pass a tuple.")
        checked[quality] = values = tuple(numbers)
        for rater, value in enumerate(values):
            # math.isfinite fails for integers beyond the range of a float.
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
                raise InputError(
                    f"{where}: rating {rater} of {quality!r} is {value!r}, not a finite number. "
                    "Leave out what a rater did not answer."
                )
    return checked


def _check_labels(item: Item) -> None:
    kind = type(item).__name__
    check_text(item.id, f"{kind}: id")
    if item.system is not None:
        check_text(item.system, f"{kind} {item.id!r}: system")


def _check_turns(turns: object, item: Item, name: str, advice: str) -> None:
    if not isinstance(turns, tuple):
        raise _wrong_type(_field(item, name), "a tuple of Turn objects", turns, advice)
    for index, turn in enumerate(turns):
        if not isinstance(turn, Turn):
            raise _wrong_type(f"{_field(item, name)}[{index}]", "a Turn", turn, advice)


def _check_strings(texts: object, item: Item, name: str) -> None:
    if not isinstance(texts, tuple):
        raise _wrong_type(_field(item, name), "a tuple of strings", texts, "Pass a tuple.")
    for index, text in enumerate(texts):
        check_text(text, f"{_field(item, name)}[{index}]")


def _field(item: Item, name: str) -> str:
    return f"{type(item).__name__} {item.id!r}: {name}"


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance; `speaker` is the tag of the source, or None."""

    text: str
    speaker: str | None = None

    def __post_init__(self) -> None:
        check_text(self.text, "Turn.text")
        if self.speaker is not None:
            check_text(self.speaker, "Turn.speaker")


class Origin(NamedTuple):
    """Source of an item.

    Attributes:
        conversation: id of the conversation.
        message: number of the message in its conversation, from 1, including system and tool messages; None for a dialogue.
        source: location of the message, or else the conversation: `logs/monday.jsonl:12`, `conversations[3]`.
        kept: names and values of fields to write next to the score.
    """

    conversation: str
    message: int | None = None
    source: str | None = None
    kept: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """One response to judge, with its context."""

    id: str
    context: tuple[Turn, ...]
    """Turns before the response, oldest first."""
    response: Turn
    references: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    """Persona lines or knowledge that the response may use."""
    system: str | None = None
    """The chatbot (or human) that produced the response."""
    ratings: Ratings = field(default_factory=dict)
    origin: Origin | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_labels(self)
        _check_turns(self.context, self, "context", _FROM_TEXTS)
        if not isinstance(self.response, Turn):
            raise _wrong_type(_field(self, "response"), "a Turn", self.response, _FROM_TEXTS)
        _check_strings(self.references, self, "references")
        _check_strings(self.facts, self, "facts")
        object.__setattr__(self, "ratings", _check_ratings(self.ratings, f"Example {self.id!r}"))

    @classmethod
    def from_texts(
        cls, context: Sequence[str], response: str, *, id: str = "0", references: Sequence[str] = (), facts: Sequence[str] = ()
    ) -> Example:
        """Build an example from plain strings.

        Raises:
            InputError: a value has the wrong type; the message names the field and the index.
        """
        check_text(id, "Example: id")
        return cls(
            id=id,
            context=tuple(Turn(text) for text in _check_texts(context, f"Example {id!r}: context")),
            response=Turn(check_text(response, f"Example {id!r}: response")),
            references=_check_texts(references, f"Example {id!r}: references"),
            facts=_check_texts(facts, f"Example {id!r}: facts"),
        )


def advice_for_list(value: object) -> str:
    """Return advice on a value that is not a list."""
    if isinstance(value, (str, bytes)):
        return "Wrap a single string in a list."
    return "Gather its values with list()." if isinstance(value, Iterator) else "Pass a list."


def _check_texts(values: object, where: str) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise _wrong_type(where, "a list of strings", values, advice_for_list(values))
    return tuple(check_text(value, f"{where}[{index}]") for index, value in enumerate(values))


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A whole dialogue, judged as a unit."""

    id: str
    turns: tuple[Turn, ...]
    system: str | None = None
    ratings: Ratings = field(default_factory=dict)
    origin: Origin | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_labels(self)
        _check_turns(self.turns, self, "turns", "Pass Turn objects.")
        object.__setattr__(self, "ratings", _check_ratings(self.ratings, f"Dialogue {self.id!r}"))


Item: TypeAlias = Example | Dialogue
"""Input of a scorer: an `Example` at level "turn", a `Dialogue` at level "dialogue"."""


def context_turns(item: Item) -> tuple[Turn, ...]:
    """Return the context of an example, or all turns of a dialogue."""
    return item.context if isinstance(item, Example) else item.turns


def visible_texts(turns: Iterable[Turn]) -> list[str]:
    """Return the texts of the turns with a visible character."""
    return [turn.text for turn in turns if not is_blank(turn.text)]


def mean_rating(item: Item, quality: str) -> float | None:
    """Return the mean of the raters' values of `quality`; None if no rater answered.

    "Not applicable" answers are not in the list of values, so they do not count.
    """
    if quality not in item.ratings:
        raise InputError(f"{item.id!r}: has no quality {quality!r}. It has: {', '.join(item.ratings) or 'none'}.")
    values = item.ratings[quality]
    return math.fsum(values) / len(values) if values else None
