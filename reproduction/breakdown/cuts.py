"""Cuts of breakdown scores, chosen on development data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dialeval_plugin.statistics.breakdown.detection import (
    BREAKDOWN,
    NOT_BREAKDOWN,
    AnnotatorCounts,
    is_lenient_breakdown,
    strict_labels,
)


def best_cut(scores: Sequence[float | None], counts: AnnotatorCounts, *, metric: str) -> float:
    """Return the lowest cut with which `detections` has the best accuracy, F1(B) or F1(PB+B) on annotated turns.

    Candidates are -1, midpoints between scores, and the highest score. ValueError: no cut gives the metric a value.
    """
    annotated, column = np.array(counts), np.array([np.nan if score is None else score for score in scores])
    ordered = np.unique(column[~np.isnan(column)])
    candidates = np.concatenate([[-1.0], (ordered[1:] + ordered[:-1]) / 2, ordered[-1:]])
    used = (annotated.sum(axis=1) > 0) & ~np.isnan(column)
    strict, shares = strict_labels(annotated[used]), annotated[used] / annotated[used].sum(axis=1, keepdims=True)
    true = is_lenient_breakdown(shares) if metric == "f1_pb_b" else strict == BREAKDOWN
    values = []
    for cut in candidates:
        calls = column[used] > cut
        hits, possible = 2 * (calls & true).sum(), calls.sum() + true.sum()
        if metric == "accuracy":
            hits, possible = (np.where(calls, BREAKDOWN, NOT_BREAKDOWN) == strict).sum(), len(calls)
        values.append(hits / possible if possible else math.nan)
    if np.isnan(values).all():
        raise ValueError(f"best_cut: {metric} is undefined at every cut")
    return float(candidates[np.nanargmax(values)])
