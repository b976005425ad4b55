"""Aggregation of the classifiers' probabilities: equation 1 of CausalScore, its ablations, variants of its published code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, IntArray
from dialeval_plugin.core.registry import Positive, check_fields

CausalVariant: TypeAlias = Literal["causalscore", "unconditional", "conditional", "max_ci", "preceding_2"]
Pairs: TypeAlias = Literal["ordered", "unordered"]
Dedupe: TypeAlias = Literal["position", "text"]
Single: TypeAlias = Literal["own", "half"]
MaxCI: TypeAlias = Literal["alone", "half"]
Average: TypeAlias = Literal["all", "top_3"]

THRESHOLD = 0.5
"""A turn is dependent above it, but not at exactly 0.5."""
TOP = 3


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """Choices that paper and published code leave open in the computation of a score from probabilities.

    Attributes:
        variant: "causalscore" is equation 1; "unconditional" and "conditional" are its two means (rows "-p(ci,cj,rt)" and
            "-p(ci,rt)" of Table 5); "max_ci" is the largest conditional probability; "preceding_2" is the conditional mean of a
            model that was trained without annotated causes.
        pairs: "ordered" uses both (ci, cj) and (cj, ci); "unordered" uses each pair of turns once, with the earlier one as the
            cause.
        dedupe: "position" pairs turns at different positions (equation 1); "text" skips pairs of turns with equal text and
            averages the means of the turns, as in the published code.
        single: conditional probability if only one turn is dependent, so that there are no pairs: "own" is the turn's
            unconditional probability (as in the code), "half" is 0.
        max_ci: score of the variant "max_ci": "alone" is the maximum, "half" is the mean of the maximum and the unconditional
            mean.
        average: "all" averages all probabilities; "top_3" averages the three largest unconditional ones and, per turn, the
            three largest conditional ones, as in the first public version of the code.
        conditions: condition on this many dependent turns only, those with the largest unconditional probability. It makes
            the number of pairs linear in the history.
    """

    variant: CausalVariant = "causalscore"
    pairs: Pairs = "ordered"
    dedupe: Dedupe = "position"
    single: Single = "own"
    max_ci: MaxCI = "alone"
    average: Average = "all"
    conditions: Positive | Literal["all"] = "all"

    def __post_init__(self) -> None:
        check_fields(self, "causalscore")


class ScoreParts(NamedTuple):
    """The parts of a score, each in [0, 1]; all 0 if no turn is dependent."""

    unconditional: float
    conditional: float
    max_ci: float


def dependent_turns(probabilities: FloatArray) -> IntArray:
    """Return the indices of the dependent turns, ascending, from their unconditional probabilities of shape (turns,).

    Example:
        >>> dependent_turns(np.array([0.9, 0.5, 0.2, 0.6]))
        array([0, 3])
    """
    return np.flatnonzero(probabilities > THRESHOLD)


def conditional_pairs(probabilities: FloatArray, texts: Sequence[str], options: Aggregation) -> IntArray:
    """Return the pairs (candidate cause, condition) of dependent turns that the score needs, of shape (pairs, 2).

    Example:
        >>> conditional_pairs(np.array([0.9, 0.1, 0.6]), ["a", "b", "c"], Aggregation()).tolist()
        [[0, 2], [2, 0]]
    """
    dependent = dependent_turns(probabilities)
    conditions = dependent
    if options.conditions != "all" and options.conditions < len(dependent):
        # Of equally probable turns the later one, which is the likelier cause.
        order = np.lexsort((-dependent, -probabilities[dependent]))
        conditions = np.sort(dependent[order[: options.conditions]])
    first, second = (grid.ravel() for grid in np.meshgrid(dependent, conditions, indexing="ij"))
    chosen = first < second if options.pairs == "unordered" else first != second
    if options.dedupe == "text":
        names = np.unique(np.array(texts, dtype=object), return_inverse=True)[1] if len(texts) else np.empty(0, np.int64)
        chosen &= names[first] != names[second]
    return np.stack([first[chosen], second[chosen]], axis=1)


def combine(probabilities: FloatArray, pairs: IntArray, conditional: FloatArray, options: Aggregation) -> ScoreParts:
    """Return the parts of a score, from unconditional probabilities (turns,), pairs (pairs, 2) and conditional ones (pairs,).

    Source: equation 1, with the choices of `Aggregation`. If several turns are dependent but all have the same text
    (`dedupe="text"`), the rule for a single dependent turn applies.

    Example:
        >>> combine(np.array([0.75, 0.25]), np.empty((0, 2), dtype=np.int64), np.empty(0), Aggregation())
        ScoreParts(unconditional=0.75, conditional=0.75, max_ci=0.75)
    """
    strong = probabilities[dependent_turns(probabilities)]
    if not len(strong):
        return ScoreParts(0.0, 0.0, 0.0)
    unconditional = mean_of(strong, options)
    if not len(pairs):
        alone = unconditional if options.single == "own" else 0.0
        return ScoreParts(unconditional, alone, alone)
    if options.dedupe == "position" and options.average == "all":
        mean = float(conditional.mean())
    else:
        mean = float(np.mean([mean_of(conditional[pairs[:, 0] == turn], options) for turn in np.unique(pairs[:, 0])]))
    return ScoreParts(unconditional, mean, float(conditional.max()))


def score(parts: ScoreParts, options: Aggregation) -> float:
    """Return the score of the variant, in [0, 1]; 0 if no turn is dependent.

    Example:
        >>> score(ScoreParts(unconditional=0.75, conditional=0.25, max_ci=0.5), Aggregation())
        0.5
    """
    if options.variant == "unconditional":
        return parts.unconditional
    if options.variant in ("conditional", "preceding_2"):
        return parts.conditional
    if options.variant == "max_ci":
        return parts.max_ci if options.max_ci == "alone" else (parts.unconditional + parts.max_ci) / 2
    return (parts.unconditional + parts.conditional) / 2


def mean_of(values: FloatArray, options: Aggregation) -> float:
    """Return the mean of probabilities, or of the three largest ones."""
    return float(np.mean(np.sort(values)[-TOP:] if options.average == "top_3" else values))
