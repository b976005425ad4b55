"""`dialeval bias`: consistency of a scorer, and irrelevant changes that move its scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval_plugin.cli import options as shared
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import to_json, write_text


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
