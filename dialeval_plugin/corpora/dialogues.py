"""Reads whole dialogues as unlabelled text: DailyDialog, DREAM, ESConv, the contexts of CGDIALOG+, or our JSON lines."""

from __future__ import annotations

from pathlib import Path

from dialeval_plugin.dialogue import Dialogue, Turn, is_blank
from dialeval_plugin.errors import InputError
from dialeval_plugin.files import Line, read_json_lines, read_text

from . import cgdialog, dailydialog, dream, esconv
from .rows import texts_field


def read_dialogues(path: Path) -> list[Dialogue]:
    """Read the dialogues of a file; the layout is told from how it begins.

    Lines with `__eou__` are DailyDialog; a JSON array of arrays is DREAM, one of objects CGDIALOG+, of which each context with
    its response is a dialogue; JSON lines with `dialog` are ESConv; other JSON lines are ours: `{"turns": ["text", ...]}`.

    Raises:
        InputError: the file is malformed; the message names the line.
    """
    text = read_text(path)
    opening = "".join(text[:200].split())
    if opening.startswith("[["):
        return dream.read(path)
    if opening.startswith("["):
        return [Dialogue(pair.id, (*pair.context, pair.response)) for pair in cgdialog.read_causes(path)]
    if not opening.startswith("{") and dailydialog.END in text:
        return dailydialog.read(path)
    lines = read_json_lines(path)
    if "dialog" in lines[0].value:
        return esconv.read(path)
    return [_dialogue(line, f"{path.stem}_{index:05d}") for index, line in enumerate(lines)]


def _dialogue(line: Line, id: str) -> Dialogue:
    if "turns" not in line.value:
        raise InputError(f"{line.where}: has no 'turns'. Give a list of texts, oldest first.")
    return Dialogue(id, tuple(Turn(text) for text in texts_field(line, "turns") if not is_blank(text)))
