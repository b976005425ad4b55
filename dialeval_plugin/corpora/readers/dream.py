"""Reader of DREAM (Sun et al. 2019): dialogues of English exams, `[[turns], [questions], id]`, as unlabelled text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialeval_plugin.core.dialogue import Dialogue, Turn, check_text, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json
from dialeval_plugin.corpora.corpus import Corpus
from dialeval_plugin.corpora.rows import spoken_turn, unique_ids


def read(path: Path) -> list[Dialogue]:
    """Read a file of DREAM; the questions about the dialogues are left out, and so are blank turns.

    `M: text` becomes speaker and text; the spelling, with commas for some apostrophes, stays as published.
    """
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: expected a JSON array of dialogues. Is this another file's layout?")
    read = [_read_row(row, f"{path}: dialogue {index}") for index, row in enumerate(rows)]
    ids = unique_ids([id for id, _ in read])
    return [Dialogue(id, turns) for id, (_, turns) in zip(ids, read, strict=True)]


def _read_row(row: Any, where: str) -> tuple[str, tuple[Turn, ...]]:
    if not (isinstance(row, list) and len(row) == 3 and isinstance(row[0], list)):
        raise InputError(f"{where}: expected [turns, questions, id], got {row!r:.80}. Is this another file's layout?")
    texts = [check_text(text, f"{where}: turn {index}") for index, text in enumerate(row[0])]
    return check_text(row[2], f"{where}: id"), tuple(spoken_turn(text) for text in texts if not is_blank(text))


CORPUS = Corpus(
    name="dream",
    layout="JSON array of `[turns, questions, id]`",
    recognises=lambda file: file.is_array and isinstance(file.value, list),
    read_dialogues=read,
)
