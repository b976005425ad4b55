"""Reads DailyDialog (Li et al. 2017): one dialogue a line, `__eou__` after each utterance, no speakers.

The files of acts and emotions beside the dialogues are not read. Texts are kept as published, with blanks before punctuation.
"""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Turn, check_text, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_text
from dialeval_plugin.corpora.corpus import Corpus

END = "__eou__"


def read(path: Path) -> list[Dialogue]:
    """Read the dialogues of a file, duplicates included, in its order."""
    dialogues: list[Dialogue] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if is_blank(line):
            continue
        *utterances, rest = check_text(line, f"{path}:{number}").split(END)
        if not is_blank(rest):
            raise InputError(
                f"{path}:{number}: expected {END} after each utterance, found {rest[-40:]!r}. Was the file cut off?"
            )
        turns = tuple(Turn(text.strip()) for text in utterances if not is_blank(text))
        dialogues.append(Dialogue(f"{path.stem}_{len(dialogues):05d}", turns))
    if not dialogues:
        raise InputError(f"{path}: is empty, expected one dialogue a line.")
    return dialogues


CORPUS = Corpus(
    name="dailydialog",
    layout="a line a dialogue, `__eou__` after each utterance",
    recognises=lambda file: file.value is None and END in file.text,
    read_dialogues=read,
)
