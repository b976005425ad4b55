"""The E-step of Algorithm 1: pseudo-labels for unlabelled dialogues, from the present conditional classifier."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.corpora.identity import turns_key

from .aggregation import FloatArray, IntArray, dependent_turns
from .classifiers import IndependenceClassifier
from .data import LabelledRow, OtherUtterances, strongest
from .recipes import Filter

CONFIDENCE = 0.9
"""A pseudo-label is taken above it (section 3.2)."""
CANDIDATES = (2, 3)
"""A candidate cause is c_{t-2} or c_{t-3}."""
HORIZON = 8
"""Turns before the response that are looked at: candidates, conditions and pseudo-negatives lie near it."""
CODE_CANDIDATES, CODE_LEAST = 5, 3
"""The published filter looks for causes among the last five turns, and uses a response if more than two of them qualify."""


@dataclass(frozen=True, slots=True)
class UnlabelledResponse:
    """A turn of an unlabelled dialogue after the turns before it."""

    dialogue: str
    context: tuple[str, ...]
    """At most `HORIZON` turns, oldest first."""
    response: str


class Pool(NamedTuple):
    """Unlabelled responses and what the unconditional classifier, which does not change, says of them."""

    responses: list[UnlabelledResponse]
    probabilities: list[FloatArray]
    """For each response, of each turn of its context."""


class Candidate(NamedTuple):
    """A pair of turns that the conditional classifier is asked about."""

    response: int
    """Number of the response in the pool."""
    cause: int
    condition: int


def unlabelled_responses(
    dialogues: Sequence[Sequence[Turn]], *, most: int | None = None, seed: int = 0
) -> list[UnlabelledResponse]:
    """Return every turn that has a candidate cause, with the turns before it; of more than `most`, a seeded sample."""
    responses = [
        UnlabelledResponse(
            turns_key(turns), tuple(turn.text for turn in turns[max(0, place - HORIZON) : place]), turns[place].text
        )
        for turns in dialogues
        for place in range(min(CANDIDATES), len(turns))
    ]
    if most is None or most >= len(responses):
        return responses
    chosen = sorted(random.Random(seed).sample(range(len(responses)), most))
    return [responses[index] for index in chosen]


def build_pool(responses: Sequence[UnlabelledResponse], classifier: IndependenceClassifier) -> Pool:
    """Ask the unconditional classifier about every turn of every context."""
    return Pool(list(responses), turn_probabilities(classifier, [(item.context, item.response) for item in responses]))


def turn_probabilities(classifier: IndependenceClassifier, items: Sequence[tuple[Sequence[str], str]]) -> list[FloatArray]:
    """Return the unconditional probabilities of the turns of each (context, response)."""
    found = row_probabilities(classifier, [(text, response) for context, response in items for text in context])
    return np.split(found, np.cumsum([len(context) for context, _ in items])[:-1]) if items else []


def row_probabilities(classifier: IndependenceClassifier, rows: Sequence[Sequence[str]]) -> FloatArray:
    """Return a classifier's probabilities of rows of texts, all of one width."""
    if not rows:
        return np.empty(0)
    numbers: dict[str, int] = {}
    indices = np.array([[numbers.setdefault(text, len(numbers)) for text in row] for row in rows], dtype=np.int64)
    return classifier.probabilities(list(numbers), indices).dependent


def choose(
    pool: Pool, classifier: IndependenceClassifier, others: OtherUtterances, *, filter: Filter, seed: int
) -> list[LabelledRow]:
    """Return pseudo-labelled rows (candidate cause, condition, response), as many of each label.

    Filter "paper": a cause is c_{t-2} or c_{t-3}, dependent, with p > 0.9 on condition of the strongest other dependent turn.
    Filter "code": a cause is one of the last five turns, dependent, with p > 0.5 on condition of each other dependent turn,
    and a response counts only where more than two causes are found. A negative has the same condition and response, and
    for a cause a turn that is not dependent, or an utterance of another dialogue where all are.
    """
    candidates = [
        candidate
        for number, chances in enumerate(pool.probabilities)
        for candidate in (_paper_candidates(number, chances) if filter == "paper" else _code_candidates(number, chances))
    ]
    if not candidates:
        return []
    chances = row_probabilities(classifier, [_texts(pool, candidate) for candidate in candidates])
    sure = [candidate for candidate, chance in zip(candidates, chances, strict=True) if chance > CONFIDENCE]
    chosen = sure if filter == "paper" else _qualified(candidates, chances)
    rows = []
    for candidate in chosen:
        generator = random.Random(f"{seed} pseudo {candidate}")
        cause, condition, response = _texts(pool, candidate)
        rows += [
            LabelledRow((cause, condition, response), 1),
            LabelledRow((_innocent(pool, candidate, others, generator), condition, response), 0),
        ]
    return rows


def _texts(pool: Pool, candidate: Candidate) -> tuple[str, str, str]:
    item = pool.responses[candidate.response]
    return item.context[candidate.cause], item.context[candidate.condition], item.response


def _paper_candidates(number: int, chances: FloatArray) -> list[Candidate]:
    dependent = dependent_turns(chances).tolist()
    found = []
    for distance in CANDIDATES:
        cause = len(chances) - distance
        conditions = [place for place in dependent if place != cause]
        if cause in dependent and conditions:
            found.append(Candidate(number, cause, strongest(conditions, chances)))
    return found


def _code_candidates(number: int, chances: FloatArray) -> list[Candidate]:
    dependent: IntArray = dependent_turns(chances)
    if len(dependent) < CODE_LEAST:
        return []
    causes = dependent[dependent >= len(chances) - CODE_CANDIDATES].tolist()
    return [Candidate(number, cause, place) for cause in causes for place in dependent.tolist() if place != cause]


def _qualified(candidates: Sequence[Candidate], chances: FloatArray) -> list[Candidate]:
    """Of each cause that holds on every condition, the row with its surest condition."""
    by_cause: dict[tuple[int, int], list[tuple[float, Candidate]]] = {}
    for candidate, chance in zip(candidates, chances.tolist(), strict=True):
        by_cause.setdefault((candidate.response, candidate.cause), []).append((chance, candidate))
    holding = {key: max(found)[1] for key, found in by_cause.items() if min(found)[0] > 0.5}
    counts = Counter(response for response, _ in holding)
    return [candidate for candidate in holding.values() if counts[candidate.response] >= CODE_LEAST]


def _innocent(pool: Pool, candidate: Candidate, others: OtherUtterances, generator: random.Random) -> str:
    item, chances = pool.responses[candidate.response], pool.probabilities[candidate.response]
    choices = [place for place in range(len(chances)) if chances[place] <= 0.5]
    return item.context[generator.choice(choices)] if choices else others.draw(item.dialogue, generator)
