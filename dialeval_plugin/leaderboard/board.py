"""The leaderboard: every evaluator's agreement with people on every rated quality of every data set, as data.

What is ranked is an evaluator (a scorer or a judge), not a chatbot. A cell that nobody ran is missing: it is in no mean and
is never 0. Coefficients of different kinds are never averaged.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, TypeAlias

from annotated_types import Ge, Interval
from typing_extensions import Required, TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.plain_text import for_markdown
from dialeval_plugin.core.shapes import checked
from dialeval_plugin.reports.tables import bounds, spreadsheet_row

SCHEMA_VERSION = 1
CSV_COLUMNS = (
    "kind",
    "evaluator",
    "dataset",
    "level",
    "quality",
    "coefficient",
    "value",
    "ci_low",
    "ci_high",
    "is_rough",
    "rank",
    "higher_is_better",
    "n_scored",
    "n_total",
    "is_partial",
    "seconds",
    "n_requests",
    "n_prompt_characters",
    "date",
    "signature",
    "source",
    "reason",
)
_PREFERRED = ("spearman", "pearson", "kendall")

Value: TypeAlias = Annotated[float, Interval(ge=-1, le=1)]
Count: TypeAlias = Annotated[int, Ge(0)]


class Column(NamedTuple):
    """What evaluators are compared on: one quality of the turns or of the dialogues of one data set."""

    dataset: str
    level: str
    quality: str

    @property
    def detail(self) -> str:
        """Quality and level in few words."""
        return ", ".join(filter(None, (self.quality, f"{self.level} level" if self.level else "")))

    def __str__(self) -> str:
        return f"{self.dataset} ({self.detail})" if self.detail else self.dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One coefficient of one cell.

    Attributes:
        value: None where it is undefined.
        ci_low: lower end of its 95 % interval; None where there is none.
        ci_high: upper end.
        is_rough: whether the interval rests on few dialogues; see `bootstrap.Estimate`.
        higher_is_better: whether a higher value means more agreement with people.
        rank: of its rank cluster in the column, from 1; evaluators of one cluster cannot be told apart. None where the
            result files do not hold what the tests need.
        reason: why `value` or the interval is None.
    """

    value: Value | None
    ci_low: Value | None = None
    ci_high: Value | None = None
    is_rough: bool = False
    higher_is_better: bool = True
    rank: Annotated[int, Ge(1)] | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return "undefined" if self.value is None else f"{self.value:.3f}{self.interval}"

    @property
    def interval(self) -> str:
        """The interval as text with a space before it; empty where there is none."""
        return bounds(self.ci_low, self.ci_high, is_rough=self.is_rough)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the run that a cell comes from took, as far as its files tell; None where they do not."""

    seconds: Annotated[float, Ge(0)] | None = None
    n_requests: Count | None = None
    n_prompt_characters: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One evaluator on one column.

    Attributes:
        evaluator: its name, which stands for one signature.
        column: what it was compared on.
        figures: coefficient to its value.
        n_scored: rows that the figures rest on.
        n_total: rows that were to be scored.
        signature: everything that can move a number.
        is_partial: whether the run was told to take a part of the data set only.
        cost: of the cell's part of the run.
        date: of the run, ISO 8601, UTC; empty where the file does not say.
        source: name of the result file.
        metadata: further facts about the run, such as the task and the host's version.
    """

    evaluator: str
    column: Column
    figures: Mapping[str, Figure]
    n_scored: Count
    n_total: Count
    signature: str
    is_partial: bool = False
    cost: Cost = field(default_factory=Cost)
    date: str = ""
    source: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def coverage(self) -> float | None:
        """Share of the rows that have a score."""
        return self.n_scored / self.n_total if self.n_total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a column is to be read beside: no evaluator, and so in no order with them.

    Attributes:
        name: for people, as "one person against the others".
        column: the column.
        coefficient: name of the coefficient.
        value: None where it is undefined.
    """

    name: str
    column: Column
    coefficient: str
    value: Value | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTests:
    """What the tests behind the rank clusters of a column could tell.

    Attributes:
        column: the column.
        coefficient: name of the coefficient.
        n_rows: rated rows.
        n_dialogues: clusters that are swapped as a whole.
        n_pairs: pairs of evaluators that were compared.
        n_different: those that differ significantly after Holm's correction. Of none there are no ranks.
        n_rounds: permutations of each test.
    """

    column: Column
    coefficient: str
    n_rows: Count
    n_dialogues: Count
    n_pairs: Count
    n_different: Count
    n_rounds: Count


class MacroMean(NamedTuple):
    """Unweighted mean of one coefficient over data sets; a set with several rated qualities counts once, by their mean.

    The turns and the dialogues of one set count as two. `n_present` are the sets in which there is a value.
    """

    value: float | None
    n_present: int
    n_missing: int


class _File(TypedDict, total=False):
    """What `Leaderboard.to_dict` writes and `from_dict` reads."""

    cells: Required[tuple[Cell, ...]]
    references: tuple[Reference, ...]
    tests: tuple[PairTests, ...]


@dataclass(frozen=True)
class Leaderboard:
    """A table of cells, at most one for each evaluator and column.

    Raises:
        InputError: two cells have the same place.
    """

    cells: tuple[Cell, ...]
    references: tuple[Reference, ...] = ()
    tests: tuple[PairTests, ...] = ()

    def __post_init__(self) -> None:
        seen: dict[tuple[str, Column], Cell] = {}
        for cell in self.cells:
            other = seen.setdefault((cell.evaluator, cell.column), cell)
            if other is not cell:
                raise InputError(
                    f"leaderboard: {cell.evaluator!r} has two cells for {cell.column}, from {other.source!r} and "
                    f"{cell.source!r}. Leave one of the files out."
                )

    @property
    def evaluators(self) -> tuple[str, ...]:
        """Names, the highest mean of the main coefficient first; those without a value last, by name."""
        means = self.means(self.main)
        sign = -1 if self.higher_is_better(self.main) else 1
        return tuple(sorted(means, key=lambda name: (means[name].value is None, sign * (means[name].value or 0), name)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns in alphabetical order."""
        return tuple(sorted({cell.column for cell in self.cells}))

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the coefficients that at least one cell has: rank and linear correlations first."""
        names = {name for cell in self.cells for name in cell.figures}
        return (*(name for name in _PREFERRED if name in names), *sorted(names.difference(_PREFERRED)))

    @property
    def main(self) -> str:
        """The coefficient that is shown first; empty on a leaderboard without any."""
        return next(iter(self.coefficients), "")

    def cell(self, evaluator: str, column: Column) -> Cell | None:
        """Return a cell, or None where nobody ran it."""
        return self._places.get((evaluator, column))

    def higher_is_better(self, coefficient: str) -> bool:
        """Whether a higher value of `coefficient` means more agreement."""
        figures = (cell.figures.get(coefficient) for cell in self.cells)
        return all(figure.higher_is_better for figure in figures if figure is not None)

    def columns_with(self, coefficient: str) -> tuple[Column, ...]:
        """Columns in which at least one evaluator has a figure of this kind."""
        present = {cell.column for cell in self.cells if coefficient in cell.figures}
        return tuple(column for column in self.columns if column in present)

    def means(self, coefficient: str) -> dict[str, MacroMean]:
        """Return each evaluator's mean of one coefficient over the data sets that have it; missing sets are counted."""
        found: dict[str, dict[Column, float]] = {cell.evaluator: {} for cell in self.cells}
        for cell in self.cells:
            figure = cell.figures.get(coefficient)
            if figure is not None and figure.value is not None:
                found[cell.evaluator][cell.column] = figure.value
        return {name: self._mean(values, coefficient) for name, values in found.items()}

    def reference_rows(self, coefficient: str) -> dict[str, dict[Column, float]]:
        """Return the references of one coefficient that have a value, by name."""
        found: dict[str, dict[Column, float]] = {}
        for reference in self.references:
            if reference.coefficient == coefficient and reference.value is not None:
                found.setdefault(reference.name, {})[reference.column] = reference.value
        return found

    def reference_means(self, coefficient: str) -> dict[str, MacroMean]:
        """Return the mean of each reference, as `means` does that of evaluators."""
        return {name: self._mean(values, coefficient) for name, values in self.reference_rows(coefficient).items()}

    def tests_of(self, column: Column) -> PairTests | None:
        """Return what the tests in a column could tell; None where there were none."""
        return next((tests for tests in self.tests if tests.column == column), None)

    def n_rows(self, column: Column) -> int:
        """Most rows that an evaluator was to score."""
        return max((cell.n_total for cell in self.cells if cell.column == column), default=0)

    def _mean(self, values: Mapping[Column, float], coefficient: str) -> MacroMean:
        n_sets = len({column[:2] for column in self.columns_with(coefficient)})
        by_set: dict[tuple[str, ...], list[float]] = {}
        for column, value in values.items():
            by_set.setdefault(column[:2], []).append(value)
        means = [math.fsum(of_set) / len(of_set) for of_set in by_set.values()]
        return MacroMean(math.fsum(means) / len(means) if means else None, len(means), n_sets - len(means))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_dict` reads back."""
        return {
            "schema_version": SCHEMA_VERSION,
            "cells": [_cell_to_dict(cell) for cell in self.cells],
            "references": [_with_column(reference) for reference in self.references],
            "tests": [_with_column(tests) for tests in self.tests],
            "means": {
                coefficient: {name: mean._asdict() for name, mean in self.means(coefficient).items()}
                for coefficient in self.coefficients
            },
        }

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "leaderboard") -> Leaderboard:
        """Read what `to_dict` wrote; the means are computed again.

        Args:
            data: the object.
            where: it comes from, for messages.

        Raises:
            InputError: it is not a leaderboard, or one of another schema version.
        """
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{where}: schema_version is {version!r}, this release reads {SCHEMA_VERSION}. "
                "Build the leaderboard again from its result files."
            )
        found = checked(data, _File, where, advice="Build the leaderboard again from its result files.")
        # Files of older releases have no references and no tests.
        return cls(found["cells"], found.get("references", ()), found.get("tests", ()))

    def to_csv(self) -> str:
        """Return one line for each coefficient of each cell, then one for each reference; what is not known is empty."""
        out = io.StringIO()
        writer = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        for cell in self.cells:
            shared = {"kind": "evaluator", "n_scored": cell.n_scored, "n_total": cell.n_total, **asdict(cell.cost)}
            shared |= cell.column._asdict()
            shared |= {name: getattr(cell, name) for name in ("evaluator", "is_partial", "date", "signature", "source")}
            for coefficient, figure in cell.figures.items():
                writer.writerow(spreadsheet_row({**shared, "coefficient": coefficient, **asdict(figure)}))
        for reference in self.references:
            values = {"evaluator": reference.name, "coefficient": reference.coefficient, "value": reference.value}
            writer.writerow(spreadsheet_row({"kind": "reference", **values, **reference.column._asdict()}))
        return out.getvalue()

    def to_markdown(self, coefficient: str | None = None) -> str:
        """Return the table of one coefficient, by default the main one, with the mean over data sets first.

        References stand below the evaluators, in italics.
        """
        chosen = coefficient or self.main
        columns, means = self.columns_with(chosen), self.means(chosen)
        lines: list[Sequence[str]] = [
            ["evaluator", f"mean {chosen} (data sets)", *map(str, columns)],
            ["---"] * (len(columns) + 2),
        ]
        for name in self.evaluators:
            mean = means[name]
            lines.append([name, _mean_in_words(mean), *(self._markdown_cell(name, column, chosen) for column in columns)])
        for name, values in self.reference_rows(chosen).items():
            mean = self._mean(values, chosen)
            shown = [f"{values[column]:.3f}" if column in values else "" for column in columns]
            lines.append([f"*{name}*", _mean_in_words(mean), *shown])
        return "\n".join("| " + " | ".join(map(for_markdown, line)) + " |" for line in lines) + "\n"

    def with_ranks(self, ranks: Mapping[tuple[str, Column, str], int]) -> Leaderboard:
        """Return this leaderboard with ranks, by evaluator, column and coefficient, in the figures."""
        return replace(self, cells=tuple(_ranked(cell, ranks) for cell in self.cells))

    def _markdown_cell(self, evaluator: str, column: Column, coefficient: str) -> str:
        cell = self.cell(evaluator, column)
        figure = cell.figures.get(coefficient) if cell else None
        if cell is None or figure is None:
            return ""
        notes = [] if cell.n_scored == cell.n_total else [f"{cell.n_scored} of {cell.n_total} scored"]
        notes += ["part of the set"] if cell.is_partial else []
        return f"{figure} ({', '.join(notes)})" if notes else str(figure)

    @cached_property
    def _places(self) -> dict[tuple[str, Column], Cell]:
        return {(cell.evaluator, cell.column): cell for cell in self.cells}


def _ranked(cell: Cell, ranks: Mapping[tuple[str, Column, str], int]) -> Cell:
    figures = {
        name: replace(figure, rank=ranks.get((cell.evaluator, cell.column, name))) for name, figure in cell.figures.items()
    }
    return replace(cell, figures=figures)


def _mean_in_words(mean: MacroMean) -> str:
    return "" if mean.value is None else f"{mean.value:.3f} ({mean.n_present} of {mean.n_present + mean.n_missing})"


def _with_column(value: Reference | PairTests) -> dict[str, Any]:
    return {**asdict(value), "column": value.column._asdict()}


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    return {
        "evaluator": cell.evaluator,
        "column": cell.column._asdict(),
        **{name: getattr(cell, name) for name in ("n_scored", "n_total", "is_partial")},
        "figures": {name: asdict(figure) for name, figure in cell.figures.items()},
        **{name: getattr(cell, name) for name in ("signature", "date", "source")},
        "cost": asdict(cell.cost),
        "metadata": dict(cell.metadata),
    }
