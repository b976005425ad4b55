"""Parts that the scripts share: the papers' figures, the command line, and the way of tables into a document."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, read_text, write_text
from dialeval_plugin.reports.tables import Table
from dialeval_plugin.statistics.bootstrap import Estimate
from reproduction.data_files import shown_above, split_section


def published(paper: str) -> Any:
    """Return the figures that a paper prints, of `reproduction/<paper>/published.json`."""
    return read_json(Path(__file__).with_name(paper) / "published.json")


def script_parser(description: str | None, *, work: str = "") -> argparse.ArgumentParser:
    """Return the command line that every script has; `work` says what is kept in the folder `--work`, where one is needed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--document",
        type=Path,
        action="append",
        help="Markdown file with the markers, repeatable; tables are printed without it",
    )
    if work:
        parser.add_argument("--work", type=Path, required=True, help=f"folder that keeps {work}")
    return parser


def put_between(document: str, name: str, content: str) -> str:
    r"""Replace what stands between the markers `<!-- name -->` and `<!-- end of name -->`, each once, on a line of its own.

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


def write_tables(documents: Path | Sequence[Path] | None, tables: Mapping[str, Table | str]) -> None:
    """Put tables, or whole sections in Markdown, between the markers of their names; without a document, print them.

    Of several documents each gets the tables that it has markers of. A table without markers in any of them is an `InputError`.
    """
    if not documents:
        print("\n".join(table if isinstance(table, str) else table.render("text") for table in tables.values()))
        return
    paths = [documents] if isinstance(documents, Path) else documents
    markers = {path: re.findall(r"^<!-- (.+) -->$", read_text(path), re.MULTILINE) for path in paths}
    by_path = {path: {name: table for name, table in tables.items() if name in markers[path]} for path in paths}
    for name in tables.keys() - {name for placed in by_path.values() for name in placed}:
        by_path[paths[0]][name] = tables[name]  # which says that the document has no place for it
    texts = [with_tables(path, placed) for path, placed in by_path.items()]
    for written in texts:
        for path, text in written.items():
            write_text(path, text)


def with_tables(path: Path, tables: Mapping[str, Table | str]) -> dict[Path, str]:
    """Return the text of a page with tables between the markers of their names, and those of its data files."""
    document = read_text(path)
    found: dict[Path, str] = {}
    for name, table in tables.items():
        section = table if isinstance(table, str) else table.render("markdown")
        if (shown := shown_above(document, name)) is not None:
            section, files = split_section(path.stem, name, section, shown)
            found |= {path.parent / place: text for place, text in files.items()}
        document = put_between(document, name, section)
    return {path: document, **found}


def estimate(found: Estimate | None) -> str:
    """Write a statistic with its interval; nothing where nobody computed it."""
    return "" if found is None else found.text()
