"""Training a small model end to end: stages, calibration, one folder at the end. A run that was killed goes on."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import PartialState
from safetensors.torch import load_file
from transformers import set_seed

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.corpora.identity import LEAK_RULE, dialogue_key
from dialeval_plugin.models.encoders import load_encoder, without_normalisation
from dialeval_plugin.models.folders import PACKAGED_ENCODER, resolve, save_weights
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.training.precision import Precision, uses_bfloat16
from dialeval_plugin.training.run_folder import refuse_finished, workplace
from dialeval_plugin.version import __version__

from .data import ResponseSetLike, split_by_context, without_leaks
from .fusion import DistanceRange, slm_score
from .model import BLEND_BEFORE_FIT, CONFIG_FILE, PairJudgement, SmallModel, TrainedSmallModel
from .recipes import Recipe, Stage, find_recipe
from .scorer import SLM
from .stages import Run, train_contrast, train_head, train_joint, train_lexical

logger = logging.getLogger(__name__)

_TRAINERS: Mapping[str, Callable[[SmallModel, Stage, Run, Sequence[ResponseSetLike], Sequence[ResponseSetLike]], None]] = {
    "contrast": train_contrast,
    "disentangle": train_head,
    "classify": train_head,
    "lexical": train_lexical,
    "rank": train_joint,
    "joint": train_joint,
}


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What a training run depends on, apart from its data.

    Attributes:
        recipe: "default", "paper" or "code".
        backbone: a sentence-transformers folder, a transformers checkpoint, or a hub id.
        n_epochs: of every stage, in place of the recipe's.
        validation_fraction: share of the contexts with adversarial responses that is set aside for choosing the best epoch
            and the thresholds.
        seed: of the split, the initial weights, the order and the drawn negatives.
        precision: "auto" computes in bfloat16 where the processor has instructions for it.
    """

    recipe: str = "default"
    backbone: str = PACKAGED_ENCODER
    n_epochs: int | None = None
    validation_fraction: float = 0.1
    seed: int = 13
    precision: Precision = "auto"


class Trained(NamedTuple):
    """Where the model is and what its validation gave."""

    folder: Path
    validation: dict[str, float]
    """Accuracy of positive and adversarial responses and overall, in per cent, by variant."""
    n_training: int
    n_validation: int


def train(
    sets: Sequence[ResponseSetLike],
    output: Path,
    options: TrainingOptions = TrainingOptions(),
    *,
    evaluation: Sequence[Item] = (),
    progress: bool = False,
    remember: bool = True,
) -> Trained:
    """Train a small model on `sets` and write it to the folder `output`.

    Checkpoints lie in `output/.training` until the run ends; the same call after a kill goes on from the last epoch and ends
    with the same files.

    Args:
        sets: contexts with responses. Those with adversarial responses are split into training and validation; those with
            positive responses only serve where the recipe has a use for them.
        output: a folder that does not hold a finished model.
        options: see `TrainingOptions`.
        evaluation: what will be reported on: contexts that are in it too, or that it has a part of, are counted in a warning
            and left out of training.
        progress: show the trainers' progress bars.
        remember: make this the SLM that is used where none is named.

    Raises:
        InputError: `output` holds a finished model or another run's checkpoints, or the data do not suffice.
    """
    recipe = find_recipe(options.recipe).with_epochs(options.n_epochs)
    refuse_finished(output, CONFIG_FILE)
    sets = without_leaks(sets, evaluation)
    splits = split_by_context(sets, fraction=options.validation_fraction, seed=options.seed)
    state = PartialState()
    with workplace(output, CONFIG_FILE, _identity(options, recipe, sets), is_main_process=state.is_main_process) as place:
        state.wait_for_everyone()
        set_seed(options.seed)
        backbone = resolve(options.backbone)
        encoder = without_normalisation(load_encoder(options.backbone, device=str(state.device)))
        model = SmallModel(encoder, recipe.config).to(state.device)
        run = Run(recipe, place, options.seed, uses_bfloat16(options.precision), progress)
        weak = [item for item in splits.training if not item.adversarial]
        for stage in recipe.stages:
            data = weak if stage.kind == "rank" else splits.training
            if not data:
                logger.info("stage %s is left out: no context has positive responses only", stage.kind)
                continue
            _run_stage(model, stage, run, data, splits.validation, state)
        model.eval()
        if model.head.lexical is not None:
            _fit_blend(model, splits.validation)
        distance_range, training_pairs = _calibrate(model, [item for item in splits.training if item.adversarial])
        trained = TrainedSmallModel(
            model, distance_range, frozenset(dialogue_key(item.context) for item in (*splits.training, *splits.validation))
        )
        figures, thresholds = _validate(model, splits.validation, distance_range)
        if state.is_main_process:
            trained.save(
                output,
                record={
                    "thresholds": thresholds,
                    "training": {
                        "options": asdict(options),
                        "backbone_hash": content_hash(backbone),
                        "n_training_contexts": len(splits.training),
                        "n_validation_contexts": len(splits.validation),
                        "n_calibration_pairs": training_pairs,
                        "validation": figures,
                        "leak_rule": LEAK_RULE,
                        "version": __version__,
                    },
                },
            )
    if remember and state.is_main_process:
        SLM.remember(output)
    state.wait_for_everyone()
    return Trained(output, figures, len(splits.training), len(splits.validation))


def _identity(options: TrainingOptions, recipe: Recipe, sets: Sequence[ResponseSetLike]) -> dict[str, Any]:
    """What has to be the same for a run to go on from another's checkpoints."""
    digest = hashlib.sha256()
    for item in sets:
        digest.update(repr((item.context, item.positive, item.adversarial, item.random)).encode())
    return {
        "options": {**asdict(options), "precision": "bfloat16" if uses_bfloat16(options.precision) else "float32"},
        "recipe": to_json(asdict(recipe)),
        "data": digest.hexdigest(),
        "version": __version__,
    }


def _run_stage(
    model: SmallModel,
    stage: Stage,
    run: Run,
    training: Sequence[ResponseSetLike],
    validation: Sequence[ResponseSetLike],
    state: PartialState,
) -> None:
    """Train one stage, or load it where it is finished; its weights go to one file, its checkpoints away."""
    finished = run.folder / f"{stage.kind}.safetensors"
    if not finished.exists():
        logger.info("stage %s: %d contexts, %d epochs", stage.kind, len(training), stage.n_epochs)
        # Each stage starts from the same random state whether or not the stages before it ran in this process.
        set_seed(run.seed)
        model.train()
        _TRAINERS[stage.kind](model, stage, run, training, validation)
        if state.is_main_process:
            save_weights(finished, model.state_dict())
            shutil.rmtree(run.folder / stage.kind, ignore_errors=True)
        state.wait_for_everyone()
    # Read back even what was just written: a resumed run starts the next stage from the same bytes.
    model.load_state_dict(load_file(str(finished)))


def _judge_sets(model: SmallModel, sets: Sequence[ResponseSetLike]) -> tuple[PairJudgement, np.ndarray]:
    pairs, label = _labelled_pairs(sets)
    return model.judge(pairs), label


def _fit_blend(model: SmallModel, sets: Sequence[ResponseSetLike]) -> None:
    """Weigh the vectors' log odds against the words' by logistic regression on validation responses.

    Held-out responses: on those of training the vectors are surer than they should be. The penalty keeps the weights near
    where they start when the responses are few or easy to tell apart.
    """
    pairs, label = _labelled_pairs(sets)
    columns = np.column_stack([model.log_odds(pairs), np.ones(len(pairs))])
    weights = logistic_regression(columns, label, start=np.array(BLEND_BEFORE_FIT))
    model.head.blend.copy_(torch.as_tensor(weights))


def _labelled_pairs(sets: Sequence[ResponseSetLike]) -> tuple[list[tuple[tuple[str, ...], str]], np.ndarray]:
    """Positive and adversarial responses with their contexts; labels are 1 for positive, 0 for adversarial."""
    pairs = [(item.context, response) for item in sets for response in (*item.positive, *item.adversarial)]
    labels = [label for item in sets for label in (1,) * len(item.positive) + (0,) * len(item.adversarial)]
    return pairs, np.array(labels)


def _calibrate(model: SmallModel, sets: Sequence[ResponseSetLike]) -> tuple[DistanceRange, int]:
    """d_min and d_max: the extremes over all training pairs (the notebooks' reading of equation 7)."""
    distance = _judge_sets(model, sets)[0].distance
    if not np.isfinite(distance).all():
        raise ModelLoadError(
            "training: the model gives distances that are not finite, so it diverged. Train again with a lower learning rate "
            "or precision='float32'."
        )
    return DistanceRange(float(distance.min()), float(distance.max())), len(distance)


def _validate(
    model: SmallModel, sets: Sequence[ResponseSetLike], distance_range: DistanceRange
) -> tuple[dict[str, float], dict[str, float]]:
    """Accuracies on the validation sets, and for each variant the threshold that gives the highest balanced accuracy."""
    judgement, label = _judge_sets(model, sets)
    normalised = [distance_range.normalise(value) for value in judgement.distance]
    scores = {
        "slm": np.array([slm_score(d, p) for d, p in zip(normalised, judgement.probability, strict=True)]),
        "slm_probability": judgement.probability,
        # Turned round, so that every variant's threshold is a lower end of what counts as positive.
        "slm_distance": -judgement.distance,
    }
    figures: dict[str, float] = {}
    thresholds: dict[str, float] = {}
    for variant, values in scores.items():
        thresholds[variant] = best_threshold(values[label == 1], values[label == 0])
        positive = 100 * float(np.mean(values[label == 1] >= thresholds[variant]))
        adversarial = 100 * float(np.mean(values[label == 0] < thresholds[variant]))
        figures |= {
            f"{variant}_positive": positive,
            f"{variant}_adversarial": adversarial,
            f"{variant}_overall": (positive + adversarial) / 2,
        }
    return figures, thresholds


def best_threshold(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the threshold t with the highest mean of P(positive >= t) and P(negative < t), midway between two values."""
    values = np.unique(np.concatenate([positive, negative]))
    middles = (values[1:] + values[:-1]) / 2
    if not len(middles):
        return float(values[0])
    # Whole numbers: of thresholds that are equally good the lowest is taken, whatever the rounding.
    hits = len(positive) - np.searchsorted(np.sort(positive), middles)
    rejections = np.searchsorted(np.sort(negative), middles)
    return float(middles[int(np.argmax(hits * len(negative) + rejections * len(positive)))])
