"""Reader of PersonaChat (Zhang et al. 2018) in ParlAI's text layout, as ConvAI2 (Dinan et al. 2020) published it.

A line is a number, a blank and a text; the number 1 begins a dialogue. The first lines are `your persona: ...` (and, in the
files of both sides, `partner's persona: ...`). The others hold two turns with a tab between: the partner's, and the one of the
speaker whom `your persona` describes. Some files have a reward and candidates in further columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from dialeval_plugin.core.dialogue import Dialogue, Turn, check_text, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_text
from dialeval_plugin.corpora.corpus import Corpus, GroundedDialogue

YOU, PARTNER = "you", "partner"
"""The speakers, whom the file tells apart by place only; named as in its persona lines."""
SILENCE = "__SILENCE__"
"""Stands for the partner's turn where the other one begins."""

_NUMBERED = re.compile(r"([1-9]\d{0,8}) (.*)")
_FIRST_LINE = re.compile(r"1 (your persona:|partner's persona:|[^\n]*\t)")
_PERSONA = re.compile(r"(?:(your)|partner's) persona:(.*)")


def read(path: Path) -> list[GroundedDialogue]:
    """Read a file; the persona lines are the facts of the speaker whom they describe.

    Texts stay as published, in lower case with blanks before punctuation; blank turns, `__SILENCE__`, rewards and candidates
    are left out. A dialogue is called after the file and its place, as `valid_self_original_no_cands_00012`.
    """
    dialogues: list[GroundedDialogue] = []
    for lines in _dialogues(path):
        facts: dict[str, list[str]] = {}
        turns: list[Turn] = []
        for where, text in lines:
            # A persona line has no tab; "... your own persona: ..." may be said in a turn.
            if (persona := _PERSONA.fullmatch(text)) and "\t" not in text:
                facts.setdefault(YOU if persona[1] else PARTNER, []).append(persona[2].strip())
            else:
                turns += _turns(where, text)
        dialogue = Dialogue(f"{path.stem}_{len(dialogues):05d}", tuple(turns))
        dialogues.append(GroundedDialogue(dialogue, {speaker: tuple(own) for speaker, own in facts.items()}))
    return dialogues


def _dialogues(path: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield each dialogue's lines without their numbers."""
    lines: list[tuple[str, str]] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        where, text = f"{path}:{number}", line.rstrip("\r")
        if is_blank(text):
            continue
        match = _NUMBERED.fullmatch(check_text(text, where))
        if match is None:
            raise InputError(
                f"{where}: expected a number, a blank and a text, got {text[:80]!r}. Is this another file's layout?"
            )
        if match[1] == "1" and lines:
            yield lines
            lines = []
        if int(match[1]) != len(lines) + 1:
            raise InputError(
                f"{where}: expected a line numbered {len(lines) + 1} or 1, got {match[1]}. Were lines taken out of the file?"
            )
        lines.append((where, match[2]))
    if not lines:
        raise InputError(f"{path}: is empty, expected numbered lines.")
    yield lines


def _turns(where: str, text: str) -> Iterator[Turn]:
    partner, tab, rest = text.partition("\t")
    if not tab:
        raise InputError(f"{where}: expected a tab between the turns of the two speakers, got {text[:80]!r}. Was it lost?")
    for spoken, speaker in ((partner, PARTNER), (rest.partition("\t")[0], YOU)):
        if not is_blank(spoken) and spoken.strip() != SILENCE:
            yield Turn(spoken.strip(), speaker)


CORPUS = Corpus(
    name="personachat",
    layout="ParlAI text: numbered lines, a tab between two speakers",
    recognises=lambda file: _FIRST_LINE.match(file.text) is not None,
    read_dialogues=read,
)
