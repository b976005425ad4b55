"""Training of a small model: the recipe's stages, then the blend of its classifiers, d_min and d_max, and thresholds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.identity import dialogue_key
from dialeval_plugin.corpora.readers.dailydialog_pp import ResponseSet
from dialeval_plugin.models.encoders import load_encoder, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.training.run import TrainingOptions, TrainingResult, TrainingRun, choose_recipe, data_hash

from .data import FITS, MISLEADS, UNRELATED, Splits, all_labelled, split_by_context, without_blanks, without_leaks
from .fusion import DistanceRange, slm_score
from .judging import SLM_FOLDER
from .model import SmallModel, TrainedSmallModel
from .stages import RECIPES, train_stage

logger = logging.getLogger(__name__)

ACCEPTED = 0.91
"""Share of positive validation responses that count as positive, if random negatives are used; see `validate`."""


@dataclass(frozen=True, slots=True)
class SlideTrainingOptions(TrainingOptions):
    """Options of a training, in addition to its data.

    Attributes:
        recipe: "default", "paper" or "code".
        backbone: a sentence-transformers folder, a transformers checkpoint, or a hub id.
        n_epochs: number of epochs of every stage; by default the recipe's.
    """

    recipe: str = "default"
    backbone: str = PACKAGED_ENCODER
    n_epochs: int | None = None


def train(
    sets: Sequence[ResponseSet],
    output: Path,
    options: SlideTrainingOptions = SlideTrainingOptions(),
    *,
    evaluation: Sequence[Item] = (),
    progress: bool = False,
) -> TrainingResult:
    """Train a small model on `sets` and write it to the folder `output`, which must not hold a finished model.

    A share of the sets with adversarial responses selects the best epoch, the blend and the thresholds; sets with positive
    responses only are used if the recipe uses them. Contexts that occur, whole or in part, in the reported data `evaluation`
    are left out, and their number is in a warning.
    """
    recipe = choose_recipe(RECIPES, options.recipe).with_epochs(options.n_epochs)
    with TrainingRun.open(output, SLM_FOLDER, options, progress=progress) as run:
        sets = without_leaks(without_blanks(sets), evaluation)
        training, validation = split_by_context(sets, fraction=options.validation_fraction, seed=options.seed)
        data = data_hash((item.context, item.positive, item.adversarial, item.random) for item in sets)
        run.start(recipe=asdict(recipe), data=data)

        encoder = without_normalisation(load_encoder(options.backbone, device=run.device))
        model = SmallModel(encoder, recipe.config).to(run.device)
        weak, full = ([item for item in training if bool(item.adversarial) == is_full] for is_full in (False, True))
        for stage in recipe.stages:
            splits = Splits(weak if stage.kind == "rank" else training, validation)
            if not splits.training:
                logger.info("stage %s is left out: no context has positive responses only", stage.kind)
                continue
            run.stage(stage.kind, model, partial(train_stage, model, stage, recipe, run, splits))
        model.eval()
        if model.head.lexical is not None:
            fit_blend(model, validation)
        distance_range, n_pairs = calibrate(model, full, unrelated=recipe.unrelated)
        figures, thresholds = validate(model, validation, distance_range, unrelated=recipe.unrelated)

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
        learnt = [(item.context, response) for item in training for response in item.positive]
        return run.publish(trained.save, record, learnt=learnt)


def fit_blend(model: SmallModel, sets: Sequence[ResponseSet]) -> None:
    """Fit the weights of the log odds from vectors and words and of the cosine by logistic regression on validation responses.

    On training responses the vectors are overconfident. The penalty keeps the weights near their initial values if responses
    are few or easily separated.
    """
    pairs, label = _labelled_pairs(sets, unrelated=True)
    columns = np.column_stack([model.log_odds(pairs), np.ones(len(pairs))])
    fits = label == FITS
    # Fitting and other responses have the same total weight, so that 0.5 has the same meaning with random ones.
    row_weights = np.where(fits, 1.0, fits.sum() / (~fits).sum())
    weights = logistic_regression(columns, fits, start=model.head.blend.double().cpu().numpy(), row_weights=row_weights)
    model.head.blend.copy_(torch.as_tensor(weights))


def _labelled_pairs(sets: Sequence[ResponseSet], *, unrelated: bool) -> tuple[list[tuple[tuple[str, ...], str]], np.ndarray]:
    rows = [all_labelled(item, item.random if unrelated else ()) for item in sets]
    pairs = [(row.context, response) for row in rows for response in row.responses]
    return pairs, np.array([label for row in rows for label in row.labels])


def calibrate(model: SmallModel, sets: Sequence[ResponseSet], *, unrelated: bool) -> tuple[DistanceRange, int]:
    """d_min and d_max: the extremes over all training pairs (the notebooks' reading of equation 7)."""
    distance = model.judge(_labelled_pairs(sets, unrelated=unrelated)[0]).distance
    if not np.isfinite(distance).all():
        raise ModelLoadError(
            "training: the model gives distances that are not finite, so it diverged. Train again with a lower learning rate "
            "or precision='float32'."
        )
    return DistanceRange(float(distance.min()), float(distance.max())), len(distance)


def validate(
    model: SmallModel, sets: Sequence[ResponseSet], distance_range: DistanceRange, *, unrelated: bool
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the accuracies on the validation sets, and a threshold by variant.

    A threshold maximises the balanced accuracy on positive and adversarial responses or, if `unrelated`, accepts `ACCEPTED` of
    the positive responses. The best of many thresholds depends more on the validation contexts than a quantile does.
    """
    pairs, label = _labelled_pairs(sets, unrelated=True)
    judgement = model.judge(pairs)
    normalised = [distance_range.normalise(value) for value in judgement.distance]
    scores = {
        "slm": np.array([slm_score(d, p) for d, p in zip(normalised, judgement.probability, strict=True)]),
        "slm_probability": judgement.probability,
        # Negated, so that every variant's threshold is the lowest positive value.
        "slm_distance": -judgement.distance,
    }
    figures: dict[str, float] = {}
    thresholds: dict[str, float] = {}
    for variant, values in scores.items():
        fitting = values[label == FITS]
        thresholds[variant] = (
            float(np.quantile(fitting, 1 - ACCEPTED)) if unrelated else best_threshold(fitting, values[label == MISLEADS])
        )
        is_right = (values >= thresholds[variant]) == (label == FITS)
        of_kind = {
            name: 100 * float(np.mean(is_right[label == kind]))
            for name, kind in (("positive", FITS), ("adversarial", MISLEADS), ("random", UNRELATED))
            if kind in label
        }
        of_kind["overall"] = (of_kind["positive"] + of_kind["adversarial"]) / 2
        figures |= {f"{variant}_{name}": value for name, value in of_kind.items()}
    return figures, thresholds


def best_threshold(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the threshold t with the highest mean of P(positive >= t) and P(negative < t), midway between two values."""
    values = np.unique(np.concatenate([positive, negative]))
    middles = (values[1:] + values[:-1]) / 2
    if not len(middles):
        return float(values[0])
    # Counts are integers, so that the lowest of equally good thresholds is taken independently of rounding.
    hits = len(positive) - np.searchsorted(np.sort(positive), middles)
    rejections = np.searchsorted(np.sort(negative), middles)
    return float(middles[int(np.argmax(hits * len(negative) + rejections * len(positive)))])
