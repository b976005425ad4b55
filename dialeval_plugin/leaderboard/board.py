"""The leaderboard: every evaluator's agreement with people on every rated quality of every data set, as data.

What is ranked is an evaluator (a scorer or a judge), not a chatbot. A cell that nobody ran is missing: it is in no mean and
is never 0. Coefficients of different kinds are never averaged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Annotated, Any, NamedTuple, TypeAlias

from annotated_types import Ge, Interval
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked
from dialeval_plugin.reports.tables import TableRow, csv_text, markdown_table
from dialeval_plugin.statistics.estimates import interval_text, number_text

SCHEMA_VERSION = 1
CSV_COLUMNS = (
    *("kind", "evaluator", "dataset", "level", "quality", "coefficient", "value", "ci_low", "ci_high", "is_rough", "rank"),
    *("higher_is_better", "n_scored", "n_total", "is_partial", "seconds", "n_requests", "n_prompt_characters", "date"),
    *("signature", "source", "reason"),
)
_PREFERRED = ("spearman", "pearson", "kendall")

CoefficientValue: TypeAlias = Annotated[float, Interval(ge=-1, le=1)]
Count: TypeAlias = Annotated[int, Ge(0)]


@dataclass(frozen=True, order=True, slots=True)
class Column:
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
    """One coefficient of one cell with its 95 % interval, rough where that rests on few dialogues.

    `rank` is that of the rank cluster in the column, from 1, whose evaluators cannot be told apart; None where the result
    files do not hold what the tests need. `reason` says why the value or the interval is None.
    """

    value: CoefficientValue | None
    ci_low: CoefficientValue | None = None
    ci_high: CoefficientValue | None = None
    is_rough: bool = False
    higher_is_better: bool = True
    rank: Annotated[int, Ge(1)] | None = None
    reason: str | None = None

    def __str__(self) -> str:
        return interval_text(self.value, self.ci_low, self.ci_high, is_rough=self.is_rough)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the run that a cell comes from took, as far as its files tell; None where they do not."""

    seconds: Annotated[float, Ge(0)] | None = None
    n_requests: Count | None = None
    n_prompt_characters: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One evaluator on one column.

    `is_partial`: the run was told to take a part of the data set only. The signature holds everything that can move a number;
    `date` is ISO 8601, UTC, `source` the name of the result file. What the file does not say is empty.
    """

    evaluator: str
    column: Column
    n_scored: Count
    n_total: Count
    is_partial: bool = False
    figures: Mapping[str, Figure]
    signature: str
    date: str = ""
    source: str = ""
    cost: Cost = field(default_factory=Cost)
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a column is to be read beside, as "one person against the others": no evaluator, and so in no order with them."""

    name: str
    column: Column
    coefficient: str
    value: CoefficientValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTests:
    """What the tests behind the rank clusters of a column could tell.

    Dialogues are swapped as a whole. Where no pair differs after Holm's correction there are no ranks.
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


class _File(TypedDict):
    """What `Leaderboard.to_dict` writes and `from_dict` reads."""

    cells: tuple[Cell, ...]
    references: tuple[Reference, ...]
    tests: tuple[PairTests, ...]


@dataclass(frozen=True)
class Leaderboard:
    """A table of cells, at most one for each evaluator and column; InputError names a place that has two."""

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

    def figure(self, evaluator: str, column: Column, coefficient: str) -> Figure | None:
        """Return a figure of a cell, or None where there is none."""
        cell = self.cell(evaluator, column)
        return cell.figures.get(coefficient) if cell else None

    def higher_is_better(self, coefficient: str) -> bool:
        """Whether a higher value of `coefficient` means more agreement."""
        return all(cell.figures[coefficient].higher_is_better for cell in self.cells if coefficient in cell.figures)

    def columns_with(self, coefficient: str) -> tuple[Column, ...]:
        """Columns in which at least one evaluator has a figure of this kind."""
        return tuple(sorted({cell.column for cell in self.cells if coefficient in cell.figures}))

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
        found: dict[str, dict[Column, float]] = defaultdict(dict)
        for reference in self.references:
            if reference.coefficient == coefficient and reference.value is not None:
                found[reference.name][reference.column] = reference.value
        return dict(found)

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
        n_sets = len({(column.dataset, column.level) for column in self.columns_with(coefficient)})
        by_set: dict[tuple[str, str], list[float]] = defaultdict(list)
        for column, value in values.items():
            by_set[column.dataset, column.level].append(value)
        means = [fmean(of_set) for of_set in by_set.values()]
        return MacroMean(fmean(means) if means else None, len(means), n_sets - len(means))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_dict` reads back."""
        means = {
            name: {evaluator: mean._asdict() for evaluator, mean in self.means(name).items()} for name in self.coefficients
        }
        return {"schema_version": SCHEMA_VERSION, **asdict(self), "means": means}

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "leaderboard") -> Leaderboard:
        """Read what `to_dict` wrote; the means are computed again. InputError begins with `where`."""
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{where}: schema_version is {version!r}, this release reads {SCHEMA_VERSION}. "
                "Build the leaderboard again from its result files."
            )
        found = checked(data, _File, where, advice="Build the leaderboard again from its result files.")
        return cls(found["cells"], found["references"], found["tests"])

    def to_csv(self) -> str:
        """Return one line for each coefficient of each cell, then one for each reference; what is not known is empty."""
        rows: list[TableRow] = []
        for cell in self.cells:
            shared = {"kind": "evaluator", **asdict(cell.column), **asdict(cell.cost)}
            shared |= {name: getattr(cell, name) for name in CSV_COLUMNS if name in Cell.__dataclass_fields__}
            rows += [{**shared, "coefficient": name, **asdict(figure)} for name, figure in cell.figures.items()]
        for one in self.references:
            values = {"evaluator": one.name, "coefficient": one.coefficient, "value": one.value}
            rows.append({"kind": "reference", **values, **asdict(one.column)})
        return csv_text(rows, CSV_COLUMNS)

    def to_markdown(self, coefficient: str | None = None) -> str:
        """Return the table of one coefficient, by default the main one: means first, references below, in italics."""
        chosen = coefficient or self.main
        columns, means = self.columns_with(chosen), self.means(chosen)
        rows = [
            [name, _mean_in_words(means[name]), *(self._cell_in_words(name, column, chosen) for column in columns)]
            for name in self.evaluators
        ]
        for name, values in self.reference_rows(chosen).items():
            shown = [number_text(values.get(column)) for column in columns]
            rows.append([f"*{name}*", _mean_in_words(self._mean(values, chosen)), *shown])
        return markdown_table(["evaluator", f"mean {chosen} (data sets)", *map(str, columns)], rows) + "\n"

    def with_ranks(self, ranks: Mapping[tuple[str, Column, str], int]) -> Leaderboard:
        """Return this leaderboard with ranks, by evaluator, column and coefficient, in the figures."""
        cells = []
        for cell in self.cells:
            found = {name: ranks.get((cell.evaluator, cell.column, name)) for name in cell.figures}
            figures = {name: replace(figure, rank=found[name]) for name, figure in cell.figures.items()}
            cells.append(replace(cell, figures=figures))
        return replace(self, cells=tuple(cells))

    def _cell_in_words(self, evaluator: str, column: Column, coefficient: str) -> str:
        cell, figure = self.cell(evaluator, column), self.figure(evaluator, column, coefficient)
        if cell is None or figure is None:
            return ""
        notes = [] if cell.n_scored == cell.n_total else [f"{cell.n_scored} of {cell.n_total} scored"]
        notes += ["part of the set"] if cell.is_partial else []
        return f"{figure} ({', '.join(notes)})" if notes else str(figure)

    @cached_property
    def _places(self) -> dict[tuple[str, Column], Cell]:
        return {(cell.evaluator, cell.column): cell for cell in self.cells}


def _mean_in_words(mean: MacroMean) -> str:
    return "" if mean.value is None else f"{mean.value:.3f} ({mean.n_present} of {mean.n_present + mean.n_missing})"
