"""Scorers that prompt a language model: what is asked is prepared before, and read after, whoever does the asking.

A scorer asks its own model in between. Through lm-eval the model under test is the host's, which takes all prompts first and
hands over the answers later: a task calls `prepare` when it makes its documents, and `finish` for each document's answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Row

from .language_model import Continuation, LanguageModel, Request


@dataclass(frozen=True, slots=True)
class Pending:
    """An item that waits for the answers of a language model."""

    item: Item
    requests: tuple[Request, ...] | tuple[Continuation, ...] = ()
    """All texts or all continuations; none where the item has its row already."""
    row: Row = field(default_factory=dict)
    """What is known before: a small model's columns, or why there is no score."""


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

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Ask for all items of the window in one call."""
        prepared = self.prepare(items)
        answers = iter(self._ask([request for pending in prepared for request in pending.requests]))
        return [
            self.finish(pending, [next(answers) for _ in pending.requests]) if pending.requests else pending.row
            for pending in prepared
        ]

    def _ask(self, requests: Sequence[Request | Continuation]) -> Sequence[Any]:
        if not requests:
            return ()
        if isinstance(requests[0], Request):
            return self.llm.generate(cast("Sequence[Request]", requests))
        return self.llm.loglikelihood(cast("Sequence[Continuation]", requests))
