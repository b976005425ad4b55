"""Base classes of scorers that compare a response with references."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Sequence, Sized
from typing import ClassVar, NamedTuple, cast

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored

N_EQUAL = "n_references_equal"
"""Column: number of references that equal the response, ignoring white space."""

LONGEST_COMPARED = 4_000
"""Maximum words of texts that are compared word by word, in quadratic time and memory: some seconds and 128 MB here."""

NO_REFERENCE = Unscored(Reason.NEEDS_REFERENCES, "there is no reference with a visible character")


class Compared(NamedTuple):
    """A response and its references: at least one, none blank."""

    response: str
    references: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The response and its references."""
        return (self.response, *self.references)


class ReferenceScorer(Scorer):
    """A scorer of responses that have references.

    There is no score without a visible character in the response (`empty_input`) or in any reference (`needs_references`). A
    response that equals a reference is scored like any other and counted in `n_references_equal`, because this score says
    nothing about it.

    A subclass calls `set_measures`, and defines `compare`, or `compare_one` of `OneByOneScorer`.
    """

    needs: ClassVar[tuple[str, ...]] = ("references",)

    def set_measures(self, *measures: str, cut: str = "") -> None:
        """Set the names of the columns with similarities, the main one first; `cut` describes the loss of truncated texts."""
        self.measures = measures
        self.truncation_columns = {"n_cut": cut} if cut else {}
        self.columns = (*measures, N_EQUAL, *self.truncation_columns)

    @abstractmethod
    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Return one row per response with the columns of `measures` and `truncation_columns`."""

    def unscorable(self, item: Item) -> Unscored | None:
        """Return a reason also for a response without a visible reference."""
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
        # Rounding may give equal texts slightly more than the range allows (100.00000000000004).
        low, high = self.range
        return min(high, max(low, value)) if value is not None and math.isfinite(value) else value


class OneByOneScorer(ReferenceScorer):
    """A scorer that compares one response at a time."""

    @abstractmethod
    def compare_one(self, compared: Compared) -> Row:
        """Return the row of one response; see `compare`."""

    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Compare responses one after the other."""
        return [self.compare_one(one) for one in compared]


def _visible_references(example: Example) -> tuple[str, ...]:
    return tuple(reference for reference in example.references if not is_blank(reference))


def too_long(response: Sized, references: Collection[Sized]) -> Unscored | None:
    """Return the reason why these words are too many to compare, or None."""
    for n_words, what in ((len(response), "the response"), (max(map(len, references)), "a reference")):
        if n_words > LONGEST_COMPARED:
            detail = f"{what} has {n_words} words, more than the {LONGEST_COMPARED} that are compared"
            return Unscored(Reason.CONTEXT_TOO_LONG, detail)
    return None
