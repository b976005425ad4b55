"""What the scorers that compare a response with references share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

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

    A subclass fills `measures` and `compare`; the rows of the latter hold the columns of `cuts` too.
    """

    @property
    @abstractmethod
    def measures(self) -> tuple[str, ...]:
        """Names of the columns that `compare` gives, the main one first."""

    @abstractmethod
    def compare(self, compared: Sequence[Compared]) -> list[Row]:
        """Return one row a response with the columns of `measures` and `cuts`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The measures, then the number of references that equal the response, and what was cut."""
        return (*self.measures, N_EQUAL, *self.cuts)

    def unscorable(self, item: Item) -> Unscored | None:
        """Also a response without a reference that has a visible character."""
        return super().unscorable(item) or (None if _visible_references(cast("Example", item)) else NO_REFERENCE)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Compare each response with its references."""
        compared = [Compared(item.response.text, _visible_references(item)) for item in cast("Sequence[Example]", items)]
        return [self._completed(row, one) for row, one in zip(self.compare(compared), compared, strict=True)]

    def _completed(self, row: Row, compared: Compared) -> Row:
        if isinstance(row, Unscored):
            return row
        measured = {name: row[name] for name in self.measures}
        within = {name: None if value is None else _within(value, *self.range) for name, value in measured.items()}
        response = compared.response.split()
        return {**row, **within, N_EQUAL: float(sum(reference.split() == response for reference in compared.references))}


def _visible_references(example: Example) -> tuple[str, ...]:
    return tuple(reference for reference in example.references if not is_blank(reference))


def _within(value: float, low: float, high: float) -> float:
    # Rounding takes equal texts a little beyond the end of the range (100.00000000000004). What is not finite stays so.
    return min(high, max(low, value)) if math.isfinite(value) else value


def beyond_limit(n_words: int, what: str) -> Unscored | None:
    """Return why a text of so many words is not compared; None where it is."""
    if n_words <= LONGEST_COMPARED:
        return None
    return Unscored(Reason.CONTEXT_TOO_LONG, f"{what} has {n_words} words, more than the {LONGEST_COMPARED} that are compared")


def texts_longer_than(max_tokens: int | None, tokenizer: Any, texts: Iterable[str]) -> frozenset[str]:
    """Return those of `texts` that a model cuts, which reads `max_tokens` with its special tokens; None: any number."""
    distinct = list(dict.fromkeys(texts))
    if max_tokens is None or not distinct:
        return frozenset()
    found = tokenizer(distinct, truncation=False, verbose=False)["input_ids"]
    return frozenset(text for text, ids in zip(distinct, found, strict=True) if len(ids) > max_tokens)
