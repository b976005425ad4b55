"""Judgement of answers by the evaluator of assistants, independent of the runtime.

A model on disk is a sentence-transformers folder, whole or compact, with `HEAD_FILE` and the files of `ModelFolder`;
`assistant.json` has the configuration and the thresholds of the defects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Turn, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.context_texts import ResponseWindows, TextEncoder, numbered
from dialeval_plugin.models.folders import ModelFolder
from dialeval_plugin.models.runtimes.runtime import Runtime, VectorArray, VectorCache, unit

from .features import HEADS, Pooled, pooled, text_features

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


class AssistantJudge:
    """Reads answers with a runtime, and judges the pooled values.

    Args:
        runtime: encoder and `AssistantHead`.
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
