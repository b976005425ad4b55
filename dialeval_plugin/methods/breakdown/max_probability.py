"""Maximum class probability (section 7.2.1; Hendrycks and Gimpel 2017): how sure a language model is of some token.

Equation 7.1 names a joint probability, but what the text describes and the published code stores is the likeliest token's
probability at each place. How places become a score is not published: the mean over the response is this project's choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dialeval_plugin.models.causal import FloatArray, as_array, padded_ids
from dialeval_plugin.models.language_models import OpenedModel

from .detectors import Places


class MaxProbability:
    """A `Detector` over one language model."""

    aggregations: tuple[str, ...] = ("mean", "all", "logsum")

    def __init__(self, opened: OpenedModel) -> None:
        self.opened = opened

    def answers(self, rows: Sequence[Sequence[int]]) -> FloatArray:
        """Return log probabilities of the likeliest tokens, of shape (1, rows, places)."""
        logits = self.opened.model(input_ids=padded_ids(self.opened, rows), use_cache=False).logits
        return as_array((logits.amax(-1) - logits.logsumexp(-1)).cpu())[None]

    @staticmethod
    def scores(answers: FloatArray, places: Places) -> Mapping[str, float]:
        """Return the score of a response, whose answers stand at `places`, in every aggregation.

        "mean" is of the probabilities over the response; "all" over context and response, the authors' places; "logsum" the sum
        of the logs over the response, which is the log of the product and falls with its length.
        """
        (log_maxima,) = answers
        return {
            "mean": float(np.exp(log_maxima[places.response]).mean()),
            "all": float(np.exp(log_maxima[places.all]).mean()),
            "logsum": float(log_maxima[places.response].sum()),
        }
