"""`dialeval train slm`: SLIDE's small model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .options import (
    ENCODER,
    Backbone,
    Epochs,
    Evaluation,
    Output,
    Precision,
    Seed,
    Share,
    read_evaluation_items,
    say_how_to_use,
)


def slm(
    data: Annotated[list[Path], typer.Option(help="Contexts with responses in DailyDialog++'s layout; again for more files.")],
    output: Output,
    recipe: Annotated[Literal["default", "paper", "code"], typer.Option(help="Of training.")] = "default",
    backbone: Backbone = ENCODER,
    evaluation: Evaluation = None,
    epochs: Epochs = None,
    validation_fraction: Share = 0.1,
    seed: Seed = 13,
    precision: Precision = "auto",
) -> None:
    """Train SLIDE's small model (SLM)."""
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.methods.slide.sides import SLM
    from dialeval_plugin.methods.slide.training import SlideTrainingOptions, train

    trained = train(
        [item for path in data for item in dailydialog_pp.read(path)],
        output,
        SlideTrainingOptions(
            recipe=recipe,
            backbone=backbone,
            n_epochs=epochs,
            validation_fraction=validation_fraction,
            seed=seed,
            precision=precision,
        ),
        evaluation=read_evaluation_items(evaluation),
        progress=True,
    )
    counts, validated = trained.record["counts"], trained.record["validation"]
    typer.echo(
        f"{trained.folder}: trained on {counts['n_training_contexts']} contexts, validated on {counts['n_validation_contexts']}"
    )
    typer.echo(f"{'':16}{'positive':>10}{'adversarial':>13}{'overall':>9}")
    for variant in ("slm_distance", "slm_probability", "slm"):
        figures = [validated[f"{variant}_{kind}"] for kind in ("positive", "adversarial", "overall")]
        typer.echo(f"{variant:16}{figures[0]:10.2f}{figures[1]:13.2f}{figures[2]:9.2f}")
    say_how_to_use(trained.folder, SLM, "--slm")
