"""`dialeval data leaks`: which training dialogues are in the sets that are reported on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from dialeval_plugin.core.dialogue import Dialogue
    from dialeval_plugin.corpora.leaks import Leak, LeakCount, ReportedDialogues


class _Checked(NamedTuple):
    """A training file with the leaks of each of its dialogues."""

    path: Path
    dialogues: list[Dialogue]
    leaks: list[list[Leak]]
    counts: dict[str, LeakCount]

    @property
    def n_leaking(self) -> int:
        """Dialogues with a leak, whatever set it is of."""
        return sum(map(bool, self.leaks))


def leaks(
    files: Annotated[list[Path], typer.Argument(help="Training dialogues, in any layout that is read as plain dialogues.")],
    against: Annotated[
        list[str],
        typer.Option(
            help="Reported set: a file, a code or name as tu, dstc10 for all its sets, fed, usr, conture, ... Repeat it."
        ),
    ],
    show: Annotated[int, typer.Option(min=0, help="Print so many leaks of each file and set.")] = 0,
) -> None:
    """Look for reported dialogues in training dialogues; exit with 1 if there are any. The rule is in `docs/corpora.md`."""
    from dialeval_plugin.corpora.leaks import ReportedDialogues
    from dialeval_plugin.corpora.reported import read_reported

    sets, absent = read_reported(against)
    reported = ReportedDialogues(sets)
    _print_sets(reported, absent)
    checked = [_check(path, reported) for path in files]
    _print_table(checked, list(reported.sizes))
    for file in checked:
        _print_examples(file, show)
    n_leaking, n_dialogues = sum(file.n_leaking for file in checked), sum(len(file.dialogues) for file in checked)
    typer.echo(f"{n_leaking} of {n_dialogues} training dialogues have a reported dialogue in them")
    if n_leaking:
        raise typer.Exit(code=1)


def _check(path: Path, reported: ReportedDialogues) -> _Checked:
    from dialeval_plugin.corpora.dialogues import read_dialogues
    from dialeval_plugin.corpora.leaks import count_leaks, find_leaks

    dialogues = read_dialogues(path)
    found = find_leaks(dialogues, reported)
    return _Checked(path, dialogues, found, count_leaks(found, reported))


def _print_sets(reported: ReportedDialogues, absent: Sequence[str]) -> None:
    for name, size in reported.sizes.items():
        short = (
            f", too short to be told by context and reference: {reported.too_short[name]}" if reported.too_short[name] else ""
        )
        typer.echo(f"reported dialogues in {name}: {size}{short}")
    if absent:
        typer.echo(f"not on this machine, so not looked for: {', '.join(absent)}")


def _print_table(checked: Sequence[_Checked], names: Sequence[str]) -> None:
    typer.echo("\ntraining dialogues with a reported one in them / reported dialogues found")
    width = max(len(str(file.path)) for file in checked)
    widths = [max(9, len(name) + 2) for name in names]
    heads = "".join(f"{name:>{size}}" for name, size in zip(names, widths, strict=True))
    typer.echo(f"{'file':{width}}{'dialogues':>11}{heads}")
    for file in checked:
        cells = [f"{count.n_dialogues}/{count.n_reported}" if count.n_dialogues else "0" for count in file.counts.values()]
        row = "".join(f"{cell:>{size}}" for cell, size in zip(cells, widths, strict=True))
        typer.echo(f"{file.path!s:{width}}{len(file.dialogues):11}{row}")
    typer.echo()


def _print_examples(file: _Checked, number: int) -> None:
    shown = dict.fromkeys(file.counts, 0)
    for dialogue, found in zip(file.dialogues, file.leaks, strict=True):
        for reported, utterances in found:
            if shown[reported.set_name] < number:
                shown[reported.set_name] += 1
                typer.echo(f"{file.path}: {dialogue.id} has {reported.set_name} {reported.id}: {' | '.join(utterances)}")
