"""Requirements on a passport, for continuous integration: `kappa>=0.6`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.estimates import number_text

from .findings import TITLES, ends_of

_FORM = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)(?P<point>\.value)?\s*(?P<sign>>=|<=|>|<)\s*(?P<limit>-?\d*\.?\d+)\s*")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Requirement(NamedTuple):
    """Limit that a figure has to meet: with its whole interval, or with `is_of_value` by its value."""

    name: str
    sign: str
    limit: float
    is_of_value: bool = False

    def __str__(self) -> str:
        return f"{self.name}{'.value' if self.is_of_value else ''}{self.sign}{self.limit:g}"


class Checked(NamedTuple):
    """Whether an evaluator meets a requirement, and why."""

    evaluator: str
    requirement: str
    has_passed: bool
    reason: str


def requirement(text: str) -> Requirement:
    """Read a requirement such as "kappa>=0.6" or "kappa.value>=0.6"; raises InputError for another form or unknown figure.

    Example:
        >>> requirement("spearman>=0.3")
        Requirement(name='spearman', sign='>=', limit=0.3, is_of_value=False)
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise InputError(f"--require {text!r}: is no limit of a figure. Write it as 'kappa>=0.6' or 'flip_rate<=0.05'.")
    if match["name"] not in TITLES:
        raise unknown_name(f"--require {text!r}: a passport has no figure {match['name']!r}", match["name"], TITLES)
    return Requirement(match["name"], match["sign"], float(match["limit"]), bool(match["point"]))


def check(required: Requirement, evaluator: str, figures: Mapping[str, Estimate], why_none: str) -> Checked:
    """Check a requirement, which a figure without a value or interval fails; `why_none` explains a missing figure."""
    figure = figures.get(required.name)
    if figure is None or figure.value is None:
        why = why_none if figure is None else figure.reason
        return Checked(evaluator, str(required), False, f"{required.name} could not be computed. {why}".strip())
    keeps, ends = _SIGNS[required.sign], (figure.value, figure.value) if required.is_of_value else ends_of(figure)
    if ends is None:
        why = f"{required.name} {number_text(figure.value)} has no interval. {figure.reason or ''}"
        return Checked(
            evaluator, str(required), False, f"{why.strip()} The figure itself is asked for by {required.name}.value."
        )
    end = ends[0] if required.sign.startswith(">") else ends[1]
    which = "" if required.is_of_value else f", whose {'lower' if required.sign.startswith('>') else 'upper'} end counts,"
    has_passed = keeps(end, required.limit)
    return Checked(
        evaluator,
        str(required),
        has_passed,
        f"{required.name} {figure.text()}{which} {'is' if has_passed else 'is not'} {required.sign} {required.limit:g}.",
    )
