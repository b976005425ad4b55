"""SLIDE's small model as a scorer, and what any other scorer needs to take its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from annotated_types import Ge, Le

from dialeval_plugin.core.dialogue import Example, Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import option_kinds
from dialeval_plugin.core.registry import load_scorer, scorer_factory
from dialeval_plugin.core.scorer import Scorer, score_rows
from dialeval_plugin.core.scores import Row, Unscored, share_of
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.context_texts import longest_response
from dialeval_plugin.models.folders import DefaultModel, model_identity, resolve
from dialeval_plugin.models.runtimes.exported import HeadFile
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, Precision, Runtime, RuntimeChoice

from .fusion import POSITIVE_FROM, SMALL_WEIGHT, DistanceRange, FusionReading, slm_score
from .judging import HEAD_FILE, SLM_FOLDER, SmallModelJudge, distance_range

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

SLM = DefaultModel("slide", "DIALEVAL_SLM", packaged="slide")
SLM_COLUMNS = ("slm_probability", "slm_distance", "slm")

SlideVariant: TypeAlias = Literal["slide", "slm", "slm_probability", "slm_distance"]


@dataclass(frozen=True)
class SlideOptions:
    """Options of `slide`.

    Attributes:
        slm: folder or hub id of the small model; see `DefaultModel`.
        variant: "slide" fuses and needs `llm`; "slm", "slm_probability" and "slm_distance" need the small model only. By
            default "slide" with an `llm`, "slm" without.
        llm: a scorer whose main column is the large model's score.
        small: name of a scorer that takes the place of the SLM, as "general"; its score counts as a share of its range.
        level: "turn", or "dialogue" where `small` and `llm` score whole dialogues.
        fusion: see `Fusion`; by default "first_match", and "mixture" with `small`.
        small_weight: of the small model in a mixture.
        cascade: how far from 0.5 the small model's score may be for the large one to be asked. Beyond, it stands alone, and
            the column `llm` is empty. None asks always.
        slm_scale: multiplies Score_SLM before it is fused; 0.5 puts both scores on [0, 1].
        clip: keep the normalised distance in [0, 1].
        normalise: "training" uses the model's d_min and d_max; "population" the extremes of the examples scored, as a
            paper that normalises over its evaluation set does.
        round3: round s_p to three decimals, as the published notebook does.
        backend: what runs the small model, see `Backend`.
        dtype: in which its encoder multiplies, see `Precision`.
        device: a torch device.
        revision: of a small model on the hub.
    """

    slm: str | None = None
    _: KW_ONLY
    variant: SlideVariant | None = None
    llm: Scorer | None = None
    small: str | None = None
    level: Level = "turn"
    fusion: FusionReading | None = None
    small_weight: Annotated[float, Ge(0), Le(1)] = SMALL_WEIGHT
    cascade: Annotated[float, Ge(0)] | None = None
    slm_scale: float = 1.0
    clip: bool = False
    normalise: Literal["training", "population"] = "training"
    round3: bool = False
    backend: Backend = DEFAULT_BACKEND
    dtype: Precision = "float32"
    device: str | None = None
    revision: str | None = None


class SlmScorer(Scorer):
    """The papers' small model, by those of the options that are about it; see `SlideScorer` for its columns."""

    name = "slide"

    def __init__(self, options: SlideOptions) -> None:
        self.options = options
        self.folder = resolve(SLM.find(options.slm), revision=options.revision)
        settings = SLM_FOLDER.read_settings(self.folder)
        self._thresholds: dict[str, float] = settings["thresholds"]
        self._distance_range = distance_range(self.folder, settings)
        choice = RuntimeChoice(options.backend, options.dtype, options.device)
        config = settings["config"]
        head = HeadFile(self.folder, HEAD_FILE, f"slide-{config.split}-{config.probability_from}")
        self._model = SmallModelJudge(self._runtime(choice, head), config)
        # Of what was loaded, and once: reading the weights again takes longer than scoring a hundred responses.
        self.model_hash = model_identity(self.folder)

    def _runtime(self, choice: RuntimeChoice, head: HeadFile) -> Runtime:
        def load(choice: RuntimeChoice) -> TorchRuntime:
            # torch is imported only where it runs the model, or writes what runs it.
            from .model import load_runtime

            return load_runtime(self.folder, choice)

        return open_runtime(self.folder, choice, load=load, calibration=mini.calibration_texts, head=head)

    @property
    def columns(self) -> tuple[str, ...]:
        """What it says of a response, and what it did not read."""
        return (*SLM_COLUMNS, *self.truncation_columns)

    @property
    def truncation_columns(self) -> Mapping[str, str]:
        """Tokens of contexts and responses."""
        config = self._model.config
        longest = longest_response(config.max_response_windows, config.max_response_tokens)
        return {
            "context_tokens_cut": f"the context is longer than {config.max_context_tokens} tokens; its beginning was not read",
            "response_tokens_cut": f"the response is longer than {longest}; its end was not read",
        }

    def threshold(self, variant: str) -> float:
        """The variant's threshold on the model's validation contexts, else the papers' rule."""
        thresholds = self._thresholds
        if variant != "slm_distance":
            return thresholds.get(variant, POSITIVE_FROM)
        # Training turns distances round. Without a threshold it is the distance whose s_d is 0.5.
        extremes = self._distance_range
        return -thresholds.get("slm_distance", -(extremes.low + extremes.high) / 2)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Distance, probability and Score_SLM of responses, all those to one context judged together."""
        examples = cast("Sequence[Example]", items)
        pairs = [(tuple(turn.text for turn in example.context), example.response.text) for example in examples]
        names = ("slm_distance", "slm_probability", *self.truncation_columns)
        judgement = self._model.judge(pairs)
        rows = [dict(zip(names, map(float, values), strict=True)) for values in zip(*judgement, strict=True)]
        if self.options.round3:
            rows = [{**row, "slm_probability": round(row["slm_probability"], 3)} for row in rows]
        return [self.with_range(row, self._distance_range) for row in rows]

    def reset_cache(self) -> None:
        """Forget the contexts' vectors."""
        self._model.contexts.clear()

    def with_range(self, row: Mapping[str, float | None], distance_range: DistanceRange) -> dict[str, float | None]:
        """The row with the Score_SLM that follows from these extremes of distances."""
        distance, probability = cast("float", row["slm_distance"]), cast("float", row["slm_probability"])
        return {**row, "slm": slm_score(distance_range.normalise(distance, clip=self.options.clip), probability)}

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Probability and distance of each response and, with a table of percentiles, people's median ones."""
        medians = {} if self.percentiles is None else self.percentiles.medians
        return [
            row.detail
            if isinstance(row, Unscored)
            else ", ".join(
                f"{words} {row[name]:.2f}" + (f" (people's {medians[name]:.2f})" if name in medians else "")
                for words, name in (("probability", "slm_probability"), ("distance", "slm_distance"))
            )
            for row in score_rows(self, items)
        ]

    def signature_fields(self) -> dict[str, SignatureValue]:
        """Model, reading of the texts, and normalisation."""
        config, extremes = self._model.config, self._distance_range
        return {
            "slm": self.model_hash,
            "recipe": config.recipe,
            "split": config.split,
            "probability": config.probability_from,
            "format": config.text_format,
            "separator": "sep",
            "speakers": "none",
            "window": f"{config.max_context_tokens}+{config.max_response_tokens}",
            "response_windows": config.max_response_windows if config.max_response_windows > 1 else None,
            "truncation": "oldest",
            **self._model.runtime.signature_fields(),
            "normalise": self.options.normalise,
            "d_min": extremes.low,
            "d_max": extremes.high,
            "clip": self.options.clip or None,
            "round3": self.options.round3 or None,
        }


def load_small(options: SlideOptions) -> Scorer:
    """Open the scorer that the option `small` names; what the options say of level and runtime it gets where it takes it.

    Raises:
        InputError: there is no such scorer, it does not score at this level, or its range has no two ends.
    """
    name, level = options.small or "", options.level
    accepted = option_kinds(scorer_factory(name)) or ()
    given: dict[str, Any] = {field: getattr(options, field) for field in ("backend", "dtype", "device")}
    given["level"] = level if level != "turn" else None
    scorer = load_scorer(name, **{key: value for key, value in given.items() if value is not None and key in accepted})
    if scorer.level != level:
        raise InputError(f"slide: small={name!r} does not score at level {level!r}. Name another scorer or level.")
    check_range(scorer, "small")
    return scorer


def check_range(scorer: Scorer, option: str) -> None:
    """Refuse a scorer whose scores have no place between two ends."""
    if not all(map(math.isfinite, scorer.range)):
        raise InputError(
            f"slide: {option}: the range of {scorer.name!r} has no two ends, so that its scores cannot be fused. Name another."
        )


def share_of_range(scorer: Scorer, score: float) -> float:
    """Where a score lies between the ends of its scorer's range: 0 for the worst, 1 for the best."""
    share = share_of(score, scorer.range)
    return 1 - share if scorer.orientation == "lower" else share
