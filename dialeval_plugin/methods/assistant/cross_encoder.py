"""The cross-encoder of an evaluator of assistants: it reads a question and its answer as one text.

The model's own encoder reads them apart, so that its heads see only what a vector of each keeps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.files import checked_model_file
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import Runtime, RuntimeChoice
from dialeval_plugin.models.texts import numbered, text_ids

from .judging import AssistantInput
from .rules import lacks_only_full_stop

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

FOLDER = "cross_encoder"
"""Folder of the encoder in that of a model; a model need not have one."""
SETTINGS_FILE = "cross_encoder.json"


class CrossEncoderSettings(TypedDict):
    """Contents of `SETTINGS_FILE`; numbers of tokens include the special ones.

    Tokens that only this encoder does not read are in none of the scorer's counts.
    """

    max_question_tokens: Annotated[int, Ge(2)]
    max_tokens: Annotated[int, Ge(8)]
    weights: list[float]
    """Weights of the mean token vector, (width,)."""
    length: float
    """Weight of the logarithm of the answer's number of words: the encoder was trained so that length gains nothing, but people
    prefer the longer of two answers more often than not."""
    offset: float


class CrossEncoder:
    """Log odds that people prefer an answer to a typical one, see Nogueira and Cho 2019, "Passage Re-ranking with BERT".

    Args:
        folder: folder of the encoder, with its settings.
        choice: runtime of the encoder.

    Raises:
        ModelLoadError: the encoder or its settings are damaged.
    """

    def __init__(self, folder: Path, choice: RuntimeChoice) -> None:
        self._settings = checked_model_file(folder / SETTINGS_FILE, CrossEncoderSettings)
        self._runtime = _opened(folder, choice)
        self._weights = np.array(self._settings["weights"], dtype=np.float64)

    def log_odds(self, answers: Sequence[AssistantInput]) -> FloatArray:
        """Judge answers, (n,); each distinct pair of question and answer is read once."""
        distinct = numbered([(question, answer) for _, question, answer in answers])
        read = [(question, _unformatted(question, answer)) for question, answer in distinct]
        vectors = self._runtime.embed(joined(self._runtime.tokenizer, read, self._settings))
        lengths = np.log([max(1, len(answer.split())) for _, answer in read])
        values: FloatArray = vectors @ self._weights + self._settings["length"] * lengths + self._settings["offset"]
        return values[[distinct[question, answer] for _, question, answer in answers]]


_FORMAT = re.compile(r"\*\*|__|^#+ +", re.MULTILINE)


def _unformatted(question: str, answer: str) -> str:
    """Return an answer without bold type and headings, and with the full stop that a complete sentence lacks at its end.

    The encoder learned from a judge that likes the former, and from truncated answers, which lack the latter.
    """
    text = _FORMAT.sub("", answer).rstrip()
    return f"{text}." if lacks_only_full_stop(question, text) else text


def folder_in(model: Path) -> Path | None:
    """Return the folder of a model's cross-encoder; None if it has none."""
    return folder if (folder := model / FOLDER).is_dir() else None


def joined(tokenizer: Any, pairs: Sequence[tuple[str, str]], settings: CrossEncoderSettings) -> list[list[int]]:
    """Return the token ids of questions and answers, `[CLS] question [SEP] answer [SEP]`; long texts lose their middle."""
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    rows = []
    for asked, answered in zip(*(text_ids(tokenizer, list(texts)) for texts in zip(*pairs, strict=True)), strict=True):
        question = _without_middle(asked, settings["max_question_tokens"])
        answer = _without_middle(answered, settings["max_tokens"] - len(question) - 3)
        rows.append([first, *question, last, *answer, last])
    return rows


def _without_middle(ids: list[int], room: int) -> list[int]:
    return ids if len(ids) <= room else [*ids[: room // 2], *ids[len(ids) - (room - room // 2) :]]


def _opened(folder: Path, choice: RuntimeChoice) -> Runtime:
    def load(choice: RuntimeChoice) -> TorchRuntime:
        from dialeval_plugin.models.encoders import load_encoder
        from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime

        return TorchRuntime(load_encoder(str(folder), device=choice.device), dtype=choice.dtype)

    return open_runtime(folder, choice, load=load, calibration=mini.calibration_texts)
