"""What is fitted after a small model's training: the blend of its two classifiers, d_min and d_max, and thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.models.logistic import logistic_regression

from .data import ResponseSetLike
from .fusion import DistanceRange, slm_score
from .model import BLEND_BEFORE_FIT, SmallModel


def fit_blend(model: SmallModel, sets: Sequence[ResponseSetLike]) -> None:
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


def calibrate(model: SmallModel, sets: Sequence[ResponseSetLike]) -> tuple[DistanceRange, int]:
    """d_min and d_max: the extremes over all training pairs (the notebooks' reading of equation 7)."""
    distance = model.judge(_labelled_pairs(sets)[0]).distance
    if not np.isfinite(distance).all():
        raise ModelLoadError(
            "training: the model gives distances that are not finite, so it diverged. Train again with a lower learning rate "
            "or precision='float32'."
        )
    return DistanceRange(float(distance.min()), float(distance.max())), len(distance)


def validate(
    model: SmallModel, sets: Sequence[ResponseSetLike], distance_range: DistanceRange
) -> tuple[dict[str, float], dict[str, float]]:
    """Accuracies on the validation sets, and for each variant the threshold that gives the highest balanced accuracy."""
    pairs, label = _labelled_pairs(sets)
    judgement = model.judge(pairs)
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
