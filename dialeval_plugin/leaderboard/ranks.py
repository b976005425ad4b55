"""Rank clusters of the leaderboard: which evaluators a paired test on their common rows tells apart, column by column."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from dialeval_plugin.statistics.comparison.rank_permutation import rank_permutation_tests
from dialeval_plugin.statistics.comparison.ranking import holm, rank_clusters

from .board import Column, Leaderboard, PairTests
from .evidence import Evidence
from .result_files import RatedRow

logger = logging.getLogger(__name__)

COEFFICIENT = "spearman"
"""The coefficient that is tested, and for which there are ranks."""
ALPHA = 0.05


class _Aligned(NamedTuple):
    """Scores of several evaluators, one a row of all that any of them was asked about."""

    scores: dict[str, list[float | None]]
    ratings: list[float]
    clusters: list[str]


def ranked(board: Leaderboard, evidence: Sequence[Evidence], *, rounds: int = 1000, seed: int = 0) -> Leaderboard:
    """Return the leaderboard with ranks of Spearman's rho, in the columns that have rows of two evaluators or more.

    Tests: `rank_permutation_tests` of all pairs of a column, each on the rows that both have scored; clusters:
    `ranking.rank_clusters` over the values that are shown. Where no pair differs after Holm's correction there are no ranks: a
    cluster that holds everybody would say that all are equally good, and the tests say only that the rows are too few.

    Args:
        board: the leaderboard.
        evidence: rows of its cells.
        rounds: least permutations of each test; of many pairs there are more, because after Holm's correction the smallest
            possible p-value has to be below 5 %.
        seed: of the permutations.
    """
    if board.main != COEFFICIENT or not rounds:
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
        found = rank_permutation_tests(aligned.scores, aligned.ratings, clusters=aligned.clusters, rounds=n_rounds, seed=seed)
        adjusted = dict(zip(found, holm(list(found.values())), strict=True))
        n_different = sum(p is not None and p <= ALPHA for p in adjusted.values())
        tests.append(
            PairTests(
                column=column,
                coefficient=COEFFICIENT,
                n_rows=len(aligned.ratings),
                n_dialogues=len(set(aligned.clusters)),
                n_pairs=len(found),
                n_different=n_different,
                n_rounds=n_rounds,
            )
        )
        if n_different:
            clusters = rank_clusters(_values(board, column, aligned.scores), adjusted, alpha=ALPHA)
            ranks |= {(name, column, COEFFICIENT): rank for name, rank in clusters.items() if rank is not None}
    return replace(board.with_ranks(ranks), tests=tuple(tests))


def _values(board: Leaderboard, column: Column, names: Iterable[str]) -> dict[str, float | None]:
    cells = {name: board.cell(name, column) for name in names}
    return {name: cell.figures[COEFFICIENT].value if cell else None for name, cell in cells.items()}


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
    return _Aligned(scores, [row.rating for row in rows.values()], [row.cluster for row in rows.values()])


def _key(row: RatedRow) -> tuple[str, int | None]:
    return row.id, row.seed
