"""What a method is: `Scorer`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from .dialogue import Example, Item, Level, is_blank
from .errors import InputError
from .runner import run
from .scores import BLANK_RESPONSE, Orientation, Row, Scores, Unscored
from .signature import Value


class Scorer(ABC):
    """A method that scores examples.

    A subclass fills `score_batch` and `signature_fields`, and where it takes options, decorates `__init__` by
    `options.with_options`; `score` is the shared pipeline (runner.py). The score of an example depends on that example
    alone: not on its neighbours, their number or their order.
    """

    name: ClassVar[str]
    citation: ClassVar[str] = ""
    """BibTeX of the paper."""
    level: Level = "turn"
    orientation: Orientation = "higher"
    range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest value of the main column, for a host that wants a probability (SLIDE's small model: 0 to 2).
    An end that does not exist is infinite."""
    positive_from: float | None = None
    """Main score from which on a response is called positive (up to which, where lower is better); None: the middle of the
    range."""
    prompts_llm_itself: ClassVar[bool] = False
    """Whether the option `llm` is a `LanguageModel` that the scorer prompts on its own, instead of a judge with one prompt."""
    window: ClassVar[int] = 2048
    """How many examples `score_batch` gets at once: enough to fill batches of texts of one length, few enough for memory."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, the main one first."""

    @property
    def cuts(self) -> Mapping[str, str]:
        """Columns that count what did not fit into a window, each with what was lost; a run warns of each once."""
        return {}

    def unscorable(self, item: Item) -> Unscored | None:
        """Why `item` cannot have a score, whatever else is scored; None where it can. Such items never reach `score_batch`."""
        return BLANK_RESPONSE if isinstance(item, Example) and is_blank(item.response.text) else None

    @abstractmethod
    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score at most `window` items, none of them twice and none `unscorable`; one row an item, in their order."""

    @abstractmethod
    def signature_fields(self) -> dict[str, Value]:
        """Everything configured that can move a number; it names the method first."""

    def explain(self, items: Sequence[Item]) -> list[str]:
        """Return for each item as text why it has its score; an InputError where the scorer cannot say so."""
        raise InputError(f"{self.name}: has nothing to explain. Leave --explain out.")

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """Turn the rows of the whole run into the final ones; only a paper's whole-set normalisation needs it."""
        return rows

    def score(self, items: Sequence[Item], *, progress: bool = False) -> Scores:
        """Score `items`, in order; all must be of this scorer's level."""
        return run(self, items, progress=progress)
