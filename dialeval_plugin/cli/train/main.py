"""`dialeval train` and its commands, and those that train the models of one method each."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dialeval_plugin.core.resources import optional

from . import options as shared
from .general import acceptance, general, mixing
from .language_model import breakdown, language_model
from .proxy import proxy


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
    from dialeval_plugin.methods.causalscore.scorer import CAUSAL_MODEL
    from dialeval_plugin.methods.causalscore.training import GENERAL, VECTORS, CausalTrainingOptions, train

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


def assistant(
    preferences: Annotated[
        list[Path], typer.Option(help="JSON lines of context, response, score and group; answers of one group are compared.")
    ],
    answers: Annotated[
        list[Path], typer.Option(help="JSON lines of context and response, good answers; bad ones have defects.")
    ],
    output: shared.Output,
    requests: Annotated[
        list[Path] | None, typer.Option(help="JSON lines of context and asked_refusal: 1 for requests to decline, else 0.")
    ] = None,
    evaluation: shared.Evaluation = None,
    backbone: shared.Backbone = shared.ENCODER,
    steps: Annotated[int | None, typer.Option(help="Number of training steps. Default: the recipe's.")] = None,
    max_minutes: shared.MaxMinutes = None,
    validation_fraction: shared.Share = 0.12,
    seed: shared.Seed = 13,
    precision: shared.Precision = "auto",
) -> None:
    """Train the evaluator of assistants on preferences and good answers, of which it makes bad ones."""
    from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks
    from dialeval_plugin.methods.assistant.scorer import ASSISTANT_MODEL
    from dialeval_plugin.methods.assistant.training import AssistantRecipe, AssistantSources, AssistantTrainingOptions, train

    reported = LeakIndex(shared.read_evaluation(evaluation))

    def kept(rows: Sequence[Any], name: str) -> tuple[Any, ...]:
        return tuple(leave_out_leaks(rows, reported, lambda row: [row.context, [*row.context, row.answer]], name))

    read = AssistantSources.read(preferences, answers, requests or ())
    sources = replace(
        read, preferences=kept(read.preferences, "preferred answers"), answers=kept(read.answers, "known answers")
    )
    options = AssistantTrainingOptions(
        backbone=backbone,
        recipe=shared.changed(AssistantRecipe(), n_steps=steps),
        validation_fraction=validation_fraction,
        seed=seed,
        precision=precision,
        max_minutes=max_minutes,
    )
    trained = train(sources, output, options, progress=True)
    typer.echo(f"{trained.folder}: {trained.record['steps']} steps; on validation:")
    for head, figures in trained.record["validation"].items():
        typer.echo(f"{head:16}" + ", ".join(f"{name.replace('_', ' ')} {_figure(value)}" for name, value in figures.items()))
    shared.say_how_to_use(trained.folder, ASSISTANT_MODEL)


def _figure(value: float | Sequence[float]) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else " and ".join(f"{one:g}" for one in value)


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


app = typer.Typer(help="Train evaluators.", no_args_is_help=True)
app.command("language-model")(language_model)
app.command()(breakdown)
app.command()(general)
app.command()(assistant)
app.command()(acceptance)
app.command()(mixing)
app.command()(proxy)
app.command()(reconstruction)
app.command()(slm)
app.command()(independence)


@app.callback()
def models() -> None:
    """Train a small model on your own dialogues. A run that was killed resumes with the same command."""
    if importlib.util.find_spec("accelerate") is None:
        optional("accelerate", "training")  # every training needs all that this one's extra brings
    if os.environ.get("RANK", "0") != "0":
        # Of several processes that train together the first one prints.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
