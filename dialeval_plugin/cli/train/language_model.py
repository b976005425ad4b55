"""`dialeval train language-model` and `breakdown`: language models of likelihood and breakdown detection, and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .evaluation_sets import read_evaluation

if TYPE_CHECKING:
    from dialeval_plugin.methods.breakdown.preparation import Spacing
    from dialeval_plugin.methods.breakdown.scorer import Method
    from dialeval_plugin.methods.breakdown.training import Objective
    from dialeval_plugin.training.options import Precision


def language_model(
    data: Annotated[
        list[Path], typer.Option(help="Dialogues: DailyDialog, DREAM, ESConv, CGDIALOG+, or lines of turns; again for more.")
    ],
    output: Annotated[Path, typer.Option(help="Folder of the model; checkpoints lie in it until training ends.")],
    objective: Annotated[
        str, typer.Option(help="lm, odin (with a second head), or background (reads perturbed input).")
    ] = "lm",
    validation: Annotated[
        list[Path] | None,
        typer.Option(help="Dialogues that choose the best epoch and calibrate; else a share of the data does."),
    ] = None,
    evaluation: Annotated[
        list[str] | None, typer.Option(help="Files or sets that will be reported on; they are kept out of training.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Causal language model to go on from, a folder or a hub id; without it, from scratch.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="small (from scratch) or continue (from a backbone).")] = None,
    epochs: Annotated[int | None, typer.Option(help="In place of the recipe's, as the options below.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="End training after so many minutes, and measure.")] = None,
    layers: Annotated[int | None, typer.Option(help="Of a model from scratch.")] = None,
    width: Annotated[int | None, typer.Option(help="Of a model from scratch.")] = None,
    vocabulary: Annotated[int | None, typer.Option(help="Tokens of a model from scratch.")] = None,
    block: Annotated[int | None, typer.Option(help="Tokens of the longest row; the window of a model from scratch.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Highest learning rate.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows a step.")] = None,
    mu: Annotated[float, typer.Option(help="Share of the tokens that the background model reads perturbed.")] = 0.15,
    spacing: Annotated[
        str, typer.Option(help="natural removes blanks before punctuation in the training texts; published does not.")
    ] = "natural",
    validation_fraction: Annotated[float, typer.Option(help="Share of the dialogues for validation.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the split, the weights, the order and the noise.")] = 13,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
) -> None:
    """Train a language model on dialogues. The same command goes on where it was killed."""
    from dialeval_plugin.corpora.dialogues import read_dialogues
    from dialeval_plugin.methods.breakdown.preparation import Sources
    from dialeval_plugin.methods.breakdown.training import LanguageModelTrainingOptions, train

    training, held_out = (
        [dialogue for path in paths or () for dialogue in read_dialogues(path)] for paths in (data, validation)
    )
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
        Sources(training, held_out, read_evaluation(evaluation or ())),
        output,
        LanguageModelTrainingOptions(
            cast("Objective", objective),
            recipe,
            backbone,
            {name: value for name, value in sizes.items() if value is not None},
            mu,
            cast("Spacing", spacing),
            validation_fraction=validation_fraction,
            seed=seed,
            precision=cast("Precision", precision),
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


def breakdown(
    calibration: Annotated[
        list[Path],
        typer.Option(help="Dialogues as for language-model, or a zip or folder of DBDC's logs; their labels are not read."),
    ],
    output: Annotated[Path, typer.Option(help="File of the calibration, JSON: the scorer's option calibration.")],
    method: Annotated[str, typer.Option(help="max_probability, odin_h, odin_g or likelihood_ratio.")] = "max_probability",
    model: Annotated[str | None, typer.Option(help="Causal language model, a folder or a hub id.")] = None,
    background: Annotated[str | None, typer.Option(help="Background model, of likelihood_ratio only.")] = None,
    inside: Annotated[str, typer.Option(help="What the names of DBDC's logs begin with, as DBDC3/dbdc3_revised/en/dev/.")] = "",
    max_tokens: Annotated[int | None, typer.Option(help="Longest sequence that is read at once.")] = None,
    device: Annotated[str | None, typer.Option(help="A torch device.")] = None,
) -> None:
    """Learn the lowest and highest score of a breakdown detector, for models that were trained elsewhere or other data."""
    from dialeval_plugin.methods.breakdown.calibration import calibrate, weights_hash
    from dialeval_plugin.methods.breakdown.scorer import make_detector, open_models, shared_window

    responses = [texts for path in calibration for texts in _responses(path, inside)]
    chosen = cast("Method", method)
    models = open_models(chosen, model, background, device=device)
    found = calibrate(
        {method: make_detector(chosen, models)},
        responses,
        max_tokens=shared_window(models, max_tokens),
        models=[weights_hash(opened.folder) for opened in models],
    )
    found.save(output)
    typer.echo(f"{output}: {method} over {found.n_responses} responses")
    for context, ranges in found.ranges[method].items():
        for aggregation, extremes in ranges.items():
            typer.echo(f"{context:8}{aggregation:12}{extremes.low:14.6g}{extremes.high:14.6g}")


def _responses(path: Path, inside: str) -> list[Sequence[str]]:
    """Visible turns up to each response of a file: system turns of DBDC's logs, of dialogues all turns but the first."""
    from dialeval_plugin.corpora.dialogues import read_dialogues
    from dialeval_plugin.corpora.readers import dbdc
    from dialeval_plugin.methods.breakdown.calibration import responses_of
    from dialeval_plugin.methods.breakdown.preparation import visible_turns
    from dialeval_plugin.models.response_texts import response_texts

    if path.suffix != ".zip" and not path.is_dir():
        return responses_of(map(visible_turns, read_dialogues(path)))
    examples = [response for found in dbdc.read_logs(path, inside=inside) for response in found.responses]
    return [texts for example in examples if isinstance(texts := response_texts(example), list)]
