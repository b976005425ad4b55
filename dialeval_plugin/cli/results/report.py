"""`dialeval report`: a page that shows a score file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dialeval_plugin.cli.examples import say_next


def report(
    scores: Annotated[Path, typer.Argument(help="Output of `dialeval score`, or other rows with ids and scores.")],
    output: Annotated[Path, typer.Option(help="Page to write, in place of an earlier one; it ends in .html.")],
    column: Annotated[str | None, typer.Option(help="Column of scores; by default the main one.")] = None,
    conversations: Annotated[int, typer.Option(min=1, help="Number of conversations on the page, the worst ones.")] = 10_000,
    title: Annotated[str, typer.Option(help="Heading; by default the name of the file.")] = "",
) -> None:
    """Write a page with the distribution of the scores and the worst conversations as chats, to filter and to search.

    It is one file that loads nothing. Chats need the texts, which `dialeval score --with-text` writes beside the scores.
    """
    from dialeval_plugin.pages.report import write_report

    page = write_report(scores, output, column=column, most=conversations, title=title)
    typer.echo(output)
    typer.echo(f"{page.n_shown:,} of {page.n_conversations:,} conversations are on the page, the worst first")
    if not page.has_texts:
        typer.echo("the scores have no texts, so there are no chats: run `dialeval score` with --with-text", err=True)
    say_next(f"python -m webbrowser {shlex.quote(str(output))}", "look at it")
