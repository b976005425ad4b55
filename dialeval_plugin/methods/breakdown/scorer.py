"""The scorer `dialogue_breakdown`: the probability that a system's turn breaks a dialogue down, without labelled data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias, cast

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.registry import ModelOptions, Share, check_choice, check_value, with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Orientation, Row, Unscored, finite_or_unscored
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.models.causal import Context, MaxTokens, check_causal, window
from dialeval_plugin.models.folders import model_identity
from dialeval_plugin.models.language_models import OpenedModel, open_model
from dialeval_plugin.models.texts import turns_to_read, unread

from .calibration import CALIBRATION_FILE, Calibration, ScoreRange, learn_range, weights_hash
from .detectors import (
    DEFAULT_MODELS,
    Detector,
    DetectorReading,
    LikelihoodRatio,
    MaxProbability,
    Odin,
    load_head,
    read_responses,
)

DetectionMethod: TypeAlias = Literal["max_probability", "odin_h", "odin_g", "likelihood_ratio"]

AGGREGATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "max_probability": MaxProbability.aggregations,
        "odin_h": Odin.aggregations,
        "odin_g": Odin.aggregations,
        "likelihood_ratio": LikelihoodRatio.aggregations,
    }
)
"""Method to its aggregations, the default first."""


def open_detector(
    method: DetectionMethod,
    model: str | None,
    background: str | None,
    *,
    device: str | None = None,
    revision: str | None = None,
) -> Detector:
    """Open the detector of a method with its model, or for the likelihood ratio the semantic and the background model."""
    check_value("dialogue_breakdown", "method", method, DetectionMethod)
    if background is not None and method != "likelihood_ratio":
        raise InputError(f"dialogue_breakdown: {method} has no background model. Leave the option background out.")
    names = [(DEFAULT_MODELS["odin" if method.startswith("odin") else "lm"].find(model), revision)]
    if method == "likelihood_ratio":
        names.append((DEFAULT_MODELS["background"].find(background), None))
    models = [open_model(name, family="causal_lm", device=device, revision=version) for name, version in names]
    for opened in models:
        check_causal(opened)
    if method == "max_probability":
        return MaxProbability(*models)
    if method == "likelihood_ratio":
        return LikelihoodRatio(*models)
    return Odin(models[0], load_head(models[0]), "h" if method == "odin_h" else "g")


def shared_window(models: Sequence[OpenedModel], max_tokens: int | None) -> int:
    """Return the length of the longest sequence that all models read; see `causal.window`."""
    return min(window(opened, max_tokens, "dialogue_breakdown") for opened in models)


@dataclass(frozen=True, kw_only=True)
class BreakdownOptions(ModelOptions):
    """Options of `DialogueBreakdownScorer`."""

    method: DetectionMethod = "max_probability"
    background: str | None = None
    context: Context = "full"
    aggregation: str | None = None
    calibration: str | None = None
    transductive: bool = False
    cut: Share = 0.5
    max_tokens: MaxTokens | None = None


class DialogueBreakdownScorer(Scorer):
    """Detects dialogue breakdowns as responses that are out of distribution (Nedelchev 2022, chapter 7).

    The main column `breakdown` is the probability of a breakdown in [0, 1]; higher is worse. `p_nb`, `p_pb` and `p_b` are the
    distribution [1 - s, 0, s] for DBDC's metrics. `score` is the method's own number; higher means closer to the training data.
    `n_tokens` counts the response's tokens with the end of its turn, and `n_cut` is 1 if the context was truncated.

    Args:
        model: folder or hub id of a causal language model; for ODIN one that was trained with the objective odin.
        method: measure of out-of-distribution detection: "max_probability", "odin_h", "odin_g" or "likelihood_ratio".
        background: folder or hub id of the background model; for likelihood_ratio only.
        context: turns that the model reads: "full" for all before the response, "pair" for the last one only.
        aggregation: how the values of a sequence's tokens become one score; a wrong name is refused with those of the method.
        calibration: file with the extremes of equation 7.11; by default the file in the model's folder, for likelihood_ratio in
            that of the background model.
        transductive: take the extremes from the responses that are scored, as in the thesis, and not from a calibration.
        cut: threshold of the breakdown probability for tasks that ask for a class.
        max_tokens: maximum number of tokens read at once; by default the calibration's, otherwise the model's, 1024 at most.

    Raises:
        InputError: an option does not go with the method, or the calibration is of another model or window.
        MissingPrerequisite: there is no model.
        ModelLoadError: a model is damaged, unsafe, or of another kind, or nothing was calibrated.
    """

    name: ClassVar[str] = "dialogue_breakdown"
    needs = ("trained model",)
    columns = ("breakdown", "p_nb", "p_pb", "p_b", "score", "n_tokens", "n_cut")
    citation: ClassVar[str] = bibtex("nedelchev2023automatic")
    orientation: Orientation = "lower"
    window = 2048

    unscorable = staticmethod(unread)

    @with_options(BreakdownOptions)
    def __init__(self, options: BreakdownOptions) -> None:
        if options.transductive and options.calibration is not None:
            raise InputError("dialogue_breakdown: transductive scores need no calibration. Leave one of the options out.")
        self.options = options
        self.aggregation = options.aggregation or AGGREGATIONS[options.method][0]
        check_choice(self.name, "aggregation", self.aggregation, AGGREGATIONS[options.method])
        self.positive_from = options.cut
        self.detector = open_detector(
            options.method, options.model, options.background, device=options.device, revision=options.revision
        )
        models = self.detector.models
        self._hashes = [model_identity(opened.folder) for opened in models]
        self.scope = Scope.read(models[0].folder)
        stored = None if options.transductive else _load_calibration(options.calibration, models)
        self.extremes = None if stored is None else _extremes(stored, options.method, options.context, self.aggregation)
        self.max_tokens = longest = _max_tokens(models, options.max_tokens, stored)
        lost = f"the response with its context is longer than {longest} tokens; the beginning was not read"
        self.truncation_columns = {"n_cut": lost}

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Return method, models, handling of responses, and calibration."""
        extremes = None if self.extremes is None else f"{self.extremes.low:.6g},{self.extremes.high:.6g}"
        return {
            "method": self.name,
            "detector": self.options.method,
            "model": self._hashes[0],
            "background": self._hashes[1] if len(self._hashes) > 1 else None,
            "context": self.options.context,
            "aggregation": self.aggregation,
            "calibration": extremes or "transductive",
            "cut": self.options.cut,
            "speakers": "none",
            "window": self.max_tokens,
            "truncation": "left",
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score responses; those of one window share batches."""
        texts = [turns_to_read(item) for item in items]
        readings = read_responses(self.detector, texts, context=self.options.context, max_tokens=self.max_tokens)
        return [reading if isinstance(reading, Unscored) else self._row(reading) for reading in readings]

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """Return the rows, with probabilities from their own extremes if scores are transductive."""
        if not self.options.transductive:
            return rows
        scores = [cast("float", row["score"]) for row in rows if not isinstance(row, Unscored)]
        if not scores:
            return rows
        extremes = learn_range(scores)
        return [row if isinstance(row, Unscored) else {**row, **_probabilities(extremes, row)} for row in rows]

    def _row(self, reading: DetectorReading) -> Row:
        row = finite_or_unscored(
            {"score": reading.scores[self.aggregation], "n_tokens": float(reading.n_tokens), "n_cut": float(reading.is_cut)}
        )
        if isinstance(row, Unscored) or self.extremes is None:
            return row
        return {**_probabilities(self.extremes, row), **row}


def _probabilities(extremes: ScoreRange, row: Mapping[str, float | None]) -> dict[str, float | None]:
    breakdown = extremes.breakdown(cast("float", row["score"]))
    # Without possible breakdowns both merges of DBDC's classes give the same two classes.
    return {"breakdown": breakdown, "p_nb": 1 - breakdown, "p_pb": 0.0, "p_b": breakdown}


def _load_calibration(name: str | None, models: Sequence[OpenedModel]) -> Calibration:
    # Training stores it with the last model: the background model, which is trained after the semantic one.
    path = models[-1].folder / CALIBRATION_FILE if name is None else Path(name).expanduser()
    if name is None and not path.exists():
        raise ModelLoadError(
            f"{models[-1].folder}: has no {CALIBRATION_FILE}, so its scores are no probabilities. Make one with "
            "`dialeval train breakdown`, pass calibration='FILE', or transductive=true for the extremes of what is scored."
        )
    stored = Calibration.load(path)
    if stored.models != tuple(weights_hash(opened.folder) for opened in models):
        raise InputError(f"{path}: was learnt with other models. Make one for these with `dialeval train breakdown`.")
    return stored


def _extremes(stored: Calibration, method: DetectionMethod, context: Context, aggregation: str) -> ScoreRange:
    extremes = stored.ranges.get(method, {}).get(context, {}).get(aggregation)
    if extremes is None:
        raise InputError(
            f"dialogue_breakdown: {method} was not calibrated with context={context!r} and aggregation={aggregation!r}. "
            "Calibrate it with `dialeval train breakdown`."
        )
    return extremes


def _max_tokens(models: Sequence[OpenedModel], max_tokens: int | None, stored: Calibration | None) -> int:
    chosen = shared_window(models, max_tokens if stored is None or max_tokens is not None else stored.max_tokens)
    if stored is not None and chosen != stored.max_tokens:
        raise InputError(
            f"dialogue_breakdown: max_tokens is {chosen}, but the calibration was learnt with {stored.max_tokens}. "
            "Leave the option out, or calibrate again."
        )
    return chosen
