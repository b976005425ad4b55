"""Descriptions of scorers and their options, from their classes alone: no model is loaded.

Importing every scorer takes seconds, for torch and the packages behind the baselines. `scorers.json` therefore stores the cards
of our own scorers, and a test compares it with the classes; only scorers of other packages are imported.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import DialevalError
from dialeval_plugin.core.files import read_json
from dialeval_plugin.core.registry import (
    ModelOptions,
    bounds_of,
    choices_of,
    declaration,
    in_words,
    option_kinds,
    scorer_factory,
    scorer_names,
)
from dialeval_plugin.core.resources import DISTRIBUTIONS, pretrained_path
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Orientation
from dialeval_plugin.core.signature import PROVENANCE_FILE

KEPT = Path(__file__).with_name("scorers.json")
_ATTRIBUTES = ("needs", "packaged_model", "levels", "level", "range", "orientation", "citation")
_SECTION = re.compile(r"^(?:Args|Attributes):\n((?:(?:    .*)?(?:\n|$))+)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+): (.*(?:\n +.*)*)", re.MULTILINE)
_WIDTH = 100


@dataclasses.dataclass(frozen=True)
class ScorerCard:
    """Description of a scorer without its options.

    Attributes:
        name: name by which it is loaded.
        summary: its description in one line; empty if undocumented.
        needs: requirements in addition to a response and its context, for its default options; see `Scorer.needs`.
        packaged_model: installed model that it uses by default; None if there is none.
        levels: levels that it can score.
        range: ends of the score range for its default options; None for an end that is open or undocumented.
        orientation: "higher" or "lower", whichever is better.
        citation: BibTeX entry of the paper; empty if there is none.
        declared_by: package that provides it; None if it was registered in this process.
        problem: reason why it cannot be loaded; None if none is known.
    """

    name: str
    summary: str
    needs: tuple[str, ...] = ()
    packaged_model: str | None = None
    levels: tuple[Level, ...] = ("turn",)
    range: tuple[float | None, float | None] = (None, None)
    orientation: Orientation = "higher"
    citation: str = ""
    declared_by: str | None = None
    problem: str | None = None

    def lines(self) -> list[str]:
        """Return the description and requirements as lines of text."""
        low, high = ("" if end is None else f"{end:g}" for end in self.range)
        extent = f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}" if high else "any number"
        models = [f"packaged model {self.packaged_model}"] if self.packaged_model is not None else []
        needs = [need for need in self.needs if not (models and need.endswith("model"))]
        facts = [" or ".join(self.levels) + " level", f"{extent}, {self.orientation} is better"]
        facts += [f"needs {' and '.join(needs)}" if needs else "needs nothing else", *models]
        if self.declared_by not in {None, *DISTRIBUTIONS}:
            facts.append(f"from {self.declared_by}")
        if self.problem is not None:
            facts = [self.problem]
        return [line for line in (self.summary, "; ".join(facts)) if line]


@dataclasses.dataclass(frozen=True)
class OptionCard:
    """Option of a scorer.

    Attributes:
        name: name of the option.
        type: type in the form of a command's help, with bounds: `int from 1`, `turn|dialogue`.
        default: default value; as text if JSON has no such type.
        is_required: whether there is no default.
        choices: allowed values; empty if unrestricted.
        bounds: `ge`, `gt`, `le`, `lt` of a number.
        description: from the docstring of the scorer; empty if undocumented.
    """

    name: str
    type: str
    default: Any
    is_required: bool
    choices: tuple[str, ...]
    bounds: Mapping[str, float]
    description: str

    def lines(self) -> list[str]:
        """Return the option as lines of text."""
        value = "required" if self.is_required else f"default {_typed(self.default)}"
        head = f"    {self.name}: {self.type or 'any'}; {value}"
        return [head, *textwrap.wrap(self.description, _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)]


def scorer_cards() -> list[ScorerCard]:
    """Return the cards of all scorers by name; a scorer that cannot be imported has a card with the reason."""
    return [scorer_card(name) for name in scorer_names()]


def scorer_card(name: str) -> ScorerCard:
    """Return the card of one scorer; raises InputError if the name is unknown."""
    declared = declaration(name)
    package = None if declared is None or declared.dist is None else declared.dist.name
    try:
        stored = read_json(KEPT).get(name) if package in DISTRIBUTIONS else None
        return _card(name, package, of_class(scorer_factory(name)) if stored is None else stored)
    except (DialevalError, TypeError, ValueError) as error:
        if name not in scorer_names():
            raise
        return ScorerCard(name, "", declared_by=package, problem=str(error))


def _card(name: str, package: str | None, fields: Mapping[str, Any]) -> ScorerCard:
    packaged = fields["packaged_model"]
    return ScorerCard(
        name,
        fields["summary"],
        tuple(fields["needs"]),
        packaged if packaged is not None and (pretrained_path() / packaged / PROVENANCE_FILE).is_file() else None,
        tuple(fields["levels"] or (fields["level"],)),
        tuple(fields["range"]),
        fields["orientation"],
        fields["citation"],
        package,
    )


def option_cards(factory: Callable[..., Any]) -> list[OptionCard] | None:
    """Return the options of a scorer's class or function, or of a dataclass of options; None if any option is accepted."""
    kinds = option_kinds(factory)
    if kinds is None:
        return None
    described = {**_documented(ModelOptions), **_documented(factory)}
    parameters = inspect.signature(factory).parameters
    cards = []
    for name, kind in kinds.items():
        default = parameters[name].default
        is_required = default is inspect.Parameter.empty
        value = None if is_required else default if isinstance(default, (str, int, float, type(None))) else _as_text(default)
        type_name = "" if kind in (Any, object) else in_words(kind, is_short=True)
        cards.append(
            OptionCard(name, type_name, value, is_required, tuple(choices_of(kind)), bounds_of(kind), described.get(name, ""))
        )
    return cards


def _typed(value: Any) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value) or "empty"


def _as_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _documented(factory: Callable[..., Any]) -> dict[str, str]:
    """Return descriptions of options, from the docstrings of a class and of the dataclass of its options."""
    options = getattr(getattr(factory, "__init__", None), "__wrapped__", None)
    kinds = [base for kind in (factory, options) for base in getattr(kind, "__mro__", (kind,))]
    texts: dict[str, str] = {}
    for kind in kinds:
        for section in _SECTION.findall(inspect.cleandoc(kind.__doc__ or "") + "\n"):
            for name, text in _ENTRY.findall(textwrap.dedent(section)):
                texts.setdefault(name, " ".join(text.split()))
    return texts


def of_class(factory: Any) -> dict[str, Any]:
    """Return the fields of a card from a class or function; an infinite end of a range becomes None."""
    fields = {name: getattr(factory, name, getattr(Scorer, name)) for name in _ATTRIBUTES}
    # A property has no value in the class.
    fields |= {name: getattr(Scorer, name) for name, value in fields.items() if isinstance(value, property)}
    ends = [float(end) if math.isfinite(end) else None for end in fields["range"]]
    return {**fields, "range": ends, "summary": (inspect.getdoc(factory) or "").strip().partition("\n")[0]}
