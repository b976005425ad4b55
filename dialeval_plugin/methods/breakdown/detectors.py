"""The out-of-distribution detectors of chapter 7, and the reading of responses that all of them share."""

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
    """Positions in a sequence of the answers about a response: the place before a token predicts it."""

    start: int
    end: int

    @property
    def response(self) -> slice:
        """The places that predict the response's tokens and the end of its turn."""
        return slice(self.start, self.end)

    @property
    def all(self) -> slice:
        """Every place from the first of the context to the one behind the end of the turn, which predicts what follows it."""
        return slice(0, self.end + 1)


class DetectorReading(NamedTuple):
    """A detector's scores of a response."""

    scores: Mapping[str, float]
    """Aggregation to score, the higher the more the response belongs to the distribution."""
    n_tokens: int
    """Tokens of the response, the end of its turn included."""
    is_cut: bool
    """Whether a part of its context did not fit into the window."""


def read_responses(
    detector: Detector, dialogues: Sequence[Sequence[str]], *, context: causal.Context, max_tokens: int
) -> list[DetectorReading | Unscored]:
    """Let a detector read the last turn of each dialogue after the turns before it, or after the last of them (context "pair").

    Turns are texts, none blank, two at least. Responses of one dialogue are read in one pass where their contexts begin alike.
    What exceeds `max_tokens` is cut at the beginning of the context.
    """
    opened = detector.models[0]
    prefix, end = causal.layout_tokens(opened, "separated")
    pieces = causal.turn_pieces(opened, dialogues, end, last_only=True)
    passes, refused = causal.all_passes(pieces, prefix, max_tokens, context=context, last_only=True)
    # A text of which the tokenizer leaves nothing has no pass.
    no_token = Unscored(Reason.EMPTY_INPUT, "the tokenizer leaves nothing of the response, or of the turns before it")
    readings: list[DetectorReading | Unscored] = [refused.get(number, no_token) for number in range(len(dialogues))]
    with torch.inference_mode():
        for span, row, answers in causal.read_spans(opened, passes, detector.answers):
            scores = detector.scores(answers[:, row], TokenPositions(span.start - 1, span.end - 1))
            readings[span.dialogue] = DetectorReading(scores, span.end - span.start, span.is_cut)
    return readings


class MaxProbability:
    """Maximum class probability (section 7.2.1; Hendrycks and Gimpel 2017): how sure a language model is of some token.

    Equation 7.1 names a joint probability, but what the text describes and the published code stores is the likeliest token's
    probability at each place. How places become a score is not published: the mean over the response is this project's choice.
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


class LikelihoodRatio:
    """Likelihood ratio (section 7.2.3; Ren et al. 2019): a response's tokens under the semantic and the background model.

    The models share a tokenizer; `background` was trained on perturbed input. Equation 7.9 has one token; as in Ren et al. the
    score of a response is the sum over its tokens.
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
        """Return differences of log probabilities of next tokens and of the last entry, of shape (2, rows, places)."""
        ids = causal.padded_ids(self.models[0], rows)
        semantic, background = (_log_probabilities(opened, ids) for opened in self.models)
        return causal.as_array((semantic - background).cpu())

    @staticmethod
    def scores(answers: FloatArray, places: TokenPositions) -> Mapping[str, float]:
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


def decomposed_logits(h: Tensor, g: Tensor) -> Tensor:
    """Return f = h / g (equation 7.6) from h of shape (..., vocabulary) and g of shape (...,)."""
    return h / g[..., None]


class ConfidenceHead(nn.Module):
    """The second head: one linear layer of a model's features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return g (equation 7.7) of shape (...,) from features of shape (..., width)."""
        return torch.sigmoid(features @ self.linear.weight.T + self.linear.bias)[..., 0]


def feature_width(model: Any) -> int:
    """Return the width of what the model's head reads."""
    return int(model.get_output_embeddings().weight.shape[1])


@contextmanager
def features_of(model: Any) -> Iterator[list[Tensor]]:
    """Collect what the model's head reads in each forward pass, of shape (rows, places, width)."""
    features: list[Tensor] = []
    handle = model.get_output_embeddings().register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
    try:
        yield features
    finally:
        handle.remove()


@contextmanager
def decomposed(model: Any, head: ConfidenceHead) -> Iterator[None]:
    """Make the model answer with h / g: `head` becomes a part of it, so that it is trained and stored with it."""
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

    Its logits are divided into h, which the language model's own head gives, and g = sigmoid(w f + b), which a second head
    gives of the same features f. The logits of training are h / g; the score is the likeliest token's h (S_DeConf), or g. As
    in the published code h has the model's head as it is (tied, without a bias in GPT-2) and g no batch normalisation; equation
    7.5, which equates a logit to a probability, is read as the softmax over h / g.
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
        """Return the score of a response, whose answers stand at `places`: "mean" over it, "all" over the context too."""
        (values,) = answers
        return {"mean": float(values[places.response].mean()), "all": float(values[places.all].mean())}


# What a trained language model's folder has beside transformers' files. `ModelFolder`'s `language_model.json` names the
# objective; `odin_head.safetensors` is the second head of generalised ODIN, `breakdown.json` the calibration (calibration.py).

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
"""Which model is meant where none is named, by its objective. The language model is also that of `dialogue_likelihood`."""


class _Fields(TypedDict):
    """The fields of language_model.json beside the record."""

    objective: str


LANGUAGE_MODEL_FOLDER = ModelFolder(
    "language_model.json", _Fields, 2, "a language model of dialogues", "dialeval train language-model"
)


def save_head(head: ConfidenceHead, folder: Path) -> None:
    """Write ODIN's second head."""
    save_weights(folder / HEAD_FILE, head.linear.state_dict())


def load_head(opened: OpenedModel) -> ConfidenceHead:
    """Open the second head of a model that was trained with the objective odin.

    Raises:
        ModelLoadError: there is none, it is damaged, or it belongs to another model.
    """
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
"""Gives every place of a sequence numbers that are the higher, the more the model is at home.

`models` are what it reads with, all with one tokenizer; `aggregations` the ways from places to a score, the default first.
"""
