"""`dialeval data`: which corpora are known, fetching them, and whether training dialogues leak reported ones."""

from __future__ import annotations

from typing import Annotated

import typer

from .leaks import leaks

app = typer.Typer(help="List the known corpora, fetch them, look for leaks.", no_args_is_help=True)
app.command()(leaks)


@app.command("list")
def list_corpora() -> None:
    """Show each corpus, whether and where it is on this machine, its licence and its source."""
    from dialeval_plugin.corpora.catalogue import status

    for corpus, folder, missing in status():
        typer.echo(f"{corpus.name}: {corpus.title}")
        if folder is None:
            typer.echo(f"  present: no (dialeval data fetch {corpus.name})")
        else:
            typer.echo(f"  present: {folder}")
            if missing:
                typer.echo(f"  missing: {', '.join(missing)}")
        typer.echo(f"  licence: {corpus.licence}")
        typer.echo(f"  source:  {', '.join(corpus.sources) or 'part of this package'}")


@app.command()
def fetch(name: Annotated[str, typer.Argument(help="Name of the corpus, as `dialeval data list` shows it.")]) -> None:
    """Download a corpus into the cache, checking each file, and say what has to be got by hand."""
    from dialeval_plugin.corpora.catalogue import fetch as fetch_corpus

    folder, files, by_hand = fetch_corpus(name)
    typer.echo(f"{name}: {len(files)} files fetched and checked; they are in {folder}")
    for file in by_hand:
        typer.echo(f"by hand: {folder / file.path}\n  {file.how}")
