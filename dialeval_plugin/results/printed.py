"""Output of a comparison for terminals, pull request comments, and programs."""

from __future__ import annotations

from typing import Any

from dialeval_plugin.core.files import to_json
from dialeval_plugin.core.signature import short_form
from dialeval_plugin.reports.printed_scores import cut
from dialeval_plugin.reports.tables import SCHEMA_VERSION, Table, TableColumn, TableRow, named_column, text_column
from dialeval_plugin.statistics.bootstrap import Estimate
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.terminal import for_markdown

from .comparison import Comparison
from .gates import Gate

_LONGEST_NAME = 60
"""Most terminal columns for the name of a conversation, which may be its context."""


def estimated(title: str, prefix: str = "") -> tuple[TableColumn, TableColumn]:
    """Return the columns of an estimate and its interval, whose names in the rows of `figures` begin with `prefix`."""

    def interval(row: TableRow) -> str:
        if row[f"{prefix}ci_low"] is None:
            return ""
        low, high = (number_text(float(row[f"{prefix}{end}"] or 0)) for end in ("ci_low", "ci_high"))
        return f"{low} to {high}{', rough' if row[f'{prefix}is_rough'] else ''}"

    return named_column(f"{prefix}value", title=title), TableColumn("95 % interval", interval)


ESTIMATED = estimated("mean")
COUNTS = (
    TableColumn("scored", lambda row: f"{row['n_scored']}/{row['n_total']}"),
    named_column("n_clusters", title="conversations", decimals=0),
)
"""Columns of the counts that `figures` returns."""


def figures(estimate: Estimate) -> dict[str, Any]:
    """Return the fields of a table row for an estimate."""
    names = ("value", "ci_low", "ci_high", "is_rough", "n_scored", "n_total", "n_clusters")
    return {name: getattr(estimate, name) for name in names}


def shown(comparison: Comparison, format: str, n_changed: int, gate: Gate | None = None) -> str:
    """Return a comparison as text, Markdown or JSON with a final line break; shows at most `n_changed` conversations."""
    changed = comparison.changed[:n_changed]
    if format == "json":
        return to_json(_record(comparison, n_changed, gate), indent=2) + "\n"
    is_markdown = format == "markdown"
    rows = [
        {"": name, "file": file, **figures(one)}
        for name, file, one in zip("AB", comparison.names, (comparison.a, comparison.b), strict=True)
    ]
    names = [*map(text_column, ("", "file"))]
    sides = Table(rows, [*names, *ESTIMATED, *COUNTS])
    parts = [f"**{comparison.verdict}**" if is_markdown else comparison.verdict, sides.render(format).rstrip()]
    parts.append(
        "\n".join(for_markdown(f"- {note}") if is_markdown else note for note in [_how(comparison), *comparison.notes])
    )
    if changed:
        columns = [text_column("conversation"), *map(named_column, ("A", "B", "B - A"))]
        lines: list[TableRow] = [
            {"conversation": cut(one.conversation, _LONGEST_NAME), "A": one.a, "B": one.b, "B - A": one.difference}
            for one in changed
        ]
        table = Table(lines, columns).render(format).rstrip()
        title = f"changed most, {len(changed)} of {len(comparison.changed)} conversations that changed"
        parts.append(f"<details><summary>{title}</summary>\n\n{table}\n\n</details>" if is_markdown else f"{title}:\n{table}")
    if comparison.signature:
        signature = short_form(comparison.signature)
        parts.append(f"`{signature}`" if is_markdown else signature)
    if gate is not None:
        parts.append(f"**{gate}**" if is_markdown else str(gate))
    return "\n\n".join(parts) + "\n"


def _how(comparison: Comparison) -> str:
    n_a, n_b = comparison.n_conversations
    shared = f"{comparison.n_matched} of {n_a} conversations of A and {n_b} of B are in both"
    return f"paired by {comparison.matched_by}: {shared}" if comparison.matched_by else f"unpaired, the means of all: {shared}"


def _record(comparison: Comparison, n_changed: int, gate: Gate | None) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "column": comparison.column,
        "orientation": comparison.orientation,
        "signature": comparison.signature,
        "difference": comparison.difference.to_dict(),
        "detectable": None if comparison.detectable is None else comparison.detectable._asdict(),
        **{
            side: {"file": file, "n_rows": n_rows, "n_conversations": n, "mean": one.to_dict()}
            for side, file, n_rows, n, one in zip(
                "ab", comparison.names, comparison.n_rows, comparison.n_conversations, (comparison.a, comparison.b), strict=True
            )
        },
        "matched_by": comparison.matched_by,
        "n_matched": comparison.n_matched,
        "changed": [one._asdict() for one in comparison.changed[:n_changed]],
        "notes": list(comparison.notes),
        "gate": None if gate is None else gate._asdict(),
    }
