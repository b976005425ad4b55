"""Reader of ESConv (Liu et al. 2021): emotional support dialogues, one JSON object a line, as unlabelled text."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.core.files import Line, read_json_lines
from dialeval_plugin.corpora.corpus import Corpus
from dialeval_plugin.corpora.rows import turns_field, visible_turns

_SPEAKERS = {"usr": "seeker", "sys": "supporter"}
"""The names that CGDIALOG+ gives them."""


def read(path: Path) -> list[Dialogue]:
    """Read a file of ESConv; strategies and survey scores, which may be missing, are left out, and so are blank turns.

    A dialogue is called after the file and its line, as `train_00012`: the file has no ids.
    """
    lines = read_json_lines(path)
    return [Dialogue(f"{path.stem}_{index:05d}", _turns(line)) for index, line in enumerate(lines)]


def _turns(line: Line) -> tuple[Turn, ...]:
    turns = visible_turns(turns_field(line, "dialog"))
    return tuple(Turn(turn.text, _SPEAKERS.get(turn.speaker or "", turn.speaker)) for turn in turns)


CORPUS = Corpus(
    name="esconv",
    layout="JSON lines with `dialog`",
    recognises=lambda file: not file.is_array and file.has("dialog"),
    read_dialogues=read,
)
