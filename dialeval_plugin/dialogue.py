"""`Turn`, `Example` and `Dialogue`: the only data types that cross module borders.

They are frozen and validated once, when they are made. An empty response or context is data, not an error: a scorer
answers it with `Unscored`. A value of the wrong type is an error, and the message names the field and the index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .errors import InputError

Ratings: TypeAlias = Mapping[str, tuple[float, ...]]
"""Quality name to the values of its raters, in rater order; a quality that nobody rated has an empty tuple."""


def check_text(value: object, where: str) -> str:
    """Return `value` if it is text that can be stored and tokenised.

    Raises:
        InputError: `value` is not a string, or holds half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise InputError(f"{where}: expected a string, got {value!r} ({type(value).__name__}). Pass text.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: the lone surrogate {value[error.start]!r} at character {error.start} is not valid Unicode. "
            "Decode the source again, for example with errors='replace'."
        ) from None
    return value


def is_blank(text: str) -> bool:
    """True where `text` has no visible character: empty, white space, control or zero-width characters only."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def _check_ratings(ratings: Mapping[str, Sequence[float]], where: str) -> dict[str, tuple[float, ...]]:
    checked = {}
    for quality, values in ratings.items():
        for rater, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise InputError(
                    f"{where}: rating {rater} of {quality!r} is {value!r}, not a finite number. "
                    "Leave out what a rater did not answer."
                )
        checked[quality] = tuple(values)
    return checked


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. `speaker` is the tag of the published file, or None where the file has none."""

    text: str
    speaker: str | None = None

    def __post_init__(self) -> None:
        check_text(self.text, "Turn.text")
        if self.speaker is not None:
            check_text(self.speaker, "Turn.speaker")


@dataclass(frozen=True, slots=True)
class Example:
    """One response to judge, after the turns that led to it."""

    id: str
    context: tuple[Turn, ...]
    """Turns before the response, oldest first; may be empty."""
    response: Turn
    references: tuple[str, ...] = ()
    """Responses known to be good."""
    facts: tuple[str, ...] = ()
    """Persona lines or knowledge that the response may draw on."""
    system: str | None = None
    """The chatbot (or human) that produced the response."""
    ratings: Ratings = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratings", _check_ratings(self.ratings, f"Example {self.id!r}"))

    @classmethod
    def from_texts(
        cls,
        context: Sequence[str],
        response: str,
        *,
        id: str = "0",
        references: Sequence[str] = (),
        facts: Sequence[str] = (),
    ) -> Example:
        """Build an example from plain strings.

        Raises:
            InputError: a value has the wrong type; the message names the field and the index.
        """
        return cls(
            id=id,
            context=tuple(Turn(text) for text in _check_texts(context, f"Example {id!r}: context")),
            response=Turn(check_text(response, f"Example {id!r}: response")),
            references=_check_texts(references, f"Example {id!r}: references"),
            facts=_check_texts(facts, f"Example {id!r}: facts"),
        )


def _check_texts(values: object, where: str) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(
            f"{where}: expected a list of strings, got {values!r} ({type(values).__name__}). Wrap a single string in a list."
        )
    return tuple(check_text(value, f"{where}[{index}]") for index, value in enumerate(values))


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A whole dialogue, judged as one."""

    id: str
    turns: tuple[Turn, ...]
    system: str | None = None
    ratings: Ratings = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratings", _check_ratings(self.ratings, f"Dialogue {self.id!r}"))


Item: TypeAlias = Example | Dialogue
"""What a scorer takes: an `Example` at level "turn", a `Dialogue` at level "dialogue"."""


def context_turns(item: Item) -> tuple[Turn, ...]:
    """Turns of an item without the response that is judged: the context, or the whole dialogue."""
    return item.context if isinstance(item, Example) else item.turns
