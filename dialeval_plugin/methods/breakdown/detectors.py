"""The out-of-distribution detectors of chapter 7, and their common reading of responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.models import causal
from dialeval_plugin.models.folders import DefaultModel, ModelFolder, tensor_names
from dialeval_plugin.models.language_models import OpenedModel
from dialeval_plugin.models.tensors import save_weights

HEAD_NAME = "odin_head"


class TokenPositions(NamedTuple):
    """Positions of a response's predictions in a sequence; the place before a token predicts it."""

    start: int
    end: int

    @property
    def response(self) -> slice:
        """Places that predict the response's tokens and the end of its turn."""
        return slice(self.start, self.end)

    @property
    def all(self) -> slice:
        """All places from the first of the context to the end of the turn, which predicts the next token."""
        return slice(0, self.end + 1)


class DetectorReading(NamedTuple):
    """A detector's scores of a response."""

    scores: Mapping[str, float]
    """Aggregation to score; higher means more in distribution."""
    n_tokens: int
    """Tokens of the response, the end of its turn included."""
    is_cut: bool
    """Whether its context was truncated."""


def read_responses(
    detector: Detector, dialogues: Sequence[Sequence[str]], *, context: causal.Context, max_tokens: int
) -> list[DetectorReading | Unscored]:
    """Return a detector's reading of the last turn of each dialogue, given all turns before it or one (context "pair").

    A dialogue has at least two turns, none blank. Responses whose contexts begin alike share a pass. If a sequence exceeds
    `max_tokens`, the beginning of the context is cut.
    """
    opened = detector.models[0]
    prefix, end = causal.layout_tokens(opened, "separated")
    pieces = causal.turn_pieces(opened, dialogues, end, last_only=True)
    passes, refused = causal.all_passes(pieces, prefix, max_tokens, context=context, last_only=True)
    # A text without tokens has no pass.
    no_token = Unscored(Reason.EMPTY_INPUT, "the tokenizer leaves nothing of the response, or of the turns before it")
    readings: list[DetectorReading | Unscored] = [refused.get(number, no_token) for number in range(len(dialogues))]
    with torch.inference_mode():
        for span, row, answers in causal.read_spans(opened, passes, detector.answers):
            scores = detector.scores(answers[:, row], TokenPositions(span.start - 1, span.end - 1))
            readings[span.dialogue] = DetectorReading(scores, span.end - span.start, span.is_cut)
    return readings


class MaxProbability:
    """Maximum class probability (section 7.2.1; Hendrycks and Gimpel 2017): the confidence of a language model.

    Equation 7.1 names a joint probability, but the text and the published code use the likeliest token's probability at each
    place. The aggregation of places is not published: the mean over the response is this project's choice.
    """

    aggregations: tuple[str, ...] = ("mean", "all", "logsum")

    def __init__(self, opened: OpenedModel) -> None:
        self.models = (opened,)

    def answers(self, rows: Sequence[Sequence[int]]) -> FloatArray:
        """Return log probabilities of the likeliest tokens, of shape (1, rows, places)."""
        (opened,) = self.models
        logits = opened.model(input_ids=causal.padded_ids(opened, rows), use_cache=False).logits
        return causal.as_array((logits.amax(-1) - logits.logsumexp(-1)).cpu())[None]

    @staticmethod
    def scores(answers: FloatArray, places: TokenPositions) -> Mapping[str, float]:
        """Return the score of the response at `places` by aggregation.

        "mean" is the mean probability over the response, "all" also over its context (as published), "logsum" the sum of logs.
        """
        (log_maxima,) = answers
        return {
            "mean": float(np.exp(log_maxima[places.response]).mean()),
            "all": float(np.exp(log_maxima[places.all]).mean()),
            "logsum": float(log_maxima[places.response].sum()),
        }


class LikelihoodRatio:
    """Likelihood ratio (section 7.2.3; Ren et al. 2019) of a response's tokens under the semantic and the background model.

    The models share a tokenizer; `background` was trained on perturbed input. Equation 7.9 is for one token; the score of a
    response is the sum over its tokens, as in Ren et al.
    """

    aggregations: tuple[str, ...] = ("sum", "mean", "code_bug")

    def __init__(self, semantic: OpenedModel, background: OpenedModel) -> None:
        if semantic.tokenizer.get_vocab() != background.tokenizer.get_vocab():
            raise InputError(
                f"dialogue_breakdown: {background.folder} has another tokenizer than {semantic.folder}. "
                "Train the background model with this one as its --backbone."
            )
        self.models = (semantic, background)

    def answers(self, rows: Sequence[Sequence[int]]) -> FloatArray:
        """Return differences of log probabilities of next tokens and the vocabulary's last, of shape (2, rows, places)."""
        ids = causal.padded_ids(self.models[0], rows)
        semantic, background = (_log_probabilities(opened, ids) for opened in self.models)
        return causal.as_array((semantic - background).cpu())

    @staticmethod
    def scores(answers: FloatArray, places: TokenPositions) -> Mapping[str, float]:
        """Return the score of the response at `places` by aggregation.

        "sum" and "mean" are over the response's tokens; "code_bug" is the published code's sum over all places, in which the
        label -1 outside the response selects the last token of the vocabulary, GPT-2's end of text.
        """
        next_token, last_entry = answers
        ratios = next_token[places.response]
        outside = last_entry[: places.start].sum() + last_entry[places.end]
        return {"sum": float(ratios.sum()), "mean": float(ratios.mean()), "code_bug": float(ratios.sum() + outside)}


def _log_probabilities(opened: OpenedModel, ids: Tensor) -> Tensor:
    logits: Tensor = opened.model(input_ids=ids, use_cache=False).logits
    # The last place has no next token; its number is not used.
    following = torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)
    chosen = logits.gather(-1, following[..., None])[..., 0]
    return torch.stack([chosen, logits[..., -1]]) - logits.logsumexp(-1)


def decomposed_logits(h: Tensor, g: Tensor) -> Tensor:
    """Return f = h / g (equation 7.6) from h of shape (..., vocabulary) and g of shape (...,)."""
    return h / g[..., None]


class ConfidenceHead(nn.Module):
    """Second head of generalised ODIN: a linear layer on a model's features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return g (equation 7.7) of shape (...,) from features of shape (..., width)."""
        return torch.sigmoid(features @ self.linear.weight.T + self.linear.bias)[..., 0]


def feature_width(model: Any) -> int:
    """Return the width of the features that the model's head reads."""
    return int(model.get_output_embeddings().weight.shape[1])


@contextmanager
def features_of(model: Any) -> Iterator[list[Tensor]]:
    """Collect the features that the model's head reads in each forward pass, of shape (rows, places, width)."""
    features: list[Tensor] = []
    handle = model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
    try:
        yield features
    finally:
        handle.remove()


@contextmanager
def decomposed(model: Any, head: ConfidenceHead) -> Iterator[None]:
    """Make the model's logits h / g; `head` becomes a part of the model, to be trained and stored with it."""
    model.add_module(HEAD_NAME, head)

    def divide(_: nn.Module, __: Any, output: Any) -> Any:
        output.logits = decomposed_logits(output.logits, head(features.pop()))
        return output

    with features_of(model) as features:
        handle = model.register_forward_hook(divide)
        try:
            yield
        finally:
            handle.remove()
            delattr(model, HEAD_NAME)


class Odin:
    """Generalised ODIN (Hsu et al. 2020), equations 7.4 to 7.8, of a model that was trained with the objective odin.

    The language model's head gives h, and a second head g = sigmoid(w f + b) on the same features f. In training the logits are
    h / g; the score is the likeliest token's h (S_DeConf), or g. As in the published code, h has the model's own head (tied,
    without a bias in GPT-2) and g no batch normalisation. Equation 7.5, which equates a logit to a probability, is taken as the
    softmax over h / g.
    """

    aggregations: tuple[str, ...] = ("mean", "all")

    def __init__(self, opened: OpenedModel, head: ConfidenceHead, component: Literal["h", "g"]) -> None:
        self.models = (opened,)
        self.head = head
        self.component = component

    def answers(self, rows: Sequence[Sequence[int]]) -> FloatArray:
        """Return the largest h, or g, of shape (1, rows, places)."""
        (opened,) = self.models
        with features_of(opened.model) as features:
            logits = opened.model(input_ids=causal.padded_ids(opened, rows), use_cache=False).logits
        values = logits.amax(-1) if self.component == "h" else self.head(features[0])
        return causal.as_array(values.cpu())[None]

    @staticmethod
    def scores(answers: FloatArray, places: TokenPositions) -> Mapping[str, float]:
        """Return the score of the response at `places`: "mean" over it, "all" also over the context."""
        (values,) = answers
        return {"mean": float(values[places.response].mean()), "all": float(values[places.all].mean())}


# Files of a trained language model in addition to transformers': `language_model.json` of `ModelFolder` names the objective,
# `odin_head.safetensors` is the second head of generalised ODIN, `breakdown.json` the calibration (calibration.py).

HEAD_FILE = "odin_head.safetensors"

_COMMAND = "`dialeval train language-model --objective {objective} --data FILE --output FOLDER`"


def _default(objective: str, option: str, variable: str) -> DefaultModel:
    command = _COMMAND.format(objective=objective)
    advice = f"dialogue_breakdown: no {option} is named. Train one with {command}, pass {option}='FOLDER', or set {variable}."
    return DefaultModel("dialogue_breakdown", variable, advice=advice)


DEFAULT_MODELS: Mapping[str, DefaultModel] = MappingProxyType(
    {
        "lm": DefaultModel("dialogue_breakdown", "DIALEVAL_LANGUAGE_MODEL", packaged="language-model"),
        "odin": _default("odin", "model", "DIALEVAL_ODIN_MODEL"),
        "background": _default("background", "background", "DIALEVAL_BACKGROUND_MODEL"),
    }
)
"""Default model of each objective. The language model is also that of `dialogue_likelihood`."""


class _Fields(TypedDict):
    objective: str


LANGUAGE_MODEL_FOLDER = ModelFolder(
    "language_model.json", _Fields, 2, "a language model of dialogues", "dialeval train language-model"
)


def save_head(head: ConfidenceHead, folder: Path) -> None:
    """Write ODIN's second head."""
    save_weights(folder / HEAD_FILE, head.linear.state_dict())


def load_head(opened: OpenedModel) -> ConfidenceHead:
    """Open ODIN's second head of a model; `ModelLoadError` if it is missing, damaged, or of another model."""
    path = opened.folder / HEAD_FILE
    if not path.is_file():
        command = _COMMAND.format(objective="odin")
        raise ModelLoadError(
            f"{opened.folder}: has no {HEAD_FILE}, so it has no component g of ODIN. Train one with {command}."
        )
    tensor_names(path)
    tensors = load_file(str(path))
    head = ConfidenceHead(feature_width(opened.model))
    expected, stored = (
        {name: tuple(tensor.shape) for name, tensor in sorted(named.items())} for named in (head.linear.state_dict(), tensors)
    )
    if stored != expected:
        raise ModelLoadError(f"{path}: holds {stored}, the model needs {expected}. Copy the model folder again.")
    head.linear.load_state_dict({name: tensor.to(torch.float32) for name, tensor in tensors.items()})
    return head.to(opened.device).eval()


Detector: TypeAlias = MaxProbability | LikelihoodRatio | Odin
"""Detector whose numbers at each place of a sequence are higher in distribution.

Its `models` share a tokenizer; `aggregations` names the aggregations of places to a score, the default first.
"""
