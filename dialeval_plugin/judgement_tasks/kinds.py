"""The kinds of task by the name that stands in a task's metadata: what a document of it becomes and what is computed of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from .breakdown import BREAKDOWNS
from .classification import ACCURACIES
from .corpus_metrics import CorpusMetrics
from .opinions import OPINIONS
from .preference import PREFERENCES
from .ratings import OVER_SEEDS, RATINGS

TaskKind: TypeAlias = Literal["rating", "rating_over_seeds", "opinion", "classification", "preference", "breakdown"]

KINDS: Mapping[TaskKind, CorpusMetrics[Any]] = {
    "rating": RATINGS,
    "rating_over_seeds": OVER_SEEDS,
    "opinion": OPINIONS,
    "classification": ACCURACIES,
    "preference": PREFERENCES,
    "breakdown": BREAKDOWNS,
}
MAIN: Mapping[TaskKind, str] = {
    **dict.fromkeys(("rating", "rating_over_seeds", "opinion"), "spearman"),
    "classification": "accuracy_overall",
    "preference": "relevance_voting_spearman",
    "breakdown": "f1_b",
}
"""The one metric of each kind that the host prints, with its bounds, or its deviation, and `n_scored`."""

BY_TASK = ("results", "configs", "versions", "n-shot", "n-samples", "samples", "task_hashes")
"""The entries of a host's result that have one of each task."""


def printed(kind: TaskKind) -> tuple[str, ...]:
    """Names of the metrics that a task's document has, and the host prints: at most four."""
    spread = ("_deviation",) if kind == "rating_over_seeds" else ("_ci_low", "_ci_high")
    return (MAIN[kind], *(f"{MAIN[kind]}{end}" for end in spread), "n_scored")


def is_predicted_only(config: Mapping[str, Any]) -> bool:
    """Whether the host was told `--predict_only` when it ran the task of this config: there are answers and no scores."""
    return bool(config.get("metric_list") == [{"metric": "bypass"}])


def by_plain_names(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a run with its tasks under their own names: from lm-eval 0.5 on that of a group's task is `group::task`."""
    return {
        name: {task.rpartition("::")[2]: one for task, one in value.items()} if name in BY_TASK and value else value
        for name, value in result.items()
    }
