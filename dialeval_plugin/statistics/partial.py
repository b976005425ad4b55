"""Correlation of scores and ratings with the length of the dialogue, or anything else, held constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from dialeval_plugin.core.errors import InputError, StatisticUndefined

from .bootstrap import Bootstrap, Estimate, Interval
from .canonical import canonical
from .checks import FloatArray, Labels, Numbers, OptionalNumbers, numbers, optional_numbers, same_length, used_codes

COEFFICIENTS = ("pearson", "spearman")

_ROUNDING = float(np.finfo(np.float64).eps ** 0.5)
"""A residual below this part of the spread is rounding error: the covariates determine the column."""


@dataclass(frozen=True, kw_only=True)
class PartialCorrelation(Estimate):
    """A partial correlation with its interval.

    Attributes:
        coefficient: "pearson" or "spearman".
        covariates: names of what is held constant.
        n_unrated: rows left out because nobody rated them.
    """

    coefficient: str
    covariates: tuple[str, ...]
    n_unrated: int


def partial_coefficient(scores: Numbers, ratings: Numbers, covariates: Mapping[str, Numbers], coefficient: str) -> float:
    r"""Pearson's correlation of what least squares on the covariates, with an intercept, leaves of scores and of ratings.

    With "spearman" every column is first replaced by its ranks, ties by the mean of theirs (Conover 1999, section 5.4).
    Range: -1 to 1. With one covariate z it is $(r_{xy} - r_{xz} r_{yz}) / \sqrt{(1 - r_{xz}^2)(1 - r_{yz}^2)}$.
    Undefined: fewer than three rows more than covariates, or scores or ratings that the covariates determine.

    Raises:
        InputError: lengths differ, a value is not a finite number, or there is no such coefficient.
        StatisticUndefined: see above.

    Example:
        >>> round(partial_coefficient([1, 2, 3, 5], [2, 1, 4, 5], {"length": [1, 1, 2, 2]}, "pearson"), 6)
        0.316228
    """
    where = "partial_coefficient"
    if coefficient not in COEFFICIENTS:
        raise InputError(f"{where}: there is no coefficient {coefficient!r}. Choose one of {', '.join(COEFFICIENTS)}.")
    same_length(where, scores=scores, ratings=ratings, **dict(covariates))
    named = {"scores": scores, "ratings": ratings, **covariates}
    columns = [numbers(where, name, values) for name, values in named.items()]
    return _partial(np.column_stack(columns), coefficient)


def partial_correlation(  # noqa: PLR0913 - those of `correlate`, and the covariates
    scores: OptionalNumbers,
    ratings: OptionalNumbers,
    covariates: Mapping[str, OptionalNumbers],
    *,
    coefficient: str,
    clusters: Labels | None = None,
    rounds: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> PartialCorrelation:
    """Return `partial_coefficient` over the rows that have a score, with its bootstrap interval.

    Missing values: a row whose score or rating is None is left out and counted. A scored row has every covariate.
    Undefined: the value is None and `reason` says why; nothing is raised, and no NaN is returned.
    Cost: ranks and a least squares fit a round; 2,000 rows and 1,000 rounds take some seconds.

    Raises:
        InputError: as `partial_coefficient`, or a scored row lacks a covariate.

    Example:
        >>> found = partial_correlation(
        ...     [1, 2, 3, 5, None], [2, 1, 4, 5, 3], {"length": [1, 1, 2, 2, None]}, coefficient="pearson", rounds=0
        ... )
        >>> round(found.value, 6), found.n_scored, found.n_unscored
        (0.316228, 4, 1)
    """
    where = "partial_correlation"
    bootstrap = Bootstrap(rounds=rounds, confidence=confidence, seed=seed)
    if coefficient not in COEFFICIENTS:
        raise InputError(f"{where}: there is no coefficient {coefficient!r}. Choose one of {', '.join(COEFFICIENTS)}.")
    same_length(where, scores=scores, ratings=ratings, **dict(covariates))
    named = {"scores": scores, "ratings": ratings, **covariates}
    columns = {name: optional_numbers(where, name, values) for name, values in named.items()}
    used = columns["scores"].present & columns["ratings"].present
    for name, column in columns.items():
        if not column.present[used].all():
            raise InputError(f"{where}: a scored row has no {name!r}. Give every covariate of a row that has a score.")
    table = np.column_stack([column.values[used] for column in columns.values()])
    order, codes = canonical(list(table.T), used_codes(where, clusters, used, len(used)))
    table = table[order]

    def of_samples(weights: FloatArray) -> FloatArray:
        return np.array([_partial_or_nan(np.repeat(table, row.astype(np.int64), axis=0), coefficient) for row in weights])

    try:
        value: float | None = _partial(table, coefficient)
        interval = bootstrap.intervals({coefficient: of_samples}, np.arange(len(table)), codes)[coefficient]
    except StatisticUndefined as error:
        value, interval = None, Interval(None, None, 0, str(error))
    return PartialCorrelation(
        coefficient=coefficient,
        covariates=tuple(covariates),
        value=value,
        **bootstrap.fields(interval),
        n_total=len(scores),
        n_scored=len(table),
        n_unscored=int((columns["ratings"].present & ~columns["scores"].present).sum()),
        n_unrated=int((~columns["ratings"].present).sum()),
        n_clusters=int(codes.max(initial=-1)) + 1,
    )


def _partial(table: FloatArray, coefficient: str) -> float:
    """The coefficient of the first two columns given the others."""
    n_rows, n_columns = table.shape
    if n_rows < n_columns + 1:
        raise StatisticUndefined(
            f"partial {coefficient}: {n_rows} rows, at least {n_columns + 1} are needed. Score and rate more examples."
        )
    values = stats.rankdata(table, axis=0) if coefficient == "spearman" else table
    centred = values - values.mean(axis=0)
    held = centred[:, 2:]
    residuals = centred[:, :2] - held @ np.linalg.lstsq(held, centred[:, :2], rcond=None)[0]
    norms = np.linalg.norm(residuals, axis=0)
    for place, name in enumerate(("scores", "ratings")):
        if norms[place] <= _ROUNDING * np.linalg.norm(centred[:, place]):
            raise StatisticUndefined(f"partial {coefficient}: the covariates determine the {name}. Hold less constant.")
    return float(np.clip(residuals[:, 0] @ residuals[:, 1] / norms.prod(), -1, 1))


def _partial_or_nan(table: FloatArray, coefficient: str) -> float:
    try:
        return _partial(table, coefficient)
    except StatisticUndefined:
        return float("nan")
