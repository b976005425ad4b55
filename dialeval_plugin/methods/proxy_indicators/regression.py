"""The linear regression over indicators (equations 6.5 and 6.6): fitting, predictions, held-out predictions, and its file.

Columns and ratings are scaled to [0, 1] by the lowest and highest value of the training rows (6.5). These ranges are part of
the model, so that a prediction depends on its own row alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json, to_json, write_text

from .tasks import DEFAULT_CHOICES, IndicatorSettings

DEFAULT_FOLDS = 10
KIND = "glue_proxy"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """Lowest and highest value of a column, which scale it to [0, 1] (equation 6.5)."""

    low: float
    high: float

    def scale(self, values: FloatArray) -> FloatArray:
        """Return values with `low` mapped to 0 and `high` to 1; new rows may be outside [0, 1]."""
        return np.asarray((values - self.low) / (self.high - self.low))

    def unscale(self, values: FloatArray) -> FloatArray:
        """Return the values that `scale` maps to these."""
        return np.asarray(self.low + values * (self.high - self.low))


@dataclass(frozen=True, slots=True)
class Feature(FeatureRange):
    """A column of a regression: its range in the training rows, its name and its weight."""

    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class LinearRegression:
    """A fitted regression: rating = intercept + sum of weight times column, all on [0, 1] (equation 6.6)."""

    features: tuple[Feature, ...]
    intercept: float
    target: FeatureRange
    """Range of the mean ratings."""
    n_rows: int
    """Training rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(feature.name for feature in self.features)

    @property
    def weights(self) -> tuple[float, ...]:
        """Weights of the columns."""
        return tuple(feature.weight for feature in self.features)

    def predict(self, table: ArrayLike) -> FloatArray:
        """Return a prediction per row of a table (rows, features), not clipped; 0 and 1 are the training ratings' extremes."""
        values = np.asarray(table, dtype=np.float64)
        scaled = [feature.scale(values[:, place]) for place, feature in enumerate(self.features)]
        return np.asarray(self.intercept + np.stack(scaled, axis=1) @ np.array(self.weights))


def fit(features: Sequence[str], table: ArrayLike, ratings: ArrayLike) -> LinearRegression:
    """Return the least-squares fit of ratings (rows,) on a table (rows, features); if not unique, the one of least norm.

    Example:
        >>> fitted = fit(["cola"], [[0.1], [0.5], [0.9]], [1, 3, 5])
        >>> round(fitted.weights[0], 6), round(float(fitted.predict([[0.3]])[0]), 6)
        (1.0, 0.25)
    """
    values, target = np.asarray(table, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    if len(values) <= len(features) + 1:
        raise InputError(
            f"regression: {len(values)} rows for {len(features)} indicators and an intercept. Give more rated responses."
        )
    ranges = [_range(name, values[:, place]) for place, name in enumerate(features)]
    target_range = _range("the rating", target)
    scaled = np.stack([extent.scale(values[:, place]) for place, extent in enumerate(ranges)], axis=1)
    design = np.column_stack([scaled, np.ones(len(scaled))])
    solution, *_ = np.linalg.lstsq(design, target_range.scale(target), rcond=None)
    fitted = zip(features, ranges, map(float, solution), strict=False)  # the last one is the intercept
    columns = tuple(Feature(extent.low, extent.high, name, weight) for name, extent, weight in fitted)
    return LinearRegression(columns, float(solution[-1]), target_range, len(values))


def predict_held_out(
    features: Sequence[str],
    table: ArrayLike,
    ratings: ArrayLike,
    contexts: Sequence[Hashable],
    *,
    n_folds: int = DEFAULT_FOLDS,
) -> FloatArray:
    """Return for each row the rating predicted by a regression that was fitted without the row's fold, on the ratings' scale.

    Folds are not random: contexts are numbered in order of appearance, and context i is in fold i mod `n_folds`.
    """
    values, target = np.asarray(table, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
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


def _range(name: str, values: FloatArray) -> FeatureRange:
    if not np.isfinite(values).all():
        raise InputError(f"regression: {name} is {values[~np.isfinite(values)][0]} in a row. Leave out what has no score.")
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise InputError(f"regression: {name} is {low:g} in every row, which tells nothing. Leave it out, or give other rows.")
    return FeatureRange(low, high)


@dataclass(frozen=True, slots=True)
class ProxyModel:
    """A regression over indicators, fitted to the ratings of one quality."""

    settings: IndicatorSettings
    regression: LinearRegression
    quality: str
    hashes: Mapping[str, str]
    """Content hash of each task's classifier; empty if the indicators came from a file."""

    def save(self, path: Path) -> None:
        """Write the file atomically."""
        settings = self.settings
        used = {task: settings.classifiers[task] for task in settings.tasks}
        stored = {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "quality": self.quality,
            "regression": asdict(self.regression),
            "settings": asdict(replace(settings, classifiers=used)),
            "hashes": dict(self.hashes),
        }
        write_text(path, to_json(stored, indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> ProxyModel:
        """Read a file that `save` wrote; `InputError` if it is not one."""
        data = read_json(path)
        if not isinstance(data, dict) or data.get("kind") != KIND:
            raise InputError(f"{path}: is no combination of indicators. Train one with `dialeval train proxy`.")
        if data.get("schema_version") != SCHEMA_VERSION:
            raise InputError(
                f"{path}: schema_version is {data.get('schema_version')!r}, this release reads {SCHEMA_VERSION}. "
                "Update dialeval-plugin or train again."
            )
        model = checked(data, cls, str(path), advice="Copy it again.")
        settings = model.settings
        if model.regression.names != settings.features:
            raise InputError(f"{path}: the columns of regression and settings differ. Copy it again.")
        return replace(model, settings=replace(settings, classifiers={**DEFAULT_CHOICES, **settings.classifiers}))
