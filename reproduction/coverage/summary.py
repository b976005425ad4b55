"""The table of docs/meta_evaluation.md: the ranges of the simulated shares that NOTES.md has in full.

python -m reproduction.coverage.summary --document docs/meta_evaluation.md
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dialeval_plugin.core.files import read_text
from dialeval_plugin.reports.tables import Table, TableRow, named_column
from reproduction.coverage.ratings import SOFT
from reproduction.documents import script_parser, write_tables

NOTES = Path(__file__).with_name("NOTES.md")
_KEYS = ("interval", "clusters")
"""Second columns that name a row together with the first one."""


def shares(section: str) -> dict[str, dict[str, float]]:
    """Return the numbers of a section's tables by row and column."""
    text = read_text(NOTES).partition(f"<!-- {section} -->")[2].partition(f"{section} -->")[0]
    found: dict[str, dict[str, float]] = {}
    head: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells
        elif not set(line) <= set("|-: "):
            numbers = {name: cell.split()[0] for name, cell in zip(head[1:], cells[1:], strict=True) if cell}
            name = f"{cells[0]}: {cells[1]}" if head[1] in _KEYS else cells[0]
            found[name] = {column: float(cell) for column, cell in numbers.items() if _is_number(cell)}
    return found


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).isdigit()


def span(values: Iterable[float]) -> str:
    """Return the smallest and the largest of some shares in per cent; nothing of none."""
    if not (ordered := sorted(values)):
        return ""
    low, high = f"{ordered[0]:.1f}", f"{ordered[-1]:.1f}"
    return low if low == high else f"{low} to {high}"


def table() -> Table:
    """Return a row for each group of intervals and for each test."""
    planning, labels, annotators, ratings, estimation = (
        shares(f"coverage:{name}") for name in ("planning", "categories", "annotators", "ratings", "estimation")
    )
    tests = ("means, expanded", "two correlations, permutation")
    means = [name for name, of in planning.items() if "30: expanded" in of]
    others = [name for name in ratings if not name.startswith(SOFT)]
    components = [name for name, of in annotators.items() if "30: expanded" in of]

    def spans(of: dict[str, dict[str, float]], names: Iterable[str], kind: str, larger: int) -> list[str]:
        columns = f"30: {kind}", f"{larger}: {kind}", f"{larger}: rows"
        return [span(of[name][column] for name in names if column in of[name]) for column in columns]

    def of_labels(*row: str) -> list[str]:
        return [span(labels[name].values()) for name in row]

    rows = [
        [f"{len(labels['30: rows'])} statistics of labels", *of_labels("30: expanded", "200: expanded", "200: rows")],
        [f"{len(means)} means and correlations", *spans(planning, means, "expanded", 200)],
        [f"{len(others)} other statistics of ratings", *spans(ratings, others, "expanded", 100)],
        ["variance components, share of the ceiling", *spans(annotators, components, "expanded", 200)],
    ]
    soft = [name for name in ratings if name.startswith(SOFT)]
    rows.append(["soft pairwise accuracy, 5 and 20 systems", *spans(ratings, soft, "expanded", 100)])
    of_rows = {"ppi": ("ppi-python", "truescore PPI"), "rogan-gladen": ("judgy", "truescore Rogan-Gladen")}
    few_labels, more_labels = estimation["30 conversations"], estimation["100 conversations"]
    for method, packages in of_rows.items():
        shown = f"{few_labels[method]:.1f}", f"{more_labels[method]:.1f}", span(more_labels[other] for other in packages)
        rows.append([f"true rate, `{method}`", *shown])
    for test in tests:
        few, many = (planning[f"{test}: {n}"] for n in (30, 200))
        false = "false positives, of 5 %"
        by_rows = f"{many['false positives by rows']:.1f}"
        rows.append([f"false positives: {test}", f"{few[false]:.1f}", f"{many[false]:.1f}", by_rows])
    one = annotators["behind by epsilon: one rater, uncorrected"]
    found = (f"{one[name]:.1f}" for name in ("30: conversations", "200: conversations", "200: rows"))
    rows.append(["false positives: alternative annotator test", *found])
    heads = ["share of simulated data sets, %", "30 conversations", "100 or 200", "taking rows as independent"]
    filled: list[TableRow] = [dict(zip(heads, row, strict=True)) for row in rows]
    return Table(filled, [named_column(name, is_number=place > 0) for place, name in enumerate(heads)])


def main() -> None:
    write_tables(script_parser(__doc__).parse_args().document, {"coverage": table()})


if __name__ == "__main__":
    main()
