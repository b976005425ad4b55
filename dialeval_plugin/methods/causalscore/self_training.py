"""Algorithm 1: the unconditional classifier, then the conditional one in rounds, with pseudo-labels of unlabelled dialogues."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from safetensors.torch import load_model
from sentence_transformers import CrossEncoder

from dialeval_plugin.corpora.readers.cgdialog import CausePair
from dialeval_plugin.training.run import TrainingRun

from .aggregation import FloatArray, IntArray, dependent_turns
from .classifiers import IndependenceClassifier, row_probabilities, turn_probabilities
from .data import (
    CANDIDATES,
    Data,
    LabelledRow,
    OtherUtterances,
    UnlabelledResponse,
    conditional_rows,
    strongest,
    unconditional_rows,
)
from .model import CausalModelConfig, classifier_of
from .recipes import CausalRecipe, Filter
from .stages import BEST, measure_rows, train_stage

CONFIDENCE = 0.9
"""A pseudo-label is taken above it (section 3.2)."""
CODE_CANDIDATES, CODE_LEAST = 5, 3
"""The published filter looks for causes among the last five turns, and uses a response if more than two of them qualify."""


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


@dataclass(frozen=True, slots=True)
class SelfTraining:
    """The stages of one training: rows of each, and what they gave."""

    run: TrainingRun
    recipe: CausalRecipe
    data: Data
    config: CausalModelConfig

    def train_unconditional(self, encoder: CrossEncoder) -> dict[str, Any]:
        """Return how many rows there were, and the figures."""
        seed = self.run.options.seed
        rows, validation, evaluation = (
            unconditional_rows(pairs, OtherUtterances(pairs), seed=seed) if pairs else [] for pairs in self.data[:3]
        )
        train_stage(encoder, "unconditional", self.recipe.n_epochs, rows, validation, self.recipe, self.run)
        return {"n_rows": len(rows), **self._figures(encoder, validation, evaluation)}

    def train_conditional(self, encoder: CrossEncoder, unconditional: IndependenceClassifier) -> list[dict[str, Any]]:
        """Algorithm 1; returns counts and figures of round 0, the labelled rows alone, and of each self-training round."""
        recipe, others = self.recipe, OtherUtterances(self.data.training)
        labelled, validation, evaluation = (
            self._conditional_rows(pairs, unconditional) if pairs else [] for pairs in self.data[:3]
        )
        if recipe.conditional_from == "unconditional":
            encoder.load_state_dict(unconditional.encoder.state_dict())
        pool = None
        if recipe.n_rounds and self.data.unlabelled:
            asked = [(item.context, item.response) for item in self.data.unlabelled]
            pool = Pool(self.data.unlabelled, turn_probabilities(unconditional, asked))
        rounds: list[dict[str, Any]] = []
        fresh: list[LabelledRow] = []
        rows, n_epochs = labelled, recipe.n_epochs
        while True:
            name = f"round_{len(rounds)}"
            train_stage(encoder, name, n_epochs, rows, validation, recipe, self.run)
            figures = self._figures(encoder, validation, evaluation)
            rounds.append({"round": len(rounds), "n_rows": len(rows), "n_pseudo": len(fresh), **figures})
            if pool is None or len(rounds) > recipe.n_rounds or self.best(rounds) < len(rounds) - 1:
                break
            # A round goes on from the weights of the one before. Its pseudo-labels are kept: a resumed run has the same ones.
            classifier, seed = classifier_of(encoder, self.config), self.run.options.seed + len(rounds)
            make = partial(choose, pool, classifier, others, filter=recipe.filter, seed=seed)
            chosen = self.run.kept(f"round_{len(rounds)}_pseudo", make)
            known = set(rows) if recipe.grows else set()
            fresh = [row for texts, label in chosen if (row := LabelledRow(tuple(texts), label)) not in known]
            if not fresh:
                break
            rows, n_epochs = [*(rows if recipe.grows else labelled), *fresh], recipe.n_round_epochs
        load_model(encoder, self.run.stage_weights(f"round_{self.best(rounds)}"))
        return rounds

    def best(self, rounds: Sequence[dict[str, Any]]) -> int:
        """The round whose weights are taken: the first of the best ones, or the last."""
        if not self.recipe.keep_best:
            return len(rounds) - 1
        return max(range(len(rounds)), key=lambda number: rounds[number]["validation"][BEST])

    def _conditional_rows(self, pairs: Sequence[CausePair], unconditional: IndependenceClassifier) -> list[LabelledRow]:
        contexts = [([turn.text for turn in pair.context], pair.response.text) for pair in pairs]
        chances = turn_probabilities(unconditional, contexts)
        labels, seed = self.config.labels, self.run.options.seed
        return conditional_rows(pairs, chances, OtherUtterances(pairs), labels=labels, seed=seed)

    def _figures(
        self, encoder: CrossEncoder, validation: Sequence[LabelledRow], evaluation: Sequence[LabelledRow]
    ) -> dict[str, Any]:
        classifier = classifier_of(encoder, self.config)
        figures = {"validation": measure_rows(classifier, validation)}
        return {**figures, "evaluation": measure_rows(classifier, evaluation)} if evaluation else figures
