"""A linear classifier of n-grams for sentences that do not belong in an answer, such as refusals, insults and leaked prompts.

Patterns of rules find the wordings that somebody thought of; this notices others. It was fitted by
`reproduction.assistant.sentence_kinds` to sentences written for it, and to the sentences of good answers and of chats.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.arrays import FloatArray

KINDS = ("refusal", "reasoning", "user", "insult", "system", "retraction", "error")
N_BUCKETS = 1 << 15
"""Number of hash values of n-grams, each with a weight by kind."""
STEP = 0.5
"""Unit of the stored weights."""
LEAST_WORDS, _MOST_WORDS = 3, 60
"""Lowest number of words of a sentence that is judged, and number of words that are read."""
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[?!]")


def gram_buckets(sentence: str) -> npt.NDArray[np.intp]:
    """Return the buckets of a lower-case sentence's n-grams: of one to three words, and of two to four letters of a word."""
    words = _TOKEN.findall(sentence)[:_MOST_WORDS]
    grams = {" ".join(words[start : start + n]) for n in (1, 2, 3) for start in range(len(words) - n + 1)}
    for word in {f"_{word}_" for word in words}:
        grams.update(f"#{word[start : start + n]}" for n in (2, 3, 4) for start in range(len(word) - n + 1))
    return np.array(sorted({zlib.crc32(gram.encode()) % N_BUCKETS for gram in grams}), dtype=np.intp)


@lru_cache(maxsize=1)
def _weights() -> FloatArray:
    """Read the weights, (`N_BUCKETS` + 1, len(KINDS)); the last one of each kind is its offset, with its threshold."""
    weights: FloatArray = np.load(Path(__file__).with_name("sentence_kinds.npy")).astype(np.float64) * STEP
    return weights


@lru_cache(maxsize=1 << 12)
def kind_of(sentence: str) -> str | None:
    """Return the likeliest kind of a lower-case sentence; None if it may well be a good answer's."""
    if sentence.count(" ") < LEAST_WORDS - 1 or not len(buckets := gram_buckets(sentence)):
        return None
    values = _weights()[buckets].sum(axis=0) / np.sqrt(len(buckets)) + _weights()[-1]
    likeliest = int(values.argmax())
    return KINDS[likeliest] if values[likeliest] > 0 else None
