"""Generalised ODIN (Hsu et al. 2020) over a causal language model, equations 7.4 to 7.8.

The logits of a model are divided into h, which the language model's own head gives, and g = sigmoid(w f + b), which a second
head gives of the same features f. The logits of training are h / g; the score is the likeliest token's h, or g.
As in the published code h has the model's head as it is (tied, without a bias in GPT-2) and g no batch normalisation; equation
7.5, which equates a logit to a probability, is read as the softmax over h / g.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dialeval_plugin.models.causal import FloatArray, as_array, padded_ids
from dialeval_plugin.models.language_models import OpenedModel

from .detectors import Places

HEAD_NAME = "odin_head"


def confidence(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return g (equation 7.7), of shape (...,), from features of shape (..., width), weights (1, width) and bias (1,)."""
    return torch.sigmoid(features @ weight.T + bias)[..., 0]


def decomposed_logits(h: Tensor, g: Tensor) -> Tensor:
    """Return f = h / g (equation 7.6) from h of shape (..., vocabulary) and g of shape (...,)."""
    return h / g[..., None]


class ConfidenceHead(nn.Module):
    """The second head: one linear layer of a model's features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return g of shape (...,) from features of shape (..., width)."""
        return confidence(features, self.linear.weight, self.linear.bias)


def feature_width(model: Any) -> int:
    """Return the width of what the model's head reads."""
    return int(model.get_output_embeddings().weight.shape[1])


@contextmanager
def features_of(model: Any) -> Iterator[list[Tensor]]:
    """Collect what the model's head reads in each forward pass, of shape (rows, places, width)."""
    found: list[Tensor] = []

    def keep(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        found.append(inputs[0])

    handle = model.get_output_embeddings().register_forward_pre_hook(keep)
    try:
        yield found
    finally:
        handle.remove()


@contextmanager
def decomposed(model: Any, head: ConfidenceHead) -> Iterator[None]:
    """Make the model answer with h / g: `head` becomes a part of it, so that it is trained and stored with it."""
    model.add_module(HEAD_NAME, head)

    def divide(_: nn.Module, __: Any, output: Any) -> Any:
        output.logits = decomposed_logits(output.logits, head(found.pop()))
        return output

    with features_of(model) as found:
        handle = model.register_forward_hook(divide)
        try:
            yield
        finally:
            handle.remove()
            delattr(model, HEAD_NAME)


class Odin:
    """A `Detector`: h, of the likeliest token (S_DeConf), or g of a model that was trained with the objective odin."""

    aggregations: tuple[str, ...] = ("mean", "all")

    def __init__(self, opened: OpenedModel, head: ConfidenceHead, component: Literal["h", "g"]) -> None:
        self.opened = opened
        self.head = head
        self.component = component

    def answers(self, rows: Sequence[Sequence[int]]) -> FloatArray:
        """Return the largest h, or g, of shape (1, rows, places)."""
        with features_of(self.opened.model) as features:
            logits = self.opened.model(input_ids=padded_ids(self.opened, rows), use_cache=False).logits
        values = logits.amax(-1) if self.component == "h" else self.head(features[0])
        return as_array(values.cpu())[None]

    @staticmethod
    def scores(answers: FloatArray, places: Places) -> Mapping[str, float]:
        """Return the score of a response, whose answers stand at `places`: "mean" over it, "all" over the context too."""
        (values,) = answers
        return {"mean": float(values[places.response].mean()), "all": float(values[places.all].mean())}
