"""Our scorers as scorers of inspect_ai: `inspect score LOG --scorer dialeval/general`."""

from __future__ import annotations

from functools import partial
from typing import Any

from anyio.to_thread import run_sync
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from dialeval_plugin.core.registry import scorer_names

from .evaluation import Evaluator


def _scorer(name: str, **options: Any) -> Scorer:
    evaluator = Evaluator(name, options, takes_mean=True)

    async def score(state: TaskState, target: Target) -> Score:
        messages = list(state.messages)
        if state.output.choices and not (messages and messages[-1].role == "assistant"):
            messages.append(state.output.message)
        (result,) = await run_sync(evaluator, [{"messages": [message.model_dump() for message in messages]}], "messages")
        about: dict[str, Any] = {"explanation": result.explanation, "metadata": result.details}
        return Score.unscored(reason=result.reason, **about) if result.value is None else Score(value=result.value, **about)

    return score


# A partial does not belong to this package, whose name inspect_ai would put before ours.
_SCORERS = {name: scorer([mean(), stderr()], f"dialeval/{name}")(partial(_scorer, name)) for name in scorer_names()}


def dialeval_scorer(name: str = "general", **options: Any) -> Scorer:
    """Return a scorer for a task: the mean score of a sample's answers, and why the worst has its score; see `Evaluator`."""
    return _SCORERS.get(name, partial(_scorer, name))(**options)
