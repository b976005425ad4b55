"""`dialeval bias`: how consistent a scorer is, and what moves its scores that should not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval_plugin.cli.models import Commercial
from dialeval_plugin.cli.reading import Columns, Turns, reading_options
from dialeval_plugin.cli.score import one_scorer
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json, write_text
from dialeval_plugin.core.options import option_kinds, pairs_from_text
from dialeval_plugin.core.registry import scorer_factory, scorer_names


def bias(
    source: Annotated[str, typer.Argument(metavar="LOG", help="Conversations or responses, as `dialeval score` takes.")],
    scorer: Annotated[
        list[str] | None, typer.Option(help="Name of the scorer. Default general.", autocompletion=scorer_names)
    ] = None,
    rubric: Annotated[str | None, typer.Option(help="Question of one's own, or file of several; as `dialeval score`.")] = None,
    rubric_scale: Annotated[str | None, typer.Option(help="Scale of the question; as `dialeval score`.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value, passed to the scorer; may be repeated.")] = None,
    llm: Annotated[str | None, typer.Option(help="Any lm-eval model as the judge.")] = None,
    llm_args: Annotated[str, typer.Option(help="Its arguments as lm-eval writes them.")] = "",
    answers: Annotated[Path | None, typer.Option(help="File that keeps the llm's answers; not those of repeated runs.")] = None,
    turns: Turns = None,
    columns: Columns = "",
    most: Annotated[int, typer.Option(min=1, help="Most answers or dialogues to test, from the first on.")] = 200,
    repeats: Annotated[int, typer.Option(min=2, help="Number of runs.")] = 3,
    labels: Annotated[Path | None, typer.Option(help="Labels of people, for self-preference and language.")] = None,
    own: Annotated[str | None, typer.Option(help="The system that is the judge's own model; needs --labels.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what the llm would be asked, without asking it.")] = False,
    format: Annotated[Literal["text", "markdown", "json"], typer.Option(help="Format of what is printed.")] = "text",
    output: Annotated[Path | None, typer.Option(help="File (.json) that gets the whole report.")] = None,
    commercial: Commercial = False,
) -> None:
    """Test whether a scorer says the same again, and how far length, markdown, a plea and the like move its scores.

    Each effect is the mean change of the score as a share of its standard deviation between answers, with the share of pairs
    that flip, each with an interval that resamples conversations.
    """
    from dialeval_plugin.bias.battery import run
    from dialeval_plugin.corpora.scored_input import Source
    from dialeval_plugin.hosts.judges import load_cached_model, load_scorer_with_judge
    from dialeval_plugin.labels.reading import read_labels

    if own is not None and labels is None:
        raise InputError("--own: is compared with the labels of people. Give them with --labels.")
    if dry_run and llm is None:
        raise InputError("--dry-run: shows what a language model would be asked, and none is named. Name one with --llm.")
    name = one_scorer(scorer or (), rubric, rubric_scale)
    options = pairs_from_text(option or (), "--option", option_kinds(scorer_factory(name)))
    options |= {key: value for key, value in (("rubric", rubric), ("scale", rubric_scale)) if value is not None}
    model = None if llm is None else load_cached_model(llm, llm_args, answers=answers, dry_run=dry_run)
    method = load_scorer_with_judge(name, options if model is None else {**options, "llm": model})
    log = Source(source, reading_options(turns, columns))
    items = log.read(method.level)
    typer.echo(log.remarks() + (f"tested: the first {most} of {len(items)}\n" if len(items) > most else ""), nl=False, err=True)
    report = run(method, items[:most], labels=None if labels is None else read_labels(labels), own=own, repeats=repeats)
    if model is not None and dry_run:
        typer.echo(f"dry run: {model.usage.estimate()}")
        return
    typer.echo(report.table().render(format), nl=False)
    if output is not None:
        write_text(output, to_json(report.to_dict(), indent=2) + "\n")
    if model is not None:
        typer.echo(f"llm: {model.usage}", err=True)
