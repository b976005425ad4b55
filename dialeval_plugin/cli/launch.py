"""`dialeval launch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output
from dialeval_plugin.core.registry import load_scorer, scorer_names
from dialeval_plugin.models.folders import is_commercial
from dialeval_plugin.streams.launch import Executor
from dialeval_plugin.terminal import say

from . import options as shared
from .score import print_merged, refuse_incomplete


@shared.takes(reading=shared.Reading)
def launch(
    source: Annotated[str, typer.Argument(metavar="INPUT", help="File or URL to score, as for `dialeval score`.")],
    output: Annotated[
        Path, typer.Option(help="File to write the scores to: .jsonl, .csv or .parquet; <output>.meta.json describes the run.")
    ],
    reading: shared.Reading,
    scorer: Annotated[str, typer.Option(help="Name of the scorer.", autocompletion=scorer_names)] = "general",
    with_text: shared.WithText = False,
    option: shared.ScorerOptions = None,
    executor: Annotated[Executor, typer.Option(help="Where to score the shards.")] = "local",
    shards: Annotated[
        int | None, typer.Option(min=1, help="Number of parts, each a task. Default: the number of workers.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of tasks at once. Default: one a core on this machine, elsewhere all.")
    ] = None,
    executor_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Option of datatrove's executor, as partition=cpu, time=02:00:00; may be repeated."
        ),
    ] = None,
    max_unscored: shared.MaxUnscored = 0.05,
    commercial: shared.Commercial = False,
) -> None:
    """Score an input with many processes: on this machine, on Slurm or on Ray.

    Each shard is scored by `dialeval score --shard`, and they are merged at the end. A run that was stopped resumes with the
    same command.
    """
    from dialeval_plugin.corpora.scored_input import Source
    from dialeval_plugin.streams import launch as runs
    from dialeval_plugin.streams.run import ScoreRun

    how, options = reading.options(), runs.executor_options(executor, executor_option or [])
    own = shared.scorer_options(scorer, option)
    method = load_scorer(scorer, **own)
    check_output(output, source, "the scores")
    if (path := Path(source)).exists():
        source = str(path.resolve())  # a job need not start in this folder
    words = [source, "--scorer", scorer]
    words += [word for pair in option or () for word in ("--option", pair)]
    words += reading.words() + ["--with-text"] * with_text + ["--commercial"] * bool(is_commercial())
    if workers is None and executor == "local":
        workers = runs.n_cores()
    if (n_shards := shards or workers) is None:
        raise InputError(f"--executor {executor}: needs the number of tasks. Add --shards N.")
    run = runs.ShardedRun.of(words, method, source, output, n_shards)
    if 0 < (n_left := len(run.unfinished)) < n_shards:
        say(f"{run.folder}: resuming, {n_shards - n_left} of {n_shards} shards are finished")
    whole = ScoreRun(
        method, Source(source, how, level=own.get("level")), output, with_text=with_text, max_unscored=max_unscored
    )
    meta = runs.launch(run, whole, executor, workers or n_shards, options)
    if meta is None:
        typer.echo(f"{n_shards} shards are queued, and behind them the job that writes {output}. Logs: {run.folder}")
    else:
        print_merged(meta, output)
        refuse_incomplete(meta["unscored"], meta["n_total"], max_unscored)
