"""Probabilities of a breakdown from a detector's scores: equations 7.11 and 7.12 with stored extremes.

The thesis takes minimum and maximum over the evaluated responses "including the human annotator evaluation". Here they come
from a calibration set, so that a score depends on its own response alone. The annotators' distributions are not rescaled and
remain comparable with other detectors.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked_model_file, to_json, write_text
from dialeval_plugin.core.scores import Unscored
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.causal import Context, window
from dialeval_plugin.models.folders import read_versioned
from dialeval_plugin.models.language_models import OpenedModel, open_model
from dialeval_plugin.terminal import Progress

from .detectors import ConfidenceHead, Detector, LikelihoodRatio, MaxProbability, Odin, read_responses

logger = logging.getLogger(__name__)

CALIBRATION_FILE = "breakdown.json"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """Lowest and highest score of a calibration set."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(f"calibration: the lowest score is {self.low}, the highest {self.high}. Calibrate again.")

    def normalise(self, score: float) -> float:
        """Return the score of equation 7.11, clipped to [0, 1]."""
        return min(1.0, max(0.0, (score - self.low) / (self.high - self.low)))

    def breakdown(self, score: float) -> float:
        """Return equation 7.12's probability of a breakdown, in [0, 1]."""
        return 1 - self.normalise(score)


def learn_range(scores: Iterable[float]) -> ScoreRange:
    """Return the extremes of the finite scores; `InputError` if they do not differ."""
    finite = [score for score in scores if math.isfinite(score)]
    if (n_different := len(set(finite))) < 2:
        raise InputError(
            f"calibration: {len(finite)} responses have {n_different} different scores, two are needed. Give more dialogues."
        )
    return ScoreRange(min(finite), max(finite))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Extremes by method, context and aggregation.

    Attributes:
        max_tokens: window of the calibration.
        models: hash of the weights of the model and, for the likelihood ratio, of the background model.
    """

    ranges: Mapping[str, Mapping[str, Mapping[str, ScoreRange]]]
    max_tokens: int
    n_responses: int
    models: tuple[str, ...]

    def save(self, path: Path) -> None:
        """Write the file."""
        write_text(path, to_json({"format_version": FORMAT_VERSION, **asdict(self)}, indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> Calibration:
        """Read a file that `save` wrote; `ModelLoadError` if it is missing or has another format."""
        read_versioned(path, FORMAT_VERSION, kind="a calibrated breakdown detector", command="dialeval train breakdown")
        return checked_model_file(path, cls)


def weights_hash(folder: Path) -> str:
    """Return the hash of a model's weights, without its other files."""
    return content_hash(folder, "*.safetensors")


def responses_of(dialogues: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """Return each turn but the first of each dialogue with the turns before it."""
    return [turns[: place + 1] for turns in dialogues for place in range(1, len(turns))]


def calibrate(
    detectors: Mapping[str, Detector],
    responses: Sequence[Sequence[str]],
    *,
    max_tokens: int,
    models: Sequence[str],
    progress: bool = False,
) -> Calibration:
    """Return the extremes over responses (texts of turns, the response last) for each context and aggregation."""
    ranges: dict[str, dict[str, dict[str, ScoreRange]]] = {}
    n_responses = 0
    parts = list(itertools.product(detectors, get_args(Context)))
    for method, context in Progress(parts, "calibration", unit="part", disable=not progress):
        detector = detectors[method]
        found = read_responses(detector, responses, context=context, max_tokens=max_tokens)
        readings = [reading for reading in found if not isinstance(reading, Unscored)]
        n_responses = len(readings)
        ranges.setdefault(method, {})[context] = {
            name: learn_range(reading.scores[name] for reading in readings) for name in detector.aggregations
        }
    return Calibration(ranges, max_tokens, n_responses, tuple(models))


def calibrate_trained(
    opened: OpenedModel,
    dialogues: Iterable[Sequence[str]],
    folder: Path,
    *,
    head: ConfidenceHead | None = None,
    semantic: str | None = None,
    progress: bool = False,
) -> None:
    """Write the calibration of a newly trained model; `semantic` is the model that a background model is compared with."""
    models = [weights_hash(folder)]
    detectors: dict[str, Detector] = {"max_probability": MaxProbability(opened)}
    max_tokens = window(opened, None, "training")
    if head is not None:
        head.eval()
        detectors = {"odin_h": Odin(opened, head, "h"), "odin_g": Odin(opened, head, "g")}
    elif semantic is not None:
        other = open_model(semantic, family="causal_lm", device=str(opened.device))
        detectors = {"likelihood_ratio": LikelihoodRatio(other, opened)}
        models.insert(0, weights_hash(other.folder))
    try:
        calibration = calibrate(detectors, responses_of(dialogues), max_tokens=max_tokens, models=models, progress=progress)
    except InputError as error:
        # Hours of training are not lost: `dialeval train breakdown` can calibrate later.
        logger.warning("the breakdown scores are not calibrated: %s", error)
    else:
        calibration.save(folder / CALIBRATION_FILE)
