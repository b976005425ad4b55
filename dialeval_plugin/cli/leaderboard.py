"""`dialeval leaderboard`: the table of evaluators as a page and as files, its exports, and its way to the Hub."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from .examples import say_next

app = typer.Typer(help="Build, export and publish a leaderboard of evaluators.", no_args_is_help=True)


def _folder(given: Path) -> Path:
    """The folder of a leaderboard, also where its table leaderboard.json is given."""
    from dialeval_plugin.leaderboard.build import JSON_FILE

    return given.parent if given.name == JSON_FILE and given.is_file() else given


@app.command()
def build(
    results: Annotated[list[Path], typer.Argument(help="Result files of lm-eval, or folders of them.")],
    output: Annotated[Path, typer.Option(help="Folder for leaderboard.json, .csv, .md and index.html.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Dialogue evaluators against people",
    rank_rounds: Annotated[
        int, typer.Option(min=0, help="Least permutations of each test behind the rank clusters; 0 for no ranks.")
    ] = 1000,
    passport: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.json", help="Of `dialeval certify`, to link from the rows it is of; may be repeated."),
    ] = None,
) -> None:
    """Build the leaderboard from lm-eval result files alone.

    Plots, cases and rank clusters need the files that `--log_samples` wrote; without them the page has the figures only.
    """
    from dialeval_plugin.leaderboard.build import PAGE_FILE, write
    from dialeval_plugin.leaderboard.build import build as build_board

    built = build_board(results, rank_rounds=rank_rounds, passports=passport or (), folder=output)
    for path in write(built, output, title=title):
        typer.echo(path)
    board = built.board
    typer.echo(f"{len(board.evaluators)} evaluators, {len(board.columns)} columns, {len(board.cells)} cells")
    if not built.evidence:
        typer.echo("no samples were found, so there are no plots and no cases: run lm-eval with --log_samples", err=True)
    say_next(f"python -m webbrowser {shlex.quote(str(output / PAGE_FILE))}", "look at it")


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Folder of a leaderboard.", callback=_folder)],
    output: Annotated[Path, typer.Option(help="Folder for the files, one folder an evaluator.")],
    format: Annotated[Literal["eval-results", "model-index", "every-eval-ever"], typer.Option(help="Of the files.")],
    dataset_id: Annotated[
        str | None, typer.Option(help="Hub data set of the human ratings, OWNER/NAME; eval-results needs it.")
    ] = None,
    source_url: Annotated[str | None, typer.Option(help="Page on which the results can be looked up.")] = None,
    organization: Annotated[str, typer.Option(help="Who ran the evaluation, for every-eval-ever.")] = "unknown",
) -> None:
    """Write the results in a format of the Hub, or in that of Every Eval Ever."""
    from dialeval_plugin.leaderboard.build import read
    from dialeval_plugin.leaderboard.exports import ExportOptions
    from dialeval_plugin.leaderboard.exports import export as export_board

    options = ExportOptions(dataset_id=dataset_id, source_url=source_url, organization=organization)
    exported = export_board(read(folder), format, output, options)
    for path in exported.paths:
        typer.echo(path)
    if exported.n_left_out:
        typer.echo(f"{exported.n_left_out} undefined coefficients have no place in this format and are left out", err=True)


@app.command()
def space(
    folder: Annotated[Path, typer.Argument(help="Folder of a leaderboard.", callback=_folder)],
    output: Annotated[Path, typer.Option(help="Folder of the Space.")],
    title: Annotated[str, typer.Option(help="Title of the Space.")] = "Dialogue evaluators against people",
    demo: Annotated[
        bool, typer.Option("--demo", help="With a tab that scores a pasted conversation; the Space then installs this package.")
    ] = False,
) -> None:
    """Write a ready Gradio Space that shows the page."""
    from dialeval_plugin.leaderboard.hub import write_space

    for path in write_space(folder, output, title=title, demo=demo):
        typer.echo(path)
    say_next(f"python {shlex.quote(str(output / 'app.py'))}", "the page as the Space shows it; needs gradio")


@app.command()
def push(
    repo_id: Annotated[str, typer.Argument(help="Data set and Space on the Hub, OWNER/NAME.")],
    folder: Annotated[Path, typer.Option(help="Folder of a leaderboard.", callback=_folder)],
    no_space: Annotated[bool, typer.Option("--no-space", help="Upload the data set only.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make new repositories private.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be uploaded, and upload nothing.")] = False,
    title: Annotated[str, typer.Option(help="Title of data set and Space.")] = "Dialogue evaluators against people",
) -> None:
    """Upload a leaderboard to the Hub: the table as a data set, the page as a Space.

    The token is the one of `hf auth login` or of HF_TOKEN; it is never printed.
    """
    from dialeval_plugin.leaderboard.hub import push as push_board

    for upload in push_board(folder, repo_id, space=not no_space, private=private, dry_run=dry_run, title=title):
        typer.echo(f"{'would upload to' if dry_run else 'uploaded to'} {upload.kind} {upload.repo_id}:")
        for name, size in upload.files.items():
            typer.echo(f"  {name} ({size:,} bytes)")
