"""Coefficients between scores and ratings by name: for one sample, and for many weighted samples at once.

Each is a pair of functions: one of raw scores and ratings, checked and computed by scipy, and one of weighted samples for the
bootstrap (see `pearson`), NaN where the first raises `StatisticUndefined`. They agree to 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Literal, NoReturn

import numpy as np

from dialeval_plugin.core.arrays import FloatArray, Labels, Numbers, Statistic
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.statistics.bootstrap import Resampled
from dialeval_plugin.statistics.systems.pairs import pairwise_difference_pearson, soft_pairwise_accuracy

from .kendall import auroc, auroc_of_samples, kendall_b, kendall_b_of_samples, kendall_c, kendall_c_of_samples
from .pearson import pearson, pearson_of_samples, point_biserial, point_biserial_of_samples, spearman, spearman_of_samples
from .tie_calibration import accuracy_at, calibrated_epsilon, pairwise_accuracy, pairwise_accuracy_of_samples

_MAX_REMEMBERED = 256
"""Largest number of rows of a group whose value is remembered, so that all of them take at most 17 MB."""


@lru_cache(maxsize=4096)
def _of_all(of_samples: Callable[..., Statistic], x: bytes, y: bytes) -> float:
    """Return the value of all rows; a permutation test asks for that of a group with one metric's scores or the other's."""
    columns = np.frombuffer(x), np.frombuffer(y)
    return float(of_samples(*columns)(np.ones((1, len(columns[0]))))[0])


@dataclass(frozen=True, slots=True)
class Coefficient:
    """Coefficient by name; an entry in `COEFFICIENTS` adds one."""

    name: str
    of_pairs: Callable[..., float]
    """Function of scores and ratings."""
    of_samples: Callable[..., Statistic]
    """Function of arrays of both; with `has_epsilon` only once it is `calibrated`."""
    has_epsilon: bool = False
    """Whether scores that differ by at most an epsilon, chosen on the data, count as tied."""
    epsilon: float | None = None
    of_tied_scores: float = 0.0
    """Value if all scores are equal and ratings differ: such scores order nothing, like a guess on average."""
    of_groups: Callable[..., Resampled] | None = None
    """Function of scores, ratings, clusters and groups that replaces the others, which then raise InputError."""
    groups: Literal["system", "item"] | None = None
    """Kind of group that `of_groups` compares."""

    def of_group(self, x: FloatArray, y: FloatArray) -> float:
        """Return the value for one of many groups, NaN if it is undefined."""
        if len(x) < 2:
            return math.nan
        if self.epsilon is None:
            of_all = _of_all if len(x) <= _MAX_REMEMBERED else _of_all.__wrapped__
            return of_all(self.of_samples, x.tobytes(), y.tobytes())
        # Groups with constant ratings count too.
        return accuracy_at(x, y, self.epsilon)

    def of_group_samples(self, x: FloatArray, y: FloatArray, *, skips_ties: bool) -> Statistic:
        """Return the values for weighted samples of one of many groups: `of_tied_scores` if only the scores are tied."""
        if self.epsilon is not None:
            return self.of_samples(x, y, of_group=True)
        of_samples = self.of_samples(x, y)

        def statistic(weights: FloatArray) -> FloatArray:
            values = of_samples(weights)
            missing = np.isnan(values)
            if missing.any() and not skips_ties:
                # If even ratings with themselves are undefined, no scores can be defined.
                of_ratings = self.of_samples(y, y)(weights[missing])
                values[missing] = np.where(np.isnan(of_ratings), np.nan, self.of_tied_scores)
            return values

        return statistic

    def calibrated(self, scores: Numbers, ratings: Numbers, groups: Labels | None = None) -> Coefficient:
        """Return the coefficient with its epsilon chosen on this data; itself if it has none."""
        if not self.has_epsilon:
            return self
        epsilon = calibrated_epsilon(scores, ratings, groups=groups)
        of_pairs, of_samples = partial(self.of_pairs, epsilon=epsilon), partial(self.of_samples, epsilon=epsilon)
        return replace(self, of_pairs=of_pairs, of_samples=of_samples, epsilon=epsilon)


COEFFICIENTS: dict[str, Coefficient] = {
    entry.name: entry
    for entry in (
        Coefficient("pearson", pearson, pearson_of_samples),
        Coefficient("spearman", spearman, spearman_of_samples),
        Coefficient("kendall_b", kendall_b, kendall_b_of_samples),
        Coefficient("kendall_c", kendall_c, kendall_c_of_samples),
        Coefficient("pairwise_accuracy", pairwise_accuracy, pairwise_accuracy_of_samples, has_epsilon=True),
        Coefficient("point_biserial", point_biserial, point_biserial_of_samples),
        Coefficient("auroc", auroc, auroc_of_samples, of_tied_scores=0.5),
    )
}


def _comparing(groups: Literal["system", "item"], of_groups: Callable[..., Resampled], needs: str) -> Coefficient:
    name = of_groups.__name__

    def refuse(*_: object) -> NoReturn:
        raise InputError(f"{name}: compares {needs}")

    return Coefficient(name, refuse, refuse, of_groups=of_groups, groups=groups)


_BY_SYSTEM = "systems. Give level='system', which is --by-system."
_BY_ITEM = "responses to one item. Give average_by='item', which is --average-by item."
COEFFICIENTS_OF_GROUPS: dict[str, Coefficient] = {
    "soft_pairwise_accuracy": _comparing("system", soft_pairwise_accuracy, _BY_SYSTEM),
    "pairwise_difference_pearson": _comparing("item", pairwise_difference_pearson, _BY_ITEM),
}
"""Coefficients for comparisons of systems or items only."""


def coefficient_named(name: str) -> Coefficient:
    """Return the coefficient `name`; an InputError lists the known names."""
    known = COEFFICIENTS | COEFFICIENTS_OF_GROUPS
    if name not in known:
        # scipy's kendalltau and pandas' kendall are tau-b.
        nearest = "kendall_b" if name.lower().endswith(("kendall", "tau", "tau_b", "taub")) else name
        raise unknown_name(f"there is no coefficient {name!r}", nearest, sorted(known))
    return known[name]
