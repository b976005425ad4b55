"""Reader of EmpatheticDialogues (Rashkin et al. 2019) as one CSV file an emotion: `Dialog_ID,Type,Actor,Text`.

The first row of a conversation has the type `situation` and tells what happened to the speaker; the others have the type
`utterance` and the actor `speaker` or `listener`. Texts with commas are quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Turn
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line
from dialeval_plugin.corpora.corpus import Corpus, GroundedDialogue
from dialeval_plugin.corpora.rows import read_csv, text_field, unique_ids, visible_turns

COLUMNS = ("Dialog_ID", "Type", "Actor", "Text")
SPEAKER, LISTENER = "speaker", "listener"


def read(path: Path) -> list[GroundedDialogue]:
    """Read the conversations of a file; the situation is the speaker's fact and no turn.

    Texts lose the white space around them; blank turns are left out.
    """
    rows = read_csv(path)
    if missing := [name for name in COLUMNS if name not in rows[0].value]:
        raise InputError(f"{path}:1: has no column {missing[0]!r}. Is this another file's layout?")
    conversations = [list(group) for _, group in groupby(rows, key=lambda row: row.value["Dialog_ID"])]
    ids = unique_ids([group[0].value["Dialog_ID"] for group in conversations])
    return [_grounded(id, group) for id, group in zip(ids, conversations, strict=True)]


def _grounded(id: str, rows: Sequence[Line]) -> GroundedDialogue:
    first, *others = rows
    if first.value["Type"] != "situation":
        raise InputError(f"{first.where}: the conversation {id!r} begins without its situation. Were rows sorted or left out?")
    turns = visible_turns(Turn(text_field(row, "Text").strip(), _actor(row)) for row in others)
    return GroundedDialogue(Dialogue(id, turns), {SPEAKER: (text_field(first, "Text").strip(),)})


def _actor(row: Line) -> str:
    kind, actor = text_field(row, "Type"), text_field(row, "Actor")
    if kind != "utterance" or actor not in (SPEAKER, LISTENER):
        raise InputError(
            f"{row.where}: expected an utterance of {SPEAKER} or {LISTENER}, got the type {kind!r} and the actor {actor!r}."
        )
    return actor


CORPUS = Corpus(
    name="empathetic_dialogues",
    layout="CSV an emotion",
    recognises=lambda file: file.text.startswith("Dialog_ID,"),
    read_dialogues=read,
)
