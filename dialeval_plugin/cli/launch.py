"""`dialeval launch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output
from dialeval_plugin.core.options import option_kinds, pairs_from_text
from dialeval_plugin.core.registry import load_scorer, scorer_factory, scorer_names
from dialeval_plugin.models.manifest import is_commercial
from dialeval_plugin.streams.launch import Executor
from dialeval_plugin.terminal.progress import say

from .models import Commercial
from .reading import BranchChoice, Columns, Keep, LayoutName, OrderChoice, Strict, Turns, option_words, reading_options
from .score import print_merged


def launch(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="What `dialeval score` reads block by block, file or URL.")],
    output: Annotated[
        Path, typer.Option(help="File of the scores: .jsonl, .csv or .parquet; beside it comes <output>.meta.json.")
    ],
    scorer: Annotated[str, typer.Option(help="Name of the scorer.", autocompletion=scorer_names)] = "general",
    turns: Turns = None,
    columns: Columns = "",
    layout: LayoutName = None,
    branches: BranchChoice = None,
    order: OrderChoice = None,
    strict: Strict = False,
    keep: Keep = None,
    with_text: Annotated[bool, typer.Option("--with-text", help="Keep what was said beside the scores.")] = False,
    option: Annotated[list[str] | None, typer.Option(help="name=value, passed to the scorer; may be repeated.")] = None,
    executor: Annotated[Executor, typer.Option(help="Where the shards are scored.")] = "local",
    shards: Annotated[int | None, typer.Option(min=1, help="So many parts, each a task. Default: one a worker.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="So many tasks at once. Default: a core each on this machine, all elsewhere.")
    ] = None,
    executor_option: Annotated[
        list[str] | None,
        typer.Option(help="name=value of datatrove's executor, such as partition=cpu, time=02:00:00, cpus_per_task=4."),
    ] = None,
    commercial: Commercial = False,
) -> None:
    """Score an input by many processes: here, on Slurm or on Ray.

    Each shard is a `dialeval score --shard`, and they are merged at the end. The same command goes on where it was stopped:
    finished shards, and finished blocks of the others, are kept.
    """
    from dialeval_plugin.corpora.scored_input import Source
    from dialeval_plugin.streams import launch as runs
    from dialeval_plugin.streams.run import ScoreRun

    reading = reading_options(turns, columns, layout, branches, order, keep, strict=strict)
    given = executor_option or []
    options = runs.executor_options(executor, given)
    method = load_scorer(scorer, **pairs_from_text(option or (), "--option", option_kinds(scorer_factory(scorer))))
    check_output(output, source, "the scores")
    if (path := Path(source)).exists():
        source = str(path.resolve())  # a job need not start in this folder
    words = [source, "--scorer", scorer]
    words += [word for pair in option or () for word in ("--option", pair)]
    words += option_words(reading) + ["--with-text"] * with_text + ["--commercial"] * bool(is_commercial())
    if workers is None and executor == "local":
        workers = runs.n_cores()
    if (n_shards := shards or workers) is None:
        raise InputError(f"--executor {executor}: how many tasks there are is yours to say. Add --shards N.")
    run = runs.ShardedRun.of(words, method, source, output, n_shards)
    if 0 < (n_left := len(run.unfinished)) < n_shards:
        say(f"{run.folder}: going on, {n_shards - n_left} of {n_shards} shards are finished")
    stream = Source(source, reading)
    whole = ScoreRun(method, stream, output, with_text=with_text)
    meta = runs.launch(run, whole, executor, workers or n_shards, options)
    if meta is None:
        typer.echo(f"{n_shards} shards are queued, and behind them the job that writes {output}. Logs: {run.folder}")
    else:
        print_merged(meta, output)
