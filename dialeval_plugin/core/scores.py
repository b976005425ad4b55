"""What a scorer gives back: a row an item, or the reason why it has none (`Unscored`), and the table of them (`Scores`)."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .dialogue import Level
from .signature import Signature

Orientation: TypeAlias = Literal["higher", "lower"]

SCHEMA_VERSION = 1


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
    NO_VERDICT = "no_verdict"


NOT_FOR_THIS_DATA = frozenset({Reason.NEEDS_REFERENCES, Reason.SCORES_TURNS_ONLY, Reason.SCORES_DIALOGUES_ONLY})
"""Reasons that lie in the data and in what the scorer is for: nothing has failed."""


@dataclass(frozen=True, slots=True)
class Unscored:
    """A row without a score. It is never 0 and never NaN."""

    reason: Reason
    detail: str = ""


BLANK_RESPONSE = Unscored(Reason.EMPTY_INPUT, "the response has no visible character")
NO_TURN = Unscored(Reason.EMPTY_INPUT, "no visible turn stands before the response")
TOO_FEW_TURNS = Unscored(Reason.EMPTY_INPUT, "fewer than two turns have a visible character")

Row: TypeAlias = Mapping[str, float | None] | Unscored
"""One example's columns by name, or the reason why there are none. A column of a scored row may be None."""


def share_of(value: float, scale: tuple[float, float]) -> float:
    """Return where a value lies between the two ends of a scale: 0 at the lower one, 1 at the higher one.

    Example:
        >>> share_of(4.0, (1.0, 5.0))
        0.75
    """
    low, high = scale
    return (value - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Scores:
    """A table with one row an example, in the order of the examples; the column `main` is *the* score.

    `columns` has one value a row, None in rows that are unscored; `unscored` is by the row's index.
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
        checked = [finite_or_unscored(row) for row in rows]
        unscored = {index: row for index, row in enumerate(checked) if isinstance(row, Unscored)}
        scored = [{} if isinstance(row, Unscored) else row for row in checked]
        for index, row in enumerate(scored):
            if row.get(columns[0]) is None and index not in unscored:
                raise ValueError(f"a scored row needs a value in its main column {columns[0]!r}, got {dict(row)!r}")
        table = {name: tuple(row.get(name) for row in scored) for name in columns}
        return cls(columns[0], table, tuple(ids), unscored, signature, level, orientation)

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


def finite_or_unscored(row: Row) -> Row:
    """Return `row`, or `Unscored(non_finite)` where one of its values is NaN or infinite."""
    # What `filter` drops, None and 0, is finite or no number; every row comes by here twice.
    if isinstance(row, Unscored) or all(map(math.isfinite, filter(None, row.values()))):
        return row
    name, value = next((name, value) for name, value in row.items() if value is not None and not math.isfinite(value))
    return Unscored(Reason.NON_FINITE, f"{name} is {value}")
