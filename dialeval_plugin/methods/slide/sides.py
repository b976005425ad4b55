"""What stands on the small model's side of SLIDE's fusion: the papers' contrastive model, or any other scorer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, cast

from dialeval_plugin.core.dialogue import Example, Item, Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import option_names
from dialeval_plugin.core.registry import load_scorer, scorer_factory
from dialeval_plugin.core.scorer import Scorer, score_rows
from dialeval_plugin.core.scores import Row, Unscored, finite_or_unscored, share_of
from dialeval_plugin.core.signature import SignatureValue
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.context_texts import longest_response
from dialeval_plugin.models.folders import DefaultModel, model_identity, resolve
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import Runtime, RuntimeChoice

from .fusion import POSITIVE_FROM, DistanceRange, slm_score
from .judging import HEAD_FILE, SLM_FOLDER, SmallModelJudge, distance_range

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

SLM = DefaultModel("slide", "DIALEVAL_SLM", packaged="slide")
SLM_COLUMNS = ("slm_probability", "slm_distance", "slm")


class SmallSide(ABC):
    """A model that judges before the large one is asked."""

    fused: str
    """The column that is fused."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of its columns but those of `cuts`."""

    @property
    @abstractmethod
    def cuts(self) -> Mapping[str, str]:
        """As of a scorer."""

    @abstractmethod
    def rows(self, items: Sequence[Item]) -> list[Row]:
        """Its columns of items that the fusion does not call unscorable."""

    @abstractmethod
    def new_block(self) -> None:
        """As of a scorer."""

    @abstractmethod
    def explain(self, items: Sequence[Item], medians: Mapping[str, float]) -> list[str]:
        """As of a scorer, with people's median values."""

    @abstractmethod
    def signature_fields(self) -> dict[str, SignatureValue]:
        """Everything of it that can move a number."""


class ContrastiveSide(SmallSide):
    """The papers' small model.

    Args:
        slm: folder or hub id; see `DefaultModel`.
        clip: keep the normalised distance in [0, 1].
        normalise: what the signature says of it; "population" takes `with_range` over the rows of a run.
        round3: round s_p to three decimals.
        runtime: what runs it.
    """

    fused = "slm"
    columns = SLM_COLUMNS

    def __init__(
        self,
        slm: str | None,
        *,
        clip: bool,
        normalise: Literal["training", "population"],
        round3: bool,
        runtime: RuntimeChoice,
        revision: str | None,
    ) -> None:
        self.folder = resolve(SLM.find(slm), revision=revision)
        settings = SLM_FOLDER.read_settings(self.folder)
        self._thresholds: dict[str, float] = settings["thresholds"]
        self._distance_range = distance_range(self.folder, settings)
        self._model = SmallModelJudge(self._runtime(runtime), settings["config"])
        # Of what was loaded, and once: reading the weights again takes longer than scoring a hundred responses.
        self.model_hash = model_identity(self.folder)
        self._clip, self._normalise, self._round3 = clip, normalise, round3

    def _runtime(self, choice: RuntimeChoice) -> Runtime:
        def load(choice: RuntimeChoice) -> TorchRuntime:
            # torch is imported only where it runs the model, or writes what runs it.
            from .model import load_runtime

            return load_runtime(self.folder, choice)

        return open_runtime(self.folder, choice, load=load, calibration=mini.calibration_texts, head_file=HEAD_FILE)

    @property
    def cuts(self) -> Mapping[str, str]:
        """Tokens of contexts and responses."""
        config = self._model.config
        longest = longest_response(config.max_response_windows, config.max_response_tokens)
        return {
            "context_tokens_cut": f"the context is longer than {config.max_context_tokens} tokens; its beginning was not read",
            "response_tokens_cut": f"the response is longer than {longest}; its end was not read",
        }

    def positive_from(self, variant: str) -> float:
        """The variant's threshold on the model's validation contexts, else the papers' rule."""
        thresholds = self._thresholds
        if variant != "slm_distance":
            return thresholds.get(variant, POSITIVE_FROM)
        # Training turns distances round. Without a threshold it is the distance whose s_d is 0.5.
        extremes = self._distance_range
        return -thresholds.get("slm_distance", -(extremes.low + extremes.high) / 2)

    def rows(self, items: Sequence[Item]) -> list[Row]:
        """Distance, probability and Score_SLM of responses, all those to one context judged together."""
        if not items:
            return []
        examples = cast("Sequence[Example]", items)
        pairs = [(tuple(turn.text for turn in example.context), example.response.text) for example in examples]
        names = ("slm_distance", "slm_probability", *self.cuts)
        judgement = self._model.judge(pairs)
        rows = [dict(zip(names, map(float, values), strict=True)) for values in zip(*judgement, strict=True)]
        if self._round3:
            rows = [{**row, "slm_probability": round(row["slm_probability"], 3)} for row in rows]
        return [finite_or_unscored(self.with_range(row, self._distance_range)) for row in rows]

    def new_block(self) -> None:
        """Forget the contexts' vectors."""
        self._model.contexts.clear()

    def with_range(self, row: Mapping[str, float | None], distance_range: DistanceRange) -> dict[str, float | None]:
        """The row with the Score_SLM that follows from these extremes of distances."""
        distance, probability = cast("float", row["slm_distance"]), cast("float", row["slm_probability"])
        return {**row, "slm": slm_score(distance_range.normalise(distance, clip=self._clip), probability)}

    def explain(self, items: Sequence[Item], medians: Mapping[str, float]) -> list[str]:
        """Probability and distance of each response."""
        return [
            row.detail
            if isinstance(row, Unscored)
            else ", ".join(
                f"{words} {row[name]:.2f}" + (f" (people's {medians[name]:.2f})" if name in medians else "")
                for words, name in (("probability", "slm_probability"), ("distance", "slm_distance"))
            )
            for row in self.rows(items)
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
            "normalise": self._normalise,
            "d_min": extremes.low,
            "d_max": extremes.high,
            "clip": self._clip or None,
            "round3": self._round3 or None,
        }


class ScorerSide(SmallSide):
    """Any scorer, by its name; the column `small` is its score as a share of its range, 1 for the best.

    Raises:
        InputError: there is no such scorer, it does not score at this level, or its range has no two ends.
    """

    fused = "small"

    def __init__(self, name: str, level: Level, runtime: RuntimeChoice) -> None:
        accepted = option_names(scorer_factory(name)) or ()
        given: dict[str, Any] = {"level": level if level != "turn" else None, **asdict(runtime)}
        self.scorer = load_scorer(name, **{key: value for key, value in given.items() if value is not None and key in accepted})
        if self.scorer.level != level:
            raise InputError(f"slide: small={name!r} does not score at level {level!r}. Name another scorer or level.")
        check_range(self.scorer, "small")

    @property
    def columns(self) -> tuple[str, ...]:
        """`small`, and the scorer's own."""
        return (self.fused, *(name for name in self.scorer.columns if name not in self.cuts))

    @property
    def cuts(self) -> Mapping[str, str]:
        """The scorer's own."""
        return self.scorer.cuts

    def rows(self, items: Sequence[Item]) -> list[Row]:
        """The scorer's columns."""
        main = self.scorer.columns[0]
        return [
            row if isinstance(row, Unscored) else {self.fused: share_of_range(self.scorer, cast("float", row[main])), **row}
            for row in score_rows(self.scorer, items)
        ]

    def new_block(self) -> None:
        """The scorer's own."""
        self.scorer.new_block()

    def explain(self, items: Sequence[Item], medians: Mapping[str, float]) -> list[str]:
        """The scorer's own explanation."""
        return self.scorer.explain(items)

    def signature_fields(self) -> dict[str, SignatureValue]:
        """The scorer's own."""
        return {f"small_{name}": value for name, value in self.scorer.signature_fields().items()}


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
