"""What training measures after each epoch."""

from __future__ import annotations

import numpy as np
import pytest
from transformers import EvalPrediction

from dialeval_plugin.methods.slide.stages import NO_RESPONSE, measure


def test_a_triplet_counts_within_its_context_only() -> None:
    label = np.array([[1, 0, 0], [1, 0, NO_RESPONSE]])
    # The first positive is nearer than one of its two negatives, the second than its only one; the padding is no response.
    distance = np.array([[0.5, 0.9, 0.1], [0.2, 0.3, -100.0]])
    probability = np.array([[0.9, 0.2, 0.7], [0.4, 0.1, -100.0]])
    found = measure(EvalPrediction(np.stack([probability, distance], axis=-1), label))
    assert found == pytest.approx(
        {
            "accuracy_positive": 50.0,
            "accuracy_adversarial": 200 / 3,
            "accuracy": 175 / 3,
            "auroc": 500 / 6,
            "triplet_accuracy": 200 / 3,
        }
    )


def test_without_distances_there_is_no_triplet_accuracy() -> None:
    found = measure(EvalPrediction(np.array([[0.9], [0.2]]), np.array([1, 0])))
    assert "triplet_accuracy" not in found
