"""Tables 1 to 4 and 6 of Huynh et al. 2023, with the figures of another language model beside those that the paper prints.

Figures are Spearman's rho with people's mean ratings. `huynh_2023.json` holds the paper's, in the order of its tables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.methods.judging.rating_prompts import rating_prompts

Results = Mapping[str, Mapping[str, Any]]
"""Task name to the task's entry in the host's `results`."""

LEVELS: dict[Level, str] = {"turn": "turn", "dialogue": "dial"}
"""Level to its part of a task's name."""
KINDS: dict[Level, dict[str, str]] = {
    "turn": {"": "no example", "manual": "3 hand-picked", "random": "3 random", "bm25_cr": "3 BM25_C+R"},
    "dialogue": {"": "no example", "manual": "3 hand-picked", "random": "3 random", "bm25_c": "3 BM25_C"},
}
"""Variants of the FED tasks that Tables 1 and 2 have, by their part of a task's name."""
DSTC10_KINDS = {"": "no example", "bm25_c": "4 BM25_C"}


def fed_task(kind: str, level: Level, quality: str) -> str:
    """Name of the task of one quality."""
    return "_".join(filter(None, ("fed_dialog", kind, LEVELS[level], quality)))


def dstc10_task(kind: str, code: str) -> str:
    """Name of the task of one DSTC10 set."""
    return "_".join(filter(None, ("dstc10_dialog", kind, code)))


def huynh_tables(results: Results, model: str) -> str:
    """Return the tables in Markdown; a quality or set that `results` has no figure of is left out.

    Args:
        results: of the tasks that were run.
        model: name of the language model.
    """
    paper = _paper()
    tables = [_fed_table(results, model, level, paper[level]) for level in LEVELS]
    return "\n\n".join([*tables, _dstc10_table(results, model, paper)]) + "\n"


def _fed_table(results: Results, model: str, level: Level, paper: Mapping[str, Sequence[float]]) -> str:
    rows = []
    for place, quality in enumerate(rating_prompts(level)):
        ours = [_cell(results.get(fed_task(kind, level, quality))) for kind in KINDS[level]]
        if any(ours):
            rows.append([quality, *ours, *(f"{figures[place]:.3f}" for figures in paper.values())])
    return _markdown([f"FED, {level} level", *(f"{model}, {how}" for how in KINDS[level].values()), *paper], rows)


def _dstc10_table(results: Results, model: str, paper: Mapping[str, Any]) -> str:
    rows = []
    for place, code in enumerate(paper["dstc10_sets"]):
        ours = [_cell(results.get(dstc10_task(kind, code))) for kind in DSTC10_KINDS]
        if any(ours):
            rows.append([code, *ours, *(f"{figures[place]:.3f}" for figures in paper["dstc10"].values())])
    return _markdown(["DSTC10, overall", *(f"{model}, {how}" for how in DSTC10_KINDS.values()), *paper["dstc10"]], rows)


def _cell(found: Mapping[str, Any] | None) -> str:
    """A coefficient with its interval, or with its deviation over runs; nothing where there is none."""
    if found is None:
        return ""
    figures = {name.removesuffix(",none"): value for name, value in found.items()}
    value, low, high = (figures.get(f"spearman{end}") for end in ("", "_ci_low", "_ci_high"))
    # The host's file holds text where a figure is undefined.
    if not isinstance(value, float):
        return "undefined"
    if isinstance(deviation := figures.get("spearman_deviation"), float):
        return f"{value:.3f} ± {deviation:.3f}"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]" if isinstance(low, float) and isinstance(high, float) else f"{value:.3f}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _paper() -> Any:
    return json.loads(resources.files(__package__).joinpath("huynh_2023.json").read_text(encoding="utf-8"))
