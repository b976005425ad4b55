"""`dialeval certify`, `bias` and `report`: passports of evaluators, their consistency, and the page of a score file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dialeval_plugin.cli import options as shared
from dialeval_plugin.cli.options import say_next
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json, write_text


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


@shared.takes(reading=shared.Reading)
def bias(
    source: Annotated[str, typer.Argument(metavar="LOG", help="Conversations or responses, as for `dialeval score`.")],
    reading: shared.Reading,
    scorer: shared.ScorerNames = None,
    rubric: shared.Rubric = None,
    rubric_scale: shared.RubricScale = None,
    option: shared.ScorerOptions = None,
    llm: shared.Llm = None,
    llm_args: shared.LlmArgs = "",
    answers: Annotated[
        Path | None, typer.Option(help="File in which the llm's answers are cached, except those of repeated runs.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="Number of responses or dialogues to test, the first ones.")] = 200,
    repeats: Annotated[int, typer.Option(min=2, help="Number of runs.")] = 3,
    labels: Annotated[Path | None, typer.Option(help="File of people's labels, to test self-preference and language.")] = None,
    own: Annotated[str | None, typer.Option(help="System that is the judge's own model; needs --labels.")] = None,
    dry_run: shared.DryRun = False,
    format: Annotated[Literal["text", "markdown", "json"], typer.Option(help="Format of the output.")] = "text",
    output: Annotated[Path | None, typer.Option(help="File (.json) for the whole report.")] = None,
    commercial: shared.Commercial = False,
) -> None:
    """Test how consistent a scorer is, and how much length, markdown, appeals and the like change its scores.

    An effect is the mean change of the score in standard deviations, with the share of pairs that flip, and confidence
    intervals over conversations.
    """
    from dialeval_plugin.bias.battery import run
    from dialeval_plugin.corpora.scored_input import Source
    from dialeval_plugin.hosts.judges import load_cached_model, load_scorer_with_judge
    from dialeval_plugin.labels.reading import read_labels

    if own is not None and labels is None:
        raise InputError("--own: is compared with the labels of people. Give them with --labels.")
    shared.check_judge(llm, dry_run=dry_run)
    name = shared.chosen_scorer(scorer, rubric, rubric_scale)
    options = shared.with_named(shared.scorer_options(name, option), rubric=rubric, scale=rubric_scale)
    shared.with_named(options, llm=llm)
    model = None if llm is None else load_cached_model(llm, llm_args, answers=answers, dry_run=dry_run)
    method = load_scorer_with_judge(name, options if model is None else {**options, "llm": model})
    log = Source(source, reading.options(), level=method.input_level(options.get("level")))
    items = log.read(method.level)
    typer.echo(
        log.reading.remarks() + (f"tested: the first {most} of {len(items)}\n" if len(items) > most else ""), nl=False, err=True
    )
    report = run(method, items[:most], labels=None if labels is None else read_labels(labels), own=own, repeats=repeats)
    if model is not None and dry_run:
        typer.echo(f"dry run: {model.usage.estimate()}")
        return
    typer.echo(report.table().render(format), nl=False)
    if output is not None:
        write_text(output, to_json(report.to_dict(), indent=2) + "\n")
    if model is not None:
        typer.echo(f"llm: {model.usage}", err=True)


def report(
    scores: Annotated[Path, typer.Argument(help="Output of `dialeval score`, or other rows with ids and scores.")],
    output: Annotated[Path, typer.Option(help="Page to write or replace, .html.")],
    column: Annotated[str | None, typer.Option(help="Column of the scores. Default: the main one.")] = None,
    conversations: Annotated[int, typer.Option(min=1, help="Number of conversations on the page, the worst first.")] = 10_000,
    title: Annotated[str, typer.Option(help="Heading. Default: the name of the file.")] = "",
) -> None:
    """Write a searchable page with the distribution of the scores and the worst conversations as chats.

    The page is one file that loads nothing else. Chats need the texts that `dialeval score --with-text` writes.
    """
    from dialeval_plugin.pages.report import write_report

    page = write_report(scores, output, column=column, most=conversations, title=title)
    typer.echo(output)
    typer.echo(f"{page.n_shown:,} of {page.n_conversations:,} conversations are on the page, the worst first")
    if not page.has_texts:
        typer.echo("the scores have no texts, so there are no chats: run `dialeval score` with --with-text", err=True)
    say_next(f"python -m webbrowser {shlex.quote(str(output))}", "look at it")
