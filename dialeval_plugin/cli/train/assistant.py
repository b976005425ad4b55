"""`dialeval train assistant`: an evaluator of assistants' answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as shared


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
    recipe = AssistantRecipe()
    options = AssistantTrainingOptions(
        backbone=backbone,
        recipe=recipe if steps is None else replace(recipe, n_steps=steps),
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
