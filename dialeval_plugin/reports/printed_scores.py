"""Printed output of `dialeval score`: summary, distribution, and worst responses, without control characters."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialeval_plugin.conversations.messages import left_out_text
from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.scope import out_of_scope_text
from dialeval_plugin.core.scores import OUT_OF_SCOPE
from dialeval_plugin.core.signature import short_form
from dialeval_plugin.terminal.plain_text import one_line

N_BINS = 10
_LONGEST_BAR = 50
_MOST_SIGNS = 4
"""Characters per terminal column, combining accents included; longer texts are cut before they are measured."""


class Bars(NamedTuple):
    """Histogram: number of rows, shape (bins,), between edges, shape (bins + 1,)."""

    column: str
    counts: np.ndarray
    edges: np.ndarray


class WorstRow(NamedTuple):
    """Row to show; its percentile is None if percentiles are unavailable."""

    percentile: float | None
    score: float
    item: Item


def summary(meta: Mapping[str, Any], interval: str = "", n_clusters: int = 0) -> str:
    """Return the summary, the rows that were out of scope or left out, and the short signature, which identifies the run.

    Args:
        meta: metadata of all rows, as stored next to a file of scores.
        interval: interval of the mean, as text; "" if there is none.
        n_clusters: number of conversations behind the interval.
    """
    mean = "no score" if meta["mean"] is None else f"mean {meta['mean']:.4f}"
    over = f" {interval}" if interval else ""
    n = f", {n_clusters} conversations" if interval else ""
    scored = f"{meta['n_scored']} of {meta['n_total']} scored"
    lines = [f"{meta['main']}: {mean}{over}, {scored}{n}"]
    if judges := meta.get("judges"):
        if meta["mean"] is None:
            lines = [f"{meta['main']}: {scored}, by scorers that have no common scale:"]
        lines += [f"  judged by {name}: mean {of['mean']:.4f}, {of['n_scored']} scored" for name, of in judges.items()]
    if beyond := out_of_scope_text(meta.get(OUT_OF_SCOPE, {}), meta["n_scored"]):
        lines.append(beyond)
    if meta["left_out"]:
        lines.append(f"left out: {left_out_text(meta['left_out'])}")
    return "\n".join([*lines, short_form(meta["signature"])])


def bar_range(values: Sequence[float], score_range: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the histogram: those of the range, extended to values beyond it."""
    low, high = score_range
    low = min(values) if not math.isfinite(low) else min(low, *values)
    high = max(values) if not math.isfinite(high) else max(high, *values)
    return low, high


def drawn_bars(bars: Bars) -> str:
    """Return a title and one line per bar."""
    ends = [f"{edge:.4g}" for edge in bars.edges.tolist()]
    width, longest = max(map(len, ends)), int(bars.counts.max())
    title = "percentile among good responses" if bars.column == PERCENTILE else bars.column
    return "\n".join(
        [
            f"{title}:",
            *(
                f"  {start:>{width}} to {end:>{width}}  {'#' * math.ceil(_LONGEST_BAR * count / longest)} {count}"
                for start, end, count in zip(ends, ends[1:], bars.counts.tolist(), strict=False)
            ),
        ]
    )


def drawn_rows(
    rows: Sequence[WorstRow], explanations: Sequence[str] = (), *, n_scored: int, has_percentiles: bool, width: int = 80
) -> str:
    """Return for each row its percentile, score, id, last turn before the response, and response, then the explanation.

    Texts are cut to `width` terminal columns, explanations are not. For a dialogue, the last two turns are shown.
    """
    head = "percentile, score, id" if has_percentiles else "score, id"
    lines = [f"worst {len(rows)} of {n_scored} ({head}):"]
    for number, row in enumerate(rows):
        percentile = "" if row.percentile is None else f"{row.percentile:5.1f}  "
        lines.append(cut(f"  {percentile}{row.score:.4f}  {row.item.id}", width))
        lines += [cut(f"      {mark} {text}", width) for mark, text in _last_two(row.item)]
        if explanations:
            lines += [f"      {one_line(line)}" for line in explanations[number].split("\n")]
    return "\n".join(lines)


def _last_two(item: Item) -> list[tuple[str, str]]:
    turns = (*item.context, item.response) if isinstance(item, Example) else item.turns
    texts = [" ".join(one_line(turn.text).split()) for turn in turns[-2:]]
    return list(zip("><"[-len(texts) :], texts, strict=True))


def cut(text: str, width: int) -> str:
    r"""Return a text as one line of at most `width` terminal columns; wide East Asian characters take two.

    Example:
        >>> cut("one\ntwo three", 10), cut("三個字", 6), cut("三個字", 5)
        ('one two...', '三個字', '三...')
    """
    line = one_line(text[: _MOST_SIGNS * width])
    if len(text) <= _MOST_SIGNS * width and _columns(line) <= width:
        return line
    while line and _columns(line) > width - 3:
        line = line[:-1]
    return line.rstrip() + "..."


def _columns(text: str) -> int:
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)
