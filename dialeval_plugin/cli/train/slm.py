"""`dialeval train slm`: SLIDE's small model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import options as shared


def slm(
    data: Annotated[list[Path], typer.Option(help="Contexts with responses in DailyDialog++'s layout; may be repeated.")],
    output: shared.Output,
    recipe: Annotated[Literal["default", "paper", "code"], typer.Option(help="Recipe of the training.")] = "default",
    backbone: shared.Backbone = shared.ENCODER,
    evaluation: shared.Evaluation = None,
    epochs: shared.Epochs = None,
    validation_fraction: shared.Share = 0.1,
    seed: shared.Seed = 13,
    precision: shared.Precision = "auto",
) -> None:
    """Train SLIDE's small model (SLM)."""
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.methods.slide.scorer import SLM
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
        evaluation=shared.read_evaluation_items(evaluation),
        progress=True,
    )
    counts, validated = trained.record["counts"], trained.record["validation"]
    typer.echo(
        f"{trained.folder}: trained on {counts['n_training_contexts']} contexts, validated on {counts['n_validation_contexts']}"
    )
    kinds = [kind for kind in ("positive", "adversarial", "random", "overall") if f"slm_{kind}" in validated]
    typer.echo(f"{'':16}" + "".join(f"{kind:>13}" for kind in kinds))
    for variant in ("slm_distance", "slm_probability", "slm"):
        typer.echo(f"{variant:16}" + "".join(f"{validated[f'{variant}_{kind}']:13.2f}" for kind in kinds))
    shared.say_how_to_use(trained.folder, SLM, "--slm")
