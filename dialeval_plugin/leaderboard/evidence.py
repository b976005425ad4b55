"""Scored and rated rows behind the leaderboard: cases to show, the agreement among people, and rank clusters."""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from scipy import stats

from dialeval_plugin.hosts.lm_eval.tasks.ratings import COEFFICIENTS
from dialeval_plugin.reports.correlation_report import human_ceiling
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.levels import RatingTable
from dialeval_plugin.statistics.ranking import holm, rank_clusters, rank_permutation_tests
from dialeval_plugin.statistics.significance import difference_intervals

from .board import Column, Leaderboard, PairTests, Reference, with_detail
from .task_runs import RatedRow

logger = logging.getLogger(__name__)

ONE_PERSON = "one person against the others"
HALF_THE_PEOPLE = "half the people against the rest"
RANKED = "spearman"
"""Coefficient that is tested and has ranks."""
ALPHA = 0.05
MOST_RANKED = 100
"""Evaluators whose pairs are tested in some minutes; the time grows with the fourth power of their number."""
EVEN_CASES, DISPUTED_CASES = 20, 10
"""Cases of one column on the page: evenly spaced rows, and rows on which pairs of evaluators differ most."""
MOST_DISPUTED = 5
"""Number of rows that count as the most disputed ones of a pair of evaluators."""
LOWEST, HIGHEST = 1.0, 5.0
"""Ends of the scale that a case uses to compare scores (SLIDE, Zhao et al. 2024, Table 3)."""


@dataclass(frozen=True)
class EvaluatorRows:
    """Rows of one evaluator on one column."""

    evaluator: str
    column: Column
    rows: tuple[RatedRow, ...]

    @property
    def scored(self) -> list[tuple[float, float]]:
        """Score and rating of the scored rows."""
        return [(row.score, row.rating) for row in self.rows if row.score is not None]


class Cases(NamedTuple):
    """Scores and ratings of some responses or dialogues, for the page; each text is stored once for all qualities."""

    items: list[dict[str, Any]]
    """Texts: id, system, context, response, references, facts; a turn is (speaker, text)."""
    groups: list[dict[str, Any]]
    """One group per column: `name`, `column`, number of rows, evaluators with their lowest and highest score, and cases."""


def cases(evidence: Sequence[EvaluatorRows], board: Leaderboard) -> Cases:
    """Return the cases of every column, chosen among the rows run by most evaluators, in row order.

    They are evenly spaced rows, and as few rows as possible on which pairs of evaluators differ most in percentile. A case has
    the index of its text; the mean human rating as it is, on the scale from 1 to 5, and as percentile; and for each evaluator
    the score, its percentile and the reason for a missing score. Ratings that are all between 1 and 5 are not rescaled.
    """
    items: dict[tuple[str, str, str], int] = {}
    texts: list[dict[str, Any]] = []
    groups = []
    for column in sorted({item.column for item in evidence}):
        of_column = [item for item in evidence if item.column == column]
        rows = {item.evaluator: {row.id: row for row in item.rows} for item in of_column}
        n_evaluators = {id: sum(id in table for table in rows.values()) for table in rows.values() for id in table}
        ids = [id for id, times in n_evaluators.items() if times == max(n_evaluators.values())]
        scores = {name: {id: row.score for id, row in table.items()} for name, table in rows.items()}
        places = {name: _places(of_rows) for name, of_rows in scores.items()}
        ratings = {id: row.rating for table in rows.values() for id, row in table.items()}
        of_people = _places(ratings)
        known = list(ratings.values())
        scale = (LOWEST, HIGHEST) if min(known) >= LOWEST and max(known) <= HIGHEST else _range(known)
        step = max(1.0, len(ids) / EVEN_CASES)
        even = (ids[int(place * step)] for place in range(min(EVEN_CASES, len(ids))))
        chosen = {*even, *_disputed(ids, places, DISPUTED_CASES)}
        examples = []
        for id in (id for id in ids if id in chosen):
            judged = {name: table[id] for name, table in rows.items() if id in table}
            key = (column.dataset, column.level, id)
            if key not in items:
                items[key] = len(texts)
                texts.append(_text_of(next(iter(judged.values()))))
            examples.append(
                {
                    "item": items[key],
                    # Without a scale all ratings are equal.
                    "human": [ratings[id], scale and _stretched(ratings[id], *scale), of_people[id]],
                    "scores": [None if (score := scores[name].get(id)) is None else float(f"{score:.4g}") for name in rows],
                    "places": [places[name].get(id) for name in rows],
                    "why": {place: row.unscored for place, row in enumerate(map(judged.get, rows)) if row and row.unscored},
                }
            )
        groups.append(
            {
                "name": with_detail(board.title(column.dataset), column.detail),
                "column": board.columns.index(column),
                "n_total": len(ids),
                "evaluators": list(rows),
                "ranges": [_range([score for score, _ in item.scored]) for item in of_column],
                "cases": examples,
            }
        )
    return Cases(texts, groups)


def _text_of(row: RatedRow) -> dict[str, Any]:
    document = row.document()
    return {
        "id": row.id,
        "system": document.get("system") or "",
        "context": [_turn(turn) for turn in document.get("context") or document.get("turns") or ()],
        "response": _turn(document["response"]) if document.get("response") else None,
        "references": list(document.get("references") or ()),
        "facts": list(document.get("facts") or ()),
    }


def _disputed(ids: Sequence[str], places: Mapping[str, Mapping[str, int]], n: int) -> list[str]:
    """Return at most `n` rows, chosen greedily: the next row is among the most disputed of the most pairs not yet covered."""
    left: list[set[str]] = []
    for a, b in itertools.combinations(places.values(), 2):
        both = [id for id in ids if id in a and id in b]
        left.append(set(sorted(both, key=lambda id: -abs(a[id] - b[id]))[:MOST_DISPUTED]))
    chosen: list[str] = []
    while len(chosen) < n and (votes := Counter(id for rows in left for id in rows)):
        most = max(votes.values())
        chosen.append(next(id for id in ids if votes[id] == most))
        left = [rows for rows in left if chosen[-1] not in rows]
    return chosen


def _places(values: Mapping[str, float | None]) -> dict[str, int]:
    """Return the percentile of each known value; ties share one, and equal values all get 50."""
    known = {id: value for id, value in values.items() if value is not None}
    ranks = stats.rankdata(list(known.values()))
    return {id: round(100 * (rank - 0.5) / len(known)) for id, rank in zip(known, ranks, strict=True)}


def differences(board: Leaderboard, evidence: Sequence[EvaluatorRows]) -> dict[Column, dict[tuple[str, str], Estimate]]:
    """Return by column the difference of Spearman's rho for each pair of evaluators on the rows scored by both."""
    return {
        column: difference_intervals(scores, RatingTable(ratings=ratings, clusters=dialogues))
        for column, scores, ratings, dialogues in (_comparable(board, evidence) if board.main == RANKED else ())
    }


def _turn(turn: Mapping[str, Any]) -> tuple[str, str]:
    return turn.get("speaker") or "", turn["text"]


def _range(values: Sequence[float]) -> tuple[float, float] | None:
    return (min(values), max(values)) if values and min(values) < max(values) else None


def _stretched(value: float, low: float, high: float) -> float:
    """Map an interval to that from 1 to 5."""
    return LOWEST + (HIGHEST - LOWEST) * (value - low) / (high - low)


def has_references(evidence: Sequence[EvaluatorRows], dataset: str) -> bool | None:
    """Return whether any response of a data set has a reference; None if no row of it was logged."""
    rows = {row.id: row for item in evidence if item.column.dataset == dataset for row in item.rows}
    return any(row.document().get("references") for row in rows.values()) if rows else None


def human_references(evidence: Sequence[EvaluatorRows]) -> list[Reference]:
    """Return the human ceiling of each column whose rows have several raters; see `human_ceiling`."""
    references = []
    for column in sorted({item.column for item in evidence}):
        # A partial run has some of the rows; a task with several seeds has each row several times.
        rows = {row.id: row for item in evidence if item.column == column for row in item.rows}
        raters = [row.ratings for row in rows.values()]
        for name, coefficient in COEFFICIENTS.items():
            for reference, value in zip((ONE_PERSON, HALF_THE_PEOPLE), human_ceiling(raters, coefficient), strict=True):
                if value is not None:
                    references.append(Reference(name=reference, column=column, coefficient=name, value=value))
    return references


def ranked(board: Leaderboard, evidence: Sequence[EvaluatorRows], *, rounds: int = 1000) -> Leaderboard:
    """Return the leaderboard with ranks by Spearman's rho, in columns with rows of at least two evaluators.

    All pairs of a column are tested by `rank_permutation_tests` on the rows scored by both; `ranking.rank_clusters` makes
    clusters of the values shown. If no pair differs after Holm's correction there are no ranks: one cluster of all would
    suggest that all are equally good, although there are too few rows to tell. With many pairs there are more permutations than
    `rounds`, because the smallest possible p-value has to be below 5 % after correction.
    """
    if board.main != RANKED or not rounds:
        return board
    ranks: dict[tuple[str, Column, str], int] = {}
    tests = []
    for column, scores, ratings, dialogues in _comparable(board, evidence):
        if len(scores) > MOST_RANKED:
            logger.warning("%s: the pairs of %d evaluators are too many to test, so there are no ranks.", column, len(scores))
            continue
        n_rounds = max(rounds, math.ceil(2 * math.comb(len(scores), 2) / ALPHA))
        p_values = rank_permutation_tests(scores, ratings, clusters=dialogues, rounds=n_rounds)
        adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
        n_different = sum(p is not None and p <= ALPHA for p in adjusted.values())
        sizes = {"n_rows": len(ratings), "n_dialogues": len(set(dialogues)), "n_pairs": len(p_values)}
        tests.append(PairTests(column=column, coefficient=RANKED, **sizes, n_different=n_different, n_rounds=n_rounds))
        if n_different:
            figures = {name: board.figure(name, column, RANKED) for name in scores}
            values = {name: figure.value if figure else None for name, figure in figures.items()}
            clusters = rank_clusters(values, adjusted, alpha=ALPHA)
            ranks |= {(name, column, RANKED): rank for name, rank in clusters.items() if rank is not None}
    return replace(board.with_ranks(ranks), tests=tuple(tests))


class _Comparable(NamedTuple):
    """Scores of two or more evaluators on a column, and all its ratings and dialogues."""

    column: Column
    scores: dict[str, list[float | None]]
    ratings: list[float]
    dialogues: list[str]


def _comparable(board: Leaderboard, evidence: Sequence[EvaluatorRows]) -> Iterator[_Comparable]:
    """Yield the columns with two evaluators or more, except those of which two runs have different ratings of a row."""
    for column in board.columns:
        # An evaluator without any score, such as a scorer of turns on dialogues, cannot be compared.
        of_column = [item for item in evidence if item.column == column and item.scored]
        if len(of_column) < 2:
            continue
        tables = {item.evaluator: {(row.id, row.seed): row for row in item.rows} for item in of_column}
        rows: dict[tuple[str, int | None], RatedRow] = {}
        pairs = [(rows.setdefault(key, row), row) for table in tables.values() for key, row in table.items()]
        if differing := next(((first, other) for first, other in pairs if first.rating != other.rating), None):
            text = "%s: %r is rated %s in one run and %s in another, so there are no ranks. Run the older one again."
            logger.warning(text, column, differing[0].id, *(row.rating for row in differing))
            continue
        scores = {name: [row.score if (row := table.get(key)) else None for key in rows] for name, table in tables.items()}
        yield _Comparable(column, scores, [row.rating for row in rows.values()], [row.cluster for row in rows.values()])
