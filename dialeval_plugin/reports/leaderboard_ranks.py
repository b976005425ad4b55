"""Rank clusters of the leaderboard: which evaluators a paired test on their common rows tells apart, column by column."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from dialeval_plugin.meta_evaluation.levels import Rated
from dialeval_plugin.meta_evaluation.ranking import rank_metrics
from dialeval_plugin.meta_evaluation.significance import Measure

from .evidence import Evidence
from .leaderboard import Column, Leaderboard
from .lm_eval_files import RatedRow

logger = logging.getLogger(__name__)

COEFFICIENTS = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}
"""A coefficient's name in result files to that in `meta_evaluation`."""


class _Aligned(NamedTuple):
    """Scores of several evaluators, one a row of all that any of them was asked about."""

    scores: dict[str, list[float | None]]
    rated: Rated


def ranked(board: Leaderboard, evidence: Sequence[Evidence], *, rounds: int = 1000, seed: int = 0) -> Leaderboard:
    """Return the leaderboard with ranks of its main coefficient, in the columns that have rows of two evaluators or more.

    Tests and clusters: see `meta_evaluation.ranking.rank_metrics`. Each pair is tested on the rows that both have scored.

    Args:
        board: the leaderboard.
        evidence: rows of its cells.
        rounds: permutations of each test.
        seed: of the permutations.
    """
    if board.main not in COEFFICIENTS or not rounds:
        return board
    ranks: dict[tuple[str, Column, str], int] = {}
    for column in board.columns:
        of_column = [item for item in evidence if item.column == column]
        aligned = _align(of_column) if len(of_column) > 1 else None
        if aligned is None:
            continue
        found = rank_metrics(aligned.scores, aligned.rated, Measure(COEFFICIENTS[board.main]), rounds=rounds, seed=seed)
        ranks |= {(name, column, board.main): rank for name, rank in found.ranks.items() if rank is not None}
    return board.with_ranks(ranks)


def _align(evidence: Sequence[Evidence]) -> _Aligned | None:
    """Put the evaluators' rows side by side; None where two runs do not agree on how people rated a row."""
    tables = {item.evaluator: {_key(row): row for row in item.rows} for item in evidence}
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
    ratings, clusters = [row.rating for row in rows.values()], [row.cluster for row in rows.values()]
    return _Aligned(scores, Rated(scores=[], ratings=ratings, clusters=clusters))


def _key(row: RatedRow) -> tuple[str, int | None]:
    return row.id, row.seed
