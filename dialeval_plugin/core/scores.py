"""Results of a scorer: one row per item, or the reason for a missing score (`Unscored`), and their table (`Scores`)."""

from __future__ import annotations

import enum
import importlib.util
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dialeval_plugin.core.resources import optional

from .dialogue import Example, Item, Level, Turn, context_turns
from .signature import Signature

if TYPE_CHECKING:
    import pandas

Orientation: TypeAlias = Literal["higher", "lower"]

SCHEMA_VERSION = 1
SHA256 = "sha256"
"""Field of the meta file with the hash of the file of scores."""


def meta_file(output: Path) -> Path:
    """Return the path of the meta file of the scores `output`."""
    return output.with_name(output.name + ".meta.json")


class Reason(str, enum.Enum):
    """Reasons of a missing score."""

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
"""Reasons that are not failures: the scorer is not for these data."""


@dataclass(frozen=True, slots=True)
class Unscored:
    """A row without a score. It is never 0 and never NaN."""

    reason: Reason
    detail: str = ""


BLANK_RESPONSE = Unscored(Reason.EMPTY_INPUT, "the response has no visible character")
NO_TURN = Unscored(Reason.EMPTY_INPUT, "no visible turn stands before the response")
TOO_FEW_TURNS = Unscored(Reason.EMPTY_INPUT, "fewer than two turns have a visible character")

Row: TypeAlias = Mapping[str, float | None] | Unscored
"""One example's columns by name, or the reason for a missing score. A column of a scored row may be None."""


def share_of(value: float, scale: tuple[float, float]) -> float:
    """Return the position of a value on a scale: 0 at the lower end, 1 at the higher end.

    Example:
        >>> share_of(4.0, (1.0, 5.0))
        0.75
    """
    low, high = scale
    return (value - low) / (high - low)


WHY_UNSCORED = ("unscored", "detail")
"""Fields of a row with the reason for a missing score."""
JUDGED_BY = "judged_by"
"""Field of a combined scorer's row: the column that gave its score."""
IN_SCOPE, OUT_OF_SCOPE = "in_scope", "out_of_scope"
"""Names of the column, 1 or 0, and of the field of a row with the reason for 0."""


def kind_of(reason: str) -> str:
    """Return the kind of a reason for being out of scope: the part before the bracket."""
    return reason.partition(" (")[0]


class PrintedResult:
    """Result that an interpreter and a notebook show as `str` does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, repr=False)
class Scores:
    """A table with one row per example, in order, and the score in the column `main`.

    `columns` have one value per row, None in unscored rows. `unscored`, and `out_of_scope` with the reasons why `in_scope` is
    0, are indexed by row. `items` are empty if unknown. For `judges` and `has_one_scale` see `Scorer`. The table has a length,
    iterates over `rows()`, and is shown as a table in a notebook.
    """

    main: str
    columns: Mapping[str, tuple[float | None, ...]]
    ids: tuple[str, ...]
    unscored: Mapping[int, Unscored]
    signature: Signature
    level: Level = "turn"
    orientation: Orientation = "higher"
    items: tuple[Item, ...] = field(default=(), compare=False)
    out_of_scope: Mapping[int, str] = field(default_factory=dict)
    judges: tuple[str, ...] = ()
    has_one_scale: bool = True

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Row],
        items: Sequence[Item] | Sequence[str],
        columns: Sequence[str],
        signature: Signature,
        level: Level = "turn",
        orientation: Orientation = "higher",
    ) -> Scores:
        """Build the table; the first of `columns` is the main one. A row with a NaN or infinite value becomes unscored.

        `items` may be ids.
        """
        if len(rows) != len(items):
            raise ValueError(f"expected one row for each of {len(items)} items, got {len(rows)}")
        checked = [finite_or_unscored(row) for row in rows]
        unscored = {index: row for index, row in enumerate(checked) if isinstance(row, Unscored)}
        scored = [{} if isinstance(row, Unscored) else row for row in checked]
        for index, row in enumerate(scored):
            if row.get(columns[0]) is None and index not in unscored:
                raise ValueError(f"a scored row needs a value in its main column {columns[0]!r}, got {dict(row)!r}")
        table = {name: tuple(row.get(name) for row in scored) for name in columns}
        ids = tuple(item if isinstance(item, str) else item.id for item in items)
        known = tuple(item for item in items if not isinstance(item, str))
        return cls(columns[0], table, ids, unscored, signature, level, orientation, known)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.rows()

    def __repr__(self) -> str:
        means = {"": self.mean()} if self.has_one_scale else {f" of {name}": self.mean(name) for name in self.judges}
        text = ", ".join(f"mean {mean:.4f}{of}" for of, mean in means.items() if mean is not None) or "no score"
        return f"Scores({self.main}: {text}, {self.n_scored} of {self.n_total} scored)"

    def _repr_html_(self) -> str:
        rows = self.to_pandas().to_html(max_rows=20, border=0) if importlib.util.find_spec("pandas") else ""
        return f"<p>{escape(repr(self))}</p>{rows}"

    def to_pandas(self, *, with_text: bool = False) -> pandas.DataFrame:
        """Return a data frame of `rows`."""
        rows = list(self.rows(with_text=with_text))
        return optional("pandas", "to_pandas").DataFrame(rows, columns=None if rows else ["id", *self.columns])

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
        """Number of rows with a score."""
        return self.n_total - self.n_unscored

    @property
    def n_unscored(self) -> int:
        """Number of rows without a score."""
        return len(self.unscored)

    @property
    def unscored_by_reason(self) -> dict[str, int]:
        """Number of rows by reason, in alphabetical order."""
        return dict(sorted(Counter(item.reason.value for item in self.unscored.values()).items()))

    @property
    def out_of_scope_by_kind(self) -> dict[str, int]:
        """Number of rows by kind of reason, in alphabetical order."""
        return dict(sorted(Counter(map(kind_of, self.out_of_scope.values())).items()))

    def judged_by(self, index: int) -> str | None:
        """Return the column that gave a row's score; None for an unscored row, or a scorer without parts."""
        return next((name for name in self.judges if self.columns[name][index] is not None), None)

    def mean(self, column: str | None = None) -> float | None:
        """Return the mean of a column over rows with a value; None if there are none, or no common scale."""
        if not self.has_one_scale and column in {None, self.main}:
            return None
        scored = [value for value in self.columns[column or self.main] if value is not None]
        return math.fsum(scored) / len(scored) if scored else None

    def rows(self, *, with_text: bool = False) -> Iterator[dict[str, Any]]:
        """Yield one JSON-serialisable object per row, see `RowMaker`."""
        return RowMaker(with_text=with_text).rows(self)


def conversation_id(item: Item) -> str | None:
    """Return the id of an item's conversation; None if a response has none."""
    id = item.origin.conversation if item.origin is not None else None
    return None if isinstance(item, Example) and id == item.id else id


class RowMaker:
    """Makes rows of scores for people and files, block after block.

    A row has `id`; `conversation`, `message` (its number), `role`, `source` and kept fields, if known; the columns; `judged_by`
    from a combined scorer; `out_of_scope`, the reason; `unscored` and `detail` if there is no score. With text it also has a
    response's `text`, and `preceding`, the turns since the previous row of its conversation (for a single response all turns),
    so that the rows of a conversation hold it once.
    """

    def __init__(self, *, with_text: bool = False) -> None:
        self._with_text = with_text
        self._conversation: str | None = None
        self._said: tuple[Turn, ...] = ()

    def rows(self, scores: Scores) -> Iterator[dict[str, Any]]:
        """Yield the rows of the next scores."""
        for index, id in enumerate(scores.ids):
            row: dict[str, Any] = {"id": id}
            if scores.items:
                row |= self._about(scores.items[index])
            row |= {name: values[index] for name, values in scores.columns.items()}
            if (judge := scores.judged_by(index)) is not None:
                row[JUDGED_BY] = judge
            if index in scores.out_of_scope:
                row[OUT_OF_SCOPE] = scores.out_of_scope[index]
            if (missing := scores.unscored.get(index)) is not None:
                row |= zip(WHY_UNSCORED, (missing.reason.value, missing.detail), strict=True)
            yield row

    def _about(self, item: Item) -> dict[str, Any]:
        origin = item.origin
        response = item.response if isinstance(item, Example) else None
        known = {
            "conversation": conversation_id(item),
            "message": origin and origin.message,
            "role": response and response.speaker,
            "source": origin and origin.source,
            **{name: _plain(value) for name, value in (origin.kept if origin else ())},
        }
        about = {name: value for name, value in known.items() if value is not None and value != ""}
        if self._with_text:
            turns, said = context_turns(item), self._said
            # A branch, and a later row of a log that repeats the history, begin with the first turn.
            conversation = item.id.rpartition(":")[0] if conversation_id(item) is not None else None
            is_same = response is not None and conversation is not None and conversation == self._conversation
            is_next = is_same and turns[: len(said)] == said
            about["preceding"] = [{"role": turn.speaker, "text": turn.text} for turn in turns[len(said) if is_next else 0 :]]
            if response is not None:
                about["text"], turns = response.text, (*turns, response)
            self._conversation, self._said = conversation, turns
        return about


def _plain(value: object) -> object:
    """Return a source's value, as text if JSON cannot hold it, such as a date."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return str(value)
    return value


def finite_or_unscored(row: Row) -> Row:
    """Return `row`, or `Unscored(non_finite)` if one of its values is NaN or infinite."""
    # `filter` drops None and 0.
    if isinstance(row, Unscored) or all(map(math.isfinite, filter(None, row.values()))):
        return row
    name, value = next((name, value) for name, value in row.items() if value is not None and not math.isfinite(value))
    return Unscored(Reason.NON_FINITE, f"{name} is {value}")
