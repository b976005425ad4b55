"""`dialeval train language-model` and `breakdown`: language models of likelihood and breakdown detection, and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from . import options as shared


def language_model(
    data: shared.Dialogues,
    output: shared.Output,
    objective: Annotated[
        Literal["lm", "odin", "background"],
        typer.Option(help="Kind of model: odin has a second head, background reads perturbed input."),
    ] = "lm",
    validation: shared.Validation = None,
    evaluation: shared.Evaluation = None,
    backbone: Annotated[
        str | None,
        typer.Option(help="Folder or hub id of a causal language model to train further. Default: train from scratch."),
    ] = None,
    recipe: Annotated[
        Literal["small", "continue"] | None, typer.Option(help="Recipe: small trains from scratch, continue from a backbone.")
    ] = None,
    epochs: shared.Epochs = None,
    max_minutes: shared.MaxMinutes = None,
    layers: Annotated[int | None, typer.Option(help="Number of layers of a model from scratch.")] = None,
    width: Annotated[int | None, typer.Option(help="Width of a model from scratch.")] = None,
    vocabulary: Annotated[int | None, typer.Option(help="Size of the vocabulary of a model from scratch.")] = None,
    block: Annotated[int | None, typer.Option(help="Tokens of the longest row, and window of a model from scratch.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Highest learning rate.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Number of rows in a step.")] = None,
    mu: Annotated[float, typer.Option(help="Share of the tokens that the background model reads perturbed.")] = 0.15,
    spacing: Annotated[
        Literal["natural", "published"],
        typer.Option(help="Form of the training texts; natural has no blanks before punctuation."),
    ] = "natural",
    validation_fraction: shared.Share = 0.05,
    seed: shared.Seed = 13,
    precision: shared.Precision = "auto",
) -> None:
    """Train a language model on dialogues."""
    from dialeval_plugin.methods.breakdown.data import LanguageModelSources
    from dialeval_plugin.methods.breakdown.detectors import DEFAULT_MODELS
    from dialeval_plugin.methods.breakdown.training import LanguageModelTrainingOptions, train

    sizes = {
        "n_epochs": epochs,
        "n_layers": layers,
        "width": width,
        "vocabulary": vocabulary,
        "block": block,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
    }
    trained = train(
        LanguageModelSources(
            training=shared.read_all_dialogues(data),
            validation=shared.read_all_dialogues(validation),
            evaluation=shared.read_evaluation_items(evaluation),
        ),
        output,
        LanguageModelTrainingOptions(
            objective=objective,
            recipe=recipe,
            backbone=backbone,
            sizes={name: value for name, value in sizes.items() if value is not None},
            mu=mu,
            spacing=spacing,
            validation_fraction=validation_fraction,
            seed=seed,
            precision=precision,
        ),
        max_minutes=max_minutes,
        progress=True,
    )
    counts = trained.record["counts"]
    typer.echo(
        f"{trained.folder}: trained on {counts['n_training_dialogues']} dialogues ({counts['n_training_tokens']} tokens), "
        f"validated on {counts['n_validation_dialogues']}"
    )
    typer.echo(f"{'epoch':>8}{'training loss':>16}{'validation loss':>18}{'perplexity':>13}")
    for row in trained.history:
        losses = f"{row.figures['training_loss']:16.4f}{row.figures['loss']:18.4f}"
        typer.echo(f"{row.epoch:8.2f}{losses}{row.figures['perplexity']:13.2f}")
    shared.say_how_to_use(trained.folder, DEFAULT_MODELS[objective])


def breakdown(
    calibration: Annotated[
        list[Path],
        typer.Option(help="Dialogues as for language-model, or a zip or folder of DBDC's logs, whose labels are ignored."),
    ],
    output: Annotated[Path, typer.Option(help="File (.json) for the calibration, the scorer's option calibration.")],
    method: Annotated[
        Literal["max_probability", "odin_h", "odin_g", "likelihood_ratio"], typer.Option(help="Detector to calibrate.")
    ] = "max_probability",
    model: Annotated[str | None, typer.Option(help="Folder or hub id of a causal language model.")] = None,
    background: Annotated[str | None, typer.Option(help="Background model, for likelihood_ratio only.")] = None,
    inside: Annotated[str, typer.Option(help="Prefix of the names of DBDC's logs, as DBDC3/dbdc3_revised/en/dev/.")] = "",
    max_tokens: Annotated[int | None, typer.Option(help="Tokens of the longest sequence.")] = None,
    device: shared.Device = None,
) -> None:
    """Calibrate the range of a breakdown detector's scores for a model or data of your own."""
    from dialeval_plugin.methods.breakdown.calibration import calibrate, weights_hash
    from dialeval_plugin.methods.breakdown.scorer import open_detector, shared_window

    responses = [texts for path in calibration for texts in _responses(path, inside)]
    detector = open_detector(method, model, background, device=device)
    found = calibrate(
        {method: detector},
        responses,
        max_tokens=shared_window(detector.models, max_tokens),
        models=[weights_hash(opened.folder) for opened in detector.models],
        progress=True,
    )
    found.save(output)
    typer.echo(f"{output}: {method} over {found.n_responses} responses")
    for context, ranges in found.ranges[method].items():
        for aggregation, extremes in ranges.items():
            typer.echo(f"{context:8}{aggregation:12}{extremes.low:14.6g}{extremes.high:14.6g}")


def _responses(path: Path, inside: str) -> list[Sequence[str]]:
    """Visible turns up to each response of a file: system turns of DBDC's logs, of dialogues all turns but the first."""
    from dialeval_plugin.corpora.readers import dbdc
    from dialeval_plugin.corpora.registry import read_dialogues
    from dialeval_plugin.methods.breakdown.calibration import responses_of
    from dialeval_plugin.models.texts import turns_to_read, unread

    if path.suffix != ".zip" and not path.is_dir():
        return responses_of(map(turns_to_read, read_dialogues(path)))
    examples = [response for dialogue in dbdc.read_logs(path, inside=inside) for response in dialogue.responses]
    return [turns_to_read(example) for example in examples if unread(example) is None]
