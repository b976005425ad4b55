"""Checkpoints of a training run, and its figures in `history.json` of the model's folder.

A kill or a full disk may stop a trainer between two files. A complete checkpoint has a seal, a list of its files with their
hashes. The two newest are kept, with the best ones so far that they name.

The history is a JSON list with one object per report:

    {"stage": "joint", "epoch": 1.0, "step": 12, "figures": {"training_loss": 0.71, "loss": 0.63, "auroc": 87.98}}

`epoch` counts passes over the data and may be null. Figures that begin with `training_` are means since the last report, the
others are of validation data; null stands for NaN. There are no times, so that two runs of one command give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json, to_json, write_text

logger = logging.getLogger(__name__)

KEPT = 2
SEAL = "complete.json"
STATE_FILE = "trainer_state.json"
HISTORY_FILE = "history.json"


class Checkpoint(NamedTuple):
    """A complete checkpoint."""

    folder: Path
    step: int
    best: str | None
    """Name of the best epoch's checkpoint so far; None if the run keeps no best one."""
    is_end: bool


def seal(folder: Path) -> None:
    """Write the seal of a checkpoint whose files are all written."""
    write_text(folder / SEAL, to_json(_hashes(folder), indent=2) + "\n")


def find_last(folder: Path) -> Checkpoint | None:
    """Return the newest complete checkpoint whose best one is complete too; `folder` need not exist."""
    usable = _usable(folder)
    return usable[-1] if usable else None


def remove_broken(folder: Path) -> None:
    """Remove the checkpoints that cannot be resumed from."""
    needed = _with_best(_usable(folder))
    for path in _folders(folder):
        if path.name not in needed:
            logger.warning("%s: was not written to its end and is left out", path)
            _remove(path)


def remove_old(folder: Path) -> None:
    """Remove sealed checkpoints except the `KEPT` newest and those that they need."""
    # The hashes are not checked again: they were right a moment ago.
    sealed = [_read(path) for path in _folders(folder) if (path / SEAL).exists()]
    needed = _with_best(sealed[-KEPT:])
    for checkpoint in sealed:
        if checkpoint.folder.name not in needed:
            _remove(checkpoint.folder)


def _folders(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=_step)


def _step(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def _is_whole(path: Path) -> bool:
    try:
        return bool(read_json(path / SEAL) == _hashes(path))
    except (InputError, OSError):
        return False


def _hashes(path: Path) -> dict[str, str]:
    return {
        file.relative_to(path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != SEAL and not file.name.endswith(".part")
    }


def _read(path: Path) -> Checkpoint:
    state = json.loads((path / STATE_FILE).read_text(encoding="utf-8"))
    best = state["best_model_checkpoint"]
    control = state["stateful_callbacks"]["TrainerControl"]
    return Checkpoint(path, _step(path), best and Path(best).name, control["args"]["should_training_stop"])


def _usable(folder: Path) -> list[Checkpoint]:
    """Complete checkpoints whose best ones are complete too."""
    whole = [_read(path) for path in _folders(folder) if _is_whole(path)]
    names = {None, *(checkpoint.folder.name for checkpoint in whole)}
    return [checkpoint for checkpoint in whole if checkpoint.best in names]


def _with_best(checkpoints: Sequence[Checkpoint]) -> set[str | None]:
    return {name for checkpoint in checkpoints for name in (checkpoint.folder.name, checkpoint.best)}


def _remove(path: Path) -> None:
    # The seal is removed first, so that a kill during removal leaves no checkpoint that looks complete.
    (path / SEAL).unlink(missing_ok=True)
    shutil.rmtree(path)


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
