"""`dialeval leaderboard`: build, export and publish a leaderboard of evaluators."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from .options import say_next

app = typer.Typer(help="Build, export and publish a leaderboard of evaluators.", no_args_is_help=True)


def _folder(path: Path) -> Path:
    """Return the folder of a leaderboard, of which leaderboard.json may be given."""
    from dialeval_plugin.leaderboard.build import JSON_FILE

    return path.parent if path.name == JSON_FILE and path.is_file() else path


@app.command()
def build(
    results: Annotated[list[Path], typer.Argument(help="Result files of lm-eval, or folders of them.")],
    output: Annotated[Path, typer.Option(help="Folder for leaderboard.json, .csv, .md and index.html.")],
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Dialogue evaluators against people",
    rank_rounds: Annotated[
        int, typer.Option(min=0, help="Smallest number of permutations in the tests of the rank clusters; 0 for no ranks.")
    ] = 1000,
    passport: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.json", help="File of `dialeval certify` to link from its rows; may be repeated."),
    ] = None,
) -> None:
    """Build a leaderboard from lm-eval result files.

    Plots, examples and rank clusters need the samples written by `--log_samples`.
    """
    from dialeval_plugin.leaderboard.build import PAGE_FILE, write
    from dialeval_plugin.leaderboard.build import build as build_board

    built = build_board(results, rank_rounds=rank_rounds, passports=passport or (), folder=output)
    for path in write(built, output, title=title):
        typer.echo(path)
    board = built.board
    typer.echo(f"{len(board.evaluators)} evaluators, {len(board.columns)} columns, {len(board.cells)} cells")
    if all(cell.cost.n_requests is None for cell in board.cells):
        typer.echo("no samples were found, so there are no plots and examples: run lm-eval with --log_samples", err=True)
    say_next(f"python -m webbrowser {shlex.quote(str(output / PAGE_FILE))}", "look at it")


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Folder of a leaderboard.", callback=_folder)],
    output: Annotated[Path, typer.Option(help="Folder for the files, one folder an evaluator.")],
    format: Annotated[Literal["eval-results", "model-index", "every-eval-ever"], typer.Option(help="Format of the files.")],
    dataset_id: Annotated[
        str | None, typer.Option(help="Hub data set of the human ratings, OWNER/NAME; required for eval-results.")
    ] = None,
    source_url: Annotated[str | None, typer.Option(help="URL of a page with the results.")] = None,
    organization: Annotated[str, typer.Option(help="Organisation that ran the evaluation, for every-eval-ever.")] = "unknown",
) -> None:
    """Write the results in a format of the Hub or of Every Eval Ever."""
    from dialeval_plugin.leaderboard.build import read
    from dialeval_plugin.leaderboard.exports import ExportOptions
    from dialeval_plugin.leaderboard.exports import export as export_board

    options = ExportOptions(dataset_id=dataset_id, source_url=source_url, organization=organization)
    exported = export_board(read(folder), format, output, options)
    for path in exported.paths:
        typer.echo(path)
    if exported.n_left_out:
        typer.echo(f"{exported.n_left_out} undefined coefficients are left out, since this format cannot hold them", err=True)


@app.command()
def space(
    folder: Annotated[Path, typer.Argument(help="Folder of a leaderboard.", callback=_folder)],
    output: Annotated[Path, typer.Option(help="Folder for the Space.")],
    title: Annotated[str, typer.Option(help="Title of the Space.")] = "Dialogue evaluators against people",
    demo: Annotated[
        bool, typer.Option("--demo", help="Add a tab that scores a pasted conversation; the Space then installs this package.")
    ] = False,
) -> None:
    """Write a Gradio Space that shows the page."""
    from dialeval_plugin.leaderboard.exports import write_space

    for path in write_space(folder, output, title=title, demo=demo):
        typer.echo(path)
    say_next(f"python {shlex.quote(str(output / 'app.py'))}", "the page as the Space shows it; needs gradio")


@app.command()
def push(
    repo_id: Annotated[str, typer.Argument(help="Data set and Space on the Hub, OWNER/NAME.")],
    folder: Annotated[Path, typer.Option(help="Folder of a leaderboard.", callback=_folder)],
    no_space: Annotated[bool, typer.Option("--no-space", help="Upload only the data set.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make new repositories private.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be uploaded, and upload nothing.")] = False,
    title: Annotated[str, typer.Option(help="Title of data set and Space.")] = "Dialogue evaluators against people",
) -> None:
    """Upload a leaderboard to the Hub: the table as a data set, the page as a Space.

    The token is that of `hf auth login` or HF_TOKEN; it is never printed.
    """
    from dialeval_plugin.leaderboard.exports import push as push_board

    for upload in push_board(folder, repo_id, space=not no_space, private=private, dry_run=dry_run, title=title):
        typer.echo(f"{'would upload to' if dry_run else 'uploaded to'} {upload.kind} {upload.repo_id}:")
        for name, size in upload.files.items():
            typer.echo(f"  {name} ({size:,} bytes)")
