"""Fits the two tables by which rules of the evaluator of assistants tell language from gibberish: which word follows which.

Classes of words are those of the table that there is. Good answers of the sets under Apache-2.0 are counted; of the texts
themselves nothing is kept. DIALEVAL_DATA_DIR names the folder of the public data.

    python -m reproduction.assistant.pairs_of_words
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dialeval_plugin.core.files import read_json, write_text
from dialeval_plugin.methods.assistant import rules
from reproduction.data import data_folder

LIMIT = 2.5
"""Of a logarithm to base e; written in tenths, as the character 73 places and so many tenths on in ASCII."""


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


def tables() -> dict[str, str]:
    """Return the texts of both files by their names."""
    answers = good_answers()
    words = table(map(rules.word_classes, answers), rules.WORD_CLASSES, 1.0)
    letters = table(map(rules.letter_classes, answers), "_abcdefghijklmnopqrstuvwxyz", 5.0)
    return {"word_pairs.txt": words, "letter_pairs.txt": letters}


if __name__ == "__main__":
    for name, text in tables().items():
        write_text(Path(rules.__file__).with_name(name), text)
