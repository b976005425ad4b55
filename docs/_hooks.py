"""Pages that mkdocs makes while it builds the site: the command line from the commands, the layouts from their records."""

from __future__ import annotations

import re
from typing import Any

import griffe
import typer
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click

from dialeval_plugin.cli.main import app
from dialeval_plugin.conversations.layouts import LAYOUTS

_CELL = re.compile(r"<td[ >].*?</td>", re.DOTALL)
_INTERVAL = re.compile(r"(-?\d+\.\d+) \[(-?[\d.]+), (-?[\d.]+)")
_LAYOUTS = """# Layouts of conversations

[`dialeval inspect FILE`](../chat_logs.md#look-before-you-score) shows which of these layouts a file has. Files are recognised
by their fields. Layouts marked "by name" leave a question open, such as which of two answers is meant; such files are refused
until `--layout NAME` selects the layout. The option also overrides recognition.

Many layouts follow published schemas, without a real file at hand. If your file is refused or misread, please open an issue
with a few invented messages.

| layout | of | |
|---|---|---|
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of all commands with their options, and of all layouts."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="dialeval", title="Command line")
    files.append(File.generated(config, "reference/cli.md", content=text))
    rows = {f"| `{layout.name}` | {layout.about} | {'by name' if layout.open_question else ''} |\n" for layout in LAYOUTS}
    files.append(File.generated(config, "reference/layouts.md", content=_LAYOUTS + "".join(sorted(rows))))
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
