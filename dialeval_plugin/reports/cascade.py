"""The curves of a cascade from score files of `slide` with `small` and an `llm`, and people's ratings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.statistics.cascade import CascadePoint, cascade_curve

from .score_alignment import AlignedScores, align

FUSED, SMALL = "slide", "small"
"""Columns of `slide`: the fused score, and the one that stands where the large model is not asked."""


def cascade_curves(data: str, files: Sequence[Path], quality: str | None = None) -> dict[str, list[CascadePoint]]:
    """Return the curve of each file, by its name, over the rows that have both scores and a rating.

    Raises:
        InputError: a file has no column `slide` or `small`, its ids are not those of `data`, or several qualities are rated
            and none is named.
        StatisticUndefined: there are too few rows, or all scores or ratings are the same.
    """
    how = AlignedScores(ratings=data, qualities=(quality,) if quality else (), columns=(FUSED, SMALL))
    curves = {}
    for path in files:
        found = align([path], how)
        if len(found) != 2:
            named = ", ".join(dict.fromkeys(one.quality for one in found))
            raise InputError(f"{data}: several qualities are rated. Name one with --quality: {named}.")
        fused, small = found
        rows = [
            (alone, both, rating)
            for alone, both, rating in zip(small.scores, fused.scores, fused.ratings, strict=True)
            if alone is not None and both is not None and rating is not None
        ]
        alone, both, ratings = ([row[place] for row in rows] for place in range(3))
        curves[path.stem] = cascade_curve(alone, both, ratings)
    return curves
