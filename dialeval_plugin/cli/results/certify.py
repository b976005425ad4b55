"""`dialeval certify`: the passport of evaluators, and a gate for continuous integration."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dialeval_plugin.cli.examples import say_next
from dialeval_plugin.cli.options import check_share
from dialeval_plugin.core.files import check_output


def certify(
    results: Annotated[
        list[str], typer.Argument(help="Files of scores; NAME=FILE names the evaluator, and files of one NAME are its runs.")
    ],
    labels: Annotated[str, typer.Option(help="File of people's labels in any layout, or a set: tu, fed, ...")],
    output: Annotated[
        list[Path], typer.Option(help="Passport to write: .html, .json, .md or .tex by its ending; may be repeated.")
    ],
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
    column: Annotated[str | None, typer.Option(help="Column of scores; by default the main one.")] = None,
    quality: Annotated[str | None, typer.Option(help="Labelled quality, or column of the labels.")] = None,
    raters: Annotated[str | None, typer.Option(help="Columns of single raters.", metavar="COLUMN,COLUMN")] = None,
    order: Annotated[str | None, typer.Option(help="Labels in ascending order, as bad,ok,good.", metavar="WORD,WORD")] = None,
    positive: Annotated[str | None, typer.Option(help="The positive one of two labels.", metavar="WORD")] = None,
    rows: Annotated[
        Literal["turn", "dialogue"] | None, typer.Option(help="Rows to compare, where the labels have both kinds.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Leave out labelled rows that are not scored.")] = False,
    confidence: Annotated[float, typer.Option(callback=check_share, help="Confidence of the intervals.")] = 0.95,
    rounds: Annotated[int, typer.Option(help="Resamples of the intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the resamples.")] = 0,
    title: Annotated[str, typer.Option(help="Heading; by default the evaluator's name.")] = "",
) -> None:
    """Write the passport of evaluators: may they take the place of a person?

    Verdicts in words, figures with intervals, what could not be tested and why, and the strongest disagreements as chats.
    """
    from dialeval_plugin.passport.certify import certify as make
    from dialeval_plugin.passport.written import check_ending, write_passport
    from dialeval_plugin.statistics.bootstrap import Bootstrap

    for path in output:
        check_ending(path)
        for source in [labels, *(result.rpartition("=")[2] for result in results)]:
            check_output(path, source, "the passport")
    options: dict[str, Any] = {"quality": quality, "positive": positive, "level": rows}
    options |= {"raters": tuple(raters.split(",")) if raters else (), "order": tuple(order.split(",")) if order else ()}
    bootstrap = Bootstrap(rounds, confidence, seed, "expanded")
    options |= {"require": require or (), "bias": bias or (), "column": column, "is_partial": partial, "bootstrap": bootstrap}
    passport = make(results, labels, **options)
    for path in output:
        write_passport(passport, path, title=title)
        typer.echo(path)
    for one in passport.evaluators:
        typer.echo(f"{one.evaluator}: {one.verdict}. {one.headline.sentence}")
    failed = [one for one in passport.checked if not one.has_passed]
    for missed in failed:
        typer.echo(f"--require {missed.requirement!r}: {missed.evaluator}: {missed.reason}", err=True)
    if failed:
        raise typer.Exit(code=1)
    if page := next((path for path in output if path.suffix.lower() == ".html"), None):
        say_next(f"python -m webbrowser {shlex.quote(str(page))}", "look at it")
