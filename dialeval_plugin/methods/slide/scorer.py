"""The scorer `slide`: a small model's score, alone or fused with a large model's."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

from annotated_types import Ge, Le

from dialeval_plugin.core.dialogue import Example, Item, Level
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.locks import one_at_a_time
from dialeval_plugin.core.registry import load_scorer, option_kinds, scorer_factory, with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import Scorer, read_percentiles, score_rows
from dialeval_plugin.core.scores import Row, Unscored, share_of
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.folders import DefaultModel, model_identity, resolve
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import DEFAULT_BACKEND, Backend, HeadFile, Precision, RuntimeChoice
from dialeval_plugin.models.texts import longest_response

from .fusion import POSITIVE_FROM, SMALL_WEIGHT, DistanceRange, Fusion, FusionReading, slm_score
from .judging import HEAD_FILE, SLM_FOLDER, SmallModelConfig, SmallModelJudge, distance_range

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

logger = logging.getLogger(__name__)

SLM = DefaultModel("slide", "DIALEVAL_SLM", packaged="slide")
SLM_COLUMNS = ("slm_probability", "slm_distance", "slm")

SlideVariant: TypeAlias = Literal["slide", "slm", "slm_probability", "slm_distance"]


@dataclass(frozen=True)
class SlideOptions:
    """Options of `slide`.

    Attributes:
        slm: folder or hub id of the small model; by default that of DIALEVAL_SLM, else the bundled one.
        variant: "slide" combines both models and needs `llm`; "slm", "slm_probability" and "slm_distance" need the small model
            only. By default "slide" with an `llm`, otherwise "slm".
        llm: scorer whose main column is the large model's score.
        small: name of a scorer that replaces the SLM, such as "general"; its score is used as a share of its range.
        level: "turn" scores one response; "dialogue" a whole dialogue, if `small` and `llm` score dialogues.
        fusion: how the two scores are combined: the cases of equation 9 from top to bottom ("first_match", the default) or from
            bottom to top ("llm_first"), the mean where the models disagree ("agree"), or a weighted mean ("mixture", the
            default with `small`).
        small_weight: weight of the small model in a mixture.
        cascade: the large model scores a response if the small model's score is at most this far from 0.5. Otherwise the small
            model's score is final, and the column `llm` is empty. None: the large model scores all.
        slm_scale: factor of Score_SLM before the scores are combined; 0.5 puts both scores on [0, 1].
        clip: limit the normalised distance to [0, 1].
        normalise: "training" uses the model's d_min and d_max; "population" uses the extremes of the examples that are scored,
            as in papers that normalise over their evaluation set.
        round3: round s_p to three decimals, as in the published notebook.
        backend: runtime of the small model; auto is the fastest installed one that is as exact as torch.
        dtype: number format of multiplications in the encoder on torch; float16 only on a GPU.
        device: torch device for the small model; by default a GPU if there is one.
        revision: revision of the small model on the hub.
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
    """The papers' small model, with its share of the options; see `SlideScorer` for its columns."""

    name = "slide"

    def __init__(self, options: SlideOptions) -> None:
        self.options = options
        self.folder = resolve(SLM.find(options.slm), revision=options.revision)
        settings = SLM_FOLDER.read_settings(self.folder)
        self._thresholds: dict[str, float] = settings["thresholds"]
        self._distance_range = distance_range(self.folder, settings)
        config: SmallModelConfig = settings["config"]
        head = HeadFile(self.folder, HEAD_FILE, f"slide-{config.split}-{config.probability_from}")
        choice = RuntimeChoice(options.backend, options.dtype, options.device)
        runtime = open_runtime(self.folder, choice, load=self._on_torch, calibration=mini.calibration_texts, head=head)
        self._model = SmallModelJudge(runtime, config)
        # Hashed once, when loaded: reading the weights again takes longer than scoring a hundred responses.
        self.model_hash = model_identity(self.folder)
        longest = longest_response(config.max_response_windows, config.max_response_tokens)
        self.truncation_columns = {
            "context_tokens_cut": f"the context is longer than {config.max_context_tokens} tokens; its beginning was not read",
            "response_tokens_cut": f"the response is longer than {longest}; its end was not read",
        }
        self.columns = (*SLM_COLUMNS, *self.truncation_columns)

    def _on_torch(self, choice: RuntimeChoice) -> TorchRuntime:
        from .model import load_runtime  # The first to import torch.

        return load_runtime(self.folder, choice)

    def threshold(self, variant: str) -> float:
        """Return the variant's threshold from the model's validation contexts, else from the papers' rule."""
        thresholds = self._thresholds
        if variant != "slm_distance":
            return thresholds.get(variant, POSITIVE_FROM)
        # Training negates distances. Without a threshold it is the distance whose s_d is 0.5.
        extremes = self._distance_range
        return -thresholds.get("slm_distance", -(extremes.low + extremes.high) / 2)

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Return distance, probability and Score_SLM of responses; those with one context are judged together."""
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
        """Return the row with its Score_SLM recomputed from these extremes of distances."""
        distance, probability = cast("float", row["slm_distance"]), cast("float", row["slm_probability"])
        return {**row, "slm": slm_score(distance_range.normalise(distance, clip=self.options.clip), probability)}

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Report the probability and distance of each response and, with a table of percentiles, people's medians."""
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
        """Return the model, the reading of the texts, and the normalisation."""
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
    """Open the scorer that the option `small` names, with those options of level and runtime that it has.

    Raises:
        InputError: there is no such scorer, it does not score at this level, or its range is unbounded.
    """
    name, level = options.small or "", options.level
    accepted = option_kinds(scorer_factory(name)) or ()
    values: dict[str, Any] = {field: getattr(options, field) for field in ("backend", "dtype", "device")}
    values["level"] = level if level != "turn" else None
    scorer = load_scorer(name, **{key: value for key, value in values.items() if value is not None and key in accepted})
    if scorer.level != level:
        raise InputError(f"slide: small={name!r} does not score at level {level!r}. Name another scorer or level.")
    check_range(scorer, "small")
    return scorer


def check_range(scorer: Scorer, option: str) -> None:
    """Refuse a scorer with an unbounded range."""
    if not all(map(math.isfinite, scorer.range)):
        raise InputError(
            f"slide: {option}: the range of {scorer.name!r} has no two ends, so that its scores cannot be fused. Name another."
        )


def share_of_range(scorer: Scorer, score: float) -> float:
    """Return a score as a share of its scorer's range: 0 for the worst, 1 for the best."""
    share = share_of(score, scorer.range)
    return 1 - share if scorer.orientation == "lower" else share


_OF_THE_SLM = ("slm", "clip", "normalise", "round3", "revision", "slm_scale")


class SlideScorer(Scorer):
    """SLIDE (Zhao et al. 2024): how well a response fits its context, by a small model alone or together with an LLM.

    Columns: the variant's own, then `slm_probability` (s_p in [0, 1]), `slm_distance` (cosine distance d in [0, 2], lower
    fits better), `slm` (Score_SLM in about [0, 2]), `llm` (in [0, 1], only when fusing), and the numbers of tokens not read,
    `context_tokens_cut` (the context's oldest) and `response_tokens_cut` (the response's last). With the option `small`, the
    SLM's columns are replaced by `small`, that scorer's score in [0, 1], and that scorer's columns.

    Raises:
        InputError: an option is unknown or wrong, or is incompatible with another.
        MissingPrerequisite: there is no SLM, or the variant is "slide" and there is no `llm`.
        ModelLoadError: the SLM is damaged or unsafe.
    """

    name = "slide"
    needs = ("trained model",)
    packaged_model = "slide"
    levels = ("turn", "dialogue")
    range = (0.0, 2.0)
    citation = bibtex("zhao-etal-2024-slide")

    @with_options(SlideOptions)
    def __init__(self, options: SlideOptions) -> None:
        self.variant: str = options.variant or ("slide" if options.llm is not None or options.small is not None else "slm")
        _check(options, self.variant)
        if options.variant is None and self.variant == "slm":
            logger.warning("slide: no llm is given, so the scores are the small model's alone (variant 'slm')")
        self.options = options
        self.level = options.level
        self.llm = options.llm if self.variant == "slide" else None
        self.fusion = Fusion(
            options.fusion or ("first_match" if options.small is None else "mixture"), options.slm_scale, options.small_weight
        )
        if self.fusion.reading != "mixture" and options.small_weight != SMALL_WEIGHT:
            raise InputError(f"slide: small_weight is about a mixture, and fusion is {self.fusion.reading!r}. Leave one out.")
        self.orientation = "lower" if self.variant == "slm_distance" else "higher"
        self.slm = SlmScorer(options) if options.small is None else None
        self.small = self.slm or load_small(options)
        self._fused = "slm" if self.slm else "small"
        self.truncation_columns = self.small.truncation_columns
        of_small = (*(["small"] if self.slm is None else []), *self.small.columns)
        parts = [name for name in of_small if name not in self.truncation_columns]
        self.columns = tuple(dict.fromkeys((self.variant, *parts, *(["llm"] if self.llm else []), *self.truncation_columns)))
        self.range = (0.0, 1.0)
        if self.slm is not None:
            highest = {"slide": max(1.0, 2.0 * options.slm_scale), "slm": 2.0, "slm_probability": 1.0, "slm_distance": 2.0}
            self.range = (0.0, highest[self.variant])
            self.folder, self.model_hash = self.slm.folder, self.slm.model_hash
            self.positive_from = self.slm.threshold(self.variant)
            self.percentiles = self.slm.percentiles = read_percentiles(self, self.folder)
            self.scope = Scope.read(self.folder)

    def unscorable(self, item: Item) -> Unscored | None:
        """Return the small model's reason, if any."""
        return self.small.unscorable(item)

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        """Return method, variant, small model, fusion and judge."""
        prefix = "" if self.slm else "small_"
        of_small = {f"{prefix}{name}": value for name, value in self.small.signature_fields().items()}
        own = {"method": "slide", "variant": self.variant, **of_small}
        if self.llm is None:
            return own
        return {
            **own,
            **self.fusion.signature_fields(),
            "cascade": self.options.cascade,
            **{f"llm_{name}": value for name, value in self.llm.signature_fields().items()},
        }

    @property
    def needs_whole_run(self) -> bool:
        """Whether `normalise` is "population"."""
        return self.options.normalise == "population"

    def reset_cache(self) -> None:
        """Clear the caches of both models."""
        self.small.reset_cache()
        if self.llm is not None:
            self.llm.reset_cache()

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score items with the small model, and with the large one those that the cascade passes on."""
        rows = self.small_model_rows(items)
        if self.llm is None:
            return rows
        main = self.llm.columns[0]
        places = [place for place, row in enumerate(rows) if not isinstance(row, Unscored) and self._asks(row)]
        llm_rows = score_rows(self.llm, [items[place] for place in places]) if places else []
        answers = {
            place: row if isinstance(row, Unscored) else share_of_range(self.llm, cast("float", row[main]))
            for place, row in zip(places, llm_rows, strict=True)
        }
        return [self.fusion.rows(row, answers.get(place), self._fused) for place, row in enumerate(rows)]

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Return the small model's explanation for each item."""
        return self.small.explain(items)

    @one_at_a_time
    def small_model_rows(self, items: Sequence[Item]) -> list[Row]:
        """Return the small model's columns of items, blank ones included; another scorer's begin with `small`."""
        rows = score_rows(self.small, items)
        if self.slm is not None:
            return rows
        main = self.small.columns[0]
        return [
            row if isinstance(row, Unscored) else {"small": share_of_range(self.small, cast("float", row[main])), **row}
            for row in rows
        ]

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """Recompute scores from the extremes of these rows' distances if `normalise` is "population"."""
        if self.slm is None or self.options.normalise == "training":
            return rows
        distances = [cast("float", row["slm_distance"]) for row in rows if not isinstance(row, Unscored)]
        if not distances:
            return rows
        population = DistanceRange(min(distances), max(distances))
        again = [row if isinstance(row, Unscored) else self.slm.with_range(row, population) for row in rows]
        if self.llm is None:
            return list(again)
        return [row if isinstance(row, Unscored) else self.fusion.rows(row, row["llm"]) for row in again]

    def _asks(self, row: Mapping[str, float | None]) -> bool:
        distance = abs(self.fusion.alone(cast("float", row[self._fused])) - POSITIVE_FROM)
        return self.options.cascade is None or distance <= self.options.cascade


def _check(options: SlideOptions, variant: str) -> None:
    if variant == "slide" and options.llm is None:
        fused = "the variant 'slide'" if options.small is None else f"small={options.small!r}"
        alone = "variant='slm' for the small model alone" if options.small is None else f"the scorer {options.small!r} itself"
        raise MissingPrerequisite(
            f"slide: {fused} fuses the small model with a large one, and no llm is given. "
            f"Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or {alone}."
        )
    if options.small is not None:
        defaults = SlideOptions()
        if changed := [name for name in _OF_THE_SLM if getattr(options, name) != getattr(defaults, name)]:
            raise InputError(f"slide: {changed[0]} is about the SLM, in whose place small={options.small!r} is. Leave one out.")
        if variant != "slide":
            raise InputError(f"slide: variant={variant!r} is the SLM's, and small={options.small!r} is given. Leave one out.")
    elif options.level != "turn":
        raise InputError("slide: the SLM judges responses. Give small='general' to fuse scores of whole dialogues.")
    if options.llm is not None:
        check_range(options.llm, "llm")
        if options.llm.level != options.level:
            raise InputError(
                f"slide: llm judges at level {options.llm.level!r}, and level is {options.level!r}. Make them one."
            )
    if options.cascade is not None and options.normalise == "population":
        raise InputError("slide: cascade looks at one response, and normalise='population' at all. Leave one of them out.")
