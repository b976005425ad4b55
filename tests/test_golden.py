"""No golden value goes missing: tests that read a file of `tests/golden` in a loop would pass on an emptied one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "golden"
N_VALUES = {
    "causalscore.json": 9409,
    "causalscore_agreement.json": 993,
    "dbdc_metrics.json": 2116,
    "dre_scores.json": 1405,
    "estimation.json": 3666,
    "huynh.json": 1038,
    "lm_aggregation.json": 1213,
    "ood_scores.json": 1563,
    "proxy_indicators.json": 2474,
    "published_correlations.json": 74,
    "slide_losses.json": 569,
    "slide_pipeline.json": 340,
    "slide_scores.json": 1774,
}
"""Numbers, texts and nulls of each file, inputs and expected outputs together."""


def n_values(value: Any) -> int:
    if isinstance(value, (dict, list)):
        return sum(map(n_values, value.values() if isinstance(value, dict) else value))
    return 1


def test_every_file_is_counted_and_has_its_source_in_the_readme() -> None:
    assert {path.name for path in FOLDER.glob("*.json")} == set(N_VALUES)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in N_VALUES if f"`{name}`" not in readme] == []


@pytest.mark.parametrize("name", N_VALUES)
def test_a_file_has_all_its_values(name: str) -> None:
    assert n_values(json.loads((FOLDER / name).read_text(encoding="utf-8"))) == N_VALUES[name]
