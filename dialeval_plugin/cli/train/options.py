"""Options that several trainers have, and reading what they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import typer

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Dialogue, Item
    from dialeval_plugin.models.folders import DefaultModel

Output: TypeAlias = Annotated[Path, typer.Option(help="Folder for the model, and for checkpoints during training.")]
Evaluation: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="File or name of a test set, which is kept out of training; may be repeated.")
]
Backbone: TypeAlias = Annotated[str, typer.Option(help="Folder or hub id of the encoder, or the bundled one.")]
Dialogues: TypeAlias = Annotated[
    list[Path], typer.Option(help="Dialogues: DailyDialog, DREAM, ESConv, CGDIALOG+, or lines of turns; may be repeated.")
]
Validation: TypeAlias = Annotated[
    list[Path] | None, typer.Option(help="Dialogues for validation. Default: a share of the data.")
]
Share: TypeAlias = Annotated[float, typer.Option(help="Share of the dialogues used for validation.")]
Epochs: TypeAlias = Annotated[int | None, typer.Option(help="Largest number of epochs. Default: the recipe's.")]
MaxMinutes: TypeAlias = Annotated[
    float | None, typer.Option(help="Stop training after this many minutes; validation and calibration follow.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of all random choices.")]
Precision: TypeAlias = Annotated[Literal["auto", "float32", "bfloat16"], typer.Option(help="Precision of the forward passes.")]
Device: TypeAlias = Annotated[str | None, typer.Option(help="Torch device. Default: a GPU if there is one.")]

ENCODER = "all-MiniLM-L6-v2"
Recipe = TypeVar("Recipe", bound=Any)


def changed(recipe: Recipe, **values: Any) -> Recipe:
    """Return a recipe with the values that are given, of those that are not None."""
    return replace(recipe, **{name: value for name, value in values.items() if value is not None})


def read_evaluation(sources: Iterable[str] | None) -> dict[str, list[Item]]:
    """Read what will be reported on, by name, and say what of it is not on this machine."""
    from dialeval_plugin.corpora.registry import read_reported

    sets, absent = read_reported(sources or ())
    if absent:
        typer.echo(f"not on this machine, so not looked for: {', '.join(absent)}", err=True)
    return sets


def read_evaluation_items(sources: Iterable[str] | None) -> list[Item]:
    """Read what will be reported on, of all sets together; raises as `read_evaluation`."""
    return [item for items in read_evaluation(sources).values() for item in items]


def say_how_to_use(folder: Path, default: DefaultModel, option: str = "--option model") -> None:
    """Say how the model is named: no scorer takes the one that was trained last in silence."""
    export = f"export {default.variable}={folder.resolve()}"
    typer.echo(f"use it: dialeval score FILE --scorer {default.scorer} {option}={folder}; everywhere: {export}", err=True)


def read_all_dialogues(paths: Iterable[Path] | None) -> list[Dialogue]:
    """Read the dialogues of several files; raises as `read_dialogues`."""
    from dialeval_plugin.corpora.registry import read_dialogues

    return [dialogue for path in paths or () for dialogue in read_dialogues(path)]
