"""How the heads' log odds become one score: weights that no human rating fixed, or weights fitted on rated sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from typing_extensions import TypedDict

from dialeval_plugin.models.logistic import logistic_regression

FloatArray = NDArray[np.float64]
OFFSET = "offset"


def weighted_sum(columns: Mapping[str, FloatArray], weights: Mapping[str, float]) -> FloatArray:
    """Return the offset plus the weighted sum of the columns that have a weight, of shape (n,)."""
    total: FloatArray = np.full_like(next(iter(columns.values())), weights[OFFSET])
    for name, weight in weights.items():
        if name != OFFSET:
            total = total + weight * columns[name]
    return total


def fit_weights(
    columns: Mapping[str, FloatArray], labels: FloatArray, *, start: Mapping[str, float], row_weights: FloatArray | None = None
) -> dict[str, float]:
    """Return the logistic regression's weights by column, and its offset; see `logistic_regression`."""
    table = np.column_stack([*(columns[name] for name in start), np.ones(len(labels))])
    begin = np.array([*start.values(), 0.0])
    found = logistic_regression(table, labels, start=begin, row_weights=row_weights)
    return dict(zip((*start, OFFSET), map(float, found), strict=True))


def equal_mixture(kinds: Sequence[str], real: str) -> FloatArray:
    """Return a weight a row: all wrong kinds together count as much as the real rows, and each kind as much as the others."""
    names = np.array(kinds)
    is_real = names == real
    weights: FloatArray = np.ones(len(names))
    wrong, counts = np.unique(names[~is_real], return_counts=True)
    for name, count in zip(wrong, counts, strict=True):
        weights[names == name] = is_real.sum() / (len(wrong) * count)
    return weights


class HeadWeightsWithoutFacts(TypedDict):
    """Weights of responses without facts."""

    fit: float
    fluency: float
    specificity: float
    offset: float


class HeadWeights(HeadWeightsWithoutFacts):
    """Weights of responses with facts."""

    knowledge: float


@dataclass(frozen=True, slots=True)
class Mixing:
    """Weights of the heads' log odds and an offset, for responses without facts and with."""

    plain: Mapping[str, float]
    with_facts: Mapping[str, float] | None = None
    """None where no training corpus had facts."""

    def log_odds(self, heads: Mapping[str, FloatArray]) -> FloatArray:
        """Return the main score's log odds, of shape (n,); rows whose `knowledge` is NaN have no facts."""
        mixed = weighted_sum(heads, self.plain)
        if self.with_facts is None:
            return mixed
        told = ~np.isnan(heads["knowledge"])
        if told.any():
            mixed[told] = weighted_sum({name: values[told] for name, values in heads.items()}, self.with_facts)
        return mixed


@dataclass(frozen=True, slots=True)
class CoherenceWeights:
    """Weights of what the turns' fit says of a dialogue, which is original or has been spoiled."""

    mean: float
    lowest: float
    last: float
    offset: float

    def probability(self, fits: Sequence[FloatArray]) -> FloatArray:
        """How likely each dialogue is in its original order, in [0, 1], from the log odds of fit of its turns but the first."""
        probability: FloatArray = expit(weighted_sum(turn_statistics(fits), asdict(self)))
        return probability


def turn_statistics(fits: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Return mean, lowest and last value of each dialogue's turns, each of shape (n dialogues,)."""
    return {
        "mean": np.array([values.mean() for values in fits]),
        "lowest": np.array([values.min() for values in fits]),
        "last": np.array([values[-1] for values in fits]),
    }
