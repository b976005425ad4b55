"""What the columns of the leaderboard are read beside: how far people agree, and what a trivial answer earns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dialeval_plugin.reports.correlation_report import human_ceiling

from .board import Column, Reference
from .evidence import Evidence
from .result_files import TaskRun

ONE_PERSON = "one person against the others"
HALF_THE_PEOPLE = "half the people against the rest"
COEFFICIENTS = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}
"""A coefficient's name in result files to that in `meta_evaluation`."""

_PREFIXES = {"always_breakdown_": "every turn called a breakdown"}
_SUFFIXES = {"_floor": "coin flips", "_ceiling": "what most people said"}
PRINTED_BESIDE = (*_PREFIXES, *_SUFFIXES)
"""Parts of the names of metrics that a task prints beside the evaluator's own."""


def of_people(evidence: Sequence[Evidence]) -> list[Reference]:
    """Return the human ceiling of each column whose rows have several raters; see `human_ceiling`."""
    found = []
    for column in sorted({item.column for item in evidence}):
        # A partial run has a part of the rows; a task with several seeds has each row several times.
        rows = {row.id: row for item in evidence if item.column == column for row in item.rows}
        raters = [row.ratings for row in rows.values()]
        for name, coefficient in COEFFICIENTS.items():
            for reference, value in zip((ONE_PERSON, HALF_THE_PEOPLE), human_ceiling(raters, coefficient), strict=True):
                found += _present(reference, column, name, value)
    return found


def of_run(run: TaskRun, columns: Iterable[tuple[Column, str]]) -> list[Reference]:
    """Return what the task printed beside the evaluator's figures, for columns with what their metrics' names begin with."""
    found = []
    for column, begin in columns:
        of_column = {name.removeprefix(begin): value for name, value in run.metrics.items() if name.startswith(begin)}
        for name, value in of_column.items():
            for prefix, reference in _PREFIXES.items():
                if name.startswith(prefix):
                    found += _present(reference, column, name.removeprefix(prefix), value)
            for suffix, reference in _SUFFIXES.items():
                if name.endswith(suffix):
                    found += _present(reference, column, name.removesuffix(suffix), value)
    return found


def _present(name: str, column: Column, coefficient: str, value: float | None) -> list[Reference]:
    return [] if value is None else [Reference(name=name, column=column, coefficient=coefficient, value=value)]
