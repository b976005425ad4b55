"""Scorers that prompt a language model: what is asked is prepared before, and read after, whoever does the asking.

A scorer asks its own model in between. Through lm-eval the model under test is the host's, which takes all prompts first and
hands over the answers later: a task calls `prepare` when it makes its documents, and `finish` for each document's answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.scoring import Reason, Row, Scorer, Unscored

from .language_model import Continuation, LanguageModel, Request


@dataclass(frozen=True, slots=True)
class Pending:
    """An item that waits for the answers of a language model.

    Attributes:
        item: what is scored.
        requests: what is asked about it, all texts or all continuations; none where it has its row already.
        row: what is known before: a small model's columns, or why there is no score.
    """

    item: Item
    requests: tuple[Request, ...] | tuple[Continuation, ...] = ()
    row: Row = field(default_factory=dict)


class PromptingScorer(Scorer):
    """A scorer that is made of what a language model answers."""

    prompts_llm_itself: ClassVar[bool] = True
    llm: LanguageModel

    @abstractmethod
    def prepare(self, items: Sequence[Item]) -> list[Pending]:
        """What is to be asked about each item."""

    @abstractmethod
    def finish(self, pending: Pending, answers: Sequence[Any]) -> Row:
        """The row of an item, from the answer to each of its requests, or the `Unscored` in its place."""

    def unscorable(self, item: Item) -> Unscored | None:
        """Why an item has no score, whatever a model says."""
        if isinstance(item, Example):
            return Unscored(Reason.EMPTY_INPUT, "the response is blank") if is_blank(item.response.text) else None
        is_empty = all(is_blank(turn.text) for turn in item.turns)
        return Unscored(Reason.EMPTY_INPUT, "every turn is blank") if is_empty else None

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Ask for all items of the window in one call."""
        missing = list(map(self.unscorable, items))
        prepared = self.prepare([item for item, why in zip(items, missing, strict=True) if why is None])
        answers = iter(self._ask([request for pending in prepared for request in pending.requests]))
        rows = iter(
            [
                self.finish(pending, [next(answers) for _ in pending.requests]) if pending.requests else pending.row
                for pending in prepared
            ]
        )
        return [next(rows) if why is None else why for why in missing]

    def _ask(self, requests: Sequence[Request | Continuation]) -> Sequence[Any]:
        if not requests:
            return ()
        if isinstance(requests[0], Request):
            return self.llm.generate(cast("Sequence[Request]", requests))
        return self.llm.loglikelihood(cast("Sequence[Continuation]", requests))
