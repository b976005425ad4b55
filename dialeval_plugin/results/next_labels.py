"""Rows of a file of scores that people should label next, each with its conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.files import Line
from dialeval_plugin.corpora.rows import label_field, text_field
from dialeval_plugin.corpora.score_files import turns_before
from dialeval_plugin.labels.answers import RowToLabel
from dialeval_plugin.labels.reading import texts_of
from dialeval_plugin.labels.scores import score_rows
from dialeval_plugin.statistics.estimation.sample import next_rows

from .true_mean import read_labelled, way_of_drawing


class NextLabels(NamedTuple):
    """Rows to label in random order, how they were drawn, and whether earlier labels are pass or fail (None: no labels)."""

    rows: Sequence[RowToLabel]
    drawn: str
    is_rate: bool | None


def next_labels(scores: Path, n_next: int, *, labels: Sequence[Path] = (), seed: int = 0, **label_options: Any) -> NextLabels:
    """Draw rows to label: more among rows with similar scores whose labels vary most.

    Args:
        scores: the judge's scores of all rows.
        n_next: number of rows to draw.
        labels: earlier labels.
        seed: for the draw and the order; equal seed, scores and labels draw equal rows.
        label_options: as in `estimate`.

    Raises:
        InputError: a file is malformed, or no row is left.
    """
    labelled = read_labelled(scores, labels, is_optional=True, **label_options)
    table = labelled.scores
    is_rate = labelled.is_rate if labelled.scale is not None else None
    chosen = next_rows(table.scores, labelled.values, n_next, is_rate=is_rate, seed=seed).tolist()
    wanted = {table.clusters[row] for row in chosen}
    turns: dict[tuple[str, str], list[tuple[str, str]]] = {}
    to_label: dict[int, RowToLabel] = {}
    for place, row in enumerate(score_rows(scores)):
        if (conversation := table.clusters[place]) in wanted:
            before, role, text = _said(row)
            # Rows with a position in their conversation, or branch, follow each other; others answer one context.
            if label_field(row, "message") is not None:
                earlier = turns.setdefault((conversation, table.ids[place].rpartition(":")[0]), [])
                earlier += before
                before = list(earlier)
                earlier.append((role, text))
            to_label[place] = RowToLabel(table.ids[place], before, role, text)
    return NextLabels([to_label[row] for row in chosen], way_of_drawing(table), is_rate)


def _said(row: Line) -> tuple[list[tuple[str, str]], str, str]:
    context, text = texts_of(row)
    role = label_field(row, "role") or ""
    if (preceding := turns_before(row)) is not None:
        return [(label_field(turn, "role") or "", text_field(turn, "text")) for turn in preceding], role, text
    return [("", line) for line in context.split("\n") if line], role, text
