"""`dialeval certify`: the passport of evaluators, and a gate for continuous integration."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dialeval_plugin.cli import options as shared
from dialeval_plugin.cli.options import say_next


def certify(
    results: Annotated[
        list[str], typer.Argument(help="Files of scores; NAME=FILE names the evaluator, and files with one NAME are its runs.")
    ],
    labels: Annotated[str, typer.Option(help="File of people's labels in any layout, or name of a data set: tu, fed, ...")],
    output: Annotated[list[Path], typer.Option(help="File to write: .html, .json, .md or .tex; may be repeated.")],
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="Exit with 1 unless each evaluator keeps it, as 'kappa>=0.6': by the lower end of the interval, or the upper "
            "one of <=; 'kappa.value>=0.6' by the figure itself. May be repeated.",
        ),
    ] = None,
    bias: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.json", help="Report of `dialeval bias --output` on an evaluator; may be repeated."),
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column of the scores. Default: the main one.")] = None,
    quality: Annotated[str | None, typer.Option(help="Labelled quality, or column of the labels.")] = None,
    raters: Annotated[str | None, typer.Option(help="Columns of the raters.", metavar="COLUMN,COLUMN")] = None,
    order: Annotated[str | None, typer.Option(help="Labels in ascending order, as bad,ok,good.", metavar="WORD,WORD")] = None,
    positive: Annotated[
        str | None, typer.Option(help="Labels that count as pass, if they are not known.", metavar="WORD,WORD")
    ] = None,
    rows: Annotated[
        Literal["turn", "dialogue"] | None, typer.Option(help="Level of the rows, if the labels have both.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Ignore labelled rows without a score.")] = False,
    confidence: Annotated[float, typer.Option(callback=shared.check_share, help="Level of the confidence intervals.")] = 0.95,
    rounds: Annotated[int, typer.Option(help="Number of resamples for the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    title: Annotated[str, typer.Option(help="Heading. Default: the evaluator's name.")] = "",
) -> None:
    """Write a report on whether evaluators can replace a human rater.

    It has verdicts, figures with intervals, tests that were not possible, and the strongest disagreements as chats.
    """
    from dialeval_plugin.passport.certify import certify as make
    from dialeval_plugin.passport.certify import check_ending, write_passport
    from dialeval_plugin.statistics.bootstrap import Bootstrap

    for path in output:
        check_ending(path)
    options: dict[str, Any] = {"quality": quality, "positive": positive, "level": rows}
    options |= {"raters": tuple(raters.split(",")) if raters else (), "order": tuple(order.split(",")) if order else ()}
    bootstrap = Bootstrap(rounds, confidence, seed)
    options |= {"require": require or (), "bias": bias or (), "column": column, "is_partial": partial, "bootstrap": bootstrap}
    passport = make(results, labels, **options)
    for path in output:
        write_passport(passport, path, title=title)
        typer.echo(path)
    typer.echo(passport)
    failed = [one for one in passport.checked if not one.has_passed]
    for missed in failed:
        typer.echo(f"--require {missed.requirement!r}: {missed.evaluator}: {missed.reason}", err=True)
    if failed:
        raise typer.Exit(code=1)
    if page := next((path for path in output if path.suffix.lower() == ".html"), None):
        say_next(f"python -m webbrowser {shlex.quote(str(page))}", "look at it")
