"""Model folders that a test has changed on purpose, made whole again: their settings name the weights as they are now."""

from __future__ import annotations

import json
from pathlib import Path

from dialeval_plugin.models.folders import SETTINGS_FILES, ModelFolder


def seal(folder: Path) -> Path:
    """Publish a trained model's folder again; return it."""
    (path,) = (folder / name for name in SETTINGS_FILES if (folder / name).exists())
    settings = json.loads(path.read_text(encoding="utf-8"))
    version, training = settings.pop("format_version"), settings.pop("training")
    ModelFolder(path.name, dict, version, "", "").publish(folder, settings, training)
    return folder
