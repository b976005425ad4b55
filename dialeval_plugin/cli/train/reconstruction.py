"""`dialeval train reconstruction`: Seq2Seq, HRED, VHRED and VHCR."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import options as shared


def reconstruction(
    data: shared.Dialogues,
    output: shared.Output,
    model: Annotated[Literal["seq2seq", "hred", "vhred", "vhcr"], typer.Option(help="Kind of model.")] = "hred",
    validation: shared.Validation = None,
    evaluation: shared.Evaluation = None,
    recipe: Annotated[Literal["thesis", "small"], typer.Option(help="Recipe; small is for CPUs.")] = "small",
    epochs: shared.Epochs = None,
    max_minutes: Annotated[float | None, typer.Option(help="Start no epoch that would end after this many minutes.")] = None,
    validation_fraction: shared.Share = 0.1,
    seed: shared.Seed = 13,
    device: shared.Device = None,
) -> None:
    """Train a model that scores dialogues by its reconstruction loss."""
    from dialeval_plugin.methods.reconstruction.scorer import RECONSTRUCTION_MODEL
    from dialeval_plugin.methods.reconstruction.training import (
        FIGURES,
        ReconstructionSources,
        ReconstructionTrainingOptions,
        train,
    )

    trained = train(
        ReconstructionSources(
            training=[dialogue.turns for dialogue in shared.read_all_dialogues(data)],
            validation=[dialogue.turns for dialogue in shared.read_all_dialogues(validation)],
            evaluation=shared.read_evaluation_items(evaluation),
        ),
        output,
        ReconstructionTrainingOptions(
            model=model, recipe=recipe, n_epochs=epochs, validation_fraction=validation_fraction, seed=seed
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
    shared.say_how_to_use(trained.folder, RECONSTRUCTION_MODEL)
