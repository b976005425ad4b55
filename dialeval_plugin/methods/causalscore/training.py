"""Training the independence classifiers end to end: Algorithm 1's stages and rounds, one folder. A killed run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from safetensors.torch import load_model
from sentence_transformers import CrossEncoder

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.training.options import TrainingOptions, choose_recipe
from dialeval_plugin.training.run import TrainingResult, TrainingRun, data_hash

from .classifiers import IndependenceClassifier, new_classifier
from .data import CausePairLike, LabelledRow, OtherUtterances, conditional_rows, pair_hash, unconditional_rows
from .model import CAUSAL_FOLDER, CausalModel, CausalModelConfig, Labels, classifier_of
from .preparation import Data, Sources, prepare
from .recipes import RECIPES, CausalRecipe
from .scorer import CAUSAL_MODEL
from .self_training import build_pool, choose, turn_probabilities
from .stages import BEST, measure_rows, train_stage


@dataclass(frozen=True, slots=True)
class CausalTrainingOptions(TrainingOptions):
    """What a training depends on, apart from its data.

    Attributes:
        recipe: "default", "paper" or "code".
        backbone: a transformers checkpoint, a sentence-transformers folder, or a hub id.
        labels: "annotated" causes, or "preceding_2", see `CausalModelConfig`.
        n_epochs: in place of the recipe's, as the next four.
        max_unlabelled: unlabelled responses that self-training looks at, of more a seeded sample; None for all.
    """

    recipe: str = "default"
    backbone: str = PACKAGED_ENCODER
    labels: Labels = "annotated"
    n_epochs: int | None = None
    n_round_epochs: int | None = None
    n_rounds: int | None = None
    learning_rate: float | None = None
    max_tokens: int | None = None
    max_unlabelled: int | None = None

    def find_recipe(self) -> CausalRecipe:
        """The recipe with the numbers that are given here.

        Raises:
            InputError: there is none of that name, a number is out of its range, or the labels are unknown.
        """
        if self.labels not in get_args(Labels):
            raise InputError(f"labels: there are no {self.labels!r}. Choose one of {', '.join(get_args(Labels))}.")
        return choose_recipe(
            RECIPES,
            self.recipe,
            may_be_zero=("n_rounds",),
            n_epochs=self.n_epochs,
            n_round_epochs=self.n_round_epochs,
            n_rounds=self.n_rounds,
            learning_rate=self.learning_rate,
            max_training_tokens=self.max_tokens,
            max_tokens=self.max_tokens,
        )


def train(
    sources: Sources,
    output: Path,
    options: CausalTrainingOptions = CausalTrainingOptions(),
    *,
    progress: bool = False,
    remember: bool = True,
) -> TrainingResult:
    """Train both classifiers and write them to the folder `output`.

    Args:
        sources: the data. A dialogue that is measured on is left out of the training and unlabelled data, and counted.
            Without unlabelled dialogues there is no self-training.
        output: a folder that does not hold a finished model.
        options: of the recipe and the run.
        progress: show bars and a line after each epoch.
        remember: make this the model that is used where none is named.

    Raises:
        InputError: `output` holds a finished model or another run's checkpoints, or the data do not suffice.
    """
    recipe = options.find_recipe()
    with TrainingRun.open(output, CAUSAL_FOLDER, options, progress=progress) as run:
        data = prepare(
            sources,
            validation_fraction=options.validation_fraction,
            max_unlabelled=options.max_unlabelled,
            seed=options.seed,
        )
        pairs = ((pair.context, pair.response, pair.causes) for part in data[:3] for pair in part)
        run.start(recipe=asdict(recipe), data=data_hash(pairs, data.unlabelled))

        config = CausalModelConfig(recipe.name, options.labels, recipe.layout, recipe.truncate, recipe.max_tokens)
        backbone = resolve(options.backbone)
        unconditional, conditional = (new_classifier(backbone, device=run.device) for _ in range(2))
        trainee = _Trainee(run, recipe, data, config)
        figures = trainee.train_unconditional(unconditional)
        rounds = trainee.train_conditional(conditional, classifier_of(unconditional, config))

        known = frozenset(map(pair_hash, (*data.training, *data.validation))) | {item.dialogue for item in data.unlabelled}
        trained = CausalModel.build(config, unconditional, conditional, known)
        record = {
            "backbone_hash": content_hash(backbone),
            "counts": data.counts,
            "unconditional": figures,
            "rounds": rounds,
            "best_round": trainee.best(rounds),
        }
        return run.publish(trained.save, record, remember=CAUSAL_MODEL if remember else None)


@dataclass(frozen=True, slots=True)
class _Trainee:
    """The stages of one training: rows of each, and what they gave."""

    run: TrainingRun
    recipe: CausalRecipe
    data: Data
    config: CausalModelConfig

    def train_unconditional(self, encoder: CrossEncoder) -> dict[str, Any]:
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
