"""Writing what a script found into a document, between two markers that stand there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_text, write_text

from .tables import Table


def put_between(document: str, name: str, content: str) -> str:
    r"""Replace what stands between the markers `<!-- name -->` and `<!-- end of name -->`, each on a line of its own.

    Raises:
        InputError: the document does not have both markers, once.

    Example:
        >>> put_between("<!-- table -->\nold\n<!-- end of table -->\n", "table", "new")
        '<!-- table -->\n\nnew\n\n<!-- end of table -->\n'
    """
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(document)) != 1 or document.count(start) != 1:
        raise InputError(f"document: has no single place between {start.strip()!r} and {end.strip()!r}. Put the markers in.")
    inside = f"\n{content.strip()}\n\n" if content.strip() else ""
    return pattern.sub(lambda _: start + inside + end, document)


def write_tables(path: Path, tables: Mapping[str, Table]) -> str:
    """Put each table between the markers of its name in a Markdown file, and return all of them for a terminal.

    Raises:
        InputError: the file does not have the markers of a table; nothing is written then.
    """
    document = read_text(path)
    for name, table in tables.items():
        document = put_between(document, name, table.render("markdown"))
    write_text(path, document)
    return "\n".join(table.render("text") for table in tables.values())
