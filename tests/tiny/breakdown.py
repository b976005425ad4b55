"""Language models that were trained for a moment, one of each objective."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.corpora import mini
from dialeval_plugin.methods.breakdown.data import LanguageModelSources
from dialeval_plugin.methods.breakdown.training import LanguageModelTrainingOptions, train

SIZES = {"n_layers": 1, "width": 16, "vocabulary": 300, "block": 64, "n_epochs": 1, "batch_size": 4}


class TinyModels(NamedTuple):
    """Folders by objective."""

    lm: Path
    odin: Path
    background: Path


def mini_dialogues(split: Any, number: int) -> list[Dialogue]:
    """Contexts of the embedded corpus with their first fitting response."""
    sets = mini.read_response_sets(split)[:number]
    return [Dialogue(item.id, tuple(Turn(text) for text in (*item.context, item.positive[0]))) for item in sets]


def sources() -> LanguageModelSources:
    return LanguageModelSources(mini_dialogues("train", 12), mini_dialogues("validation", 4))


def options(objective: Any = "lm", backbone: Path | None = None, **changes: Any) -> LanguageModelTrainingOptions:
    """Options of a run of a second or two."""
    sizes = {name: value for name, value in SIZES.items() if backbone is None or name in ("block", "n_epochs", "batch_size")}
    settings = {"sizes": sizes, "precision": "float32", **changes}
    return LanguageModelTrainingOptions(objective, backbone=None if backbone is None else str(backbone), **settings)


def write_tiny_breakdown_models(folder: Path) -> TinyModels:
    """Train the three models."""
    lm = train(sources(), folder / "lm", options()).folder
    odin, background = (
        train(sources(), folder / objective, options(objective, lm)).folder for objective in ("odin", "background")
    )
    return TinyModels(lm, odin, background)
