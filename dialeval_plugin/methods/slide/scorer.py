"""The scorer `slide`: the small model's distance and probability, alone or fused with a large model's score."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal, TypeAlias, cast

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.options import with_options
from dialeval_plugin.core.scorer import Scorer, read_percentiles, score_rows
from dialeval_plugin.core.scores import Row, Unscored, finite_or_unscored
from dialeval_plugin.models.folders import DefaultModel, model_identity, resolve

from .fusion import POSITIVE_FROM, DistanceRange, FusionReading, fuse_rows, slm_score
from .model import TrainedSmallModel

logger = logging.getLogger(__name__)

SlideVariant: TypeAlias = Literal["slide", "slm", "slm_probability", "slm_distance"]
SLM = DefaultModel("slide", "DIALEVAL_SLM", packaged="slide")


@dataclass(frozen=True)
class SlideOptions:
    """Options of `slide`.

    Attributes:
        slm: folder or hub id of the small model; see `DefaultModel`.
        variant: "slide" fuses and needs `llm`; "slm", "slm_probability" and "slm_distance" need the small model only. By
            default "slide" with an `llm`, "slm" without.
        llm: a scorer whose main column is the large model's score in [0, 1].
        fusion: reading of equation 9, see `fuse`.
        slm_scale: multiplies Score_SLM before it is fused; 0.5 puts both scores on [0, 1].
        clip: keep the normalised distance in [0, 1].
        normalise: "training" uses the model's d_min and d_max; "population" the extremes of the examples scored, as a
            paper that normalises over its evaluation set does.
        round3: round s_p to three decimals, as the published notebook does.
        device: a torch device.
        revision: of a small model on the hub.
    """

    slm: str | None = None
    _: KW_ONLY
    variant: SlideVariant | None = None
    llm: Scorer | None = None
    fusion: FusionReading = "first_match"
    slm_scale: float = 1.0
    clip: bool = False
    normalise: Literal["training", "population"] = "training"
    round3: bool = False
    device: str | None = None
    revision: str | None = None


class SlideScorer(Scorer):
    """SLIDE (Zhao et al. 2024): how well a response fits, by a small model's distance and probability, alone or with an LLM's.

    Columns: the variant's own, then `slm_probability` (s_p in [0, 1]), `slm_distance` (cosine distance d in [0, 2], lower
    fits better), `slm` (Score_SLM in about [0, 2]), `llm` (in [0, 1], only when fusing), `context_tokens_cut` (oldest tokens
    that did not fit) and `response_tokens_cut` (tokens at the response's end that did not fit).

    Raises:
        InputError: an option is unknown or wrong.
        MissingPrerequisite: there is no SLM, or "slide" is asked for without an `llm`.
        ModelLoadError: the SLM is damaged or unsafe.
    """

    name = "slide"
    needs = ("trained model",)
    packaged_model = "slide"
    range = (0.0, 2.0)
    citation = """@inproceedings{zhao-etal-2024-slide,
  title     = {{SLIDE}: A Framework Integrating Small and Large Language Models for Open-Domain Dialogues Evaluation},
  author    = {Zhao, Kun and Yang, Bohao and Tang, Chen and Lin, Chenghua and Zhan, Liang},
  booktitle = {Findings of the Association for Computational Linguistics: ACL 2024},
  year      = {2024}
}"""

    @with_options(SlideOptions)
    def __init__(self, options: SlideOptions) -> None:
        self.variant: str = options.variant or ("slm" if options.llm is None else "slide")
        if self.variant == "slide" and options.llm is None:
            raise MissingPrerequisite(
                "slide: the variant 'slide' fuses the small model with a large one, and no llm is given. "
                "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or variant='slm' for the small model alone."
            )
        if options.variant is None and options.llm is None:
            logger.warning("slide: no llm is given, so the scores are the small model's alone (variant 'slm')")
        self.options = options
        self.llm = options.llm if self.variant == "slide" else None
        self.orientation = "lower" if self.variant == "slm_distance" else "higher"
        highest = {"slide": max(1.0, 2.0 * options.slm_scale), "slm": 2.0, "slm_probability": 1.0, "slm_distance": 2.0}
        self.range = (0.0, highest[self.variant])
        self.slm_name = SLM.find(options.slm)
        self.folder = resolve(self.slm_name, revision=options.revision)
        self._trained = TrainedSmallModel.load(str(self.folder), device=options.device)
        # Of what was loaded, and once: reading the weights again takes longer than scoring a hundred responses.
        self.model_hash = model_identity(self.folder)
        self.positive_from = self._positive_from(self._trained.thresholds)
        self.percentiles = read_percentiles(self, self.folder)

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
            "slm": self.model_hash,
            "recipe": config.recipe,
            "split": config.split,
            "probability": config.probability_from,
            "format": config.text_format,
            "separator": "sep",
            "speakers": "none",
            "window": f"{config.max_context_tokens}+{config.max_response_tokens}",
            "truncation": "oldest",
            "normalise": self.options.normalise,
            "d_min": self._trained.distance_range.low,
            "d_max": self._trained.distance_range.high,
            "clip": self.options.clip or None,
            "round3": self.options.round3 or None,
            "fusion": self.options.fusion if fused else None,
            "slm_scale": self.options.slm_scale if fused else None,
            **({f"llm_{name}": value for name, value in self.llm.signature_fields().items()} if self.llm else {}),
        }

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Judge the responses, all those to one context together, and have the large model judge them."""
        rows = self.small_model_rows(items)
        if self.llm is None:
            return rows
        main = self.llm.columns[0]
        answers = (row if isinstance(row, Unscored) else cast("float", row[main]) for row in score_rows(self.llm, items))
        return [self._fused(row, llm) for row, llm in zip(rows, answers, strict=True)]

    def explain(self, items: Sequence[Item]) -> list[str]:
        """Return for each response what the small model says of it and, with a table of percentiles, of people's median one."""
        medians = {} if self.percentiles is None else self.percentiles.medians
        return [
            row.detail
            if isinstance(row, Unscored)
            else ", ".join(
                f"{words} {row[name]:.2f}" + (f" (people's {medians[name]:.2f})" if name in medians else "")
                for words, name in (("probability", "slm_probability"), ("distance", "slm_distance"))
            )
            for row in self.small_model_rows(items)
        ]

    def small_model_rows(self, items: Sequence[Item]) -> list[Row]:
        """The small model's columns of responses, blank ones among them."""
        examples = cast("Sequence[Example]", items)
        judged = iter(self._judge([example for example in examples if self.unscorable(example) is None]))
        return [self.unscorable(example) or next(judged) for example in examples]

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """With normalise="population", score again with the extremes of these rows' distances."""
        if self.options.normalise == "training":
            return rows
        distances = [cast("float", row["slm_distance"]) for row in rows if not isinstance(row, Unscored)]
        if not distances:
            return rows
        population = DistanceRange(min(distances), max(distances))
        return [
            row if isinstance(row, Unscored) else self._fused(self._with_score(row, population), row.get("llm")) for row in rows
        ]

    def _judge(self, examples: Sequence[Example]) -> list[Row]:
        if not examples:
            return []
        pairs = [(tuple(turn.text for turn in example.context), example.response.text) for example in examples]
        names = ("slm_distance", "slm_probability", *self.cuts)
        judgement = self._trained.model.judge(pairs)
        rows = [dict(zip(names, map(float, values), strict=True)) for values in zip(*judgement, strict=True)]
        if self.options.round3:
            rows = [{**row, "slm_probability": round(row["slm_probability"], 3)} for row in rows]
        return [finite_or_unscored(self._with_score(row, self._trained.distance_range)) for row in rows]

    def _with_score(self, row: Mapping[str, float | None], distance_range: DistanceRange) -> dict[str, float | None]:
        distance, probability = cast("float", row["slm_distance"]), cast("float", row["slm_probability"])
        return {**row, "slm": slm_score(distance_range.normalise(distance, clip=self.options.clip), probability)}

    def _fused(self, row: Row, llm: float | Unscored | None) -> Row:
        return row if llm is None else fuse_rows(row, llm, reading=self.options.fusion, slm_scale=self.options.slm_scale)
