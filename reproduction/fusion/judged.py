"""A judge's stored verdicts about a set, joined with people's ratings and small models' scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.corpora.verdicts import StoredColumn
from dialeval_plugin.methods.judging.prompts import level_of
from dialeval_plugin.methods.slide.fusion import LLM_SCALE, SMALL_WEIGHT, Fusion, FusionReading, Refinement
from dialeval_plugin.statistics.coefficients.pearson import spearman
from dialeval_plugin.statistics.correlation import correlate
from dialeval_plugin.statistics.significance import Measure, Paired, paired_bootstrap
from reproduction.documents import estimate
from reproduction.fusion.sets import RatedSet
from reproduction.intervals import percentile_bootstrap
from reproduction.kept_results import kept_scores

ASKED = ("overall", "relevance", "coherence")
"""Qualities that a judge may have been asked about; the first one that it was asked about a set is compared."""
STRONG = ("GPT-4", "gpt-4o", "gemini-2.5-flash", "claude-haiku-4-5")
"""Judges of GPT-4's kind."""
SHOWN_IN_PROMPT = {"agent-voting-evaluation": (873, 281, 17)}
"""Rows of dailydialog-zhao that a source's prompt shows with their scores: their contexts are left out."""
READINGS: tuple[FusionReading, ...] = ("first_match", "llm_first", "agree")
"""Of equation 9."""
TWICE_SHOWN = "g-eval"
"""The source whose prompts show each response of a turn-level set twice, which its authors did not mean."""


@dataclass(frozen=True)
class Judged:
    """A judge's verdicts about the rows of a set that it, people and `general` have scored, with the small models' scores."""

    column: StoredColumn
    clusters: Sequence[str]
    ratings: FloatArray
    llm: FloatArray
    """Shares of the judge's scale."""
    general: FloatArray
    slm: FloatArray | None
    """Score_SLM, in about [0, 2]; None of whole dialogues."""

    @property
    def judge(self) -> str:
        """Name and source."""
        return self.column.judge

    @property
    def is_strong(self) -> bool:
        """Whether it is of GPT-4's kind, and was asked as its authors meant to."""
        return self.judge.split("/")[0] in STRONG and not self.is_twice_shown

    @property
    def is_twice_shown(self) -> bool:
        """Whether it was not asked as its authors meant to."""
        return self.judge.split("/")[1] == TWICE_SHOWN and self.column.level == "turn"

    @cached_property
    def fused(self) -> FloatArray:
        """The mixture of both."""
        return self.mixture(SMALL_WEIGHT)

    def mixture(self, weight: float) -> FloatArray:
        """The mixture with another weight of `general`."""
        return fuse(Fusion("mixture", small_weight=weight), self.general, self.llm)

    def own_fusions(self) -> dict[str, FloatArray]:
        """SLIDE's and DRE's fusions with their own small model, and that model; nothing of whole dialogues."""
        if self.slm is None:
            return {}
        pairs = zip(self.slm.tolist(), self.llm.tolist(), strict=True)
        return {
            "SLM": self.slm,
            **{f"SLIDE, {reading}": fuse(Fusion(reading), self.slm, self.llm) for reading in READINGS},
            "mixture with the SLM": fuse(Fusion("mixture", slm_scale=0.5), self.slm, self.llm),
            "ex_dre": np.array([Refinement().plain(slm, llm=LLM_SCALE[1] * llm)["ex_dre"] for slm, llm in pairs]),
        }

    def paired(self, scores: FloatArray) -> Paired:
        """Scores against the judge's own."""
        return Paired(scores_a=scores, scores_b=self.llm, ratings=self.ratings, clusters=self.clusters)

    def estimate(self, scores: FloatArray, coefficient: str = "spearman") -> str:
        """A coefficient of some scores with its interval."""
        return estimate(
            correlate(
                scores.tolist(),
                self.ratings.tolist(),
                coefficient=coefficient,
                clusters=self.clusters,
                bootstrap=percentile_bootstrap(),
            )
        )

    def marked(self, scores: FloatArray, coefficient: str = "spearman") -> str:
        """The same, with ▲ or ▼ where the interval of the paired difference to the judge's own lies on one side of 0."""
        low, high = (
            (found := paired_bootstrap(self.paired(scores), Measure(coefficient), bootstrap=percentile_bootstrap())).ci_low,
            found.ci_high,
        )
        mark = "" if low is None or high is None else " ▲" if low > 0 else " ▼" if high < 0 else ""
        return f"{self.estimate(scores, coefficient)}{mark}"

    def agreement(self, scores: FloatArray) -> float:
        """Spearman's coefficient of some scores."""
        return spearman(scores, self.ratings)


def fuse(fusion: Fusion, small: FloatArray, llm: FloatArray) -> FloatArray:
    """Fuse row by row."""
    return np.array([fusion(one, other) for one, other in zip(small.tolist(), llm.tolist(), strict=True)])


opened = cache(load_scorer)
"""Opens a scorer once."""


def judged(column: StoredColumn, rated: RatedSet, work: Path) -> Judged:
    """Join the verdicts about a set with ratings and small models' scores."""
    level = level_of(rated.items[0])
    found = [kept_scores(opened("general", level=level), rated.items, work, column.set).values]
    if level == "turn":
        found.append(kept_scores(opened("slide", variant="slm"), rated.items, work, column.set).values)
    low, high = column.scale
    verdicts = [column.scores[row] for row in rated.rows]
    hidden = {rated.clusters[row] for row in SHOWN_IN_PROMPT.get(column.judge.split("/")[1], ())}
    kept = [
        place
        for place, verdict in enumerate(verdicts)
        if verdict is not None
        and low <= verdict <= high
        and rated.ratings[place] is not None
        and rated.clusters[place] not in hidden
        and all(scores[place] is not None for scores in found)
    ]

    def of(values: Sequence[float | None]) -> FloatArray:
        return np.array([values[place] for place in kept], dtype=np.float64)

    clusters = [rated.clusters[place] for place in kept]
    slm = of(found[1]) if level == "turn" else None
    return Judged(column, clusters, of(rated.ratings), (of(verdicts) - low) / (high - low), of(found[0]), slm)


def compared_columns(columns: Sequence[StoredColumn]) -> Iterator[StoredColumn]:
    """Verdicts of each judge and set about the first of `ASKED`."""
    by_judge: dict[tuple[str, str], dict[str, StoredColumn]] = {}
    for column in columns:
        by_judge.setdefault((column.judge, column.set), {}).setdefault(column.quality, column)
    for own in by_judge.values():
        if (quality := next((quality for quality in ASKED if quality in own), None)) is not None:
            yield own[quality]
