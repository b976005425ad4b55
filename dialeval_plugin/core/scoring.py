"""What a method gives back (`Scores`, `Unscored`) and what a method is (`Scorer`), with the registry of scorers."""

from __future__ import annotations

import enum
import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, ClassVar, Literal, TypeAlias

from .dialogue import Item
from .errors import InputError, MissingPrerequisite
from .signature import Signature

Level: TypeAlias = Literal["turn", "dialogue"]
Orientation: TypeAlias = Literal["higher", "lower"]

SCHEMA_VERSION = 1
ENTRY_POINT_GROUP = "dialeval_plugin.scorers"


class Reason(str, enum.Enum):
    """Why a row has no score."""

    PARSE_FAILURE = "parse_failure"
    REFUSAL = "refusal"
    OUT_OF_RANGE = "out_of_range"
    TRUNCATED = "truncated"
    API_ERROR = "api_error"
    EMPTY_INPUT = "empty_input"
    CONTEXT_TOO_LONG = "context_too_long"
    NON_FINITE = "non_finite"
    NEEDS_REFERENCES = "needs_references"
    SCORES_TURNS_ONLY = "scores_turns_only"
    SCORES_DIALOGUES_ONLY = "scores_dialogues_only"


NOT_FOR_THIS_DATA = frozenset({Reason.NEEDS_REFERENCES, Reason.SCORES_TURNS_ONLY, Reason.SCORES_DIALOGUES_ONLY})
"""Reasons that lie in the data and in what the scorer is for: nothing has failed."""


@dataclass(frozen=True, slots=True)
class Unscored:
    """A row without a score. It is never 0 and never NaN."""

    reason: Reason
    detail: str = ""


Row: TypeAlias = Mapping[str, float | None] | Unscored
"""One example's columns by name, or the reason why there are none. A column of a scored row may be None."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A table with one row an example, in the order of the examples.

    Attributes:
        main: name of the column that is *the* score.
        columns: column name to one value a row, None in rows that are unscored.
        ids: the examples' ids.
        unscored: row index to the reason why it has no score.
        signature: everything that can move a number.
    """

    main: str
    columns: Mapping[str, tuple[float | None, ...]]
    ids: tuple[str, ...]
    unscored: Mapping[int, Unscored]
    signature: Signature
    level: Level = "turn"
    orientation: Orientation = "higher"

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Row],
        ids: Sequence[str],
        columns: Sequence[str],
        signature: Signature,
        level: Level = "turn",
        orientation: Orientation = "higher",
    ) -> Scores:
        """Build the table; the first of `columns` is the main one. A row with a NaN or infinite value becomes unscored."""
        if len(rows) != len(ids):
            raise ValueError(f"expected one row for each of {len(ids)} ids, got {len(rows)}")
        table: dict[str, list[float | None]] = {name: [] for name in columns}
        unscored: dict[int, Unscored] = {}
        for index, row in enumerate(rows):
            checked = finite_or_unscored(row)
            if isinstance(checked, Unscored):
                unscored[index] = checked
                for values in table.values():
                    values.append(None)
            elif checked.get(columns[0]) is None:
                raise ValueError(f"a scored row needs a value in its main column {columns[0]!r}, got {dict(checked)!r}")
            else:
                for name, values in table.items():
                    values.append(checked.get(name))
        frozen = {name: tuple(values) for name, values in table.items()}
        return cls(columns[0], frozen, tuple(ids), unscored, signature, level, orientation)

    @property
    def values(self) -> tuple[float | None, ...]:
        """The main column."""
        return self.columns[self.main]

    @property
    def n_total(self) -> int:
        """Number of rows."""
        return len(self.ids)

    @property
    def n_scored(self) -> int:
        """Rows that have a score."""
        return self.n_total - self.n_unscored

    @property
    def n_unscored(self) -> int:
        """Rows that have none."""
        return len(self.unscored)

    @property
    def unscored_by_reason(self) -> dict[str, int]:
        """Reason to number of rows, reasons in alphabetical order."""
        return dict(sorted(Counter(item.reason.value for item in self.unscored.values()).items()))

    def mean(self, column: str | None = None) -> float | None:
        """Mean of a column over the rows that have a value in it; None where none has."""
        scored = [value for value in self.columns[column or self.main] if value is not None]
        return math.fsum(scored) / len(scored) if scored else None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one JSON-able object a row: `id`, the columns, and `unscored` with its detail where there is no score."""
        for index, id in enumerate(self.ids):
            row: dict[str, Any] = {"id": id, **{name: values[index] for name, values in self.columns.items()}}
            if (missing := self.unscored.get(index)) is not None:
                row["unscored"] = missing.reason.value
                row["detail"] = missing.detail
            yield row

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_dict` reads back."""
        return {
            "schema_version": SCHEMA_VERSION,
            "main": self.main,
            "level": self.level,
            "orientation": self.orientation,
            "signature": dict(self.signature.fields),
            "columns": {name: list(values) for name, values in self.columns.items()},
            "ids": list(self.ids),
            "unscored": {
                str(index): {"reason": item.reason.value, "detail": item.detail} for index, item in self.unscored.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Scores:
        """Read what `to_dict` wrote.

        Raises:
            InputError: the object is of another schema version.
        """
        if data.get("schema_version") != SCHEMA_VERSION:
            raise InputError(
                f"Scores: schema_version is {data.get('schema_version')!r}, this release reads {SCHEMA_VERSION}. "
                "Update dialeval-plugin or score again."
            )
        return cls(
            main=data["main"],
            columns={name: tuple(values) for name, values in data["columns"].items()},
            ids=tuple(data["ids"]),
            unscored={int(i): Unscored(Reason(item["reason"]), item["detail"]) for i, item in data["unscored"].items()},
            signature=Signature(data["signature"]),
            level=data["level"],
            orientation=data["orientation"],
        )


def finite_or_unscored(row: Row) -> Row:
    """Return `row`, or `Unscored(non_finite)` where one of its values is NaN or infinite."""
    if isinstance(row, Unscored):
        return row
    for name, value in row.items():
        if value is not None and not math.isfinite(value):
            return Unscored(Reason.NON_FINITE, f"{name} is {value}")
    return row


class Scorer(ABC):
    """A method that scores examples.

    A subclass fills `score_batch` and `signature_fields`; `score` is the shared pipeline (runner.py). The score of an
    example depends on that example alone: not on its neighbours, their number or their order.
    """

    name: ClassVar[str]
    citation: ClassVar[str] = ""
    """BibTeX of the paper."""
    level: Level = "turn"
    orientation: Orientation = "higher"
    range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest value of the main column, for a host that wants a probability (SLIDE's small model: 0 to 2).
    An end that does not exist is infinite."""
    positive_from: float | None = None
    """Main score from which on a response is called positive (up to which, where lower is better); None: the middle of the
    range."""
    prompts_llm_itself: ClassVar[bool] = False
    """Whether the option `llm` is a `LanguageModel` that the scorer prompts on its own, instead of a judge with one prompt."""
    window: ClassVar[int] = 2048
    """How many examples `score_batch` gets at once: enough to fill batches of texts of one length, few enough for memory."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, the main one first."""

    @property
    def cuts(self) -> Mapping[str, str]:
        """Columns that count what did not fit into a window, each with what was lost; a run warns of each once."""
        return {}

    @abstractmethod
    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score at most `window` items; one row an item, in their order."""

    @abstractmethod
    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        """Everything configured that can move a number; it names the method first."""

    def explain(self, items: Sequence[Item]) -> list[str]:
        """Return for each item as text why it has its score; for a scorer that can say so.

        Raises:
            InputError: this one cannot.
        """
        raise InputError(f"{self.name}: has nothing to explain. Leave --explain out.")

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """Turn the rows of the whole run into the final ones; only a paper's whole-set normalisation needs it."""
        return rows

    def score(self, items: Sequence[Item], *, progress: bool = False) -> Scores:
        """Score `items`, in order.

        Raises:
            InputError: an item is not of this scorer's level.
        """
        from .runner import run

        return run(self, items, progress=progress)


@dataclass
class _Registry:
    factories: dict[str, Callable[..., Scorer]] = field(default_factory=dict)

    def add(self, name: str, factory: Callable[..., Scorer]) -> None:
        known = self.factories.get(name)
        if known is not None and _place(known) != _place(factory):
            raise InputError(
                f"scorer {name!r} is registered by {_origin(known)} and by {_origin(factory)}. Rename one of them."
            )
        self.factories[name] = factory


_registry = _Registry()


def _origin(factory: Callable[..., Scorer]) -> str:
    return f"{factory.__module__}:{factory.__qualname__}"


def _place(factory: Callable[..., Scorer]) -> tuple[str, str]:
    """Where a factory is written: a file that runs as `__main__` and is imported as well has it under two modules' names."""
    module = factory.__module__
    return getattr(sys.modules.get(module), "__file__", None) or module, factory.__qualname__


def register_scorer(name: str) -> Callable[[Callable[..., Scorer]], Callable[..., Scorer]]:
    """Register a scorer class or factory under `name` for this process.

    A package that is installed declares an entry point in the group `dialeval_plugin.scorers` instead, so that its
    module is imported only when somebody asks for the name. A name registered here comes before a declared one.

    Raises:
        InputError: another factory has the name already; the message names both.
    """

    def decorate(factory: Callable[..., Scorer]) -> Callable[..., Scorer]:
        _registry.add(name, factory)
        return factory

    return decorate


def _entry_points() -> dict[str, list[metadata.EntryPoint]]:
    """By name what is declared under it: one scorer, or several where packages clash, which is an error of that name only."""
    found: dict[str, list[metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        declared = found.setdefault(point.name, [])
        if point.value not in [other.value for other in declared]:
            declared.append(point)
    return found


def scorer_names() -> list[str]:
    """Names of all scorers that can be loaded, sorted."""
    return sorted({*_registry.factories, *_entry_points()})


def scorer_factory(name: str) -> Callable[..., Scorer]:
    """Return the class or function that makes the scorer `name`.

    Raises:
        InputError: nobody registered the name, or two packages declare it.
        MissingPrerequisite: the package that declares it cannot be imported.
    """
    if name in _registry.factories:
        return _registry.factories[name]
    declared = _entry_points().get(name, [])
    if not declared:
        raise InputError(f"there is no scorer {name!r}. Known are: {', '.join(scorer_names())}.")
    point, *others = declared
    if others:
        raise InputError(
            f"scorer {name!r} is declared by {point.value} and by {others[0].value}. Uninstall one of the packages."
        )
    try:
        factory: Callable[..., Scorer] = point.load()
    except Exception as error:
        raise MissingPrerequisite(
            f"scorer {name!r} ({point.value}) cannot be imported: {error}. Repair or uninstall the package that declares it."
        ) from error
    return factory


def option_names(factory: Callable[..., Scorer]) -> list[str] | None:
    """Names of the options that a scorer's class or function takes; None where it takes any."""
    parameters = inspect.signature(factory).parameters.values()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_POSITIONAL]


def check_options(name: str, given: Iterable[str], known: Sequence[str] | None) -> None:
    """Refuse an option that the scorer `name` does not take.

    Args:
        name: of the scorer.
        given: names of the options.
        known: names of those that it takes; None: any.

    Raises:
        InputError: names the first unknown one, and those that are known.
    """
    if known is None:
        return
    for option in given:
        if option not in known:
            raise InputError(f"scorer {name!r}: there is no option {option!r}. Known are: {', '.join(known) or 'none'}.")


def load_scorer(name: str, **options: Any) -> Scorer:
    """Make the scorer `name` with its options.

    Raises:
        InputError: the name or an option is unknown, or an option is missing.
        MissingPrerequisite: something that the scorer needs is not there; the message says how to get it.
    """
    factory = scorer_factory(name)
    check_options(name, options, option_names(factory))
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        raise InputError(f"scorer {name!r}: {error}. Give it.") from None
    return factory(**options)
