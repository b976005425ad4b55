"""Algorithm 1: the unconditional classifier, then the conditional one and its rounds of self-training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from safetensors.torch import load_model
from sentence_transformers import CrossEncoder

from dialeval_plugin.training.run import TrainingRun

from .classifiers import IndependenceClassifier
from .data import CausePairLike, LabelledRow, OtherUtterances, conditional_rows, unconditional_rows
from .model import CausalModelConfig, classifier_of
from .preparation import Data
from .recipes import CausalRecipe
from .self_training import build_pool, choose, turn_probabilities
from .stages import BEST, measure_rows, train_stage


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
        pool = build_pool(self.data.unlabelled, unconditional) if recipe.n_rounds and self.data.unlabelled else None
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

    def _conditional_rows(self, pairs: Sequence[CausePairLike], unconditional: IndependenceClassifier) -> list[LabelledRow]:
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
