"""A trained combination of indicators: the regression with all that its numbers depend on, in one JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json, to_json, write_text

from .regression import LinearRegression
from .tasks import DEFAULT_CHOICES, Choice, Entailment, IndicatorSettings, Truncate

KIND = "glue_proxy"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class ProxyModel:
    """A regression over indicators, fitted on the ratings of one quality."""

    settings: IndicatorSettings
    regression: LinearRegression
    quality: str
    hashes: Mapping[str, str]
    """Content hash of each task's classifier; empty where the indicators came from a file."""

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        write_text(path, to_json(self.to_dict(), indent=2) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able object that `load` reads back."""
        return {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "quality": self.quality,
            "regression": self.regression.to_dict(),
            "settings": self.settings.to_dict(),
            "hashes": dict(self.hashes),
        }

    @classmethod
    def load(cls, path: Path) -> ProxyModel:
        """Read the file."""
        data = read_json(path)
        if not isinstance(data, dict) or data.get("kind") != KIND:
            raise InputError(f"{path}: is no combination of indicators. Train one with `dialeval train proxy`.")
        if data.get("schema_version") != SCHEMA_VERSION:
            raise InputError(
                f"{path}: schema_version is {data.get('schema_version')!r}, this release reads {SCHEMA_VERSION}. "
                "Update dialeval-plugin or train again."
            )
        found = checked(data, _File, str(path), advice="Copy it again.")
        stored, regression = found["settings"], found["regression"]
        if [column["name"] for column in regression["features"]] != stored["features"]:
            raise InputError(f"{path}: the columns of regression and settings differ. Copy it again.")
        settings = IndicatorSettings(
            features=tuple(stored["features"]),
            choices={**DEFAULT_CHOICES, **stored["classifiers"]},
            entailment=stored["entailment"],
            absent_fact=stored["absent_fact"],
            truncate=stored["truncate"],
        )
        return cls(settings, LinearRegression.from_dict(regression), found["quality"], found["hashes"])


class _Range(TypedDict):
    low: float
    high: float


class _Column(_Range):
    name: str
    weight: float


class _Regression(TypedDict):
    features: list[_Column]
    intercept: float
    target: _Range
    n_rows: int


class _Settings(TypedDict):
    features: list[str]
    classifiers: dict[str, Choice]
    entailment: Entailment
    absent_fact: str | None
    truncate: Truncate


class _File(TypedDict):
    settings: _Settings
    regression: _Regression
    quality: str
    hashes: dict[str, str]
