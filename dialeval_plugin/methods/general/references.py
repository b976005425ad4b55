"""How much a response is like an answer of a person's, where an example has such references."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.models.runtimes.runtime import VectorArray, unit

REFERENCE_SIMILARITY = "reference_similarity"
"""The column of the cosine with the nearest reference."""
REFERENCE_WEIGHT = 6.0
"""Log odds of the main score that a response gains where its cosine is higher by 1. Chosen on DailyDialog++'s development
contexts, without a rating: the smallest whose area under the ROC curve is within 0.002 of the highest
(reproduction/general/results.md)."""
USUAL_SIMILARITY = 0.48
"""Cosine that moves no score: half-way between that of a fitting and that of a misleading or random response, on the same
contexts, with one reference."""


def nearest_similarity(responses: VectorArray, references: VectorArray, owners: Sequence[int]) -> FloatArray:
    """Return the cosine of each response's vector with that of its nearest reference, (n,), in [-1, 1]; NaN without one.

    Args:
        responses: vectors, of shape (n, width).
        references: of all references, of shape (m, width).
        owners: for each of the m the number of its response.
    """
    found: FloatArray = np.full(len(responses), np.nan)
    cosines = (unit(responses)[list(owners)] * unit(references)).sum(1).astype(np.float64)
    np.fmax.at(found, list(owners), cosines)
    return found


def reference_log_odds(similarity: FloatArray) -> FloatArray:
    """Return what similarities (n,) add to the main score's log odds; nothing where there is none."""
    added: FloatArray = REFERENCE_WEIGHT * (np.nan_to_num(similarity, nan=USUAL_SIMILARITY) - USUAL_SIMILARITY)
    return added
