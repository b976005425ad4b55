"""Figures of a training run, in `history.json` of the model's folder.

The file is a JSON list with one object per report:

    {"stage": "joint", "epoch": 1.0, "step": 12, "figures": {"training_loss": 0.71, "loss": 0.63, "auroc": 87.98}}

`epoch` counts passes over the data and may be null. Figures that begin with `training_` are means since the last report, the
others are of validation data; null stands for NaN. There are no times, so that two runs of one command give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from dialeval_plugin.core.files import checked, read_json, to_json, write_text

HISTORY_FILE = "history.json"


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One report of a training run."""

    stage: str
    epoch: float | None
    step: int
    figures: Mapping[str, Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]]


def read_history(folder: Path) -> list[HistoryRow]:
    """Return the rows of a folder's history."""
    path = folder / HISTORY_FILE
    return checked(read_json(path), list[HistoryRow], str(path), advice="Copy the folder again.")


def write_history(folder: Path, rows: Sequence[HistoryRow]) -> None:
    """Write a folder's history, whole or not at all."""
    lines = []
    for row in rows:
        figures = {name: value if math.isfinite(value) else None for name, value in row.figures.items()}
        lines.append(to_json({**asdict(row), "figures": figures}))
    write_text(folder / HISTORY_FILE, "[\n{}\n]\n".format(",\n".join(lines)))
