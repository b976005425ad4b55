"""Rank clusters of the leaderboard: which evaluators a paired test on their common rows tells apart, column by column."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import replace

from dialeval_plugin.statistics.ranking import holm, rank_clusters, rank_permutation_tests

from .board import Column, Leaderboard, PairTests
from .evidence import Evidence
from .result_files import RatedRow

logger = logging.getLogger(__name__)

COEFFICIENT = "spearman"
"""The coefficient that is tested, and for which there are ranks."""
ALPHA = 0.05


def ranked(board: Leaderboard, evidence: Sequence[Evidence], *, rounds: int = 1000, seed: int = 0) -> Leaderboard:
    """Return the leaderboard with ranks of Spearman's rho, in the columns that have rows of two evaluators or more.

    Tests: `rank_permutation_tests` of all pairs of a column, each on the rows that both have scored; clusters:
    `ranking.rank_clusters` over the values that are shown. Where no pair differs after Holm's correction there are no ranks: a
    cluster that holds everybody would say that all are equally good, and the tests say only that the rows are too few.
    Of many pairs there are more permutations than `rounds`, for the smallest possible p-value has to be below 5 % corrected.
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
        scores, ratings, dialogues = aligned
        found = rank_permutation_tests(scores, ratings, clusters=dialogues, rounds=n_rounds, seed=seed)
        adjusted = dict(zip(found, holm(list(found.values())), strict=True))
        n_different = sum(p is not None and p <= ALPHA for p in adjusted.values())
        tests.append(
            PairTests(
                column=column,
                coefficient=COEFFICIENT,
                n_rows=len(ratings),
                n_dialogues=len(set(dialogues)),
                n_pairs=len(found),
                n_different=n_different,
                n_rounds=n_rounds,
            )
        )
        if n_different:
            figures = {name: board.figure(name, column, COEFFICIENT) for name in scores}
            values = {name: figure.value if figure else None for name, figure in figures.items()}
            clusters = rank_clusters(values, adjusted, alpha=ALPHA)
            ranks |= {(name, column, COEFFICIENT): rank for name, rank in clusters.items() if rank is not None}
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
