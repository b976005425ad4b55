"""What a cell of the leaderboard rests on: the scored and rated rows of a run, and the cases that are shown from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .board import Column
from .result_files import RatedRow

MAX_CASES = 30
"""Cases of one column on the page; of more rows, evenly spaced ones are taken."""
LOWEST, HIGHEST = 1.0, 5.0
"""Ends of the scale on which a case lays scores side by side (SLIDE, Zhao et al. 2024, Table 3)."""


@dataclass(frozen=True)
class Evidence:
    """The rows of one evaluator on one column."""

    evaluator: str
    column: Column
    rows: tuple[RatedRow, ...]

    @property
    def scored(self) -> list[tuple[float, float]]:
        """Score and rating of the rows that have a score."""
        return [(row.score, row.rating) for row in self.rows if row.score is not None]


def cases(evidence: Sequence[Evidence], *, limit: int = MAX_CASES) -> list[dict[str, Any]]:
    """Return the cases of every column for the page: evenly spaced ones of the rows that most evaluators were asked about.

    Each score is shown as it is and stretched linearly to 1 to 5, from the lowest to the highest score that its evaluator
    gave in the column. Ratings that all lie between 1 and 5 stay as they are; others are stretched likewise.
    """
    groups = []
    for column in sorted({item.column for item in evidence}):
        of_column = [item for item in evidence if item.column == column]
        rows = {item.evaluator: {row.id: row for row in item.rows} for item in of_column}
        asked = {id: sum(id in found for found in rows.values()) for found in rows.values() for id in found}
        ids = [id for id, times in asked.items() if times == max(asked.values())]
        step = max(1.0, len(ids) / limit)
        chosen = [ids[int(place * step)] for place in range(min(limit, len(ids)))]
        ranges = {item.evaluator: _range([score for score, _ in item.scored]) for item in of_column}
        ratings = [row.rating for item in of_column for row in item.rows]
        scale = (LOWEST, HIGHEST) if min(ratings) >= LOWEST and max(ratings) <= HIGHEST else _range(ratings)
        shown = [_case(id, rows, ranges, scale) for id in chosen]
        groups.append({"name": str(column), "n_total": len(ids), "cases": shown})
    return groups


def _case(
    id: str,
    rows: Mapping[str, Mapping[str, RatedRow]],
    ranges: Mapping[str, tuple[float, float] | None],
    scale: tuple[float, float] | None,
) -> dict[str, Any]:
    judged = {evaluator: found[id] for evaluator, found in rows.items() if id in found}
    first = next(iter(judged.values()))
    document = first.document()
    return {
        "id": id,
        "system": document.get("system") or "",
        "context": [_turn(turn) for turn in document.get("context") or document.get("turns") or ()],
        "response": _turn(document["response"]) if document.get("response") else None,
        "references": list(document.get("references") or ()),
        "facts": list(document.get("facts") or ()),
        "human": {"value": first.rating, "rescaled": _stretch(first.rating, scale), "reason": ""},
        "judgements": [
            {
                "evaluator": evaluator,
                "value": row.score,
                "rescaled": None if row.score is None else _stretch(row.score, ranges[evaluator]),
                "reason": row.unscored or "",
            }
            for evaluator, row in judged.items()
        ],
    }


def _turn(turn: Mapping[str, Any]) -> tuple[str, str]:
    return turn.get("speaker") or "", turn["text"]


def _range(values: Sequence[float]) -> tuple[float, float] | None:
    return (min(values), max(values)) if values and min(values) < max(values) else None


def _stretch(value: float, ends: tuple[float, float] | None) -> float | None:
    """Map `ends` to 1 and 5; None where all values are the same, for then no scale is known."""
    if ends is None:
        return None
    low, high = ends
    return LOWEST + (HIGHEST - LOWEST) * (value - low) / (high - low)
