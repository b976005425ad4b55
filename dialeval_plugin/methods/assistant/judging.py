"""Judgement of answers by the evaluator of assistants, independent of the runtime, also with a larger encoder.

A model on disk is a sentence-transformers folder, whole or compact, with `HEAD_FILE` and the files of `ModelFolder`;
`assistant.json` has the configuration and the thresholds of the defects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Turn, is_blank
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, ModelLoadError
from dialeval_plugin.core.files import checked_model_file
from dialeval_plugin.core.signature import LARGER_ENCODER_FILE, SignatureValue, file_hash
from dialeval_plugin.corpora import mini
from dialeval_plugin.models.compact import original_hash
from dialeval_plugin.models.context_texts import ResponseWindows, TextEncoder, numbered
from dialeval_plugin.models.folders import ModelFolder, resolve
from dialeval_plugin.models.runtimes.opening import open_runtime
from dialeval_plugin.models.runtimes.runtime import Runtime, RuntimeChoice, VectorArray, VectorCache, unit

from .features import HEADS, HELPFULNESS, Pooled, pooled, text_features

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.torch_runtime import TorchRuntime


HEAD_FILE = "assistant_head.safetensors"

TOKENS_CUT = ("context_tokens_cut", "response_tokens_cut")

_Tokens: TypeAlias = Annotated[int, Ge(3)]
_Parts: TypeAlias = Annotated[int, Ge(2)]

AssistantInput: TypeAlias = tuple[tuple[str, ...], str, str]
"""The other turns before an answer, the question and the answer; the question is empty if there is none."""


@dataclass(frozen=True, slots=True)
class AssistantConfig:
    """Settings that affect a score, in addition to the weights; numbers of tokens include the special ones.

    Attributes:
        max_context_tokens: length of a part of the question, and of the context of all other turns, which keeps its end.
        max_question_parts: number of parts of a question that are read; of a longer one the first and the last.
        max_response_tokens: length of a part of an answer.
        max_response_parts: number of parts of an answer that are read; of a longer one the first and the last.
    """

    recipe: str = "assistant"
    max_context_tokens: _Tokens = 96
    max_question_parts: _Parts = 4
    max_response_tokens: _Tokens = 64
    max_response_parts: _Parts = 24


class AssistantJudgement(NamedTuple):
    """The model's judgement of n answers."""

    log_odds: dict[str, FloatArray]
    """Calibrated log odds by `HEADS`, each of shape (n,)."""
    tokens_cut: dict[str, FloatArray]
    """Numbers of tokens not read before the answer and in it, by `TOKENS_CUT`, each of shape (n,)."""


class AnswerVectors(NamedTuple):
    """An encoder's vectors of an answer's texts, of unit length; zeros represent missing texts."""

    context: VectorArray
    """Vector of the turns before the question, (width,)."""
    question: VectorArray
    """Vectors of the question's parts, (k, width)."""
    parts: VectorArray
    """Vectors of the answer's parts, (m, width)."""


class AnswerReader:
    """Tokenises texts and embeds their parts with a runtime.

    Args:
        runtime: encoder, and in an `AssistantJudge` the `AssistantHead`.
        config: settings of the model.

    Raises:
        InputError: the encoder reads fewer tokens than a part has.
    """

    def __init__(self, runtime: Runtime, config: AssistantConfig) -> None:
        self.config = config
        self.runtime = runtime
        tokens = config.max_context_tokens
        if (most := max(tokens, config.max_response_tokens)) > runtime.longest:
            raise InputError(
                f"assistant: {most} tokens do not fit into the encoder's {runtime.longest}. "
                "Choose another encoder, or fewer tokens."
            )
        self._before = TextEncoder(runtime.tokenizer, "plain", tokens, tokens)
        self._answers = TextEncoder(runtime.tokenizer, "plain", tokens, config.max_response_tokens)
        self.contexts = VectorCache(runtime)

    def read(self, answers: Sequence[AssistantInput]) -> tuple[list[AnswerVectors], dict[str, FloatArray]]:
        """Return the vectors of answers, and by `TOKENS_CUT` the numbers of unread tokens.

        Each distinct text or part of a text is embedded once, all in one pass.
        """
        context_of, question_of, answer_of = (numbered(texts) for texts in zip(*answers, strict=True))
        contexts = self._before.contexts(list(context_of))
        questions = self._before.response_windows(list(question_of), self.config.max_question_parts, keep_end=True)
        responses = self._answers.response_windows(list(answer_of), self.config.max_response_parts, keep_end=True)
        of_questions, of_responses = ([tuple(ids) for text in texts for ids in text.parts] for texts in (questions, responses))
        distinct = numbered(of_responses)
        shared = [*(text.ids for text in contexts), *of_questions]
        vectors, parts = map(unit, self.contexts.embed(shared, list(distinct)))
        in_context, in_question = np.split(vectors, [len(contexts)])
        by_question = _parted(in_question, questions)
        by_response = _parted(parts[[distinct[ids] for ids in of_responses]], responses)
        read = [
            AnswerVectors(
                in_context[context_of[turns]] * bool(turns),
                by_question[question_of[question]] * bool(question),
                by_response[answer_of[answer]],
            )
            for turns, question, answer in answers
        ]
        n_cut = [
            (
                contexts[context_of[turns]].n_cut + questions[question_of[question]].n_cut,
                responses[answer_of[answer]].n_cut,
            )
            for turns, question, answer in answers
        ]
        return read, dict(zip(TOKENS_CUT, np.array(n_cut, dtype=np.float64).T, strict=True))


class AssistantJudge(AnswerReader):
    """Reads answers and judges the pooled values."""

    def judge(self, answers: Sequence[AssistantInput]) -> AssistantJudgement:
        """Judge answers by their `pooled` values."""
        read, tokens_cut = self.pooled(answers)
        (log_odds,) = self.runtime.run("of_answers", *map(np.stack, zip(*read, strict=True)))
        return AssistantJudgement(dict(zip(HEADS, log_odds.T.astype(np.float64), strict=True)), tokens_cut)

    def pooled(self, answers: Sequence[AssistantInput]) -> tuple[list[Pooled], dict[str, FloatArray]]:
        """Return the heads' input for answers, and by `TOKENS_CUT` the numbers of unread tokens."""
        of_answers, tokens_cut = self.read(answers)
        beside = np.concatenate([np.repeat(own.mean(0)[None], len(read), axis=0) for _, own, read in of_answers])
        (evidence,) = self.runtime.run("of_parts", np.concatenate([read for *_, read in of_answers]), beside)
        by_answer = np.split(evidence, np.cumsum([len(read) for *_, read in of_answers])[:-1])
        inputs = [
            pooled(*own, of_parts, text_features(*answer))
            for own, of_parts, answer in zip(of_answers, by_answer, answers, strict=True)
        ]
        return inputs, tokens_cut


def _parted(values: VectorArray, texts: Sequence[ResponseWindows]) -> list[VectorArray]:
    """Split the rows of all parts by text, each (parts, width)."""
    return np.split(values, np.cumsum([len(text.parts) for text in texts])[:-1])


def read_answer(turns: Sequence[Turn], answer: Turn) -> AssistantInput:
    """Return the input for an answer after turns; its question is the last turn of another speaker.

    If no other speaker is known, it is the last turn. Turns without a visible character are left out.
    """
    visible = [turn for turn in turns if not is_blank(turn.text)]
    if not visible:
        return (), "", answer.text
    places = [place for place, turn in enumerate(visible) if answer.speaker is None or turn.speaker != answer.speaker]
    question = visible.pop(places[-1] if places else -1)
    return tuple(turn.text for turn in visible), question.text, answer.text


class _Settings(TypedDict):
    """Fields of assistant.json that affect a score."""

    config: AssistantConfig
    thresholds: dict[str, float]


ASSISTANT_FOLDER = ModelFolder("assistant.json", _Settings, 1, "a trained evaluator of assistants", "dialeval train assistant")


LARGER_ENCODER = "all-mpnet-base-v2"
"""The encoder that a user provides for `LargerEncoder`."""
REPOSITORY, REVISION = f"sentence-transformers/{LARGER_ENCODER}", "e8c3b32edf5434bc2275fc9bab85f82640a19130"
"""Its repository on the hub, and the revision that has the weights of the bundled heads."""


class LargerEncoderSettings(TypedDict):
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
        self.settings: LargerEncoderSettings = checked_model_file(path, LargerEncoderSettings)
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
