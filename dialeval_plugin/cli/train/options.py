"""Options that several trainers have, and reading what they name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Dialogue, Item
    from dialeval_plugin.models.folders import DefaultModel

Output: TypeAlias = Annotated[Path, typer.Option(help="Folder of the model; checkpoints lie in it until training ends.")]
Evaluation: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Files or sets that will be reported on: they are kept out of training.")
]
Backbone: TypeAlias = Annotated[str, typer.Option(help="Encoder: a folder, a hub id, or the one that every installation has.")]
Dialogues: TypeAlias = Annotated[
    list[Path], typer.Option(help="Dialogues: DailyDialog, DREAM, ESConv, CGDIALOG+, or lines of turns; again for more files.")
]
Validation: TypeAlias = Annotated[
    list[Path] | None, typer.Option(help="Dialogues that choose the best epoch; else a share of the data does.")
]
Share: TypeAlias = Annotated[float, typer.Option(help="Share of the dialogues that is set aside for validation.")]
Epochs: TypeAlias = Annotated[int | None, typer.Option(help="Epochs at most, in place of the recipe's.")]
MaxMinutes: TypeAlias = Annotated[
    float | None, typer.Option(help="End the steps after so many minutes; measuring and calibrating come after.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the split, the weights, the order and every draw.")]
Precision: TypeAlias = Annotated[Literal["auto", "float32", "bfloat16"], typer.Option(help="Of the forward passes.")]
Device: TypeAlias = Annotated[str | None, typer.Option(help="A torch device; a GPU where there is one.")]

ENCODER = "all-MiniLM-L6-v2"


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
