"""`dialeval data` and `augment`: known data sets, leaks into training data, and training data from a language model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval_plugin.core.files import check_output
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scores import Reason
from dialeval_plugin.terminal import print_entries

from .options import Answers, DryRun, LlmArgs, NoAnswers, check_judge, say_next

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Dialogue
    from dialeval_plugin.corpora.identity import Leak
    from dialeval_plugin.methods.augmentation.augmentation import Augmented

app = typer.Typer(help="List and download data sets, and check training data for leaks.", no_args_is_help=True)


@app.command("list")
def list_corpora() -> None:
    """List the data sets with their location on this machine, licence and source."""
    from dialeval_plugin.core.errors import MissingPrerequisite
    from dialeval_plugin.corpora.registry import CORPORA

    entries = []
    for corpus in CORPORA.values():
        about = [corpus.published.title]
        try:
            folder = corpus.folder()
        except MissingPrerequisite:
            about.append(f"present: no (dialeval data fetch {corpus.name})")
        else:
            about.append(f"present: {folder}")
            if missing := [path for path in corpus.published.paths if not (folder / path).is_file()]:
                about.append(f"missing: {', '.join(missing)}")
        about.append(f"licence: {corpus.published.licence}")
        about.append(f"source:  {', '.join(corpus.published.sources) or 'part of this package'}")
        entries.append((corpus.name, about))
    print_entries(("corpus", "what it is"), entries)


@app.command()
def fetch(name: Annotated[str, typer.Argument(help="Name of the data set, see `dialeval data list`.")]) -> None:
    """Download a data set into the cache, verify each file, and list files to download by hand."""
    from dialeval_plugin.corpora.registry import find_corpus

    folder, files, by_hand = find_corpus(name).fetch()
    typer.echo(f"{name}: {len(files)} files fetched and checked; they are in {folder}")
    for file in by_hand:
        typer.echo(f"by hand: {folder / file.path}\n  {file.how}")


@app.command()
def leaks(
    files: Annotated[list[Path], typer.Argument(help="Files of training dialogues.")],
    against: Annotated[
        list[str],
        typer.Option(help="Test set: a file, or a name as tu, fed, usr, conture, or dstc10 for all its sets; may be repeated."),
    ],
    show: Annotated[int, typer.Option(min=0, help="Number of leaks to print for each file and set.")] = 0,
) -> None:
    """Look for dialogues of test sets in training dialogues; exit with 1 if there are any. See `docs/corpora.md`."""
    from dialeval_plugin.corpora.identity import LeakIndex
    from dialeval_plugin.corpora.registry import read_dialogues, read_reported

    sets, absent = read_reported(against)
    index = LeakIndex(sets)
    for name, size in index.sizes.items():
        short = index.too_short[name]
        typer.echo(
            f"reported dialogues in {name}: {size}"
            + (f", too short to be told by context and reference: {short}" if short else "")
        )
    if absent:
        typer.echo(f"not on this machine, so not looked for: {', '.join(absent)}")
    typer.echo("\ntraining dialogues with a reported one in them / reported dialogues found")
    width = max(len(str(path)) for path in files)
    widths = {name: max(9, len(name) + 2) for name in sets}
    typer.echo(f"{'file':{width}}{'dialogues':>11}{''.join(f'{name:>{widths[name]}}' for name in sets)}")
    n_leaking, n_dialogues, examples = 0, 0, []
    for path in files:
        dialogues = read_dialogues(path)
        leaks_of = [index.find([turn.text for turn in dialogue.turns]) for dialogue in dialogues]
        counts = index.count(leaks_of).items()
        cells = [(name, f"{count.n_dialogues}/{count.n_reported}" if count.n_dialogues else "0") for name, count in counts]
        typer.echo(f"{path!s:{width}}{len(dialogues):11}{''.join(f'{cell:>{widths[name]}}' for name, cell in cells)}")
        n_leaking, n_dialogues = n_leaking + sum(map(bool, leaks_of)), n_dialogues + len(dialogues)
        examples += _examples(path, dialogues, leaks_of, show)
    typer.echo("\n".join(["", *examples, f"{n_leaking} of {n_dialogues} training dialogues have a reported dialogue in them"]))
    if n_leaking:
        raise typer.Exit(code=1)


def _examples(path: Path, dialogues: Sequence[Dialogue], leaks_of: Sequence[Sequence[Leak]], number: int) -> list[str]:
    """Return a line for each of the first leaks of every test set."""
    lines: dict[str, list[str]] = {}
    for dialogue, leaks in zip(dialogues, leaks_of, strict=True):
        for (set_name, id), utterances in leaks:
            lines.setdefault(set_name, []).append(f"{path}: {dialogue.id} has {set_name} {id}: {' | '.join(utterances)}")
    return [line for of_set in lines.values() for line in of_set[:number]]


_SHOWN_REASONS = 5


def augment(
    contexts: Annotated[
        Path, typer.Argument(help="JSON lines with `context`, a list of turns, for example in DailyDialog++'s layout.")
    ],
    output: Annotated[Path, typer.Option(help="File to write in DailyDialog++'s layout, for `dialeval train slm --data`.")],
    llm: Annotated[str, typer.Option(help="lm-eval model that generates: hf, vllm, local-chat-completions, ...")],
    llm_args: LlmArgs = "",
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of a small model for a last check, by probability.")] = None,
    rounds: Annotated[int, typer.Option(help="Largest number of attempts for each context.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the samples and of the spot check.")] = 0,
    answers: Answers = None,
    no_answers: NoAnswers = False,
    dry_run: DryRun = False,
    spot_check: Annotated[
        int, typer.Option(min=0, help="Number of responses to write to <output>.spot-check.csv for people to check.")
    ] = 0,
) -> None:
    """Write five positive and five adversarial responses to each context, checked as SLIDE and DRE do.

    A run that was killed resumes with the same command, from the cached answers. Incomplete contexts are written to
    <output>.incomplete.jsonl.
    """
    from dialeval_plugin.corpora.readers.dailydialog_pp import read_contexts
    from dialeval_plugin.hosts.judges import load_cached_model
    from dialeval_plugin.methods.augmentation.augmentation import ResponseWriter, write_augmented, write_spot_check
    from dialeval_plugin.methods.augmentation.augmentation import augment as run

    items = read_contexts(contexts)
    check_output(output, contexts, "the responses")
    check_judge(llm, dry_run=dry_run, answers=answers, no_answers=no_answers)
    from transformers import set_seed

    small_model = load_scorer("slide", slm=slm, variant="slm_probability") if slm is not None else None
    model = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
    writer = ResponseWriter(model, slm=small_model, rounds=rounds, seed=seed, reseed=set_seed)
    if dry_run:
        # The requests after the first answers can only be bounded.
        for item in items:
            writer.write(item.id, item.context)
        typer.echo(f"dry run: {model.usage.estimate()}")
        typer.echo(f"Each context then has its 10 responses checked, one call each, and up to {rounds - 1} further rounds.")
        return
    augmented = run(items, writer, progress=True)
    write_augmented(augmented, output, writer.provenance)
    _report(augmented, output)
    if spot_check and augmented.complete:
        sheet = output.with_name(output.name + ".spot-check.csv")
        n_rows = write_spot_check(sheet, augmented.complete, n=spot_check, seed=seed)
        typer.echo(f"spot check: {sheet}, {n_rows} responses")
    typer.echo(f"llm: {model.usage}", err=True)
    if augmented.failed or not augmented.complete:
        raise typer.Exit(code=1)
    say_next(f"dialeval train slm --data {shlex.quote(str(output))} --output my-slm", "train on the responses")


def _report(augmented: Augmented, output: Path) -> None:
    from dialeval_plugin.methods.augmentation.augmentation import incomplete_path

    n_total = len(augmented.complete) + len(augmented.incomplete) + len(augmented.failed)
    typer.echo(f"{len(augmented.complete)} of {n_total} contexts have five positive and five adversarial responses")
    if augmented.complete:
        typer.echo(f"responses: {output}")
    reasons = [f"{item.id}: {item.reason}" for item in augmented.incomplete]
    reasons += [f"{item.id}: {why.reason.value}: {why.detail}" for item, why in augmented.failed]
    if reasons:
        typer.echo(f"not complete: {incomplete_path(output)}")
        for reason in reasons[:_SHOWN_REASONS]:
            typer.echo(f"  {reason}")
        if len(reasons) > _SHOWN_REASONS:
            typer.echo(f"  and {len(reasons) - _SHOWN_REASONS} more")
    if n_open := sum(why.reason is Reason.API_ERROR for _, why in augmented.failed):
        typer.echo(f"the model gave no answer for {n_open} contexts; the same command asks again", err=True)
