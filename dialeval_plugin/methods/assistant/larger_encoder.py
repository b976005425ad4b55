"""Helpfulness judged with the vectors of a larger encoder, which the user provides: all-mpnet-base-v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from annotated_types import Ge
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.files import checked_model_file
from dialeval_plugin.core.signature import LARGER_ENCODER_FILE, SignatureValue, file_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.compact import original_hash
from dialeval_plugin.models.folders import resolve
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import Runtime, RuntimeChoice, VectorArray, unit

from .features import HELPFULNESS
from .judging import AnswerReader, AnswerVectors, AssistantConfig, AssistantInput

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

LARGER_ENCODER = "all-mpnet-base-v2"
REPOSITORY, REVISION = f"sentence-transformers/{LARGER_ENCODER}", "e8c3b32edf5434bc2275fc9bab85f82640a19130"
"""Its repository on the hub, and the revision that has the weights of the bundled heads."""


class Settings(TypedDict):
    """Contents of `LARGER_ENCODER_FILE`: the numbers of a head on an encoder, fitted beside a model's own heads.

    A defect costs its log odds above those of nearly all good answers; below them, log odds tell good answers apart that
    nobody minds.
    """

    encoder: str
    """SHA-256 of the encoder's weights."""
    vectors: dict[str, list[float]]
    """Weights of each of `ReadAnswers.blocks`, (width,)."""
    own: float
    """Weight of the log odds of helpfulness by the model's own head."""
    offset: float
    defects: dict[str, float]
    """Log odds by defect from which on it lowers the score."""
    defect_weight: Annotated[float, Ge(0)]


class LargerEncoder:
    """An encoder that reads answers beside a model's own, and the head for it in the model's folder.

    Args:
        model: folder of the model.
        encoder: folder or hub id of the encoder, or `LARGER_ENCODER`.
        choice: runtime of the encoder.
        config: the model's reading of texts.

    Raises:
        InputError: the model has no head for an encoder.
        MissingPrerequisite: the encoder is missing.
        ModelLoadError: the encoder is another one than that of the head.
    """

    def __init__(self, model: Path, encoder: str, choice: RuntimeChoice, config: AssistantConfig) -> None:
        path = model / LARGER_ENCODER_FILE
        if not path.is_file():
            raise InputError(f"assistant: encoder is {encoder!r}, but the model {model} has no {path.name}. Leave encoder out.")
        self.settings: Settings = checked_model_file(path, Settings)
        folder = find_encoder(encoder)
        if original_hash(folder) != (expected := self.settings["encoder"]):
            raise ModelLoadError(
                f"{folder}: holds other weights than the encoder of {path}, whose SHA-256 is {expected}. {_HOW_TO_GET}"
            )
        self.reader = AnswerReader(open_encoder(folder, choice), config)
        self._weights = {name: np.array(weights, dtype=np.float64) for name, weights in self.settings["vectors"].items()}
        self.signature_fields: dict[str, SignatureValue] = {"encoder": expected[:16], "encoder_head": file_hash(path)[:16]}

    def helpfulness(self, answers: Sequence[AssistantInput], log_odds: Mapping[str, FloatArray]) -> FloatArray:
        """Return log odds of helpfulness, (n,), from the answers and the log odds of the model's own heads."""
        found = ReadAnswers.of(self.reader.read(answers)[0]).blocks()
        by_vectors = np.sum([found[name] @ weights for name, weights in self._weights.items()], axis=0)
        helpfulness: FloatArray = by_vectors + self.settings["own"] * log_odds[HELPFULNESS] + self.settings["offset"]
        return helpfulness

    def penalty(self, log_odds: Mapping[str, FloatArray]) -> FloatArray:
        """Return what the defects take off the log odds of the main score, (n,)."""
        above = [np.maximum(0, log_odds[name] - limit) for name, limit in self.settings["defects"].items()]
        total: FloatArray = self.settings["defect_weight"] * np.sum(above, axis=0)
        return total


class ReadAnswers(NamedTuple):
    """What the head reads of n answers, each (n, width) and of unit length; zeros represent a missing question."""

    mean: VectorArray
    """Mean of the answer's parts."""
    question: VectorArray
    """Mean of the question's parts."""
    last: VectorArray
    """The answer's last part."""

    @classmethod
    def of(cls, read: Sequence[AnswerVectors]) -> ReadAnswers:
        """Pool the vectors of answers."""
        mean, question = (
            unit(np.stack(rows)) for rows in zip(*((one.parts.mean(0), one.question.mean(0)) for one in read), strict=True)
        )
        return cls(mean, question, np.stack([one.parts[-1] for one in read]))

    def blocks(self) -> dict[str, VectorArray]:
        """Return the inputs of the head by name, each (n, width)."""
        compared = {"product": self.mean * self.question, "difference": np.abs(self.mean - self.question)}
        return {"mean": self.mean, "last": self.last, **compared}


_HOW_TO_GET = (
    f"Get it once, by `hf download {REPOSITORY} --revision {REVISION} --include '*.json' --include model.safetensors "
    f"--local-dir {LARGER_ENCODER}`, and give encoder=./{LARGER_ENCODER}."
)


def find_encoder(encoder: str) -> Path:
    """Return the encoder's folder; raises as `resolve`."""
    if encoder != LARGER_ENCODER:
        return resolve(encoder)
    try:
        return resolve(REPOSITORY, revision=REVISION)
    except MissingPrerequisite:
        raise MissingPrerequisite(f"assistant: the hub did not give the encoder {encoder}. {_HOW_TO_GET}") from None


def open_encoder(folder: Path, choice: RuntimeChoice) -> Runtime:
    """Open the encoder in a folder, without a head."""

    def load(choice: RuntimeChoice) -> TorchRuntime:
        from dialeval_plugin.models.encoders import load_encoder  # The first to import torch.
        from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

        return TorchRuntime(load_encoder(str(folder), device=choice.device), dtype=choice.dtype)

    return open_runtime(folder, choice, load=load, calibration=mini.calibration_texts)
