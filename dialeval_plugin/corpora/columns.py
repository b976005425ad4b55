"""Columns of a user's own table: labels of its rows, ratings or scores, or neither.

A name decides first, in any spelling (`WorkerId`, `worker_id`, `Worker ID`): identifiers, times and texts are not read as
numbers. Any other column is classified by all of its cells.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line

from .rows import DECIMAL_COMMA, MISSING, is_number, label_field

logger = logging.getLogger(__name__)

_CLUSTERS = "dialogue|dialog|conversation|conv|chat|session|thread"
_LABELS = {
    "id": ("id",),
    "cluster": ("cluster", *_CLUSTERS.split("|")[:3], *(f"{name}_id" for name in _CLUSTERS.split("|"))),
    "item": ("item",),
    "system": ("system", "system_id"),
    "level": ("level",),
    "rater": ("rater", "rater_id", "worker", "worker_id", "annotator", "annotator_id", "completed_by"),
}
"""Spellings of each label; the first one in the table is used."""
_TEXT = re.compile("context|response|references?|facts|text|prompt|history|comments?|notes?|feedback|unscored|detail")
_NO_NUMBERS = re.compile(
    rf"|(.+_)?(id|ids|uuid|guid)|hitid|index|.+_idx|idx|level_\d|unnamed_\d+(_\d+)*|row(_(number|nr|no))?|{_TEXT.pattern}"
    r"|(.+_)?(time(stamp)?|date(time)?|duration|seconds)|.+_at|ts|epoch|created|updated|turn(_(number|nr|no))?|seed|fold|batch"
)
_PEOPLE = "rater|annotator|worker|coder|turker|human|person|participant"
_PERSON = re.compile(rf"((?P<before>.+)_)?({_PEOPLE})_?(\d+|[a-z])(_(?P<behind>.+))?")
_UNCLEAR = re.compile(r"(rating|score|annotation|label|vote|judge|evaluator|expert)_?\d+")
"""Names that may belong to people or to qualities."""


class Columns(NamedTuple):
    """The columns of a table by their contents."""

    labels: Mapping[str, str]
    """Column name of each label in the table: `id`, `cluster`, `item`, `system`, `level` and `rater`."""
    numbers: list[str]
    raters: dict[str, list[str]]
    """Columns of single raters by quality; they are not among `numbers`."""
    unclear: list[str]
    """Columns among `numbers` that may be several raters of one quality, or several qualities."""
    left_out: list[str]
    """Columns that are empty or mostly text, although their names allow scores."""

    @classmethod
    def of(cls, rows: Sequence[Line], source: str, known: Collection[str] = ()) -> Columns:
        """Classify columns; those in `known` are named by the user and left out here.

        InputError: two columns group the rows into dialogues differently.
        """
        names = names_of(rows)
        spelled = {name: _spelled(name) for name in names}
        labels = {label: own[0] for label in _LABELS if (own := _labels(rows, source, label, spelled))}
        numbers, left_out, raters = [], [], dict[str, list[str]]()
        for name in (name for name in names if name not in {*labels.values(), *known}):
            cells = _kinds(rows, name)
            if _NO_NUMBERS.fullmatch(spelled[name]) or (cells["other"] and not cells["number"]):
                continue
            if cells["other"] > cells["number"] or not cells["number"] + cells["missing"]:
                left_out.append(name)
            elif person := _PERSON.fullmatch(spelled[name]):
                raters.setdefault(person["before"] or person["behind"] or "rating", []).append(name)
            else:
                numbers.append(name)
        unclear = [name for name in numbers if _UNCLEAR.fullmatch(spelled[name])]
        return cls(labels, numbers, raters, unclear if len(unclear) > 1 else [], left_out)

    def warn(self, source: str, *others: str) -> None:
        """Warn of columns that are left out because of their contents, and of `others`."""
        if names := [*self.left_out, *others]:
            shown = ", ".join(map(repr, names))
            logger.warning("%s: not read as scores or ratings: %s. To use one, name it by --column or --quality", source, shown)

    def refuse_unclear(self, source: str, qualities: str) -> None:
        """Raise an InputError for unclear columns; `qualities` says how qualities are named."""
        if self.unclear:
            raise InputError(
                f"{source}: {', '.join(self.unclear)} may be raters of one quality, or qualities. "
                f"Say --raters {shlex.quote(','.join(self.unclear))}, or name {qualities}."
            )

    def label(self, row: Line, name: str) -> str | None:
        """Return the label of a row, by its name among `labels`; None if it has none."""
        column = self.labels.get(name)
        return None if column is None else label_field(row, column)


def conversation_column(rows: Sequence[Line], source: str) -> str | None:
    """Return the column with the conversations of rows, `conversation` before any other; None if there is none.

    InputError: two columns group the rows differently.
    """
    spelled = {name: _spelled(name) for name in names_of(rows)}
    return "conversation" if "conversation" in spelled else next(iter(_labels(rows, source, "cluster", spelled)), None)


def names_of(rows: Iterable[Line]) -> list[str]:
    """Return the names of all fields of rows, as they come first."""
    names: dict[str, Any] = {}
    for row in rows:
        names.update(row.value)
    return list(names)


def check_columns(where: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise an InputError for the first column that is not `known`."""
    for name in names:
        if name not in known:
            raise unknown_name(f"{where} has no column {name!r}", name, known)


def _spelled(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+", "_", name).strip("_").lower()


def _labels(rows: Sequence[Line], source: str, label: str, spelled: Mapping[str, str]) -> list[str]:
    """Return the columns of a label, the one to use first."""
    if label == "id":
        return [label] if label in spelled else []
    found = [name for spelling in _LABELS[label] for name in spelled if spelled[name] == spelling]
    if label != "cluster" or {"cluster", "dialogue"} & {*found}:
        return found
    # A column named after dialogues may hold their turns.
    found = [name for name in found if all(isinstance(row.value.get(name), (str, int, NoneType)) for row in rows)]
    for other in found[1:]:
        pairs = {(str(row.value.get(found[0])), str(row.value.get(other))) for row in rows}
        if not len(pairs) == len({first for first, _ in pairs}) == len({second for _, second in pairs}):
            raise InputError(
                f"{source}: {found[0]!r} and {other!r} say in two ways which rows are of one dialogue. "
                "Call the one that is right 'dialogue'."
            )
    return found


def _kinds(rows: Sequence[Line], name: str) -> Counter[str]:
    """Return the number of cells of each kind in a column, whose equal texts are looked at once."""
    cells = [row.value.get(name) for row in rows]
    kinds = Counter(_kind(cell) for cell in cells if type(cell) is not str)
    for text, n in Counter(cell for cell in cells if type(cell) is str).items():
        kinds[_kind(text)] += n
    return kinds


def _kind(value: Any) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        return "empty"
    if is_number(value):
        return "number"
    # A number with a comma is no text: its column is one of numbers, and is refused.
    is_odd = isinstance(value, str) and (value.strip().lower() in MISSING or DECIMAL_COMMA.fullmatch(value))
    return "missing" if is_odd else "other"
