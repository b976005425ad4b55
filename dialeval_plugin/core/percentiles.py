"""Percentiles: the rank of a score among a model's scores of human responses.

The tables are in a file of the model's folder, one for each main column, level and settings. They change no score.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from typing_extensions import TypedDict

from .dialogue import Level
from .errors import InputError, ModelLoadError
from .files import checked_model_file, to_json, write_text
from .scores import Orientation
from .signature import PERCENTILES_FILE, text_hash

PERCENTILE = "percentile"
FORMAT_VERSION = 1
N_QUANTILES = 1001
"""Number of quantiles: one for each tenth of a percentile, so that the worst responses differ."""

Settings: TypeAlias = Mapping[str, str | int | float | bool]
"""Everything that can change a score except the model and the version."""

_DIGITS = 7
"""Significant digits of the stored numbers; scores differ more between machines."""
_REMEDY = "Copy the folder again."


@dataclass(frozen=True, slots=True)
class PercentileTable:
    """Quantiles of a scorer's main column over human responses, or dialogues.

    Attributes:
        settings: settings of the scorer; the table is valid only for these.
        n: number of scores.
        sources: names of the files of the responses, with their SHA-256.
        quantiles: ascending and evenly spaced from the lowest to the highest, of shape (`N_QUANTILES`,).
        medians: median of every column that had values.
    """

    column: str
    level: Level
    orientation: Orientation
    settings: Settings
    n: int
    sources: Mapping[str, str]
    quantiles: tuple[float, ...]
    medians: Mapping[str, float]

    def __post_init__(self) -> None:
        if len(self.quantiles) < 2 or any(np.diff(self.quantiles) < 0):
            raise InputError(f"quantiles of {self.column!r}: expected two or more numbers in ascending order. {_REMEDY}")

    @classmethod
    def of_scores(
        cls,
        columns: Mapping[str, Sequence[float | None]],
        *,
        column: str,
        level: Level,
        orientation: Orientation,
        settings: Settings,
        sources: Mapping[str, str],
    ) -> PercentileTable:
        """Make the table from columns of values of human responses, with None for a missing value.

        Raises:
            InputError: none of the responses has a score.
        """
        present = {name: [value for value in values if value is not None] for name, values in columns.items()}
        scores = present[column]
        if not scores:
            raise InputError(f"percentiles: none of {len(columns[column])} responses of people has a score. Give more of them.")
        # Hazen's quantiles put the i-th of n scores, from 0, at (i + 1/2) / n: a score itself counts half.
        quantiles = np.quantile(scores, np.linspace(0, 1, N_QUANTILES), method="hazen")
        return cls(
            column,
            level,
            orientation,
            dict(settings),
            len(scores),
            dict(sorted(sources.items())),
            tuple(map(_rounded, quantiles.tolist())),
            {name: _rounded(float(np.median(values))) for name, values in present.items() if values},
        )

    def of(self, values: Sequence[float | None]) -> tuple[float | None, ...]:
        """Return for each score the share of human responses with a worse one, from 0 to 100; equal ones count half.

        It is linear between the quantiles, 0 below the lowest and 100 above the highest; reversed if lower is better.

        Example:
            >>> table = PercentileTable("words", "turn", "higher", {}, 5, {}, (1.0, 2.0, 2.0, 4.0, 6.0), {})
            >>> table.of([0.5, 1.5, 2.0, 5.0, None])
            (0.0, 12.5, 37.5, 87.5, None)
        """
        return tuple(None if value is None else self._percentile(value) for value in values)

    def _percentile(self, value: float) -> float:
        quantiles, last = self.quantiles, len(self.quantiles) - 1
        first, after = bisect_left(quantiles, value), bisect_right(quantiles, value)
        if after > first:
            place = (first + after - 1) / 2
        elif first == 0 or first > last:
            place = float(min(first, last))
        else:
            low, high = quantiles[first - 1], quantiles[first]
            place = first - 1 + (value - low) / (high - low)
        share = 100 * place / last
        return share if self.orientation == "higher" else 100 - share

    @property
    def digest(self) -> str:
        """Short hash of the table."""
        return text_hash(to_json(asdict(self)))

    def is_for(self, column: str, level: Level, orientation: Orientation, settings: Settings) -> bool:
        """Whether the table was made with these settings, for any model."""
        return (self.column, self.level, self.orientation) == (column, level, orientation) and self.settings == settings


class _Tables(TypedDict):
    format_version: int
    tables: list[PercentileTable]


def read_tables(folder: Path) -> list[PercentileTable]:
    """Return the tables of a model folder; empty if it has no such file.

    Raises:
        ModelLoadError: the file is damaged, or of another release.
    """
    path = folder / PERCENTILES_FILE
    if not path.is_file():
        return []
    stored = checked_model_file(path, _Tables)
    if stored["format_version"] != FORMAT_VERSION:
        raise ModelLoadError(
            f"{path}: format_version is {stored['format_version']}, this release reads {FORMAT_VERSION}. "
            "Update dialeval-plugin, or copy the model folder again."
        )
    return stored["tables"]


def write_table(folder: Path, table: PercentileTable) -> None:
    """Add a table to those of a model folder; it replaces one for the same settings."""
    others = [
        other for other in read_tables(folder) if not other.is_for(table.column, table.level, table.orientation, table.settings)
    ]
    tables = sorted(map(asdict, [*others, table]), key=lambda one: (one["level"], one["column"], to_json(one["settings"])))
    write_text(folder / PERCENTILES_FILE, to_json({"format_version": FORMAT_VERSION, "tables": tables}) + "\n")


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
