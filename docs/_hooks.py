"""What mkdocs asks for while it builds the site: the page of the command line, made of the commands themselves."""

from __future__ import annotations

import re
from typing import Any

import griffe
import typer
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click

from dialeval_plugin.cli.main import app

_CELL = re.compile(r"<td[ >].*?</td>", re.DOTALL)
_INTERVAL = re.compile(r"(-?\d+\.\d+) \[(-?[\d.]+), (-?[\d.]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add the page of all commands and their options."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="dialeval", title="Command line")
    files.append(File.generated(config, "reference/cli.md", content=text))
    return files


def on_page_content(html: str, **kwargs: Any) -> str:
    """Keep an estimate and its interval on one line in a table."""
    return _CELL.sub(lambda cell: _INTERVAL.sub(r"\1&nbsp;[\2,&nbsp;\3", cell[0]), html)


class Examples(griffe.Extension):
    """Reads our docstrings' "Example:" as the section that it is, which shows its lines as code."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Give the section the name that the parser knows."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
