r"""Tables of hundreds of cells: the whole goes into data files next to a page, some rows and columns stay on the page.

A page says what stays in a line above a section's first marker, as JSON: a list of what to show of which table,

    <!-- shown: [{"table": "PersonaChat", "rows": "^\\| (BLEU|METEOR)", "columns": ["metric", "Pearson"]}] -->

"table" is a pattern of the heading above a table or of its first title, "rows" one of a row as it stands there; what is left
out shows all. Columns may be numbers, from 0, where titles are alike. A table that no entry is about is in the data file alone.
A section without such a line stands on the page as it is.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from dialeval_plugin.terminal import for_spreadsheet

FOLDER = "data"
LONGEST = 40
"""Letters of a data file's name."""
Shown: TypeAlias = Sequence[dict[str, Any]]

_INTERVAL = re.compile(r"(-?\d+\.\d+) \[(-?\d+\.\d+), (-?\d+\.\d+)(?:, )?(rough)?\] ?(.*)")
"""An estimate with its interval, and what is said of it."""
_ESCAPED = re.compile(r"\\([\\|(:.])")


class PageTable(NamedTuple):
    """A table as it stands on a page."""

    heading: str
    """Those above it in its section, the outer first; empty where there is none."""
    lines: list[str]

    @property
    def head(self) -> list[str]:
        """Titles of the columns."""
        return cells(self.lines[0])

    @property
    def rows(self) -> list[list[str]]:
        """Cells, in Markdown."""
        return [cells(line) for line in self.lines[2:]]

    def restricted(self, shown: Shown) -> list[str]:
        """Return what the first entry about it shows, but for rows without a figure; nothing where there is no such entry."""
        for entry in shown:
            if re.search(entry.get("table", ""), f"{self.heading}\n{self.head[0]}"):
                wanted = entry.get("columns", self.head)
                places = [place for place, title in enumerate(self.head) if title in wanted or place in wanted]
                kept = [cells(line) for line in self.lines[2:] if re.search(entry.get("rows", ""), line)]
                rows = [row for row in kept if any(row[place] for place in places[1:])]
                of_head = [cells(line) for line in self.lines[:2]]
                return [f"| {' | '.join(row[place] for place in places)} |" for row in [*of_head, *rows]]
        return []


def cells(line: str) -> list[str]:
    r"""Return the cells of a line of a table.

    Example:
        >>> cells(r"| a \| b |  | 0.5 |")
        ['a \\| b', '', '0.5']
    """
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]


def split_section(page: str, name: str, section: str, shown: Shown) -> tuple[str, dict[str, str]]:
    """Return the part of a section that stays on `page`, and the texts of its data files by their paths relative to it."""
    blocks = section.strip().split("\n\n")
    kept: list[str] = []
    tables: list[PageTable] = []
    headings: dict[int, str] = {}
    for block in blocks:
        if depth := _depth(block):
            headings = {above: text for above, text in headings.items() if above < depth} | {depth: block[depth:].strip()}
        if block.startswith("|"):
            tables.append(PageTable(": ".join(headings.values()), block.split("\n")))
            lines = tables[-1].restricted(shown)
            kept += ["\n".join(lines)] if len(lines) > 2 else []
        else:
            kept.append(block)
    if not tables:
        return section, {}
    groups: dict[tuple[str, ...], list[PageTable]] = {}
    for table in tables:
        groups.setdefault(tuple(table.head[1:]), []).append(table)
    files, links = {}, []
    for group in groups.values():
        title = name if len(groups) == 1 else group[0].heading.rpartition(": ")[2] or group[0].head[0]
        path = f"{FOLDER}/{page}/{_slug(title)}.csv"
        files[path] = as_csv(group)
        n_rows = sum(len(table.rows) for table in group)
        links.append(f"[{path.rpartition('/')[2]}]({path}) ({n_rows} rows)")
    offered = f"The whole {'table' if len(links) == 1 else 'tables'}: {', '.join(links)}."
    return "\n\n".join([*_with_content(kept), offered]), files


def as_csv(group: Sequence[PageTable]) -> str:
    """Return tables with the same columns as one file: estimates are three numbers, and "table" tells the tables apart."""
    head = [title or "row" for title in group[0].head]
    names = [title if title not in head[:place] else f"{head[place - 1]}, {title}" for place, title in enumerate(head)]
    columns = list(zip(*(row for table in group for row in table.rows), strict=True))
    of = [label for table, label in zip(group, _labels(group), strict=True) for _ in table.rows]
    out: dict[str, list[str]] = {"table": of} if len(group) > 1 else {}
    if len({table.head[0] for table in group}) > 1:
        names[0] = "row"
    for name, column in zip(names, columns, strict=True):
        parts = [_parts(cell) for cell in column]
        for suffix, values in zip(("", ", low", ", high", ", note"), zip(*parts, strict=True), strict=True):
            if not suffix or any(values):
                out[name + suffix] = list(values)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([list(out), *map(list, zip(*out.values(), strict=True))])
    return stream.getvalue()


def _labels(group: Sequence[PageTable]) -> list[str]:
    """Headings or first titles that distinguish the tables of a group, or both."""
    parts = [[table.heading for table in group], [table.head[0] for table in group]]
    told = [part for part in parts if len(set(part)) > 1]
    return [": ".join(filter(None, of)) for of in zip(*told, strict=True)] if told else [""] * len(group)


def _parts(cell: str) -> tuple[str, str, str, str]:
    """A cell as value, low, high and note; what is no estimate with an interval is its value."""
    text = _ESCAPED.sub(r"\1", cell.replace("`", "").replace("&lt;", "<")).strip("*")
    if (found := _INTERVAL.fullmatch(text)) is None:
        is_number = re.fullmatch(r"-?[\d.]+", text) is not None
        return text if is_number else for_spreadsheet(text), "", "", ""
    value, low, high, rough, note = found.groups()
    return value, low, high, " ".join(filter(None, (rough, note)))


def _with_content(blocks: Iterable[str]) -> list[str]:
    """Leave out headings below which nothing stands."""
    kept: list[str] = []
    for block in [*blocks, "#"]:
        while (depth := _depth(block)) and kept and _depth(kept[-1]) >= depth:
            kept.pop()
        kept.append(block)
    return kept[:-1]


def _depth(block: str) -> int:
    """Level of a heading; 0 for another block."""
    return len(block) - len(block.lstrip("#"))


def _slug(name: str) -> str:
    """A name of a file, which ends with a comma of a long heading."""
    name = name.partition(",")[0] if len(name) > LONGEST else name
    return re.sub(r"[^a-z0-9]+", "-", name.casefold().removeprefix("figures: ")).strip("-")


def shown_above(document: str, name: str) -> Shown | None:
    """Return what the page shows of the section of this name; None where it shows all."""
    found = re.search(rf"^<!-- shown: (\[.*\]) -->\n<!-- {re.escape(name)} -->$", document, re.MULTILINE)
    return None if found is None else json.loads(found[1])
