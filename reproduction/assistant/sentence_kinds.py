"""Fits the classifier of sentences that do not belong in an answer.

Sentences of each kind, and good ones that come near to them, were written for it (`sentences.jsonl`). Others are those of good
answers, of all that `assistant-open` learns from, and of the chats that `general-open` learns from; of these texts nothing is
kept.
DIALEVAL_DATA_DIR names the folder of the public data.

    python -m reproduction.assistant.sentence_kinds
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from dialeval_plugin.core.files import read_json_lines
from dialeval_plugin.corpora.registry import read_dialogues
from dialeval_plugin.methods.assistant import rules
from dialeval_plugin.methods.assistant.sentence_kinds import KINDS, LEAST_WORDS, N_BUCKETS, STEP, gram_buckets
from reproduction.assistant.sources import answers, preferences
from reproduction.data import data_folder
from reproduction.pretrained.build import RECIPES

SENTENCES = Path(__file__).with_name("sentences.jsonl")
GOOD = "good"
INVERSE_PENALTY = 100.0
OF_A_FILE = 4000
"""Most sentences of a file of chats."""
HELD_OUT, FALSE_ALARMS = 3, 0.001
"""One of so many good sentences is held out of the training, and so large a share of these may be of a kind."""
MOST_STEPS = 46
"""Largest weight that is stored, in `STEP`."""
_REFUSAL = re.compile(
    r"\b(?:as an AI|language model|sorry|apologi[sz]e|unfortunately|I (?:can ?not|can't|don't have))", re.IGNORECASE
)


def matrix(sentences: Sequence[str]) -> csr_matrix:
    """Return the n-grams of sentences as rows of unit length."""
    rows = [gram_buckets(sentence.lower().replace("’", "'")) for sentence in sentences]
    values = [np.full(len(row), len(row) ** -0.5) for row in rows]
    starts = np.cumsum([0, *map(len, rows)])
    return csr_matrix((np.concatenate(values), np.concatenate(rows), starts), shape=(len(rows), N_BUCKETS))


def good_sentences() -> list[str]:
    """Return sentences of good answers, without refusals, of which people prefer some, and of chats."""
    known: list[dict[str, Any]] = [row for row in answers(only_open=True) if not row.get("defects", {}).get("insult")]
    texts = sorted({row["response"] for row in (*preferences(only_open=True), *known)})
    sentences = [one for text in texts for one in rules.split_sentences(text) if not _REFUSAL.search(one)]
    for _, file in RECIPES["general-open"].files:
        chats = read_dialogues(data_folder() / file.rpartition("=")[2])
        said = sorted({turn.text for chat in chats for turn in chat.turns})
        of_chats = sorted({one for text in said for one in rules.split_sentences(text)})
        sentences += random.Random(file).sample(of_chats, min(len(of_chats), OF_A_FILE))
    return [one for one in dict.fromkeys(sentences) if len(gram_buckets(one.lower()))]


def fitted() -> npt.NDArray[np.int8]:
    """Return the weights in `STEP`, (`N_BUCKETS` + 1, len(KINDS)), as they are stored.

    The offset of a kind is such that its log odds are above 0 in `FALSE_ALARMS` of the good sentences held out.
    """
    written = [line.value for line in read_json_lines(SENTENCES)]
    good = good_sentences()
    learned = [sentence for place, sentence in enumerate(good) if place % HELD_OUT]
    texts, labels = [*(row["text"] for row in written), *learned], [*(row["kind"] for row in written), *[GOOD] * len(learned)]
    model = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000).fit(matrix(texts), labels)
    places = [list(model.classes_).index(name) for name in (*KINDS, GOOD)]
    weights = np.rint(np.clip((model.coef_[places[:-1]] - model.coef_[places[-1]]) / STEP, -MOST_STEPS, MOST_STEPS))
    held_out = matrix([sentence for sentence in good[::HELD_OUT] if sentence.count(" ") >= LEAST_WORDS - 1]) @ weights.T
    offsets = np.clip(-np.ceil(np.quantile(held_out, 1 - FALSE_ALARMS, axis=0)), -MOST_STEPS, MOST_STEPS)
    return np.ascontiguousarray(np.c_[weights, offsets].T.astype(np.int8))


if __name__ == "__main__":
    np.save(Path(rules.__file__).with_name("sentence_kinds.npy"), fitted())
