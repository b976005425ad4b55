"""Features of an answer for the heads of `assistant`, in addition to its vectors: style, rules, and relations of its parts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.models.runtimes.runtime import VectorArray, unit

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
    "log_words",
    "log_lines",
    "list_share",
    "has_list",
    "has_code",
    "bold",
    "has_heading",
    "distinct_words",
    "question_words",
    "log_sentence_words",
    "question_marks",
    "exclamation_marks",
    "first_person",
    "second_person",
    "digits",
    "word_letters",
    "ends_closed",
    "log_question_words",
    "ends_asking",
)
VECTOR_FEATURES = (
    "mean_cosine",
    "lowest_cosine",
    "highest_cosine",
    "last_cosine",
    "first_cosine",
    "context_cosine",
    "repeated_part",
    "concentration",
    "is_one_part",
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
