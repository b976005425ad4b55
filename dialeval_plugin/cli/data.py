"""`dialeval data`: known data sets, their download, and leaks into training data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval_plugin.terminal import print_entries

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Dialogue
    from dialeval_plugin.corpora.identity import Leak

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
