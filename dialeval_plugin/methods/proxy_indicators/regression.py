"""The linear regression over indicators (equations 6.5 and 6.6): fitting, predicting, and predicting what it was not fitted on.

Columns and rating are first brought to [0, 1] by the lowest and highest value of the rows that the regression is fitted on
(6.5). These ranges are part of the model, so that a prediction depends on its own row alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
Table: TypeAlias = Sequence[Sequence[float]] | npt.NDArray[Any]

DEFAULT_FOLDS = 10


@dataclass(frozen=True, slots=True)
class Range:
    """Lowest and highest value of a column, by which it is brought to [0, 1] (equation 6.5)."""

    low: float
    high: float

    def scale(self, values: FloatArray) -> FloatArray:
        """Map `low` to 0 and `high` to 1; values beyond them, of rows that came later, lie outside."""
        return np.asarray((values - self.low) / (self.high - self.low))

    def unscale(self, values: FloatArray) -> FloatArray:
        """The inverse of `scale`."""
        return np.asarray(self.low + values * (self.high - self.low))


@dataclass(frozen=True, slots=True)
class LinearRegression:
    """A fitted regression: rating = intercept + sum of weight times column, all on [0, 1] (equation 6.6)."""

    features: tuple[str, ...]
    ranges: tuple[Range, ...]
    weights: tuple[float, ...]
    intercept: float
    target: Range
    """Of the mean ratings."""
    n_rows: int
    """It was fitted on."""

    def predict(self, table: Table) -> FloatArray:
        """Return a prediction a row of a table of shape (rows, features), not clipped: 0 for the worst rated row of the fit."""
        values = _table(table, len(self.features))
        scaled = [extent.scale(values[:, place]) for place, extent in enumerate(self.ranges)]
        return np.asarray(self.intercept + np.stack(scaled, axis=1) @ np.array(self.weights))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_dict` reads back."""
        columns = zip(self.features, self.ranges, self.weights, strict=True)
        return {
            "features": [
                {"name": name, "low": extent.low, "high": extent.high, "weight": weight} for name, extent, weight in columns
            ],
            "intercept": self.intercept,
            "target": {"low": self.target.low, "high": self.target.high},
            "n_rows": self.n_rows,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LinearRegression:
        """Read what `to_dict` wrote."""
        columns = data["features"]
        return cls(
            tuple(column["name"] for column in columns),
            tuple(Range(column["low"], column["high"]) for column in columns),
            tuple(column["weight"] for column in columns),
            data["intercept"],
            Range(data["target"]["low"], data["target"]["high"]),
            data["n_rows"],
        )


def fit(features: Sequence[str], table: Table, ratings: Sequence[float] | npt.NDArray[Any]) -> LinearRegression:
    """Fit mean ratings by ordinary least squares with an intercept; of several best fits, the one with the smallest weights.

    Example:
        >>> fitted = fit(["cola"], [[0.1], [0.5], [0.9]], [1, 3, 5])
        >>> round(fitted.weights[0], 6), round(float(fitted.predict([[0.3]])[0]), 6)
        (1.0, 0.25)
    """
    values = _table(table, len(features))
    target = np.asarray(ratings, dtype=np.float64)
    if len(target) != len(values):
        raise InputError(f"regression: {len(values)} rows but {len(target)} ratings. Give one rating for every row.")
    if len(values) <= len(features) + 1:
        raise InputError(
            f"regression: {len(values)} rows for {len(features)} indicators and an intercept. Give more rated responses."
        )
    ranges = tuple(_range(name, values[:, place]) for place, name in enumerate(features))
    target_range = _range("the rating", target)
    scaled = np.stack([extent.scale(values[:, place]) for place, extent in enumerate(ranges)], axis=1)
    design = np.column_stack([scaled, np.ones(len(scaled))])
    solution, *_ = np.linalg.lstsq(design, target_range.scale(target), rcond=None)
    return LinearRegression(
        tuple(features), ranges, tuple(map(float, solution[:-1])), float(solution[-1]), target_range, len(values)
    )


def predict_held_out(
    features: Sequence[str],
    table: Table,
    ratings: Sequence[float] | npt.NDArray[Any],
    contexts: Sequence[Hashable],
    *,
    n_folds: int = DEFAULT_FOLDS,
) -> FloatArray:
    """Return for each row the rating predicted by a regression that was fitted without the row's context and fold.

    Nothing is drawn: contexts are numbered in the order in which they appear, and context i is in fold i mod `n_folds`.
    Predictions are on the scale of the ratings, because the folds' regressions have ranges of their own.
    """
    values = _table(table, len(features))
    target = np.asarray(ratings, dtype=np.float64)
    if len(contexts) != len(values):
        raise InputError(f"regression: {len(values)} rows but {len(contexts)} contexts. Give one context for every row.")
    numbers = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
    if not 2 <= n_folds <= len(numbers):
        raise InputError(
            f"regression: {n_folds} folds of {len(numbers)} contexts. Give 2 folds or more, and a context for each."
        )
    fold_of = np.array([numbers[context] % n_folds for context in contexts])
    predicted = np.empty(len(values))
    for fold in range(n_folds):
        held_out = fold_of == fold
        fitted = fit(features, values[~held_out], target[~held_out])
        predicted[held_out] = fitted.target.unscale(fitted.predict(values[held_out]))
    return predicted


def _table(table: Table, n_columns: int) -> FloatArray:
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != n_columns:
        raise InputError(
            f"regression: the table has the shape {values.shape}, expected {n_columns} columns. Give one a feature."
        )
    return values


def _range(name: str, values: FloatArray) -> Range:
    if not np.isfinite(values).all():
        raise InputError(f"regression: {name} is {values[~np.isfinite(values)][0]} in a row. Leave out what has no score.")
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise InputError(f"regression: {name} is {low:g} in every row, which tells nothing. Leave it out, or give other rows.")
    return Range(low, high)
