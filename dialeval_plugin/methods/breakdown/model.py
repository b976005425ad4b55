"""What a trained language model's folder holds beside transformers' files.

It has what `ModelFolder` writes; `language_model.json` names the objective. `odin_head.safetensors` is the second head of
generalised ODIN. `breakdown.json` is the calibration of its breakdown scores (calibration.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from safetensors.torch import load_file
from typing_extensions import TypedDict

from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.models.folders import DefaultModel, ModelFolder, tensor_names
from dialeval_plugin.models.language_models import OpenedModel
from dialeval_plugin.models.tensors import save_weights

from .detectors import ConfidenceHead, feature_width

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
    expected, found = (
        {name: tuple(tensor.shape) for name, tensor in sorted(named.items())} for named in (head.linear.state_dict(), tensors)
    )
    if found != expected:
        raise ModelLoadError(f"{path}: holds {found}, the model needs {expected}. Copy the model folder again.")
    head.linear.load_state_dict({name: tensor.to(torch.float32) for name, tensor in tensors.items()})
    return head.to(opened.device).eval()
