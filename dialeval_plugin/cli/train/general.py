"""`dialeval train slm --recipe general` and `dialeval train mixing`: an evaluator without ratings, and with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .evaluation_sets import read_sets

if TYPE_CHECKING:
    from dialeval_plugin.corpora.leaks import ReportedDialogues
    from dialeval_plugin.corpora.readers.grounded import GroundedDialogue
    from dialeval_plugin.methods.general.conversations import Conversation
    from dialeval_plugin.methods.general.rated_mixing import RatedSet
    from dialeval_plugin.methods.general.recipes import GeneralRecipe
    from dialeval_plugin.methods.general.scorer import GeneralScorer
    from dialeval_plugin.training.options import Precision


class GeneralCommand(NamedTuple):
    """The options of `dialeval train slm` that the recipe `general` has."""

    corpus: Sequence[str]
    validation: Sequence[str]
    evaluation: Sequence[str]
    output: Path
    backbone: str
    epochs: int | None
    max_pairs: int | None
    max_minutes: float | None
    validation_fraction: float
    seed: int
    precision: Precision


def train_general(command: GeneralCommand) -> None:
    """Train the general evaluator and print what its validation gave.

    Raises:
        InputError: no corpus is named, or a file is malformed.
    """
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.methods.general.training import GeneralSources, GeneralTrainingOptions, train

    if not command.corpus:
        raise InputError("--corpus: the recipe general is trained on dialogues, and none are named. Name one file or more.")
    left_out: dict[str, int] = {}

    def sources() -> GeneralSources:
        """The index of what is reported on goes with this call: training needs its memory."""
        reported = reported_dialogues(command.evaluation)
        read = (read_conversations(files, reported, left_out) for files in (command.corpus, command.validation))
        return GeneralSources(*read)

    trained = train(
        sources(),
        command.output,
        GeneralTrainingOptions(
            backbone=command.backbone,
            recipe=_recipe(command),
            validation_fraction=command.validation_fraction,
            seed=command.seed,
            precision=command.precision,
            max_minutes=command.max_minutes,
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


def _recipe(command: GeneralCommand) -> GeneralRecipe:
    from dialeval_plugin.methods.general.recipes import GeneralRecipe

    recipe = GeneralRecipe()
    return replace(
        recipe,
        n_epochs=recipe.n_epochs if command.epochs is None else command.epochs,
        max_pairs=recipe.max_pairs if command.max_pairs is None else command.max_pairs,
    )


def _print_areas(areas: Mapping[str, Mapping[str, float | None]]) -> None:
    kinds = list(areas["general"])
    typer.echo(f"\nAUROC of the real response, on validation\n{'':14}{''.join(f'{kind:>12}' for kind in kinds)}")
    for head, found in areas.items():
        if head != "coherence":
            typer.echo(f"{head:14}{''.join(f'{_figure(found[kind]):>12}' for kind in kinds)}")
    shown = ", ".join(f"{kind} {_figure(value)}" for kind, value in areas["coherence"].items())
    typer.echo(f"coherence of whole dialogues: {shown}")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def reported_dialogues(sources: Sequence[str]) -> ReportedDialogues:
    """Read what will be reported on, and say what of it is not on this machine."""
    from dialeval_plugin.corpora.leaks import ReportedDialogues

    return ReportedDialogues(read_sets(sources))


def read_conversations(sources: Sequence[str], reported: ReportedDialogues, left_out: dict[str, int]) -> list[Conversation]:
    """Read corpora, each named NAME=FILE or FILE; dialogues that will be reported on are counted in `left_out`.

    Dialogues that name a chatbot are left out too: its turns are no examples of right ones.
    """
    from tqdm.auto import tqdm

    from dialeval_plugin.corpora.readers.convai import HUMAN
    from dialeval_plugin.methods.general.conversations import conversation

    found = []
    for source in sources:
        name, path = _named(source)
        read = list(_grounded(path))
        dialogues = [told for told in read if told.dialogue.dialogue.system in (None, HUMAN)]
        if n_with_bot := len(read) - len(dialogues):
            typer.echo(f"{source}: {n_with_bot} of {len(read)} dialogues are with a chatbot and are left out", err=True)
        looked_through = tqdm(dialogues, desc=f"leaks of {path.name}", unit="dialogue", disable=None, leave=False)
        kept = [told for told in looked_through if not reported.find(told.dialogue)]
        left_out[name] = left_out.get(name, 0) + len(dialogues) - len(kept)
        for dialogue, misleading in kept:
            facts = [dialogue.facts.get(turn.speaker or "", ()) for turn in dialogue.turns] if dialogue.facts else ()
            one = conversation(name, [turn.text for turn in dialogue.turns], facts, misleading)
            if one is not None:
                found.append(one)
    return found


class _Told(NamedTuple):
    """A dialogue, and what was written to mislead in its last turn's place."""

    dialogue: GroundedDialogue
    misleading: tuple[str, ...] = ()


def _grounded(path: Path) -> Iterator[_Told]:
    """The dialogues of a file; of DailyDialog++ each positive response ends one."""
    from dialeval_plugin.core.dialogue import Dialogue, Turn
    from dialeval_plugin.core.files import read_text
    from dialeval_plugin.corpora.dialogues import read_grounded
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.corpora.readers.grounded import GroundedDialogue

    opening = read_text(path).lstrip()
    if not (opening.startswith("{") and '"positive_responses"' in opening.partition("\n")[0]):
        yield from map(_Told, read_grounded(path))
        return
    for item in dailydialog_pp.read(path):
        for number, response in enumerate(item.positive):
            turns = tuple(map(Turn, (*item.context, response)))
            yield _Told(GroundedDialogue(Dialogue(f"{item.id}p{number}", turns)), item.adversarial)


def _named(source: str) -> tuple[str, Path]:
    """The name and the file of NAME=FILE; a file without a name is a corpus of its own, called after it."""
    name, equals, path = source.partition("=")
    if equals and not Path(source).exists():
        return name, Path(path)
    return Path(source).name.partition(".")[0], Path(source)


def mixing(
    data: Annotated[
        list[str],
        typer.Option(help="Rated responses: a file, or a set's name or code as tu; ':QUALITY' after it names what was rated."),
    ],
    output: Annotated[Path, typer.Option(help="File of the weights, JSON.")],
    model: Annotated[str | None, typer.Option(help="Folder or hub id of the general evaluator.")] = None,
    device: Annotated[str | None, typer.Option(help="A torch device.")] = None,
) -> None:
    """Fit the weights of the general evaluator's heads on people's ratings, on all sets and on all but each one.

    Score with `--option mixing=FILE`; of a set that the weights have seen nothing is scored, but `--option leave_out=NAME`
    takes those that have not seen it.
    """
    from dialeval_plugin.methods.general.rated_mixing import fit_on_ratings
    from dialeval_plugin.methods.general.scorer import GeneralScorer

    scorer = GeneralScorer(model, device=device)
    fitted = fit_on_ratings([_rated_set(source, scorer) for source in data], scorer.model_hash)
    fitted.save(output)
    typer.echo(f"{output}: fitted on {', '.join(f'{name} ({quality})' for name, quality in fitted.qualities.items())}")
    names = list(fitted.weights)
    typer.echo(f"{'without':14}{''.join(f'{name:>13}' for name in names)}")
    for left_out, weights in {"(nothing)": fitted.weights, **fitted.without}.items():
        typer.echo(f"{left_out:14}{''.join(f'{weights[name]:13.4f}' for name in names)}")


def _rated_set(source: str, scorer: GeneralScorer) -> RatedSet:
    import numpy as np

    from dialeval_plugin.core.dialogue import Example, is_blank
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.corpora.items import mean_rating
    from dialeval_plugin.corpora.readers.dstc10 import SETS, overall_quality
    from dialeval_plugin.corpora.reported import read_reported
    from dialeval_plugin.methods.general.rated_mixing import RatedSet

    place, _, quality = source.partition(":")
    named = read_reported([place]).sets
    if len(named) > 1:
        raise InputError(f"--data {place}: stands for {len(named)} sets. Name each, so that it can be left out.")
    ((name, items),) = named.items()
    chosen = quality or overall_quality(items, SETS.get(name))
    rated: list[tuple[Example, float]] = []
    for item in items:
        if isinstance(item, Example) and chosen in item.ratings and not is_blank(item.response.text):
            rating = mean_rating(item, chosen)
            if rating is not None:
                rated.append((item, rating))
    if not rated:
        raise InputError(f"--data {place}: has no response that is rated in {chosen!r}. Name another quality or set.")
    examples = [example for example, _ in rated]
    return RatedSet(name, chosen, examples, np.array([rating for _, rating in rated]), scorer.log_odds(examples))
