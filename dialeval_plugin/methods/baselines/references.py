"""What the scorers that compare a response with references share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence, Sized
from typing import ClassVar, NamedTuple, cast

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored

N_EQUAL = "n_references_equal"
"""Column: how many of the references are the response itself, white space aside."""

LONGEST_COMPARED = 4_000
"""Words of the longest text that is compared with another word by word, for which time and memory grow with the square: some
seconds and 128 MB here."""

NO_REFERENCE = Unscored(Reason.NEEDS_REFERENCES, "there is no reference with a visible character")


class Compared(NamedTuple):
    """A response and the references that it is compared with: at least one, none blank."""

    response: str
    references: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The response and its references."""
        return (self.response, *self.references)


class ReferenceScorer(Scorer):
    """A scorer of responses that have references.

    A response without a visible character has no score (`empty_input`), nor has one without a reference that has one
    (`needs_references`). A response that equals a reference is scored like any other and counted in `n_references_equal`:
    where a human's response is the reference, its own score says nothing about it.

    A subclass fills `measures` and `compare`, or as a `OneByOneScorer` `compare_one`; rows also hold the
    `truncation_columns`.
    """

    needs: ClassVar[tuple[str, ...]] = ("references",)
    measures: tuple[str, ...]
    """Names of the columns that are compared, the main one first."""

    @abstractmethod
    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Return one row a response with the columns of `measures` and `truncation_columns`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The measures, then the number of references that equal the response, and what was cut."""
        return (*self.measures, N_EQUAL, *self.truncation_columns)

    def unscorable(self, item: Item) -> Unscored | None:
        """Refuse also a response without a reference that has a visible character."""
        return super().unscorable(item) or (None if _visible_references(cast("Example", item)) else NO_REFERENCE)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Compare each response with its references."""
        compared = [Compared(item.response.text, _visible_references(item)) for item in cast("Sequence[Example]", items)]
        return [self._completed(row, one) for row, one in zip(self.compare(compared), compared, strict=True)]

    def _completed(self, row: Row, compared: Compared) -> Row:
        if isinstance(row, Unscored):
            return row
        response = compared.response.split()
        n_equal = sum(reference.split() == response for reference in compared.references)
        return {**row, **{name: self._within(row[name]) for name in self.measures}, N_EQUAL: float(n_equal)}

    def _within(self, value: float | None) -> float | None:
        # Rounding takes equal texts a little beyond the end of the range (100.00000000000004). What is not finite stays so.
        low, high = self.range
        return min(high, max(low, value)) if value is not None and math.isfinite(value) else value


class OneByOneScorer(ReferenceScorer):
    """A scorer that gains nothing from several responses at once."""

    @abstractmethod
    def compare_one(self, compared: Compared) -> Row:
        """Return the row of one response; see `compare`."""

    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Compare one after the other."""
        return [self.compare_one(one) for one in compared]


def _visible_references(example: Example) -> tuple[str, ...]:
    return tuple(reference for reference in example.references if not is_blank(reference))


def too_long(response: Sized, references: Collection[Sized]) -> Unscored | None:
    """Return why a response of these words is not compared with references of these words; None where it is."""
    for n_words, what in ((len(response), "the response"), (max(map(len, references)), "a reference")):
        if n_words > LONGEST_COMPARED:
            detail = f"{what} has {n_words} words, more than the {LONGEST_COMPARED} that are compared"
            return Unscored(Reason.CONTEXT_TOO_LONG, detail)
    return None
