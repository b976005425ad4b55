"""The scorer `slide`: the small model's distance and probability, alone or fused with a large model's score."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Item, is_blank
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.scoring import Reason, Row, Scorer, Unscored
from dialeval_plugin.core.signature import content_hash
from dialeval_plugin.models.defaults import DefaultModel
from dialeval_plugin.models.folders import resolve

from .fusion import POSITIVE_FROM, DistanceRange, check_reading, fuse, slm_score
from .fusion import Reading as FusionReading
from .model import SLM_FOLDER, TrainedSmallModel

logger = logging.getLogger(__name__)

Variant: TypeAlias = Literal["slide", "slm", "slm_probability", "slm_distance"]
Normalise: TypeAlias = Literal["training", "population"]

VARIANTS: tuple[str, ...] = ("slide", "slm", "slm_probability", "slm_distance")
SLM = DefaultModel(
    "slm",
    "DIALEVAL_SLM",
    "slide: no SLM is named. Train one with `dialeval train slm --data FILE --output FOLDER`, "
    "or pass slm='FOLDER or hub id', or set DIALEVAL_SLM.",
)


class SlideScorer(Scorer):
    """SLIDE (Zhao et al. 2024) and the variants of its small model.

    Columns: the variant's own, then `slm_probability` (s_p in [0, 1]), `slm_distance` (cosine distance d in [0, 2], lower
    fits better), `slm` (Score_SLM in about [0, 2]), `llm` (in [0, 1], only when fusing), `context_tokens_cut` (oldest tokens
    that did not fit) and `response_tokens_cut` (tokens at the response's end that did not fit).

    Args:
        slm: folder or hub id of the small model; see `DefaultModel`.
        variant: "slide" fuses and needs `llm`; "slm", "slm_probability" and "slm_distance" need the small model only. By
            default "slide" with an `llm`, "slm" without.
        llm: a scorer whose main column is the large model's score in [0, 1].
        fusion: reading of equation 9, see `fuse`.
        slm_scale: see `fuse`.
        clip: keep the normalised distance in [0, 1].
        normalise: "training" uses the model's d_min and d_max; "population" the extremes of the examples scored, as a
            paper that normalises over its evaluation set does.
        round3: round s_p to three decimals, as the published notebook does.
        device: a torch device.

    Raises:
        InputError: an option is unknown, or "slide" is asked for without an `llm`.
        MissingPrerequisite: there is no SLM.
        ModelLoadError: the SLM is damaged or unsafe.
    """

    name = "slide"
    citation = """@inproceedings{zhao-etal-2024-slide,
  title     = {{SLIDE}: A Framework Integrating Small and Large Language Models for Open-Domain Dialogues Evaluation},
  author    = {Zhao, Kun and Yang, Bohao and Tang, Chen and Lin, Chenghua and Zhan, Liang},
  booktitle = {Findings of the Association for Computational Linguistics: ACL 2024},
  year      = {2024}
}"""

    def __init__(  # noqa: PLR0913 - the papers' options, each one named in METHODS
        self,
        slm: str | None = None,
        *,
        variant: Variant | None = None,
        llm: Scorer | None = None,
        fusion: FusionReading = "first_match",
        slm_scale: float = 1.0,
        clip: bool = False,
        normalise: Normalise = "training",
        round3: bool = False,
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        self.variant: str = variant or ("slide" if llm is not None else "slm")
        if self.variant not in VARIANTS:
            raise InputError(f"slide: there is no variant {self.variant!r}. Choose one of {', '.join(VARIANTS)}.")
        if self.variant == "slide" and llm is None:
            raise MissingPrerequisite(
                "slide: the variant 'slide' fuses the small model with a large one, and no llm is given. "
                "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or variant='slm' for the small model alone."
            )
        if variant is None and llm is None:
            logger.warning("slide: no llm is given, so the scores are the small model's alone (variant 'slm')")
        if normalise not in ("training", "population"):
            raise InputError(f"slide: there is no normalise={normalise!r}. Choose 'training' or 'population'.")
        check_reading(fusion)
        _check_options(slm_scale, {"clip": clip, "round3": round3})
        self.llm = llm if self.variant == "slide" else None
        self.fusion = fusion
        self.slm_scale = slm_scale
        self.clip = clip
        self.normalise = normalise
        self.round3 = round3
        self.orientation = "lower" if self.variant == "slm_distance" else "higher"
        highest = {"slide": max(1.0, 2.0 * slm_scale), "slm": 2.0, "slm_probability": 1.0, "slm_distance": 2.0}
        self.range = (0.0, highest[self.variant])
        self.slm_name = SLM.find(slm)
        self.folder = resolve(self.slm_name, revision=revision)
        self._trained = TrainedSmallModel.load(str(self.folder), device=device)
        # Of what was loaded, and once: reading the weights again takes longer than scoring a hundred responses.
        self._model_hash = content_hash(self.folder)
        self.positive_from = self._positive_from(SLM_FOLDER.read_settings(self.folder)["thresholds"])

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, the variant's first."""
        parts = ["slm_probability", "slm_distance", "slm", *(["llm"] if self.llm else []), *self.cuts]
        return (self.variant, *(name for name in parts if name != self.variant))

    @property
    def cuts(self) -> Mapping[str, str]:
        """Tokens of contexts and responses."""
        config = self._trained.model.config
        return {
            "context_tokens_cut": f"the context is longer than {config.max_context_tokens} tokens; its beginning was not read",
            "response_tokens_cut": f"the response is longer than {config.max_response_tokens} tokens; its end was not read",
        }

    def _positive_from(self, thresholds: Mapping[str, float]) -> float:
        """The variant's threshold on the model's validation contexts, else the papers' rule."""
        if self.variant != "slm_distance":
            return thresholds.get(self.variant, POSITIVE_FROM)
        # Training turns distances round. Without a threshold it is the distance whose s_d is 0.5.
        extremes = self._trained.distance_range
        return -thresholds.get("slm_distance", -(extremes.low + extremes.high) / 2)

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        """Method, variant, model, reading of the texts, normalisation and fusion."""
        config = self._trained.model.config
        fused = self.llm is not None
        return {
            "method": "slide",
            "variant": self.variant,
            "slm": self._model_hash,
            "recipe": config.recipe,
            "split": config.split,
            "probability": config.probability_from,
            "format": config.text_format,
            "separator": "sep",
            "speakers": "none",
            "window": f"{config.max_context_tokens}+{config.max_response_tokens}",
            "truncation": "oldest",
            "normalise": self.normalise,
            "d_min": self._trained.distance_range.low,
            "d_max": self._trained.distance_range.high,
            "clip": self.clip or None,
            "round3": self.round3 or None,
            "fusion": self.fusion if fused else None,
            "slm_scale": self.slm_scale if fused else None,
            **({f"llm_{name}": value for name, value in self.llm.signature_fields().items()} if self.llm else {}),
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Judge the responses, all those to one context together."""
        examples = cast("Sequence[Example]", items)
        rows: list[Row] = [Unscored(Reason.EMPTY_INPUT, "the response has no visible character")] * len(examples)
        judged = [index for index, example in enumerate(examples) if not is_blank(example.response.text)]
        for index, row in zip(judged, self._judge([examples[index] for index in judged]), strict=True):
            rows[index] = row
        if self.llm is not None:
            rows = [
                _with_llm(row, answer, self.llm.columns[0])
                for row, answer in zip(rows, self.llm.score_batch(items), strict=True)
            ]
        return [self._complete(row, self._trained.distance_range) for row in rows]

    def finish(self, rows: list[Row]) -> list[Row]:
        """With normalise="population", score again with the extremes of these rows' distances."""
        if self.normalise == "training":
            return rows
        distances = [cast("float", row["slm_distance"]) for row in rows if not isinstance(row, Unscored)]
        if not distances:
            return rows
        population = DistanceRange(min(distances), max(distances))
        return [self._complete(row, population) for row in rows]

    def _judge(self, examples: Sequence[Example]) -> list[dict[str, float | None]]:
        """Distance and probability of every example, in order."""
        if not examples:
            return []
        pairs = [(tuple(turn.text for turn in example.context), example.response.text) for example in examples]
        names = ("slm_distance", "slm_probability", *self.cuts)
        judgement = self._trained.model.judge(pairs)
        return [dict(zip(names, map(float, values), strict=True)) for values in zip(*judgement, strict=True)]

    def _complete(self, row: Row, distance_range: DistanceRange) -> Row:
        """Add the columns that follow from distance, probability and the large model's score."""
        if isinstance(row, Unscored):
            return row
        columns = dict(row)
        distance, probability = cast("float", row["slm_distance"]), cast("float", row["slm_probability"])
        if self.round3:
            columns["slm_probability"] = probability = round(probability, 3)
        columns["slm"] = slm_score(distance_range.normalise(distance, clip=self.clip), probability)
        if self.llm is not None:
            columns["slide"] = fuse(
                cast("float", columns["slm"]), cast("float", row["llm"]), reading=self.fusion, slm_scale=self.slm_scale
            )
        return columns


def _check_options(slm_scale: object, switches: Mapping[str, object]) -> None:
    """Refuse what a command line could have turned into a value of another type: the word "no" would count as true."""
    if isinstance(slm_scale, bool) or not isinstance(slm_scale, (int, float)) or not math.isfinite(slm_scale):
        raise InputError(f"slide: slm_scale is {slm_scale!r}. Give a finite number.")
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise InputError(f"slide: {name} is {value!r}. Give true or false.")


def _with_llm(row: Row, answer: Row, main: str) -> Row:
    """Join the large model's row to the small model's; a row that one of them could not score stays unscored."""
    if isinstance(row, Unscored):
        return row
    if isinstance(answer, Unscored):
        return answer
    return {**row, "llm": answer[main]}
