"""The corpora that this package reads: which one a file is of, and reading whatever file or set a user names.

A corpus is what a module of `readers` declares as a `Corpus`; nothing else has to be told of it. A file of no corpus is ours:
JSON lines `{"context": ["turn", ...], "response": "...", "id"?, "references"?: [...], "facts"?: [...]}` to score, and
`{"turns": ["turn", ...]}` for plain dialogues.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, unknown_name
from dialeval_plugin.core.files import Line, read_json_lines, read_text

from . import mini, readers
from .corpus import Beginning, Corpus, GroundedDialogue
from .readers import dailydialog_pp, dstc10
from .rows import distinct_ids, label_field, require, texts_field, visible_turns

_FIELDS = frozenset({"id", "context", "response", "references", "facts"})


def _declared() -> dict[str, Corpus]:
    names = (module.name for module in pkgutil.iter_modules(readers.__path__))
    modules = [importlib.import_module(f"{readers.__name__}.{name}") for name in names]
    found = {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Corpus)}
    return {**dict(sorted(found.items())), mini.CORPUS.name: mini.CORPUS}


CORPORA: Mapping[str, Corpus] = _declared()
"""All corpora, by name."""
SETS: Mapping[str, Callable[[], Sequence[Item]]] = {
    name: read for corpus in CORPORA.values() for name, read in corpus.sets.items()
}
"""What reads each rated set, by its name."""


def find_corpus(name: str) -> Corpus:
    """Return the corpus `name`."""
    if name not in CORPORA:
        raise unknown_name(f"there is no corpus {name!r}", name, CORPORA)
    return CORPORA[name]


def identify(path: Path) -> Corpus | None:
    """Return the corpus whose layout a file has; None where it is ours, or of none."""
    beginning = Beginning.of(path)
    return next((corpus for corpus in CORPORA.values() if corpus.recognises(beginning)), None)


def read_items(path: Path) -> list[Item]:
    """Read what a file has to score, with its ratings where it has any.

    Raises:
        InputError: the file is malformed, or holds no responses; the message names the line.
    """
    corpus = identify(path)
    if corpus is not None and corpus.read_items is not None:
        return list(corpus.read_items(path))
    start = read_text(path).lstrip()[:1]
    if start == "[":
        return dstc10.read(path)
    if start not in {"{", ""}:
        raise InputError(
            f"{path}: holds neither JSON lines nor a JSON array. Give one object a line, "
            """{"context": ["turn", ...], "response": "..."}; make them of a CSV's rows first."""
        )
    lines = read_json_lines(path)
    examples = [_example(line, number) for number, line in enumerate(lines)]
    distinct_ids(lines, [example.id for example in examples], "Give every example its own.")
    return list(examples)


def read_dialogues(path: Path) -> list[Dialogue]:
    """Read the dialogues of a file without their facts; raises as `read_grounded`."""
    return [grounded.dialogue for grounded in read_grounded(path)]


def read_grounded(path: Path, *, every_response: bool = False) -> list[GroundedDialogue]:
    """Read the dialogues of a file with their facts, and never with human ratings.

    Of CGDIALOG+ each context with its response is a dialogue, of DailyDialog++ each context with its first positive response,
    or, with `every_response`, with each of them, beside the adversarial ones.

    Raises:
        InputError: the file is malformed, or its layout holds no plain dialogues; the message names the line.
    """
    corpus = identify(path)
    if corpus is None:
        return [_dialogue(line, f"{path.stem}_{index:05d}") for index, line in enumerate(read_json_lines(path))]
    if corpus.read_dialogues is None:
        raise InputError(f"{path}: is of the corpus {corpus.name}, which is rated and not trained on. Name plain dialogues.")
    if every_response and corpus is dailydialog_pp.CORPUS:
        return dailydialog_pp.read_grounded(path)
    found = corpus.read_dialogues(path)
    return [one if isinstance(one, GroundedDialogue) else GroundedDialogue(one) for one in found]


def _example(line: Line, number: int) -> Example:
    value = line.value
    if "messages" in value:
        raise InputError(
            f"{line.where}: holds chat messages. Give the content of the last one as 'response', a string, "
            "and that of those before it as 'context', a list of strings."
        )
    if unknown := sorted(set(value) - _FIELDS):
        raise unknown_name(f"{line.where}: there is no field {unknown[0]!r}", unknown[0], sorted(_FIELDS))
    require(line, "context", "response", advice="Give a list of turns as context and a string as response.")
    id = label_field(line, "id")
    try:
        return Example.from_texts(
            value["context"],
            value["response"],
            id=str(number) if id is None else id,
            references=value.get("references", ()),
            facts=value.get("facts", ()),
        )
    except InputError as error:
        raise InputError(f"{line.where}: {error}") from None


def _dialogue(line: Line, id: str) -> GroundedDialogue:
    require(line, "turns", advice="Give a list of texts, oldest first.")
    return GroundedDialogue(Dialogue(id, visible_turns(map(Turn, texts_field(line, "turns")))))


class ReportedSets(NamedTuple):
    """Sets by their names, a code or a file as it was written, and those of a named corpus that are not on this machine."""

    sets: dict[str, list[Item]]
    absent: tuple[str, ...]


def read_reported(sources: Iterable[str]) -> ReportedSets:
    """Read the sets that are reported on: files in any layout, names of sets as "usr" or "tu", or "dstc10" for all of its sets.

    Raises:
        InputError: there is no such file or name, or a file is malformed; the message names the line.
        MissingPrerequisite: a set that is named is not on this machine, or none of a corpus' is.
    """
    sets: dict[str, list[Item]] = {}
    absent: list[str] = []
    for source in sources:
        if Path(source).is_file():
            sets[source] = _read_reported_file(Path(source))
        elif source in CORPORA and len(CORPORA[source].sets) > 1:
            present: dict[str, list[Item]] = {}
            for name in CORPORA[source].sets:
                try:
                    present |= read_set(name)
                except MissingPrerequisite:
                    absent.append(name)
            if not present:
                raise MissingPrerequisite(
                    f"{source}: none of its sets ({', '.join(CORPORA[source].sets)}) is on this machine. "
                    f"Type `dialeval data fetch {source}`."
                )
            sets |= present
        else:
            sets |= read_set(source)
    return ReportedSets(sets, tuple(absent))


def _read_reported_file(path: Path) -> list[Item]:
    corpus = identify(path)
    if corpus is None:
        beginning = Beginning.of(path)
        has_items = beginning.is_array or not beginning.text or beginning.has("context") or beginning.has("response")
    else:
        has_items = corpus.read_items is not None
    return read_items(path) if has_items else list(read_dialogues(path))


def read_set(name: str) -> dict[str, list[Item]]:
    """Read a rated set by its name, below the name that the tables use.

    Raises:
        InputError: there is none; the message lists all.
        MissingPrerequisite: it is not on this machine.
    """
    code = next((entry.code for entry in dstc10.SETS.values() if name == entry.name), name)
    if code not in SETS:
        rated = [corpus for corpus in CORPORA.values() if corpus.sets]
        known = dict.fromkeys(one for corpus in rated for one in (corpus.name, *corpus.sets))
        raise unknown_name(f"{name}: there is no such file, and no set of this name", name, known)
    return {code: list(SETS[code]())}
