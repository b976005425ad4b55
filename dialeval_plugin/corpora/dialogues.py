"""Reads whole dialogues as unlabelled text, whichever corpus published them, or our JSON lines."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Turn, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import Line, parse_json_prefix, read_json_lines, read_text
from dialeval_plugin.corpora.readers.grounded import GroundedDialogue

from .readers import (
    cgdialog,
    convai,
    dailydialog,
    dailydialog_pp,
    dream,
    empathetic_dialogues,
    esconv,
    personachat,
    topical_chat,
)
from .rows import texts_field


def read_dialogues(path: Path) -> list[Dialogue]:
    """Read the dialogues of a file without their facts; see `read_grounded`."""
    return [grounded.dialogue for grounded in read_grounded(path)]


def read_grounded(path: Path) -> list[GroundedDialogue]:
    """Read the dialogues of a file with their facts; the layout, the first of `LAYOUTS` that fits, is told from its beginning.

    Of CGDIALOG+ each context with its response is a dialogue, of DailyDialog++ each context with its first positive response.
    Human ratings are never in the result.

    Raises:
        InputError: the file is malformed; the message names the line.
    """
    beginning = _beginning(read_text(path))
    return next(layout.read(path) for layout in LAYOUTS if layout.recognises(beginning))


def begins_with(path: Path, *names: str) -> bool:
    """Whether the first object of a JSON file, or of JSON lines, has all these fields.

    Raises:
        InputError: as `files.read_text`.
    """
    return _beginning(read_text(path)).has(*names)


class Beginning(NamedTuple):
    """What tells a layout from the others."""

    text: str
    """The file's text from its first visible character on."""
    value: Any
    """The first JSON object or array; in an array its first element; None where the file does not begin with one."""

    @property
    def is_array(self) -> bool:
        """Whether the file is a JSON array."""
        return self.text.startswith("[")

    def has(self, *names: str) -> bool:
        """Whether the first object has all these fields."""
        return isinstance(self.value, dict) and self.value.keys() >= set(names)


class Layout(NamedTuple):
    """A layout of dialogues."""

    name: str
    recognises: Callable[[Beginning], bool]
    read: Callable[[Path], list[GroundedDialogue]]


def _beginning(text: str) -> Beginning:
    start = text.lstrip()
    value = None
    if start.startswith(("{", "[")):
        # What is malformed is named by the layout's own reader.
        with contextlib.suppress(InputError):
            value, _ = parse_json_prefix(start.removeprefix("[").lstrip(), 0, "")
    return Beginning(start, value)


def _is_topical_chat(beginning: Beginning) -> bool:
    if beginning.is_array or not isinstance(beginning.value, dict):
        return False
    first = next(iter(beginning.value.values()), None)
    return isinstance(first, dict) and "content" in first


def _ungrounded(read: Callable[[Path], Iterable[Dialogue]]) -> Callable[[Path], list[GroundedDialogue]]:
    return lambda path: [GroundedDialogue(dialogue) for dialogue in read(path)]


def _causes(path: Path) -> list[Dialogue]:
    return [Dialogue(pair.id, (*pair.context, pair.response)) for pair in cgdialog.read_causes(path)]


def _response_sets(path: Path) -> list[Dialogue]:
    return [Dialogue(item.id, _visible((*item.context, *item.positive[:1]))) for item in dailydialog_pp.read(path)]


def _unrated(read: Callable[[Sequence[Path]], list[Dialogue]]) -> Callable[[Path], list[Dialogue]]:
    """ConvAI's logs as text: no ratings, no blank turns, and no dialogues in which nothing was said."""

    def read_text_only(path: Path) -> list[Dialogue]:
        stripped = (replace(one, turns=tuple(turn for turn in one.turns if not is_blank(turn.text))) for one in read([path]))
        return [replace(dialogue, ratings={}) for dialogue in stripped if dialogue.turns]

    return read_text_only


def _ours(path: Path) -> list[Dialogue]:
    lines = read_json_lines(path)
    return [_dialogue(line, f"{path.stem}_{index:05d}") for index, line in enumerate(lines)]


def _dialogue(line: Line, id: str) -> Dialogue:
    if "turns" not in line.value:
        raise InputError(f"{line.where}: has no 'turns'. Give a list of texts, oldest first.")
    return Dialogue(id, _visible(texts_field(line, "turns")))


def _visible(texts: Iterable[str]) -> tuple[Turn, ...]:
    return tuple(Turn(text) for text in texts if not is_blank(text))


_PERSONACHAT_LINE = re.compile(r"1 (your persona:|partner's persona:|[^\n]*\t)")

LAYOUTS = (
    Layout("DREAM", lambda file: file.is_array and isinstance(file.value, list), _ungrounded(dream.read)),
    Layout("ConvAI1", lambda file: file.is_array and file.has("thread"), _ungrounded(_unrated(convai.read_convai1))),
    Layout(
        "ConvAI2", lambda file: file.is_array and file.has("dialog", "eval_score"), _ungrounded(_unrated(convai.read_convai2))
    ),
    Layout("CGDIALOG+", lambda file: file.is_array, _ungrounded(_causes)),
    Layout("Topical-Chat", _is_topical_chat, _ungrounded(topical_chat.read)),
    Layout("ESConv", lambda file: file.has("dialog"), _ungrounded(esconv.read)),
    Layout("DailyDialog++", lambda file: file.has("positive_responses"), _ungrounded(_response_sets)),
    Layout("EmpatheticDialogues", lambda file: file.text.startswith("Dialog_ID,"), empathetic_dialogues.read),
    Layout("PersonaChat", lambda file: _PERSONACHAT_LINE.match(file.text) is not None, personachat.read),
    Layout("DailyDialog", lambda file: file.value is None and dailydialog.END in file.text, _ungrounded(dailydialog.read)),
    Layout("JSON lines", lambda _: True, _ungrounded(_ours)),
)
"""The layouts, in the order in which they are tried; ours, `{"turns": ["text", ...]}`, is the last."""
