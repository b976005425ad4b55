"""`dialeval train general`, `acceptance` and `mixing`: an evaluator without ratings, what logs teach it, and with ratings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from . import options as shared


def general(
    corpus: Annotated[
        list[str], typer.Option(help="Dialogues in any layout, as FILE or NAME=FILE; files of one name are one corpus.")
    ],
    output: shared.Output,
    validation: Annotated[
        list[str] | None, typer.Option(help="Dialogues for validation, as --corpus. Default: a share of each corpus.")
    ] = None,
    evaluation: shared.Evaluation = None,
    backbone: shared.Backbone = shared.ENCODER,
    epochs: shared.Epochs = None,
    max_pairs: Annotated[int | None, typer.Option(help="Largest number of responses in an epoch.")] = None,
    max_minutes: shared.MaxMinutes = None,
    validation_fraction: shared.Share = 0.1,
    seed: shared.Seed = 13,
    precision: shared.Precision = "auto",
) -> None:
    """Train the general evaluator on dialogues without ratings."""
    from dialeval_plugin.corpora.identity import LeakIndex
    from dialeval_plugin.methods.general.conversations import GeneralSources, read_conversations
    from dialeval_plugin.methods.general.model import GeneralRecipe
    from dialeval_plugin.methods.general.scorer import GENERAL_MODEL
    from dialeval_plugin.methods.general.training import GeneralTrainingOptions, train

    left_out: dict[str, int] = {}

    def sources() -> GeneralSources:
        """The index of what is reported on goes with this call: training needs its memory."""
        reported = LeakIndex(shared.read_evaluation(evaluation))
        return GeneralSources(*(read_conversations(files, reported, left_out) for files in (corpus, validation or ())))

    trained = train(
        sources(),
        output,
        GeneralTrainingOptions(
            backbone=backbone,
            recipe=shared.changed(GeneralRecipe(), n_epochs=epochs, max_pairs=max_pairs),
            validation_fraction=validation_fraction,
            seed=seed,
            precision=precision,
            max_minutes=max_minutes,
        ),
        left_out=left_out,
        progress=True,
    )
    counts = trained.record["counts"]
    typer.echo(f"{trained.folder}: {counts['steps']} steps; dialogues and responses by corpus:")
    for name, number in counts["training_dialogues"].items():
        typer.echo(
            f"{name:24}{number:8} dialogues{counts['training_pairs'][name]:9} responses, "
            f"{counts['pairs_per_epoch'][name]} an epoch, {left_out.get(name, 0)} dialogues left out as reported"
        )
    _print_areas(trained.record["validation"]["auroc"])
    shared.say_how_to_use(trained.folder, GENERAL_MODEL)


def _print_areas(areas: Mapping[str, Mapping[str, float | None]]) -> None:
    def figure(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    kinds = list(areas["general"])
    typer.echo(f"\nAUROC of the real response, on validation\n{'':14}{''.join(f'{kind:>12}' for kind in kinds)}")
    for head, of_kinds in areas.items():
        if head != "coherence":
            typer.echo(f"{head:14}{''.join(f'{figure(of_kinds[kind]):>12}' for kind in kinds)}")
    of_dialogues = ", ".join(f"{kind} {figure(value)}" for kind, value in areas["coherence"].items())
    typer.echo(f"coherence of whole dialogues: {of_dialogues}")


def acceptance(
    data: Annotated[
        list[Path], typer.Option(help="File or folder of chat logs with the roles user and assistant; may be repeated.")
    ],
    output: Annotated[Path, typer.Option(help="Folder for the model.")],
    model: Annotated[str | None, typer.Option(help="Folder or hub id of the general evaluator.")] = None,
    evaluation: shared.Evaluation = None,
    seed: shared.Seed = 13,
    device: shared.Device = None,
) -> None:
    """Train a general evaluator on unrated English logs to predict after which answers people ask back or complain.

    It writes a copy of the model, in seconds for a thousand chats, and replaces what was learnt from earlier logs.
    """
    from dialeval_plugin.methods.general.acceptance_training import read_logs, teach_acceptance
    from dialeval_plugin.methods.general.scorer import GENERAL_MODEL

    learnt = teach_acceptance(model, read_logs(data, shared.read_evaluation(evaluation)), output, seed=seed, device=device)
    typer.echo(f"{'log':24}{'answered turns':>16}{'asked back':>12}")
    for name, counts in learnt.training["turns"].items():
        typer.echo(f"{name:24}{counts['answered']:16}{counts['repairs']:12}")
    typer.echo(f"learnt from {learnt.training['learnt_from']}; AUROC on held-out conversations: {learnt.training['auroc']:.3f}")
    shared.say_how_to_use(output, GENERAL_MODEL)


def mixing(
    data: Annotated[
        list[str],
        typer.Option(
            help="Rated responses: a file, or name of a data set as tu, with ':QUALITY' for the rated quality; may be repeated."
        ),
    ],
    output: Annotated[Path, typer.Option(help="File (.json) for the weights.")],
    model: Annotated[str | None, typer.Option(help="Folder or hub id of the general evaluator.")] = None,
    device: shared.Device = None,
) -> None:
    """Fit the weights of the general evaluator's heads to human ratings, on all data sets and on all but each one.

    Score with `--option mixing=FILE`. A data set that the weights were fitted to is refused unless
    `--option leave_out=NAME` chooses weights fitted without it.
    """
    from dialeval_plugin.methods.general.mixing import fit_on_ratings, read_rated_set
    from dialeval_plugin.methods.general.scorer import GeneralScorer

    scorer = GeneralScorer(model, device=device)
    fitted = fit_on_ratings([read_rated_set(source, scorer.log_odds) for source in data], scorer.model_hash)
    fitted.save(output)
    typer.echo(f"{output}: fitted on {', '.join(f'{name} ({quality})' for name, quality in fitted.qualities.items())}")
    names = list(fitted.weights)
    typer.echo(f"{'without':14}{''.join(f'{name:>13}' for name in names)}")
    for left_out, weights in {"(nothing)": fitted.weights, **fitted.without}.items():
        typer.echo(f"{left_out:14}{''.join(f'{weight:13.4f}' for weight in weights.values())}")
