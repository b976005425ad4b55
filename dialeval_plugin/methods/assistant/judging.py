"""Features and judgement of answers by the evaluator of assistants, independent of the runtime.

An answer's features for the heads are its vectors, its style, rules, and relations of its parts.
A model on disk is a sentence-transformers folder, whole or compact, with `HEAD_FILE` and the files of `ModelFolder`;
`assistant.json` has the configuration and the thresholds of the defects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Turn, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.folders import ModelFolder
from dialeval_plugin.models.runtimes.runtime import Runtime, VectorArray, VectorCache, unit
from dialeval_plugin.models.texts import ResponseWindows, TextEncoder, numbered

from .rules import ONLY_FULL_STOP, RULE_FEATURES, rule_features


class Defect(NamedTuple):
    """A possible defect of an answer."""

    name: str
    """Name of its column."""
    means: str
    """Description of such an answer."""
    kind: Literal["rule", "model"]
    """Evidence for it: "rule" uses features alone, "model" also vectors."""
    blame: str
    """Phrase in the explanation of an answer that has it."""


DEFECTS: tuple[Defect, ...] = (
    Defect("cut_off", "ends before it is complete", "rule", "stops in the middle"),
    Defect("looping", "says the same thing over and over", "rule", "repeats itself"),
    Defect("leaked", "shows tokens, templates, system prompts or reasoning", "rule", "shows what only the model should see"),
    Defect("second_voice", "goes on in the user's place", "rule", "speaks for the user too"),
    Defect("refusal", "declines to answer", "rule", "declines to answer"),
    Defect("boilerplate", "consists of set phrases that would fit any question", "model", "says nothing but set phrases"),
    Defect("wrong_language", "is in a language that the user neither writes nor asks for", "rule", "is in another language"),
    Defect("error_message", "is the message of an error, or the raw call of a tool", "rule", "is an error or a raw tool call"),
    Defect("off_topic", "is about something else", "model", "is about something else"),
    Defect("stale", "answers an earlier question", "model", "answers an earlier question"),
    Defect("echo", "gives the user's words back", "rule", "repeats the user's words"),
    Defect("contradiction", "contradicts itself or the context", "model", "contradicts itself or what was said"),
    Defect("gibberish", "is no language: words or letters in disorder", "model", "makes no sense as language"),
    Defect("insult", "insults the user", "model", "insults the user"),
)

HELPFULNESS, ASKED_REFUSAL = "helpfulness", "asked_refusal"
HEADS = (HELPFULNESS, *(defect.name for defect in DEFECTS), ASKED_REFUSAL)
"""Columns of the model's log odds."""
N_EVIDENCE = 8
"""Number of values that the head computes for each part of an answer; the maximum over parts counts, so that one bad part is
enough."""

STYLE_FEATURES = (
    *("log_words", "log_lines", "list_share", "has_list", "has_code", "bold", "has_heading", "distinct_words"),
    *("question_words", "log_sentence_words", "question_marks", "exclamation_marks", "first_person"),
    *("second_person", "digits", "word_letters", "ends_closed", "log_question_words", "ends_asking"),
)
VECTOR_FEATURES = (
    *("mean_cosine", "lowest_cosine", "highest_cosine", "last_cosine", "first_cosine", "context_cosine"),
    *("repeated_part", "concentration", "is_one_part"),
)
TEXT_FEATURES = (*STYLE_FEATURES, *RULE_FEATURES)
N_NUMBERS = len(TEXT_FEATURES) + len(VECTOR_FEATURES)

_WORD = re.compile(r"\w+")
_ITEM = re.compile(r"\s*(?:\d+[.)]|[-*•])\s")
_SENTENCE_END = re.compile(r"[.!?]\s+")
_NO_END_MARK = RULE_FEATURES.index("no_end_mark")
_MARKUP = (0.0, 0.0)
"""Bold type and headings, which do not count: judges like them, and people who read plain text do not see them. The bundled
weights have places for both."""
_LEAST_LETTERS = 4
"""Lowest number of letters of a question's word that an answer should contain."""


class Pooled(NamedTuple):
    """The head's input for an answer; vectors have unit length before they are averaged."""

    mean: VectorArray
    """Mean of the answer's parts, (width,)."""
    first: VectorArray
    last: VectorArray
    question: VectorArray
    """Mean of the parts of the last user turn; zeros if there is none."""
    context: VectorArray
    """Vector of the turns before it; zeros if there are none."""
    evidence: VectorArray
    """Maxima over the parts of the `N_EVIDENCE` values."""
    numbers: VectorArray
    """Features by `TEXT_FEATURES` and `VECTOR_FEATURES`, (N_NUMBERS,)."""


def pooled(context: VectorArray, question: VectorArray, parts: VectorArray, evidence: VectorArray, texts: FloatArray) -> Pooled:
    """Pool the vectors and features of an answer.

    Args:
        context: unit vector of the turns before the question, (width,), or zeros.
        question: unit vectors of the question's parts, (k, width), or zeros.
        parts: unit vectors of the answer's parts, (m, width).
        evidence: the head's values for each part, (m, `N_EVIDENCE`).
        texts: the answer's `text_features`.
    """
    mean, mean_question = parts.mean(0), question.mean(0)
    cosines, alike = parts @ unit(mean_question[None])[0], np.triu(parts @ parts.T, 1)
    vectors = [
        cosines.mean(),
        cosines.min(),
        cosines.max(),
        cosines[-1],
        cosines[0],
        unit(mean[None])[0] @ context,
        alike.max(),
        np.linalg.norm(mean),
        len(parts) == 1,
    ]
    numbers = np.array([*texts, *vectors], dtype=np.float32)
    return Pooled(mean, parts[0], parts[-1], mean_question, context, evidence.max(0), numbers)


def text_features(before: Sequence[str], question: str, answer: str) -> FloatArray:
    """Return the style features and rule features of an answer, by `TEXT_FEATURES`."""
    context = (*before, question) if question else tuple(before)
    rules = rule_features(context, answer)
    return np.array([*_style(question, answer, lacks_only_full_stop=rules[_NO_END_MARK] == ONLY_FULL_STOP), *rules])


def _style(question: str, answer: str, *, lacks_only_full_stop: bool) -> list[float]:
    """Style of an answer, by `STYLE_FEATURES`: shares, logarithms of counts, and 0 or 1."""
    words = _WORD.findall(answer.lower())
    n = max(1, len(words))
    lines = [line for line in answer.split("\n") if line.strip()]
    question_words = _WORD.findall(question.lower())
    wanted, answer_words = {word for word in question_words if len(word) >= _LEAST_LETTERS}, set(words)
    sentences = [part for part in _SENTENCE_END.split(answer) if part.strip()]
    n_items = sum(_ITEM.match(line) is not None for line in lines)
    return [
        math.log(n),
        math.log1p(len(lines)),
        n_items / max(1, len(lines)),
        float(n_items > 0),
        float("```" in answer),
        *_MARKUP,
        len(answer_words) / n**0.8,
        len(wanted & answer_words) / max(1, len(wanted)),
        math.log1p(n / max(1, len(sentences))),
        10 * answer.count("?") / n,
        10 * answer.count("!") / n,
        10 * sum(word in ("i", "my", "me") for word in words) / n,
        10 * sum(word in ("you", "your") for word in words) / n,
        10 * sum(map(str.isdigit, answer)) / max(1, len(answer)),
        sum(map(len, words)) / n / 5,
        float(answer.rstrip()[-1:] in tuple('.!?:)`"') or lacks_only_full_stop),
        math.log1p(len(question_words)),
        float("?" in answer[-150:]),
    ]


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
