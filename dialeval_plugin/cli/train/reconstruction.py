"""`dialeval train reconstruction`: Seq2Seq, HRED, VHRED and VHCR."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .evaluation_sets import read_evaluation

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Turn
    from dialeval_plugin.methods.reconstruction.networks import NetworkKind


def reconstruction(
    data: Annotated[
        list[Path],
        typer.Option(help="Dialogues: DailyDialog, DREAM, ESConv, CGDIALOG+, or lines of turns; again for further files."),
    ],
    output: Annotated[Path, typer.Option(help="Folder of the model; checkpoints lie in it until training ends.")],
    model: Annotated[str, typer.Option(help="seq2seq, hred, vhred or vhcr.")] = "hred",
    validation: Annotated[
        list[Path] | None, typer.Option(help="Dialogues that choose the best epoch; else a share of the data does.")
    ] = None,
    evaluation: Annotated[
        list[str] | None, typer.Option(help="Files or sets that will be reported on: kept out of training and validation.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="thesis, or small for a processor.")] = "small",
    epochs: Annotated[int | None, typer.Option(help="Epochs at most, in place of the recipe's.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="No epoch is begun that would end later.")] = None,
    validation_fraction: Annotated[float, typer.Option(help="Share of the dialogues for validation.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the split, the weights, the order and every draw.")] = 13,
    device: Annotated[str | None, typer.Option(help="A torch device; a GPU where there is one.")] = None,
) -> None:
    """Train a dialogue model whose loss scores dialogues. The same command goes on where it was killed."""
    from dialeval_plugin.methods.reconstruction.data import ReconstructionSources
    from dialeval_plugin.methods.reconstruction.training import FIGURES, ReconstructionTrainingOptions, train

    trained = train(
        ReconstructionSources(_dialogues(data), _dialogues(validation or []), read_evaluation(evaluation or [])),
        output,
        ReconstructionTrainingOptions(
            model=cast("NetworkKind", model),
            recipe=recipe,
            n_epochs=epochs,
            validation_fraction=validation_fraction,
            seed=seed,
        ),
        max_minutes=max_minutes,
        device=device,
        progress=True,
    )
    record, counts = trained.record, trained.record["counts"]
    typer.echo(
        f"{trained.folder}: {model} trained on {counts['n_training']} dialogues, validated on {counts['n_validation']}, "
        f"best epoch {record['best_epoch']}"
    )
    for name, why in (
        ("training_short", "training dialogues have fewer than two visible utterances"),
        ("training_duplicates", "training dialogues are duplicates"),
        ("training_in_validation", "training dialogues begin like a validation dialogue"),
        ("training_in_evaluation", "training dialogues are in the evaluation data or begin like it"),
        ("validation_in_evaluation", "validation dialogues are in the evaluation data or begin like it"),
    ):
        if number := counts.get(f"n_{name}"):
            typer.echo(f"left out: {number} {why}")
    typer.echo(f"{'epoch':>5}{'training loss':>15}{'KL':>9}{'KL weight':>11}{'validation loss':>17}")
    for row in trained.history:
        loss, kl, weight, validation_loss = (row.figures[name] for name in FIGURES)
        typer.echo(f"{row.epoch:5.0f}{loss:15.4f}{kl:9.4f}{weight:11.2f}{validation_loss:17.4f}")


def _dialogues(paths: list[Path]) -> list[tuple[Turn, ...]]:
    from dialeval_plugin.corpora.registry import read_dialogues

    return [dialogue.turns for path in paths for dialogue in read_dialogues(path)]
