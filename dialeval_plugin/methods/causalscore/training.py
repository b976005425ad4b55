"""Training of the independence classifiers: the stages and rounds of Algorithm 1 in one folder; a killed run can resume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import check_choice
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.encoders import freeze
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.models.runtimes.runtime import RuntimeChoice
from dialeval_plugin.training.run import TrainingOptions, TrainingResult, TrainingRun, choose_recipe, data_hash

from .classifiers import TurnVectors, VectorClassifier, fit_on_vectors, new_classifier
from .data import CausalData, CausalSources, LabelledRow, pair_hash, prepare
from .model import CAUSAL_FOLDER, CausalModel, CausalModelConfig, CauseLabels, classifier_of
from .self_training import (
    RECIPES,
    VECTORS,
    CausalRecipe,
    conditional_sets,
    figures,
    train_conditional,
    train_unconditional,
    unconditional_sets,
)


@dataclass(frozen=True, slots=True)
class CausalTrainingOptions(TrainingOptions):
    """Options of a training.

    Attributes:
        recipe: "vectors", "default", "paper" or "code".
        backbone: a transformers checkpoint, a sentence-transformers folder, or a hub id; with the recipe "vectors" a general
            evaluator.
        n_epochs: replaces the recipe's, like the next four options; not for the recipe "vectors".
        max_unlabelled: maximum size of the sample of unlabelled responses for self-training; None for all.
    """

    recipe: str = "default"
    backbone: str = PACKAGED_ENCODER
    labels: CauseLabels = "annotated"
    n_epochs: int | None = None
    n_round_epochs: int | None = None
    n_rounds: int | None = None
    learning_rate: float | None = None
    max_tokens: int | None = None
    max_unlabelled: int | None = None

    def find_recipe(self) -> CausalRecipe | None:
        """Return the recipe with the numbers of these options; None for the recipe "vectors", which has none."""
        names = ("n_epochs", "n_round_epochs", "n_rounds", "learning_rate", "max_tokens")
        numbers = {name: getattr(self, name) for name in names}
        check_choice("training", "recipe", self.recipe, (VECTORS, *RECIPES))
        if self.recipe != VECTORS:
            return choose_recipe(
                RECIPES, self.recipe, may_be_zero=("n_rounds",), max_training_tokens=self.max_tokens, **numbers
            )
        numbers["max_unlabelled"] = self.max_unlabelled
        if options := [name for name, value in numbers.items() if value is not None]:
            raise InputError(f"{options[0]}: is about cross-encoders, and the recipe {VECTORS!r} has none. Leave it out.")
        return None


def train(
    sources: CausalSources,
    output: Path,
    options: CausalTrainingOptions = CausalTrainingOptions(),
    *,
    progress: bool = False,
) -> TrainingResult:
    """Train both classifiers and write them to the folder `output`, which must not contain a finished model.

    Evaluation dialogues are left out of the other data and counted. Without unlabelled dialogues there is no self-training.
    """
    recipe = options.find_recipe()
    if recipe is None and sources.unlabelled:
        raise InputError(f"unlabelled: the recipe {VECTORS!r} has no self-training. Leave the unlabelled dialogues out.")
    with TrainingRun.open(output, CAUSAL_FOLDER, options, progress=progress) as run:
        data = prepare(
            sources, validation_fraction=options.validation_fraction, max_unlabelled=options.max_unlabelled, seed=options.seed
        )
        pairs = ((pair.context, pair.response, pair.causes) for part in data[:3] for pair in part)
        run.start(recipe=None if recipe is None else asdict(recipe), data=data_hash(pairs, data.unlabelled))

        backbone = resolve(options.backbone)
        trained, record = (
            _vectors(run, backbone, data, options.labels)
            if recipe is None
            else _cross_encoders(run, backbone, data, recipe, options.labels)
        )
        return run.publish(trained.save, {"backbone_hash": content_hash(backbone), "counts": data.counts, **record})


def _cross_encoders(
    run: TrainingRun, backbone: Path, data: CausalData, recipe: CausalRecipe, labels: CauseLabels
) -> tuple[CausalModel, dict[str, Any]]:
    config = CausalModelConfig(recipe.name, labels, recipe.layout, recipe.truncate, recipe.max_tokens)
    unconditional, conditional = (new_classifier(backbone, device=run.device) for _ in range(2))
    for classifier in (unconditional, conditional):
        freeze(classifier.model.base_model, recipe.frozen)
    measured = train_unconditional(run, recipe, data, config, unconditional)
    rounds, best = train_conditional(run, recipe, data, config, conditional, classifier_of(unconditional, config))
    record = {"unconditional": measured, "rounds": rounds, "best_round": best}
    return CausalModel.build(config, unconditional, conditional, _known(data)), record


def _vectors(run: TrainingRun, backbone: Path, data: CausalData, labels: CauseLabels) -> tuple[CausalModel, dict[str, Any]]:
    # Their few weights gain nothing from self-training.
    seed, vectors = run.options.seed, TurnVectors(backbone, RuntimeChoice(device=run.device))
    rows, validation, evaluation = unconditional_sets(data, seed=seed)
    unconditional = _fitted(vectors, rows)
    measured = {"n_rows": len(rows), **figures(unconditional, validation, evaluation)}
    rows, validation, evaluation = conditional_sets(data, unconditional, labels=labels, seed=seed)
    conditional = _fitted(vectors, rows)
    only = {"round": 0, "n_rows": len(rows), "n_pseudo": 0, **figures(conditional, validation, evaluation)}
    trained = CausalModel(CausalModelConfig(VECTORS, labels), unconditional, conditional, _known(data))
    return trained, {"unconditional": measured, "rounds": [only], "best_round": 0}


def _fitted(vectors: TurnVectors, rows: Sequence[LabelledRow]) -> VectorClassifier:
    return fit_on_vectors(vectors, [row.texts for row in rows], [row.label for row in rows])


def _known(data: CausalData) -> frozenset[str]:
    return frozenset(map(pair_hash, (*data.training, *data.validation))) | {item.dialogue for item in data.unlabelled}
