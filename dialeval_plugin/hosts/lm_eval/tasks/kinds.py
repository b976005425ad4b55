"""Kinds of task by the name in a task's metadata."""

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
