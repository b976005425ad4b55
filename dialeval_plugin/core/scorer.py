"""What a method is, a `Scorer`, and scorers by name: registered in this process, or declared by an installed package."""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar

from .dialogue import Example, Item, Level, is_blank
from .errors import InputError, MissingPrerequisite
from .options import check_names, option_names
from .runner import run
from .scores import BLANK_RESPONSE, Orientation, Row, Scores, Unscored
from .signature import SignatureValue

ENTRY_POINT_GROUP = "dialeval_plugin.scorers"


class Scorer(ABC):
    """A method that scores examples.

    A subclass fills `score_batch` and `signature_fields`, and where it takes options, decorates `__init__` by
    `options.with_options`; `score` is the shared pipeline (runner.py). The score of an example depends on that example
    alone: not on its neighbours, their number or their order.
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

    def unscorable(self, item: Item) -> Unscored | None:
        """Why `item` cannot have a score, whatever else is scored; None where it can. Such items never reach `score_batch`."""
        return BLANK_RESPONSE if isinstance(item, Example) and is_blank(item.response.text) else None

    @abstractmethod
    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score at most `window` items, none of them twice and none `unscorable`; one row an item, in their order."""

    @abstractmethod
    def signature_fields(self) -> dict[str, SignatureValue]:
        """Everything configured that can move a number; it names the method first."""

    def explain(self, items: Sequence[Item]) -> list[str]:
        """Return for each item as text why it has its score; an InputError where the scorer cannot say so."""
        raise InputError(f"{self.name}: has nothing to explain. Leave --explain out.")

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """Turn the rows of the whole run into the final ones; only a paper's whole-set normalisation needs it."""
        return rows

    def score(self, items: Sequence[Item], *, progress: bool = False) -> Scores:
        """Score `items`, in order; all must be of this scorer's level."""
        return run(self, items, progress=progress)


_factories: dict[str, Callable[..., Scorer]] = {}


def _place(factory: Callable[..., Scorer]) -> tuple[str, str]:
    """Where a factory is written: a file that runs as `__main__` and is imported as well has it under two modules' names."""
    module = factory.__module__
    return getattr(sys.modules.get(module), "__file__", None) or module, factory.__qualname__


def register_scorer(name: str) -> Callable[[Callable[..., Scorer]], Callable[..., Scorer]]:
    """Register a scorer class or factory under `name` for this process.

    A package that is installed declares an entry point in the group `dialeval_plugin.scorers` instead, so that its
    module is imported only when somebody asks for the name. A name registered here comes before a declared one.
    Another factory of the same name is an InputError.
    """

    def decorate(factory: Callable[..., Scorer]) -> Callable[..., Scorer]:
        known = _factories.get(name)
        if known is not None and _place(known) != _place(factory):
            one, other = (f"{found.__module__}:{found.__qualname__}" for found in (known, factory))
            raise InputError(f"scorer {name!r} is registered by {one} and by {other}. Rename one of them.")
        _factories[name] = factory
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
    return sorted({*_factories, *_entry_points()})


def scorer_factory(name: str) -> Callable[..., Scorer]:
    """Return the class or function that makes the scorer `name`."""
    if name in _factories:
        return _factories[name]
    declared = _entry_points().get(name, [])
    if not declared:
        raise InputError(f"there is no scorer {name!r}. Known are: {', '.join(scorer_names())}.")
    point, *others = declared
    if others:
        both = f"{point.value} and by {others[0].value}"
        raise InputError(f"scorer {name!r} is declared by {both}. Uninstall one of the packages.")
    try:
        factory: Callable[..., Scorer] = point.load()
    except Exception as error:
        raise MissingPrerequisite(
            f"scorer {name!r} ({point.value}) cannot be imported: {error}. Repair or uninstall the package that declares it."
        ) from error
    return factory


def load_scorer(name: str, **options: Any) -> Scorer:
    """Make the scorer `name` with its options.

    Raises:
        InputError: the name or an option is unknown, or an option is missing.
        MissingPrerequisite: something that the scorer needs is not there; the message says how to get it.
    """
    factory = scorer_factory(name)
    check_names(name, options, option_names(factory))
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        raise InputError(f"{name}: {error}. Give it.") from None
    return factory(**options)
