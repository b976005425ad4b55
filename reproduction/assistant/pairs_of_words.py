"""Fits the tables of words of the evaluator of assistants: which word follows which, and which words end a sentence.

By the first, rules tell language from gibberish, by the second a complete sentence without full stop from a truncated one.
Classes of words are those of the table that there is. Good answers of the sets under Apache-2.0 are counted, for the ends of
sentences all that `assistant-open` learns from; of the texts themselves nothing is kept. DIALEVAL_DATA_DIR names the folder of
the public data.

    python -m reproduction.assistant.pairs_of_words
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.methods.assistant import rules
from dialeval_plugin.models.logistic import logistic_regression
from reproduction.assistant.sources import answers, preferences
from reproduction.data import data_folder

LIMIT = 2.5
"""Largest absolute value of a natural logarithm, which is written in tenths: as the ASCII character 73 + tenths."""
LEAST_WORDS, LEAST_COUNT = 6, 10
"""Lowest numbers of words of a counted sentence, and of occurrences of a word with log odds of its own."""
LOWEST = -6.0
"""Lowest log odds of a word; half units are told apart."""


def good_answers() -> list[str]:
    """Answers that people or their makers hold to be good."""
    folder = data_folder() / "assistant"
    instructions, chosen, rated = (read_json(folder / f"{name}_en_demo.json") for name in ("alpaca", "dpo", "kto"))
    return [
        *(row["output"] for row in instructions),
        *(row["chosen"]["value"] for row in chosen),
        *(row["messages"][-1]["content"] for row in rated if row["label"]),
    ]


def table(sequences: Iterable[Sequence[int] | npt.NDArray[np.intp]], names: Sequence[str], smoothing: float) -> str:
    """Return lines of a name and how much more often, than by chance, each class follows it."""
    counts = np.zeros((len(names), len(names)))
    for places in sequences:
        classes = np.asarray(places, dtype=np.intp)
        np.add.at(counts, (classes[:-1], classes[1:]), 1)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    logarithms = np.clip(np.log((counts + smoothing) / (expected + smoothing)), -LIMIT, LIMIT)
    rows = ("".join(chr(73 + round(10 * value)) for value in row) for row in logarithms)
    return "".join(f"{name} {row}\n" for name, row in zip(names, rows, strict=True))


def complete_sentences(text: str) -> list[list[str]]:
    """Return the words of a text's sentences that end with a full stop and have at least `LEAST_WORDS` words."""
    ended = [one for one in rules.split_sentences(text) if one.endswith(".")]
    return [words for words in map(rules.lower_words, ended) if len(words) >= LEAST_WORDS]


def truncated(words: Sequence[str], rng: random.Random) -> list[str]:
    """Return a sentence without its last one to four words or cut anywhere, three in ten times within a word."""
    n_lost = rng.randint(1, 4) if rng.random() < 0.5 else rng.randint(1, len(words) - 2)
    *before, last = words[: max(2, len(words) - n_lost)]
    is_cut = rng.random() < 0.3 and len(last) > 3
    return [*before, last[: -rng.randint(1, len(last) - 2)] if is_cut else last]


def endings() -> str:
    """Return the text of endings.json.

    It has the log odds that a sentence ends with a word, of frequent words and of word classes, and the weights of
    `rules.ending_features`, the intercept last, for the log odds that a sentence without end mark is truncated.
    """
    rows = (*preferences(only_open=True), *(row for row in answers(only_open=True) if "defects" not in row))
    texts = sorted({row["response"] for row in rows})
    by_text = [complete_sentences(text) for text in texts]
    sentences = [words for of_text in by_text for words in of_text]
    counts = Counter(word for words in sentences for word in words)
    ends = Counter(words[-1] for words in sentences)
    share = len(sentences) / counts.total()
    of_class: Counter[str] = Counter()
    ends_of_class: Counter[str] = Counter()
    for word, count in counts.items():
        name = rules.WORD_CLASSES[rules.word_class(word)]
        of_class[name] += count
        ends_of_class[name] += ends[word]
    shares = {name: (ends_of_class[name] + 5 * share) / (count + 5) for name, count in of_class.items()}
    for word, count in counts.items():
        if count >= LEAST_COUNT:
            prior = shares[rules.WORD_CLASSES[rules.word_class(word)]]
            shares[word] = (ends[word] + 8 * prior) / (count + 8)
    log_odds = {word: max(LOWEST, round(2 * math.log(one / (1 - one))) / 2) for word, one in shares.items()}

    rng, features, is_truncated = random.Random(1), [], []
    for of_text in by_text:
        for words in of_text[-3:]:
            for shown in (words, truncated(words, rng)):
                others = {word for other in of_text if other is not words for word in other}.union(shown[:-1])
                features.append((*rules.ending_features(shown, others, log_odds), 1.0))
                is_truncated.append(float(shown is not words))
    weights = logistic_regression(np.array(features), np.array(is_truncated), start=np.zeros(5))
    levels: dict[str, list[str]] = defaultdict(list)
    for word, level in sorted(log_odds.items(), key=lambda pair: (pair[1], pair[0])):
        levels[str(level)].append(word)
    fitted = {
        "weights": [round(float(weight), 2) for weight in weights],
        "log_odds": {level: " ".join(words) for level, words in levels.items()},
    }
    return to_json(fitted, indent=1) + "\n"


def tables() -> dict[str, str]:
    """Return the texts of the files by their names."""
    answers = good_answers()
    words = table(map(rules.word_classes, answers), rules.WORD_CLASSES, 1.0)
    letters = table(map(rules.letter_classes, answers), "_abcdefghijklmnopqrstuvwxyz", 5.0)
    return {"word_pairs.txt": words, "letter_pairs.txt": letters, "endings.json": endings()}


if __name__ == "__main__":
    for name, text in tables().items():
        write_text(Path(rules.__file__).with_name(name), text)
