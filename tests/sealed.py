"""Model folders that a test has changed on purpose, made whole again: their settings name the weights as they are now."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from dialeval_plugin.models.folders import SETTINGS_FILES, ModelFolder


def seal(folder: Path) -> Path:
    """Publish a trained model's folder again; return it."""
    (path,) = (folder / name for name in SETTINGS_FILES if (folder / name).exists())
    settings = json.loads(path.read_text(encoding="utf-8"))
    version, training = settings.pop("format_version"), settings.pop("training")
    ModelFolder(path.name, dict, version, "", "").publish(folder, settings, training)
    return folder


def change_tensors(weights: Path, change: Callable[[str, Tensor], Tensor | None]) -> None:
    """Write a file of weights again with what `change` makes of each tensor by its name; None takes it away."""
    changed = {name: change(name, tensor) for name, tensor in load_file(weights).items()}
    save_file({name: tensor for name, tensor in changed.items() if tensor is not None}, weights, {"format": "pt"})


def poison(weights: Path) -> None:
    """Make every number of a file of weights NaN."""
    change_tensors(weights, lambda _, tensor: tensor * math.nan)
