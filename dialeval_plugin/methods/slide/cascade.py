"""The scorer `cascade`: a small model judges every item, a large one those on which the small one is unsure or out of scope."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, cast

from annotated_types import Ge, Le

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.registry import load_scorer, with_options
from dialeval_plugin.core.scorer import Scorer, score_rows
from dialeval_plugin.core.scores import Row, Unscored
from dialeval_plugin.methods.composed import ComposedScorer

from .scorer import share_of_range

LLM = "llm"


@dataclass(frozen=True)
class CascadeOptions:
    """Options of `cascade`.

    Attributes:
        small: scorer with a trained model, or its name; it scores every item.
        llm: scorer whose main column is the large model's score; an lm-eval model gets DRE's plain prompt, for whole dialogues
            that of `dialogue_rating`.
        cascade: the large model scores an item if the small model's score, or that of one of its heads, is at most this far
            from its threshold, as a share of the range. It also scores all items out of the small model's scope; with 1 it
            scores everything.
        level: "turn" scores one response, "dialogue" a whole dialogue.
    """

    small: Scorer | str = "assistant"
    _: KW_ONLY
    llm: Scorer | None = None
    cascade: Annotated[float, Ge(0), Le(1)] = 0.1
    level: Level = "turn"


class CascadeScorer(ComposedScorer):
    """The score of a small model, or of a large one for items on which the small one is unsure or that are out of its scope.

    Columns: `cascade`, the final score as a share of its scorer's range, in [0, 1]; the small model's columns; `llm`, in [0,
    1], None if the large model did not score the item. The large model's scores have no percentile.

    Raises:
        InputError: the small scorer has no threshold, or one of the two scorers has another level or an unbounded range.
        MissingPrerequisite: there is no `llm`.
    """

    name: ClassVar[str] = "cascade"
    needs = ("trained model", "llm")
    levels = ("turn", "dialogue")

    @with_options(CascadeOptions)
    def __init__(self, options: CascadeOptions) -> None:
        if options.llm is None:
            raise MissingPrerequisite(
                "cascade: asks a large language model where the small one is unsure, and no llm is given. "
                "Pass llm='hf', llm_args='pretrained=MODEL' (any lm-eval model), or use the small scorer alone."
            )
        small = options.small
        if not isinstance(small, Scorer):
            small = load_scorer(small, **({} if options.level == "turn" else {"level": options.level}))
        if small.positive_from is None:
            raise InputError(
                f"cascade: {small.name} has no threshold near which it is unsure. Name another scorer, as assistant or general."
            )
        for one in (small, options.llm):
            if one.level != options.level or not math.isfinite(sum(one.range)):
                raise InputError(
                    f"cascade: {one.name} scores at level {one.level!r} from {one.range[0]:g} to {one.range[1]:g}. "
                    f"Name one that scores at level {options.level!r}, and whose range has two ends."
                )
        self.small, self.llm, self.level = small, options.llm, options.level
        self.parts, self.settings = {"small": small, LLM: self.llm}, {"cascade": options.cascade}
        self.judges = (LLM, small.columns[0])
        self.percentiles, self.scope = small.percentiles, small.scope
        self.columns = (self.name, *small.columns, LLM)
        self.truncation_columns = self.all_truncation_columns()

    def part_of(self, item: Item) -> Scorer:
        """Return the small model."""
        return self.small

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        """Score all items with the small model, and those on which it is unsure or out of scope with the large one."""
        rows, within = score_rows(self.small, items), cast("float", self.settings["cascade"])
        unsure = [
            place
            for place, (row, beyond) in enumerate(zip(rows, self.scope_of(items), strict=True))
            if not isinstance(row, Unscored) and (beyond is not None or self.small.is_unsure(row, within))
        ]
        answers = dict(zip(unsure, score_rows(self.llm, [items[place] for place in unsure]), strict=True))
        return [self._row(row, answers.get(place)) for place, row in enumerate(rows)]

    def _row(self, small: Row, llm: Row | None) -> Row:
        judged, scorer = (small, self.small) if llm is None else (llm, self.llm)
        if isinstance(small, Unscored) or isinstance(judged, Unscored):
            return small if isinstance(small, Unscored) else judged
        score = share_of_range(scorer, cast("float", judged[scorer.columns[0]]))
        return {self.name: score, **small, LLM: None if llm is None else score}
