"""What `dialeval score` is given: a file in any layout, or a folder of conversation logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Item, Level
from dialeval_plugin.core.errors import InputError

from .conversations import Conversation, Place, Reading, TurnChoice, is_conversation
from .corpus import Beginning
from .messages import ASSISTANT, USER, left_out_text
from .registry import file_rows, identify, is_table, read_scored

_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")


class ScoredInput(NamedTuple):
    """What was read, and what was not."""

    sources: list[Item | Conversation]
    left_out: Counter[str]
    """Messages, and parts of them, that are no turns, by kind."""
    no_logs: list[Path]
    """Files of the folder that hold no conversations."""
    malformed: list[str]
    """What is wrong with the first conversations that were left out because of a message."""

    def items(self, level: Level) -> list[Item]:
        """Return what a scorer of this level takes, in the order of the files."""
        return [item for one in self.sources for item in (one.items(level) if isinstance(one, Conversation) else [one])]

    def places(self) -> list[Place]:
        """Return where each example stands in its conversation; [] where something is not of a conversation."""
        conversations = [one for one in self.sources if isinstance(one, Conversation)]
        return [place for one in conversations for place in one.places()] if len(conversations) == len(self.sources) else []

    def remarks(self) -> str:
        """Say in a line each what was left out; "" where nothing was."""
        lines = [f"no conversations, left out: {path}" for path in self.no_logs]
        if self.left_out:
            lines.append(f"no turns, left out: {left_out_text(self.left_out)}")
        lines += [f"malformed, left out: {problem}" for problem in self.malformed]
        silent = [one for one in self.sources if isinstance(one, Conversation) and not one.places()]
        if silent:
            others = sorted({turn.speaker for one in silent for turn in one.turns if turn.speaker} - {USER, ASSISTANT})
            names = f" (call the assistant {ASSISTANT!r}; unknown are {', '.join(map(repr, others))})" if others else ""
            lines.append(f"without a turn to score: {len(silent)} of {len(self.sources)} conversations{names}")
        return "".join(f"{line}\n" for line in lines)


def read_input(path: Path, choice: TurnChoice | None = None, columns: Mapping[str, str] | None = None) -> ScoredInput:
    """Read a file, or every file below a folder that holds conversations; those are called after file and conversation.

    Args:
        path: hidden files of a folder, and those that are neither JSON nor a table by their names, are passed over.
        choice: which turns of a conversation are to be scored.
        columns: our names of fields to those of a table.

    Raises:
        InputError: a file is malformed, or no file of the folder holds conversations, or none of them can be read. A malformed
            message is an error of its conversation alone.
    """
    left_out: Counter[str] = Counter()
    malformed: list[str] = []
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: is a pipe or a device, which can be read once, and a file is looked at first. Write one.")
    if not path.is_dir():
        found = read_scored(path, Reading(left_out, malformed), stem=path.stem, choice=choice, columns=columns)
        if malformed and not found:
            raise InputError(malformed[0])
        return ScoredInput(found, left_out, [], malformed)
    sources: list[Item | Conversation] = []
    no_logs = []
    for file in sorted(file for file in path.rglob("*") if _may_be_log(file.relative_to(path)) and file.is_file()):
        if not _is_log(file, columns or {}):
            no_logs.append(file)
            continue
        name = file.relative_to(path).as_posix()
        found = read_scored(file, Reading(left_out, malformed), choice=choice, columns=columns)
        sources += [replace(one, id=f"{name}/{one.id}") for one in found]
    if malformed and not sources:
        raise InputError(malformed[0])
    if not sources:
        raise InputError(
            f"{path}: is a folder without conversations. Give a folder of files ({', '.join(_SUFFIXES)}) with 'messages', "
            "'conversations' or 'turns', or name the columns of its tables by --columns."
        )
    return ScoredInput(sources, left_out, no_logs, malformed)


def _may_be_log(name: Path) -> bool:
    return name.name.removesuffix(".gz").endswith(_SUFFIXES) and not any(part.startswith(".") for part in name.parts)


def _is_log(file: Path, columns: Mapping[str, str]) -> bool:
    """Whether a file begins as conversations do, or has the columns named; one that does is read, and an error in it is one."""
    if is_table(file) or columns:
        try:
            head = file_rows(file)[0].value
        except InputError:
            return False
        return head.keys() >= set(columns.values()) if columns else is_conversation(head)
    return identify(file) is None and is_conversation(Beginning.of(file).value)
