"""`dialeval report`: a page that shows a score file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dialeval_plugin.cli.options import say_next


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
