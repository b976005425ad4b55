"""Training the independence classifiers end to end: Algorithm 1's stages and rounds, one folder. A killed run goes on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.encoders import freeze
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.training.run import TrainingOptions, TrainingResult, TrainingRun, choose_recipe, data_hash

from .classifiers import new_classifier
from .data import CausalSources, pair_hash, prepare
from .model import CAUSAL_FOLDER, CausalModel, CausalModelConfig, CauseLabels, classifier_of
from .recipes import RECIPES, CausalRecipe
from .self_training import SelfTraining


@dataclass(frozen=True, slots=True)
class CausalTrainingOptions(TrainingOptions):
    """What a training depends on, apart from its data.

    Attributes:
        backbone: a transformers checkpoint, a sentence-transformers folder, or a hub id.
        n_epochs: in place of the recipe's, as the next four.
        max_unlabelled: unlabelled responses that self-training looks at, of more a seeded sample; None for all.
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

    def find_recipe(self) -> CausalRecipe:
        """The recipe with the numbers that are given here."""
        if self.labels not in get_args(CauseLabels):
            raise InputError(f"labels: there are no {self.labels!r}. Choose one of {', '.join(get_args(CauseLabels))}.")
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
    sources: CausalSources,
    output: Path,
    options: CausalTrainingOptions = CausalTrainingOptions(),
    *,
    progress: bool = False,
) -> TrainingResult:
    """Train both classifiers and write them to the folder `output`, which must not hold a finished model.

    A dialogue that is measured on is left out of the training and unlabelled data, and counted. Without unlabelled
    dialogues there is no self-training.
    """
    recipe = options.find_recipe()
    with TrainingRun.open(output, CAUSAL_FOLDER, options, progress=progress) as run:
        data = prepare(
            sources, validation_fraction=options.validation_fraction, max_unlabelled=options.max_unlabelled, seed=options.seed
        )
        pairs = ((pair.context, pair.response, pair.causes) for part in data[:3] for pair in part)
        run.start(recipe=asdict(recipe), data=data_hash(pairs, data.unlabelled))

        config = CausalModelConfig(recipe.name, options.labels, recipe.layout, recipe.truncate, recipe.max_tokens)
        backbone = resolve(options.backbone)
        unconditional, conditional = (new_classifier(backbone, device=run.device) for _ in range(2))
        for classifier in (unconditional, conditional):
            freeze(classifier.model.base_model, recipe.frozen)
        trainee = SelfTraining(run, recipe, data, config)
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
        return run.publish(trained.save, record)
