"""What the scorers that compare a response with references share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NamedTuple, cast, get_args

from dialeval_plugin.dialogue import Example, Item, is_blank
from dialeval_plugin.errors import InputError
from dialeval_plugin.scoring import Reason, Row, Scorer, Unscored

N_EQUAL = "n_references_equal"
"""Column: how many of the references are the response itself, white space aside."""

BLANK_RESPONSE = Unscored(Reason.EMPTY_INPUT, "the response has no visible character")
NO_REFERENCE = Unscored(Reason.NEEDS_REFERENCES, "there is no reference with a visible character")


class Compared(NamedTuple):
    """A response and what it is compared with."""

    response: str
    references: tuple[str, ...]
    """At least one; none is blank."""


class ReferenceScorer(Scorer):
    """A scorer of responses that have references.

    A response without a visible character has no score (`empty_input`), nor has one without a reference that has one
    (`needs_references`). A response that equals a reference is scored like any other and counted in `n_references_equal`:
    where a human's response is the reference, its own score says nothing about it.

    A subclass fills `measures` and `compare`.
    """

    @property
    @abstractmethod
    def measures(self) -> tuple[str, ...]:
        """Names of the columns that `compare` gives, the main one first."""

    @abstractmethod
    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Return one row a response with the columns of `measures`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The measures, then the number of references that equal the response."""
        return (*self.measures, N_EQUAL)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Compare the responses that have something to be compared with."""
        found = [_compared(cast("Example", item)) for item in items]
        scored = iter(self.compare([one for one in found if isinstance(one, Compared)]))
        return [one if isinstance(one, Unscored) else self._completed(next(scored), one) for one in found]

    def _completed(self, row: Row, compared: Compared) -> Row:
        if isinstance(row, Unscored):
            return row
        within = {name: None if value is None else _within(value, *self.range) for name, value in row.items()}
        response = compared.response.split()
        return {**within, N_EQUAL: float(sum(reference.split() == response for reference in compared.references))}


def _compared(example: Example) -> Compared | Unscored:
    if is_blank(example.response.text):
        return BLANK_RESPONSE
    references = tuple(reference for reference in example.references if not is_blank(reference))
    return Compared(example.response.text, references) if references else NO_REFERENCE


def _within(value: float, low: float, high: float) -> float:
    # Rounding takes equal texts a little beyond the end of the range (100.00000000000004). What is not finite stays so.
    return min(high, max(low, value)) if math.isfinite(value) else value


def check_choice(scorer: str, option: str, value: object, kind: Any) -> None:
    """Refuse a value that is none of the literals of `kind`.

    Raises:
        InputError: names the option and the choices.
    """
    if value not in get_args(kind):
        raise InputError(
            f"{scorer}: there is no {option}={value!r}. Choose one of {', '.join(str(choice) for choice in get_args(kind))}."
        )


def version_of(package: str) -> str:
    """Return the installed version of a package, for the signature."""
    return metadata.version(package)
