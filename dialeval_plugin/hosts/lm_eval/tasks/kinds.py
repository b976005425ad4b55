"""Kinds of task by the name in a task's metadata, and recognition of our tasks in a result file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from .breakdown import BREAKDOWNS
from .classification import ACCURACIES
from .corpus_metrics import CorpusMetrics
from .fed import OVER_SEEDS
from .opinions import OPINIONS
from .preference import PREFERENCES
from .ratings import RATINGS

TaskKind: TypeAlias = Literal["rating", "rating_over_seeds", "opinion", "classification", "preference", "breakdown"]

KINDS: Mapping[TaskKind, CorpusMetrics[Any]] = {
    "rating": RATINGS,
    "rating_over_seeds": OVER_SEEDS,
    "opinion": OPINIONS,
    "classification": ACCURACIES,
    "preference": PREFERENCES,
    "breakdown": BREAKDOWNS,
}

BY_TASK = ("results", "configs", "versions", "n-shot", "n-samples", "samples", "task_hashes")
"""Entries of a host's result with one value per task."""


def is_predicted_only(config: Mapping[str, Any]) -> bool:
    """Whether the task of this config ran with `--predict_only`: it has answers and no scores."""
    return bool(config.get("metric_list") == [{"metric": "bypass"}])


def by_plain_names(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's result with tasks under their own names: lm-eval 0.5 calls a group's task `group::task`."""
    return {
        name: {task.rpartition("::")[2]: one for task, one in value.items()} if name in BY_TASK and value else value
        for name, value in result.items()
    }
