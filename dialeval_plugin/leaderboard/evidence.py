"""What the cells of the leaderboard rest on, the scored and rated rows of runs, and what can be said of them in a column.

Cases to look at, how far people agree among themselves, and rank clusters: which evaluators a paired test on their common rows
tells apart.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialeval_plugin.judgement_tasks.ratings import COEFFICIENTS
from dialeval_plugin.reports.correlation_report import human_ceiling
from dialeval_plugin.statistics.ranking import holm, rank_clusters, rank_permutation_tests

from .board import Column, Leaderboard, PairTests, Reference
from .task_runs import RatedRow

logger = logging.getLogger(__name__)

ONE_PERSON = "one person against the others"
HALF_THE_PEOPLE = "half the people against the rest"
RANKED = "spearman"
"""The coefficient that is tested, and for which there are ranks."""
ALPHA = 0.05
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


def human_references(evidence: Sequence[Evidence]) -> list[Reference]:
    """Return the human ceiling of each column whose rows have several raters; see `human_ceiling`."""
    found = []
    for column in sorted({item.column for item in evidence}):
        # A partial run has a part of the rows; a task with several seeds has each row several times.
        rows = {row.id: row for item in evidence if item.column == column for row in item.rows}
        raters = [row.ratings for row in rows.values()]
        for name, coefficient in COEFFICIENTS.items():
            for reference, value in zip((ONE_PERSON, HALF_THE_PEOPLE), human_ceiling(raters, coefficient), strict=True):
                if value is not None:
                    found.append(Reference(name=reference, column=column, coefficient=name, value=value))
    return found


def ranked(board: Leaderboard, evidence: Sequence[Evidence], *, rounds: int = 1000, seed: int = 0) -> Leaderboard:
    """Return the leaderboard with ranks of Spearman's rho, in the columns that have rows of two evaluators or more.

    Tests: `rank_permutation_tests` of all pairs of a column, each on the rows that both have scored; clusters:
    `ranking.rank_clusters` over the values that are shown. Where no pair differs after Holm's correction there are no ranks: a
    cluster that holds everybody would say that all are equally good, and the tests say only that the rows are too few.
    Of many pairs there are more permutations than `rounds`, for the smallest possible p-value has to be below 5 % corrected.
    """
    if board.main != RANKED or not rounds:
        return board
    ranks: dict[tuple[str, Column, str], int] = {}
    tests = []
    for column in board.columns:
        # Who has scored nothing, as a scorer of turns on dialogues, has nothing to compare.
        of_column = [item for item in evidence if item.column == column and item.scored]
        aligned = _align(of_column) if len(of_column) > 1 else None
        if aligned is None:
            continue
        n_rounds = max(rounds, math.ceil(2 * math.comb(len(of_column), 2) / ALPHA))
        scores, ratings, dialogues = aligned
        found = rank_permutation_tests(scores, ratings, clusters=dialogues, rounds=n_rounds, seed=seed)
        adjusted = dict(zip(found, holm(list(found.values())), strict=True))
        n_different = sum(p is not None and p <= ALPHA for p in adjusted.values())
        tests.append(
            PairTests(
                column=column,
                coefficient=RANKED,
                n_rows=len(ratings),
                n_dialogues=len(set(dialogues)),
                n_pairs=len(found),
                n_different=n_different,
                n_rounds=n_rounds,
            )
        )
        if n_different:
            figures = {name: board.figure(name, column, RANKED) for name in scores}
            values = {name: figure.value if figure else None for name, figure in figures.items()}
            clusters = rank_clusters(values, adjusted, alpha=ALPHA)
            ranks |= {(name, column, RANKED): rank for name, rank in clusters.items() if rank is not None}
    return replace(board.with_ranks(ranks), tests=tuple(tests))


def _align(evidence: Sequence[Evidence]) -> tuple[dict[str, list[float | None]], list[float], list[str]] | None:
    """Each evaluator's scores, ratings and dialogues of all rows; None where two runs do not agree on how people rated one."""
    tables = {item.evaluator: {(row.id, row.seed): row for row in item.rows} for item in evidence}
    rows: dict[tuple[str, int | None], RatedRow] = {}
    for table in tables.values():
        for key, row in table.items():
            first = rows.setdefault(key, row)
            if first.rating != row.rating:
                logger.warning(
                    "%s: %r is rated %s in one run and %s in another, so there are no ranks. Run the older one again.",
                    evidence[0].column,
                    row.id,
                    first.rating,
                    row.rating,
                )
                return None
    scores = {name: [found.score if (found := table.get(key)) else None for key in rows] for name, table in tables.items()}
    return scores, [row.rating for row in rows.values()], [row.cluster for row in rows.values()]
