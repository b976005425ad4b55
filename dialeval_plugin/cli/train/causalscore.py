"""`dialeval train independence`: CausalScore's classifiers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import options as shared


def independence(
    data: Annotated[list[Path], typer.Option(help="File in CGDIALOG+'s layout of causes; may be repeated.")],
    output: shared.Output,
    validation: Annotated[
        list[Path] | None, typer.Option(help="File of causes for validation. Default: a share of the data.")
    ] = None,
    unlabelled: Annotated[
        list[Path] | None, typer.Option(help="Dialogues for self-training: DREAM, ESConv, CGDIALOG+, or lines of turns.")
    ] = None,
    evaluation: shared.Evaluation = None,
    recipe: Annotated[
        Literal["vectors", "default", "paper", "code"],
        typer.Option(help="vectors: regressions on a general evaluator's vectors, trained in a minute; else cross-encoders."),
    ] = "default",
    labels: Annotated[
        Literal["annotated", "preceding_2"],
        typer.Option(help="Causes: annotated ones, or the two turns before the response (preceding_2)."),
    ] = "annotated",
    backbone: Annotated[
        str | None,
        typer.Option(help=f"Folder or hub id of the encoder. Default: {shared.ENCODER}, or `general` with --recipe vectors."),
    ] = None,
    epochs: shared.Epochs = None,
    round_epochs: Annotated[int | None, typer.Option(help="Number of epochs of each round of self-training.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Largest number of rounds of self-training; 0 for none.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Learning rate. Default: the recipe's.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of the longest text. Default: the recipe's.")] = None,
    max_unlabelled: Annotated[
        int | None, typer.Option(help="Largest number of unlabelled responses; more are sampled.")
    ] = None,
    validation_fraction: shared.Share = 0.1,
    seed: shared.Seed = 13,
    precision: shared.Precision = "auto",
) -> None:
    """Train CausalScore's independence classifiers, and measure them on files of causes in --evaluation."""
    from dialeval_plugin.corpora.readers.cgdialog import has_causes, read_causes
    from dialeval_plugin.methods.causalscore.data import CausalSources
    from dialeval_plugin.methods.causalscore.recipes import GENERAL, VECTORS
    from dialeval_plugin.methods.causalscore.scorer import CAUSAL_MODEL
    from dialeval_plugin.methods.causalscore.training import CausalTrainingOptions, train

    measured = [source for source in evaluation or () if Path(source).is_file() and has_causes(Path(source))]
    trained = train(
        CausalSources(
            pairs=[pair for path in data for pair in read_causes(path)],
            validation=[pair for path in validation or () for pair in read_causes(path)],
            unlabelled=[dialogue.turns for dialogue in shared.read_all_dialogues(unlabelled)],
            evaluation=[pair for source in measured for pair in read_causes(Path(source))],
            held_out=shared.read_evaluation_items(source for source in evaluation or () if source not in measured),
        ),
        output,
        CausalTrainingOptions(
            recipe=recipe,
            backbone=backbone or (GENERAL if recipe == VECTORS else shared.ENCODER),
            labels=labels,
            n_epochs=epochs,
            n_round_epochs=round_epochs,
            n_rounds=rounds,
            learning_rate=learning_rate,
            max_tokens=max_tokens,
            max_unlabelled=max_unlabelled,
            validation_fraction=validation_fraction,
            seed=seed,
            precision=precision,
        ),
        progress=True,
    )
    record, counts = trained.record, trained.record["counts"]
    typer.echo(
        f"{trained.folder}: trained on {counts['n_training_pairs']} responses, validated on {counts['n_validation_pairs']}, "
        f"best round {record['best_round']}"
    )
    typer.echo(f"{'':15}{'rows':>8}{'new':>8}{'':>12}{'AUROC':>8}{'F1':>8}")
    entries = {"unconditional": record["unconditional"]} | {f"round {entry['round']}": entry for entry in record["rounds"]}
    for name, entry in entries.items():
        for part in ("validation", "evaluation"):
            if part in entry:
                row = f"{name:15}{entry['n_rows']:8}{entry.get('n_pseudo', 0):8}{part:>12}"
                typer.echo(f"{row}{entry[part]['auroc']:8.3f}{entry[part]['f1']:8.3f}")
    shared.say_how_to_use(trained.folder, CAUSAL_MODEL)
