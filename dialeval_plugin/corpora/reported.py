"""Reads the sets that are reported on, by name or by file, whichever layout their ratings were published in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.core.files import read_text

from . import mini
from .dialogues import begins_with, read_dialogues
from .readers import cgdialog, conture, convai, dstc10, fed, usr
from .rows import read_array
from .scored_files import read_items

ALL_DSTC10 = "dstc10"
_ARRAY_OF_ARRAYS = re.compile(r"\[\s*\[")


class ReportedSets(NamedTuple):
    """The sets that were named."""

    sets: dict[str, list[Item]]
    """By their names: a code for a DSTC10 set, a file as it was written."""
    absent: tuple[str, ...]
    """Codes of the DSTC10 sets that "dstc10" stands for and that are not on this machine."""


def read_reported(sources: Iterable[str]) -> ReportedSets:
    """Read the sets that are reported on.

    Args:
        sources: files in any layout of `readers.read_items` or `dialogues.read_dialogues`, or of FED, ConTurE and CGDIALOG+'s
            preferences; codes and names of DSTC10 sets; "dstc10" for all of those that are there; "fed", "usr", "conture",
            "convai1", "convai2", "mini".

    Raises:
        InputError: there is no such file or name, or a file is malformed; the message names the line.
        MissingPrerequisite: a set that is named is not on this machine, or none of DSTC10's is.
    """
    sets: dict[str, list[Item]] = {}
    absent: list[str] = []
    for source in sources:
        if source == ALL_DSTC10:
            present, missing = _present()
            sets |= present
            absent += missing
        elif Path(source).is_file():
            sets[source] = _read_file(Path(source))
        elif source in _CORPORA:
            sets[source] = _CORPORA[source]()
        elif any(source in (entry.code, entry.name) for entry in dstc10.SETS.values()):
            sets[dstc10.find_set(source).code] = dstc10.read(source)
        else:
            known = ", ".join([ALL_DSTC10, *dstc10.SETS, *_CORPORA])
            raise InputError(f"{source}: there is no such file, and no set of this name. Named sets are: {known}.")
    return ReportedSets(sets, tuple(absent))


def _present() -> tuple[dict[str, list[Item]], list[str]]:
    sets: dict[str, list[Item]] = {}
    missing: list[str] = []
    for code in dstc10.SETS:
        try:
            sets[code] = dstc10.read(code)
        except MissingPrerequisite:
            missing.append(code)
    if not sets:
        raise MissingPrerequisite(
            f"{ALL_DSTC10}: none of its sets ({', '.join(missing)}) is on this machine. Type `dialeval data fetch dstc10`."
        )
    return sets, missing


def _read_usr() -> list[Item]:
    return [*usr.read_examples("topical_chat"), *usr.read_examples("persona_chat")]


def _read_fed(path: Path | None = None) -> list[Item]:
    return [*fed.read_examples(path), *fed.read_dialogues(path)]


_CORPORA: Mapping[str, Callable[[], list[Item]]] = {
    "fed": _read_fed,
    "usr": _read_usr,
    "conture": lambda: list(conture.read_dialogues()),
    "convai1": lambda: list(convai.read_convai1()),
    "convai2": lambda: list(convai.read_convai2()),
    "mini": lambda: list(mini.read_examples("test")),
}


def _read_file(path: Path) -> list[Item]:
    start = read_text(path).lstrip()
    if not start.startswith("["):
        is_rated = not start or begins_with(path, "context") or begins_with(path, "response")
        return read_items(path) if is_rated else list(read_dialogues(path))
    if _ARRAY_OF_ARRAYS.match(start) or begins_with(path, "history", "entities"):
        return list(read_dialogues(path))
    fields = read_array(path)[0].value.keys()
    if "history" in fields:
        return [example for dialogue in cgdialog.read_preferences(path) for example in dialogue.examples()]
    if {"annotations", "system"} <= fields and "dialogue_id" not in fields:
        return _read_fed(path)
    if "dialog_ratings" in fields:
        return list(conture.read_dialogues(path))
    if "thread" in fields:
        return list(convai.read_convai1([path]))
    if "eval_score" in fields:
        return list(convai.read_convai2([path]))
    return read_items(path)
