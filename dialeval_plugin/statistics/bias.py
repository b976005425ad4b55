"""What a metric's scores follow besides quality: the length of the response, or its position in the dialogue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.coefficients.by_name import Coefficient, coefficient_named

from .bootstrap import Bootstrap, Estimate, Interval, Resampled, Statistic, rows_by_cell
from .canonical import canonical
from .checks import FloatArray, Labels, OptionalNumbers, optional_numbers, same_length, used_codes
from .levels import distinct_rows

Partial: TypeAlias = Literal["pearson", "spearman", "kendall_b"]
"""Coefficients whose partial correlation has the formula that is used here."""

_BOOTSTRAP = Bootstrap()
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Association(Estimate):
    """One correlation among scores, ratings and a covariate.

    Attributes:
        between: the two columns.
        given: the column that is held fixed; None for a plain correlation.
        coefficient: its name.
    """

    between: tuple[str, ...]
    given: str | None
    coefficient: str


def covariate_bias(
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    covariate: OptionalNumbers,
    *,
    name: str,
    coefficient: Partial = "spearman",
    clusters: Labels | None = None,
    bootstrap: Bootstrap = _BOOTSTRAP,
) -> dict[str, Association]:
    r"""Return how scores and ratings go with the length of the response, or another covariate, and what is left without it.

    Keys, for `name="length"`: "score_length" and "rating_length" say how much the metric and the people prefer long
    responses; "score_length_given_rating" how much the metric does so among responses that people find equally good: its
    bias; "score_rating" how far it agrees with people, "score_rating_given_length" how far beyond what length explains.
    Formula of the partial correlation: $(r_{xy} - r_{xz} r_{yz}) / \sqrt{(1 - r_{xz}^2)(1 - r_{yz}^2)}$, for Spearman on ranks
    and for Kendall as by Kendall (1942). Range: -1 to 1. Ties: those of the coefficient.
    Missing values: a row without a score, a rating or a covariate is left out and counted as unscored.
    Undefined: a column is constant, or the one that is held fixed says all about another; then `reason` says so.
    Interval and seed: see `bootstrap.Bootstrap`; all come from the same resamples.

    Args:
        scores: of the metric.
        ratings: after aggregating the raters.
        covariate: length of the response in words, number of turns before it, or its index in the dialogue.
        name: of the covariate, such as "length" or "position".
        coefficient: "pearson", "spearman" or "kendall_b".
        clusters: label of the dialogue of each row.
        bootstrap: rounds, seed, kind and confidence of the interval.

    Raises:
        InputError: lengths differ, a value is neither None nor a finite number, or the coefficient is unknown.

    Example:
        >>> scores, ratings, lengths = [1, 3, 2, 5, 4, 6], [1, 2, 3, 4, 6, 5], [2, 8, 3, 9, 4, 9]
        >>> found = covariate_bias(scores, ratings, lengths, name="length", bootstrap=Bootstrap(rounds=0))
        >>> round(found["score_length"].value, 3), round(found["score_length_given_rating"].value, 3)
        (0.928, 0.967)
    """
    where = "covariate_bias"
    if coefficient not in get_args(Partial):
        raise InputError(f"{where}: there is no coefficient {coefficient!r}. Choose one of {', '.join(get_args(Partial))}.")
    same_length(where, scores=scores, ratings=ratings, covariate=covariate)
    if clusters is not None:
        same_length(where, scores=scores, clusters=clusters)
    given = {"scores": scores, "ratings": ratings, "covariate": covariate}
    columns = [optional_numbers(where, column, values) for column, values in given.items()]
    used = np.logical_and.reduce([column.present for column in columns])
    values_used = [column.values[used] for column in columns]
    order, numbered = canonical(values_used, used_codes(where, clusters, used, len(used)))
    cells, distinct = distinct_rows(*(values[order] for values in values_used))
    columns_of_cells = dict(zip(("score", "rating", name), distinct, strict=True))
    sums = rows_by_cell(cells, numbered) if len(cells) else np.zeros((0, 0))
    entry, pairs = coefficient_named(coefficient), (("score", name), ("rating", name), ("score", "rating"))
    statistics = {
        asked: Resampled(_statistic(entry, [columns_of_cells[column] for column in asked]), sums)
        for asked in (*pairs, ("score", name, "rating"), ("score", "rating", name))
    }
    values = {asked: float(one.statistic(sums.sum(axis=0)[None, :])[0]) for asked, one in statistics.items() if len(cells)}
    defined = {asked: value for asked, value in values.items() if not math.isnan(value)}
    intervals = bootstrap.intervals_of({_key(asked): statistics[asked] for asked in defined})
    return {
        _key(asked): Association(
            between=asked[:2],
            given=asked[2] if len(asked) > 2 else None,
            coefficient=coefficient,
            value=defined.get(asked),
            n_total=len(used),
            n_scored=len(cells),
            n_unscored=len(used) - len(cells),
            n_clusters=int(numbered.max(initial=-1)) + 1,
            **bootstrap.fields(intervals.get(_key(asked), _undefined(_key(asked), len(cells)))),
        )
        for asked in statistics
    }


def _key(columns: tuple[str, ...]) -> str:
    return "_".join(columns[:2]) + "".join(f"_given_{column}" for column in columns[2:])


def _undefined(key: str, n_rows: int) -> Interval:
    why = f"undefined on {n_rows} rows: there are fewer than 3, a column is constant, or one of them says all about another"
    return Interval(None, None, 0, f"{key}: {why}. Score and rate more examples.")


def _statistic(entry: Coefficient, columns: Sequence[FloatArray]) -> Statistic:
    """The correlation of the first two columns of each weighted sample, with the third one, if any, held fixed."""
    x, y, *held = columns
    if not held:
        return partial(entry.of_samples, x, y)

    def statistic(weights: FloatArray) -> FloatArray:
        xy, xz, yz = (entry.of_samples(*pair, weights) for pair in ((x, y), (x, held[0]), (y, held[0])))
        left = (1 - xz**2) * (1 - yz**2)
        values: FloatArray = np.where(left > _ROUNDING, (xy - xz * yz) / np.sqrt(np.maximum(left, _ROUNDING)), np.nan)
        return np.clip(values, -1, 1)

    return statistic
