"""The scorer `slide`: a small model's score, alone or fused with a large model's."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import cast

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.locks import one_at_a_time
from dialeval_plugin.core.options import with_options
from dialeval_plugin.core.resources import bibtex
from dialeval_plugin.core.scope import Scope
from dialeval_plugin.core.scorer import Scorer, read_percentiles, score_rows
from dialeval_plugin.core.scores import Row, Unscored

from .fusion import POSITIVE_FROM, DistanceRange, Fusion
from .small_model import SLM_COLUMNS, SlideOptions, SlmScorer, check_range, load_small, share_of_range

logger = logging.getLogger(__name__)

_OF_THE_SLM = ("slm", "clip", "normalise", "round3", "revision", "slm_scale")


class SlideScorer(Scorer):
    """SLIDE (Zhao et al. 2024): how well a response fits, by a small model's distance and probability, alone or with an LLM's.

    Columns: the variant's own, then `slm_probability` (s_p in [0, 1]), `slm_distance` (cosine distance d in [0, 2], lower
    fits better), `slm` (Score_SLM in about [0, 2]), `llm` (in [0, 1], only when fusing), `context_tokens_cut` (oldest tokens
    that did not fit) and `response_tokens_cut` (tokens at the response's end that did not fit). With `small` that scorer's
    columns stand for the SLM's, after `small`, its score in [0, 1].

    Raises:
        InputError: an option is unknown or wrong, or does not go with another.
        MissingPrerequisite: there is no SLM, or "slide" is asked for without an `llm`.
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
        self.orientation = "lower" if self.variant == "slm_distance" else "higher"
        self.slm = SlmScorer(options) if options.small is None else None
        self.small = self.slm or load_small(options)
        self._fused = "slm" if self.slm else "small"
        self.range = (0.0, 1.0)
        if self.slm is not None:
            highest = {"slide": max(1.0, 2.0 * options.slm_scale), "slm": 2.0, "slm_probability": 1.0, "slm_distance": 2.0}
            self.range = (0.0, highest[self.variant])
            self.folder, self.model_hash = self.slm.folder, self.slm.model_hash
            self.positive_from = self.slm.threshold(self.variant)
            self.percentiles = self.slm.percentiles = read_percentiles(self, self.folder)
            self.scope = Scope.read(self.folder)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, the variant's first."""
        small = (
            SLM_COLUMNS
            if self.slm
            else ("small", *(name for name in self.small.columns if name not in self.truncation_columns))
        )
        parts = [*small, *(["llm"] if self.llm else []), *self.truncation_columns]
        return (self.variant, *(name for name in parts if name != self.variant))

    @property
    def truncation_columns(self) -> Mapping[str, str]:
        """Tokens that the small model did not read."""
        return self.small.truncation_columns

    def unscorable(self, item: Item) -> Unscored | None:
        """As the small model says."""
        return self.small.unscorable(item)

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        """Method, variant, the small model, fusion and judge."""
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
        """With normalise="population"."""
        return self.options.normalise == "population"

    def reset_cache(self) -> None:
        """Have the small model, and the large one, forget."""
        self.small.reset_cache()
        if self.llm is not None:
            self.llm.reset_cache()

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Judge the items by the small model, and have the large one judge those that the cascade lets through."""
        rows = self.small_model_rows(items)
        if self.llm is None:
            return rows
        main = self.llm.columns[0]
        asked = [place for place, row in enumerate(rows) if not isinstance(row, Unscored) and self._asks(row)]
        found = score_rows(self.llm, [items[place] for place in asked]) if asked else []
        answers = {
            place: row if isinstance(row, Unscored) else share_of_range(self.llm, cast("float", row[main]))
            for place, row in zip(asked, found, strict=True)
        }
        return [self.fusion.rows(row, answers.get(place), self._fused) for place, row in enumerate(rows)]

    def explain_known(self, items: Sequence[Item]) -> list[str]:
        """Return for each item what the small model says of it."""
        return self.small.explain(items)

    @one_at_a_time
    def small_model_rows(self, items: Sequence[Item]) -> list[Row]:
        """The small model's columns of items, blank ones among them; another scorer's begin with `small`."""
        rows = score_rows(self.small, items)
        if self.slm is not None:
            return rows
        main = self.small.columns[0]
        return [
            row if isinstance(row, Unscored) else {"small": share_of_range(self.small, cast("float", row[main])), **row}
            for row in rows
        ]

    def normalise_rows(self, rows: list[Row]) -> list[Row]:
        """With normalise="population", score again with the extremes of these rows' distances."""
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
    """Refuse options that do not go together."""
    if variant == "slide" and options.llm is None:
        fused = "the variant 'slide'" if options.small is None else f"small={options.small!r}"
        alone = "variant='slm' for the small model alone" if options.small is None else f"the scorer {options.small!r} itself"
        raise MissingPrerequisite(
            f"slide: {fused} fuses the small model with a large one, and no llm is given. "
            f"Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or {alone}."
        )
    if options.small is not None:
        defaults = SlideOptions()
        if given := [name for name in _OF_THE_SLM if getattr(options, name) != getattr(defaults, name)]:
            raise InputError(f"slide: {given[0]} is about the SLM, in whose place small={options.small!r} is. Leave one out.")
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
