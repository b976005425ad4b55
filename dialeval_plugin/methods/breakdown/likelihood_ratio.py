"""Likelihood ratio (section 7.2.3; Ren et al. 2019): a response's tokens under the semantic and under the background model.

Equation 7.9 has one token; as in Ren et al. the score of a response is the sum over its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.causal import FloatArray, as_array, padded_ids
from dialeval_plugin.models.language_models import OpenedModel

from .detectors import Places


class LikelihoodRatio:
    """A `Detector` over two language models with one tokenizer: `background` was trained on perturbed input."""

    aggregations: tuple[str, ...] = ("sum", "mean", "code_bug")

    def __init__(self, semantic: OpenedModel, background: OpenedModel) -> None:
        if semantic.tokenizer.get_vocab() != background.tokenizer.get_vocab():
            raise InputError(
                f"dialogue_breakdown: {background.folder} has another tokenizer than {semantic.folder}. "
                "Train the background model with this one as its --backbone."
            )
        self.opened = semantic
        self.background = background

    def answers(self, rows: Sequence[Sequence[int]]) -> FloatArray:
        """Return differences of log probabilities of next tokens and of the last entry, of shape (2, rows, places)."""
        ids = padded_ids(self.opened, rows)
        return as_array((_log_probabilities(self.opened, ids) - _log_probabilities(self.background, ids)).cpu())

    @staticmethod
    def scores(answers: FloatArray, places: Places) -> Mapping[str, float]:
        """Return the score of a response, whose answers stand at `places`, in every aggregation.

        "sum" and "mean" are over the response's tokens; "code_bug" is the published code's sum over all places, in which the
        label -1 of places outside the response picks the last entry of the vocabulary, GPT-2's end of text.
        """
        next_token, last_entry = answers
        ratios = next_token[places.response]
        outside = last_entry[: places.start].sum() + last_entry[places.end]
        return {"sum": float(ratios.sum()), "mean": float(ratios.mean()), "code_bug": float(ratios.sum() + outside)}


def _log_probabilities(opened: OpenedModel, ids: Tensor) -> Tensor:
    """Log probabilities of the token that follows each place and of the vocabulary's last entry, (2, rows, places)."""
    logits: Tensor = opened.model(input_ids=ids, use_cache=False).logits
    # Nothing follows the last place; the number there is not read.
    following = torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)
    chosen = logits.gather(-1, following[..., None])[..., 0]
    return torch.stack([chosen, logits[..., -1]]) - logits.logsumexp(-1)
