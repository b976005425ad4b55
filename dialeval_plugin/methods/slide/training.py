"""Training a small model end to end: the recipe's stages, calibration, one folder. A run that was killed goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.identity import dialogue_key
from dialeval_plugin.models.encoders import load_encoder, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.training.run import TrainingOptions, TrainingResult, TrainingRun, choose_recipe, data_hash

from .calibration import calibrate, fit_blend, validate
from .data import ResponseSetLike, split_by_context, without_leaks
from .model import SLM_FOLDER, SmallModel, TrainedSmallModel
from .recipes import RECIPES
from .scorer import SLM
from .stages import train_stage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SlideTrainingOptions(TrainingOptions):
    """What a training depends on, apart from its data.

    Attributes:
        recipe: "default", "paper" or "code".
        backbone: a sentence-transformers folder, a transformers checkpoint, or a hub id.
        n_epochs: of every stage, in place of the recipe's.
    """

    recipe: str = "default"
    backbone: str = PACKAGED_ENCODER
    n_epochs: int | None = None


def train(
    sets: Sequence[ResponseSetLike],
    output: Path,
    options: SlideTrainingOptions = SlideTrainingOptions(),
    *,
    evaluation: Sequence[Item] = (),
    progress: bool = False,
    remember: bool = True,
) -> TrainingResult:
    """Train a small model on `sets` and write it to the folder `output`, which must not hold a finished model.

    Of the sets with adversarial responses a share is for choosing the best epoch, the blend and the thresholds; those with
    positive responses only serve where the recipe has a use for them. Contexts that `evaluation`, which will be reported
    on, has too or has a part of are counted in a warning and left out. `remember` makes this the SLM that is used where
    none is named.
    """
    recipe = choose_recipe(RECIPES, options.recipe).with_epochs(options.n_epochs)
    with TrainingRun.open(output, SLM_FOLDER, options, progress=progress) as run:
        sets = without_leaks(sets, evaluation)
        training, validation = split_by_context(sets, fraction=options.validation_fraction, seed=options.seed)
        data = data_hash((item.context, item.positive, item.adversarial, item.random) for item in sets)
        run.start(recipe=asdict(recipe), data=data)

        encoder = without_normalisation(load_encoder(options.backbone, device=run.device))
        model = SmallModel(encoder, recipe.config).to(run.device)
        weak, full = ([item for item in training if bool(item.adversarial) == is_full] for is_full in (False, True))
        for stage in recipe.stages:
            rows = weak if stage.kind == "rank" else training
            if not rows:
                logger.info("stage %s is left out: no context has positive responses only", stage.kind)
                continue
            run.stage(stage.kind, model, partial(train_stage, model, stage, recipe, run, rows, validation))
        model.eval()
        if model.head.lexical is not None:
            fit_blend(model, validation)
        distance_range, n_pairs = calibrate(model, full)
        figures, thresholds = validate(model, validation, distance_range)

        known = frozenset(dialogue_key(item.context) for item in (*training, *validation))
        trained = TrainedSmallModel(model, distance_range, known, thresholds)
        record = {
            "backbone_hash": content_hash(resolve(options.backbone)),
            "counts": {
                "n_training_contexts": len(training),
                "n_validation_contexts": len(validation),
                "n_calibration_pairs": n_pairs,
            },
            "validation": figures,
        }
        return run.publish(trained.save, record, remember=SLM if remember else None)
