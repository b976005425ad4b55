"""The leaderboard as data: each evaluator's agreement with people on every rated quality of every data set.

Ranked are evaluators (scorers and judges), not chatbots. A cell without a run is missing, never 0. Evaluators are ranked by
their means over the same data sets; one that has not run all of them completely is not ranked. Different coefficients are never
averaged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from annotated_types import Ge, Interval

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked
from dialeval_plugin.core.scores import NOT_FOR_THIS_DATA, Reason
from dialeval_plugin.reports.tables import TableRow, csv_text, markdown_table
from dialeval_plugin.statistics.estimates import ValueInterval, interval_text, mean_over_sets, mean_within_set, number_text
from dialeval_plugin.terminal import for_markdown

SCHEMA_VERSION = 2
NOT_RUN = "not run"
CSV_COLUMNS = (
    *("kind", "evaluator", "dataset", "level", "quality", "coefficient", "value", "ci_low", "ci_high", "is_rough", "rank"),
    *("higher_is_better", "n_scored", "n_total", "is_partial", "seconds", "n_requests", "n_prompt_characters", "date"),
    *("signature", "source", "reason", "method", "reads_references", "n_parameters", "licence"),
)
_PREFERRED = ("spearman", "pearson", "kendall")

CoefficientValue: TypeAlias = Annotated[float, Interval(ge=-1, le=1)]
Count: TypeAlias = Annotated[int, Ge(0)]
Method: TypeAlias = Literal["rule", "trained", "prompted", "replayed"]
"""Computed without learnt weights, with learnt weights, by prompting a language model, or from its recorded answers."""


class RatedSet(NamedTuple):
    """Turns or dialogues of one data set; it counts once in a mean, however many of its qualities were rated."""

    dataset: str
    level: str


@dataclass(frozen=True, order=True, slots=True)
class Column:
    """Quality of the turns or dialogues of one data set, on which evaluators are compared."""

    dataset: str
    level: str
    quality: str

    @property
    def rated_set(self) -> RatedSet:
        """Set that contains the column."""
        return RatedSet(self.dataset, self.level)

    @property
    def detail(self) -> str:
        """Quality and level as short text."""
        return ", ".join(filter(None, (self.quality, f"{self.level} level" if self.level else "")))

    def __str__(self) -> str:
        return with_detail(self.dataset, self.detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Coefficient of a cell with its 95 % interval, rough if it is based on few dialogues.

    `rank` is the rank cluster in the column, from 1, whose evaluators cannot be distinguished; None if the result files lack
    the data for the tests. `reason` explains a value or interval that is None.
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
    """Cost of a cell's run; None if its files do not report it."""

    seconds: Annotated[float, Ge(0)] | None = None
    n_requests: Count | None = None
    n_prompt_characters: Count | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Result of one evaluator on one column; fields that the result file does not report are empty.

    `is_partial`: only a part of the data set was run. `unscored` counts the rows without a score by reason. The signature
    contains everything that can change a number; `date` is ISO 8601, UTC; `source` is the name of the result file.
    """

    evaluator: str
    column: Column
    n_scored: Count
    n_total: Count
    is_partial: bool = False
    unscored: Mapping[str, Count] = field(default_factory=dict)
    figures: Mapping[str, Figure]
    signature: str
    date: str = ""
    source: str = ""
    cost: Cost = field(default_factory=Cost)
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Value to compare a column with, such as "one person against the others"; it is not an evaluator and has no rank."""

    name: str
    column: Column
    coefficient: str
    value: CoefficientValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTests:
    """Counts of the tests behind the rank clusters of a column; whole dialogues are permuted."""

    column: Column
    coefficient: str
    n_rows: Count
    n_dialogues: Count
    n_pairs: Count
    n_different: Count
    n_rounds: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Description of an evaluator; unknown fields are None or empty.

    Attributes:
        method: see `Method`.
        reads_references: whether a response without references has no score.
        level: configured level of the scored items; None for both, or if unknown.
        n_parameters: parameters of the model that it computes with or prompts; 0 for a rule.
        licence: licence of that model's weights.
        commercial_use: whether that licence allows it.
        about: what it computes, in one line.
        card: name of the metric's card in this package.
        model_card: name of the bundled model.
        model_url: page of the model on the Hub.
        paper: title of the paper.
        paper_url: address of the paper.
        command: command that repeats the run; it has the last part of folder names, and no device.
        passport: address of its passport, relative to the leaderboard's page.
    """

    method: Method | None = None
    reads_references: bool | None = None
    level: Level | None = None
    n_parameters: Count | None = None
    licence: str = ""
    commercial_use: bool | None = None
    about: str = ""
    card: str = ""
    model_card: str = ""
    model_url: str = ""
    paper: str = ""
    paper_url: str = ""
    command: str = ""
    passport: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Description of a data set; `has_references` is None without logged samples."""

    title: str
    about: str = ""
    url: str = ""
    has_references: bool | None = None


class Ranking(NamedTuple):
    """Evaluators by their mean over the same sets, best first, and the names of those without a rank."""

    sets: tuple[RatedSet, ...]
    means: Mapping[str, ValueInterval]
    unranked: tuple[str, ...]


class SetsMean(NamedTuple):
    """Mean over those of some sets that have a value."""

    value: float
    n_sets: int


@dataclass(frozen=True)
class Leaderboard:
    """Table of cells by evaluator and column; raises InputError for a duplicate cell.

    `identities` are by evaluator, `data_sets` by a column's `dataset`.
    """

    cells: tuple[Cell, ...]
    references: tuple[Reference, ...] = ()
    tests: tuple[PairTests, ...] = ()
    identities: Mapping[str, Identity] = field(default_factory=dict)
    data_sets: Mapping[str, DataSet] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: dict[tuple[str, Column], Cell] = {}
        for cell in self.cells:
            other = seen.setdefault((cell.evaluator, cell.column), cell)
            if other is not cell:
                raise InputError(
                    f"leaderboard: {cell.evaluator!r} has two cells for {cell.column}, from {other.source!r} and "
                    f"{cell.source!r}. Leave one of the files out."
                )

    @cached_property
    def evaluators(self) -> tuple[str, ...]:
        """Names of the evaluators: first those ranked by the main coefficient on the common sets, then the others."""
        ranking = self.ranking(self.main)
        return (*ranking.means, *ranking.unranked)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in alphabetical order."""
        return tuple(sorted({cell.column for cell in self.cells}))

    @cached_property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the coefficients in the cells: rank and linear correlations first."""
        names = {name for cell in self.cells for name in cell.figures}
        return (*(name for name in _PREFERRED if name in names), *sorted(names.difference(_PREFERRED)))

    @property
    def main(self) -> str:
        """Coefficient shown first; empty if there is none."""
        return next(iter(self.coefficients), "")

    def cell(self, evaluator: str, column: Column) -> Cell | None:
        """Return a cell, or None if it was not run."""
        return self._places.get((evaluator, column))

    def figure(self, evaluator: str, column: Column, coefficient: str) -> Figure | None:
        """Return a figure of a cell, or None if there is none."""
        cell = self.cell(evaluator, column)
        return cell.figures.get(coefficient) if cell else None

    def higher_is_better(self, coefficient: str) -> bool:
        """Whether a higher value of `coefficient` means more agreement."""
        return all(cell.figures[coefficient].higher_is_better for cell in self.cells if coefficient in cell.figures)

    def columns_with(self, coefficient: str) -> tuple[Column, ...]:
        """Return the columns in which at least one evaluator has this coefficient."""
        return self._columns_with.get(coefficient, ())

    def sets_with(self, coefficient: str) -> tuple[RatedSet, ...]:
        """Return the sets in which at least one evaluator has this coefficient."""
        return tuple(dict.fromkeys(column.rated_set for column in self.columns_with(coefficient)))

    def set_mean(self, evaluator: str, rated_set: RatedSet, coefficient: str) -> ValueInterval | None:
        """Return an evaluator's mean over the qualities of a set; None if one is missing or partial.

        A quality on which no evaluator has a value, because all ratings are equal for example, does not count.
        """
        valued = (column for column in self.columns_with(coefficient) if (coefficient, column) in self._valued)
        columns = [column for column in valued if column.rated_set == rated_set]
        cells = [self.cell(evaluator, column) for column in columns]
        if any(cell is None or cell.is_partial for cell in cells):
            return None
        mean = mean_within_set([self.figure(evaluator, column, coefficient) for column in columns])
        return None if mean.value is None else mean

    def common_sets(self, coefficient: str) -> tuple[RatedSet, ...]:
        """Return the sets on which to rank by default.

        Sets are sorted by the number of evaluators with all of a set. The first n sets with the largest product of n and the
        number of evaluators with all n are returned, the larger n for ties. If no evaluator has all of a set, all sets are
        returned.
        """
        sets, names = self.sets_with(coefficient), {cell.evaluator for cell in self.cells}
        having = {one: {name for name in names if self.set_mean(name, one, coefficient)} for one in sets}
        by_number = sorted((one for one in sets if having[one]), key=lambda one: -len(having[one]))
        best, most = sets, 0
        for n in range(1, len(by_number) + 1):
            n_evaluators = len(set.intersection(*(having[one] for one in by_number[:n])))
            if n_evaluators and n * n_evaluators >= most:
                best, most = tuple(sorted(by_number[:n])), n * n_evaluators
        return best

    def ranking(self, coefficient: str, sets: Sequence[RatedSet] | None = None) -> Ranking:
        """Rank the evaluators that have all of `sets`, by default the common ones; ties are in alphabetical order."""
        chosen = self.common_sets(coefficient) if sets is None else tuple(sets)
        names = sorted({cell.evaluator for cell in self.cells})
        means = {name: mean_over_sets([self.set_mean(name, one, coefficient) for one in chosen]) for name in names}
        sign = -1 if self.higher_is_better(coefficient) else 1
        values = {name: mean.value for name, mean in means.items() if mean.value is not None}
        order = sorted(values, key=lambda name: sign * values[name])
        return Ranking(chosen, {name: means[name] for name in order}, tuple(name for name in names if name not in values))

    def has_rough_mean(self, evaluator: str, sets: Sequence[RatedSet], coefficient: str) -> bool:
        """Whether any interval behind an evaluator's mean over some sets is based on few dialogues."""
        columns = [column for column in self.columns_with(coefficient) if column.rated_set in sets]
        figures = [self.figure(evaluator, column, coefficient) for column in columns]
        return any(figure is not None and figure.is_rough for figure in figures)

    def why_missing(self, evaluator: str, column: Column, coefficient: str) -> str:
        """Return a short reason why an evaluator has no value in a column, such as "needs references"."""
        cell, identity = self.cell(evaluator, column), self.identities.get(evaluator, Identity())
        if cell is None or coefficient not in cell.figures:
            data_set = self.data_sets.get(column.dataset)
            if identity.reads_references and data_set is not None and data_set.has_references is False:
                return _in_words(Reason.NEEDS_REFERENCES)
            if identity.level is not None and column.level not in {"", identity.level}:
                return _in_words(Reason.SCORES_TURNS_ONLY if identity.level == "turn" else Reason.SCORES_DIALOGUES_ONLY)
            return NOT_RUN
        reasons = sorted(cell.unscored, key=lambda name: (name not in NOT_FOR_THIS_DATA, -cell.unscored[name]))
        return _in_words(reasons[0]) if reasons and not cell.n_scored else "undefined"

    def reference_rows(self, coefficient: str) -> dict[str, dict[Column, float]]:
        """Return the references of one coefficient that have a value, by name."""
        rows: dict[str, dict[Column, float]] = defaultdict(dict)
        for reference in self.references:
            if reference.coefficient == coefficient and reference.value is not None:
                rows[reference.name][reference.column] = reference.value
        return dict(rows)

    def reference_mean(self, name: str, coefficient: str, sets: Sequence[RatedSet]) -> SetsMean | None:
        """Return a reference's mean over those of `sets`, and those of their qualities, that have it."""
        by_set: dict[RatedSet, list[ValueInterval]] = defaultdict(list)
        for column, value in self.reference_rows(coefficient).get(name, {}).items():
            if column.rated_set in sets:
                by_set[column.rated_set].append(ValueInterval(value))
        mean = mean_over_sets([mean_within_set(of_set) for of_set in by_set.values()])
        return None if mean.value is None else SetsMean(mean.value, len(by_set))

    def tests_of(self, column: Column) -> PairTests | None:
        """Return the counts of the tests in a column; None without tests."""
        return next((tests for tests in self.tests if tests.column == column), None)

    def n_rows(self, column: Column) -> int:
        """Return the largest number of rows given to an evaluator."""
        return max((cell.n_total for cell in self.cells if cell.column == column), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_dict` reads back."""
        rankings = {}
        for name in self.coefficients:
            sets, means, unranked = self.ranking(name)
            of_evaluators = {evaluator: mean._asdict() for evaluator, mean in means.items()}
            rankings[name] = {"sets": [one._asdict() for one in sets], "means": of_evaluators, "unranked": list(unranked)}
        return {"schema_version": SCHEMA_VERSION, **asdict(self), "rankings": rankings}

    @classmethod
    def from_dict(cls, data: Any, *, where: str = "leaderboard") -> Leaderboard:
        """Read the output of `to_dict` and compute the rankings again; an InputError begins with `where`."""
        version = data.get("schema_version") if isinstance(data, dict) else None
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{where}: schema_version is {version!r}, this release reads {SCHEMA_VERSION}. "
                "Build the leaderboard again from its result files."
            )
        return checked(data, cls, where, advice="Build the leaderboard again from its result files.")

    def to_csv(self) -> str:
        """Return one line for each coefficient of each cell, then one for each reference; unknown values are empty."""
        rows: list[TableRow] = []
        for cell in self.cells:
            shared = {"kind": "evaluator", **asdict(cell.column), **asdict(cell.cost)}
            shared |= {name: getattr(cell, name) for name in CSV_COLUMNS if name in Cell.__dataclass_fields__}
            if identity := self.identities.get(cell.evaluator):
                shared |= {name: getattr(identity, name) for name in CSV_COLUMNS if name in Identity.__dataclass_fields__}
            rows += [{**shared, "coefficient": name, **asdict(figure)} for name, figure in cell.figures.items()]
        for one in self.references:
            values = {"evaluator": one.name, "coefficient": one.coefficient, "value": one.value}
            rows.append({"kind": "reference", **values, **asdict(one.column)})
        return csv_text(rows, CSV_COLUMNS)

    def to_markdown(self, coefficient: str | None = None) -> str:
        """Return the tables of one coefficient, by default the main one: ranked evaluators and references, then the others."""
        chosen = coefficient or self.main
        columns, ranking = self.columns_with(chosen), self.ranking(chosen)
        heads = [with_detail(self.title(column.dataset), column.detail) for column in columns]

        def row(name: str) -> list[str]:
            return [name, *(self._cell_in_words(name, column, chosen) for column in columns)]

        n_sets = len(ranking.sets)
        over = f"mean {chosen}, {n_sets} data set{'' if n_sets == 1 else 's'}"
        rows = []
        for name, mean in ranking.means.items():
            is_rough = self.has_rough_mean(name, ranking.sets, chosen)
            rows.append([name, interval_text(*mean, is_rough=is_rough), *row(name)[1:]])
        for name, values in self.reference_rows(chosen).items():
            people = self.reference_mean(name, chosen, ranking.sets)
            mean_text = "" if people is None else f"{people.value:.3f} ({people.n_sets} of {n_sets})"
            rows.append([f"*{name}*", mean_text, *(number_text(values.get(column)) for column in columns)])
        parts = []
        if ranking.means:
            names = (with_detail(self.title(one.dataset), one.level and f"{one.level} level") for one in ranking.sets)
            table = markdown_table(["evaluator", over, *heads], rows)
            parts.append(f"Ranked by the mean over {for_markdown(', '.join(names))}.\n\n{table}")
        if ranking.unranked:
            table = markdown_table(["evaluator", *heads], [row(name) for name in ranking.unranked])
            parts.append(f"Not ranked, as they lack one of these sets or ran a part of it:\n\n{table}")
        return "\n\n".join(parts) + "\n"

    def title(self, dataset: str) -> str:
        """Return the printed name of a data set."""
        data_set = self.data_sets.get(dataset)
        return dataset if data_set is None else data_set.title

    def with_ranks(self, ranks: Mapping[tuple[str, Column, str], int]) -> Leaderboard:
        """Return this leaderboard with ranks, given by evaluator, column and coefficient, in its figures."""
        cells = []
        for cell in self.cells:
            own = {name: ranks.get((cell.evaluator, cell.column, name)) for name in cell.figures}
            figures = {name: replace(figure, rank=own[name]) for name, figure in cell.figures.items()}
            cells.append(replace(cell, figures=figures))
        return replace(self, cells=tuple(cells))

    def _cell_in_words(self, evaluator: str, column: Column, coefficient: str) -> str:
        cell, figure = self.cell(evaluator, column), self.figure(evaluator, column, coefficient)
        if cell is None or figure is None or figure.value is None:
            missing = self.why_missing(evaluator, column, coefficient)
            return "" if missing == NOT_RUN else missing
        notes = [] if cell.n_scored == cell.n_total else [f"{cell.n_scored} of {cell.n_total} scored"]
        notes += ["part of the set"] if cell.is_partial else []
        return f"{figure} ({', '.join(notes)})" if notes else str(figure)

    @cached_property
    def _columns_with(self) -> dict[str, tuple[Column, ...]]:
        columns_of: dict[str, set[Column]] = defaultdict(set)
        for cell in self.cells:
            for name in cell.figures:
                columns_of[name].add(cell.column)
        return {name: tuple(sorted(columns)) for name, columns in columns_of.items()}

    @cached_property
    def _valued(self) -> set[tuple[str, Column]]:
        named = ((name, cell.column, figure) for cell in self.cells for name, figure in cell.figures.items())
        return {(name, column) for name, column, figure in named if figure.value is not None}

    @cached_property
    def _places(self) -> dict[tuple[str, Column], Cell]:
        return {(cell.evaluator, cell.column): cell for cell in self.cells}


def with_detail(name: str, detail: str) -> str:
    """Return a name with its detail, if any, in brackets."""
    return f"{name} ({detail})" if detail else name


def _in_words(reason: str) -> str:
    return str(getattr(reason, "value", reason)).replace("_", " ")
