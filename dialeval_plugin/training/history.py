"""The figures of a training, in `history.json` of the model's folder.

The file is a JSON list in the order of training, one object a report:

    {"stage": "joint", "epoch": 1.0, "step": 12, "figures": {"training_loss": 0.71, "loss": 0.63, "auroc": 87.98}}

`stage` names the part of the training, `epoch` counts the passes over its data that are over (a fraction within one, null where
there are none), `step` its optimizer steps. `figures` are numbers, null for what is not finite, which is read as NaN:
`training_loss` and whatever else begins with `training_` are means since the last report, the others are of validation data. No
time is in it: two runs of one command give the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from typing_extensions import TypedDict

from dialeval_plugin.core.files import checked, read_json, to_json, write_text

HISTORY_FILE = "history.json"


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One report of a training."""

    stage: str
    epoch: float | None
    step: int
    figures: Mapping[str, float]


class _StoredRow(TypedDict):
    """A row in the file."""

    stage: str
    epoch: float | None
    step: int
    figures: dict[str, float | None]


def read_history(folder: Path) -> list[HistoryRow]:
    """Return the rows of a folder's history."""
    path = folder / HISTORY_FILE
    stored = checked(read_json(path), list[_StoredRow], str(path), advice="Copy the folder again.")
    found = []
    for row in stored:
        figures = {name: math.nan if value is None else value for name, value in row["figures"].items()}
        found.append(HistoryRow(row["stage"], row["epoch"], row["step"], figures))
    return found


def write_history(folder: Path, rows: Sequence[HistoryRow]) -> None:
    """Write a folder's history, whole or not at all."""
    lines = []
    for row in rows:
        figures = {name: value if math.isfinite(value) else None for name, value in row.figures.items()}
        lines.append(to_json({**asdict(row), "figures": figures}))
    write_text(folder / HISTORY_FILE, "[\n{}\n]\n".format(",\n".join(lines)))
