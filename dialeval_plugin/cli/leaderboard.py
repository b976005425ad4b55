"""`dialeval leaderboard`: the table of evaluators as a page and as files, its exports, and its way to the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Build, export and publish a leaderboard of evaluators.", no_args_is_help=True)


@app.command()
def build(
    results: Annotated[list[Path], typer.Argument(help="Result files of lm-eval, or folders of them.")],
    output: Annotated[Path, typer.Option(help="Folder for leaderboard.json, .csv, .md and index.html.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Dialogue evaluators against people",
) -> None:
    """Build the leaderboard from lm-eval result files alone.

    Plots, cases and rank clusters need the files that `--log_samples` wrote; without them the page has the figures only.
    """
    from dialeval_plugin.reports.leaderboard_build import build as build_board
    from dialeval_plugin.reports.leaderboard_build import write

    built = build_board(results)
    for path in write(built, output, title=title):
        typer.echo(path)
    board = built.board
    typer.echo(f"{len(board.evaluators)} evaluators, {len(board.columns)} columns, {len(board.cells)} cells")
    if not built.evidence:
        typer.echo("no samples were found, so there are no plots and no cases: run lm-eval with --log_samples", err=True)
