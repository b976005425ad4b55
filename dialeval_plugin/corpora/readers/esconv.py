"""Reader of ESConv (Liu et al. 2021): emotional support dialogues, one JSON object a line, as unlabelled text."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Turn, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, read_json_lines
from dialeval_plugin.corpora.corpus import Corpus
from dialeval_plugin.corpora.rows import text_field

_SPEAKERS = {"usr": "seeker", "sys": "supporter"}
"""The names that CGDIALOG+ gives them."""


def read(path: Path) -> list[Dialogue]:
    """Read a file of ESConv; strategies and survey scores, which may be missing, are left out, and so are blank turns.

    A dialogue is called after the file and its line, as `train_00012`: the file has no ids.
    """
    lines = read_json_lines(path)
    return [Dialogue(f"{path.stem}_{index:05d}", _turns(line)) for index, line in enumerate(lines)]


def _turns(line: Line) -> tuple[Turn, ...]:
    values = line.value.get("dialog")
    if not isinstance(values, list):
        raise InputError(f"{line.where}: dialog: expected a list of objects with 'speaker' and 'text', got {values!r:.80}.")
    turns = []
    for index, value in enumerate(values):
        where = f"{line.where}: dialog[{index}]"
        if not isinstance(value, dict):
            raise InputError(f"{where}: expected an object with 'speaker' and 'text', got {value!r:.80}.")
        turn = Line(where, value)
        speaker = text_field(turn, "speaker")
        if not is_blank(text := text_field(turn, "text")):
            turns.append(Turn(text.strip(), _SPEAKERS.get(speaker, speaker)))
    return tuple(turns)


CORPUS = Corpus(
    name="esconv",
    layout="JSON lines with `dialog`",
    recognises=lambda file: not file.is_array and file.has("dialog"),
    read_dialogues=read,
)
