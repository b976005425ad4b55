"""A DeepEval metric for conversations: `evaluate(test_cases, [DialevalMetric("general", threshold=0.5)])`."""

from __future__ import annotations

import asyncio
from typing import Any

from deepeval.metrics import BaseConversationalMetric
from deepeval.test_case import ConversationalTestCase

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import check_value

from .evaluation import Evaluator


class DialevalMetric(BaseConversationalMetric):  # type: ignore[misc]
    """The mean score of a test case's answers, and why the worst has its score; see `Evaluator`.

    A test case passes if it is at least `threshold`, or at most where lower is better. Without a score it has an error, and
    fails.
    """

    def __init__(self, name: str | Evaluator, threshold: float | None, *, label: str | None = None, **options: Any) -> None:
        # DeepEval copies a metric for each test case, from attributes named like the arguments.
        self.name = name if isinstance(name, Evaluator) else Evaluator(name, options, takes_mean=True, label=label)
        self.threshold, self._scorer, self.label = threshold, self.name.scorer, label
        check_value(self._scorer.name, "threshold", threshold, float | None)

    def measure(self, test_case: ConversationalTestCase, *args: Any, **kwargs: Any) -> float | None:
        """Score the answers of a test case."""
        if not isinstance(test_case, ConversationalTestCase):
            kind = type(test_case).__name__
            raise InputError(f"{self.__name__}: got a {kind}. Give a ConversationalTestCase, with the answers among its turns.")
        messages = [{"role": turn.role, "content": turn.content} for turn in test_case.turns]
        (result,) = self.name([{"messages": messages}], "messages")
        self.score, self.reason, self.score_breakdown = result.value, result.explanation, result.details
        self.error = f"{result.reason}: {result.explanation}" if result.value is None else None
        self.evaluation_model = result.details["signature"]
        self.is_successful()
        return self.score

    async def a_measure(self, test_case: ConversationalTestCase, *args: Any, **kwargs: Any) -> float | None:
        """Do the same in a thread."""
        return await asyncio.to_thread(self.measure, test_case)

    def is_successful(self) -> bool | None:
        """Whether the test case passes; None without a threshold."""
        self.success: bool | None = super().is_successful()
        if self._scorer.orientation == "lower" and self.score is not None and self.threshold is not None:
            self.success = self.score <= self.threshold
        return self.success

    @property
    def __name__(self) -> str:
        return f"dialeval {self.label or self._scorer.name}"
