"""The corpora that this package reads: recognition of a file's corpus, and reading of any file or set that a user names.

A corpus is a `Corpus` declared by a module of `readers`; no other registration is needed. A file of no corpus is the user's:
conversations in any layout of `conversations`, or responses `{"context": ["turn", ...], "response": "...", "id"?,
"references"?: [...], "facts"?: [...]}`, as JSON lines, a JSON array, one object, or a table (.csv, .tsv).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.conversations.files import open_rows
from dialeval_plugin.conversations.layouts import find
from dialeval_plugin.conversations.messages import is_message
from dialeval_plugin.conversations.reading import read_rows
from dialeval_plugin.conversations.record import Conversation, Reading, ReadingOptions
from dialeval_plugin.core.dialogue import Dialogue, Item
from dialeval_plugin.core.errors import InputError, MissingPrerequisite, unknown_name

from . import mini, readers, verdicts
from .corpus import Corpus, FileHead, GroundedDialogue, publications
from .readers import dailydialog_pp, dstc10
from .rows import visible_turns


def _declared() -> dict[str, Corpus]:
    names = (module.name for module in pkgutil.iter_modules(readers.__path__))
    modules = [importlib.import_module(f"{readers.__name__}.{name}") for name in names]
    corpora = {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Corpus)}
    return {**dict(sorted(corpora.items())), verdicts.CORPUS.name: verdicts.CORPUS, mini.CORPUS.name: mini.CORPUS}


CORPORA: Mapping[str, Corpus] = _declared()
SETS: Mapping[str, Callable[[], Sequence[Item]]] = {
    name: read for corpus in CORPORA.values() for name, read in corpus.sets.items()
}


class SetDescription(NamedTuple):
    """Title, description and page of a rated set; the title of an unknown set is its name."""

    title: str
    about: str = ""
    url: str = ""


def describe_set(name: str) -> SetDescription:
    """Describe a set by its name or, for DSTC10's, its code.

    Example:
        >>> describe_set("tu").title, describe_set("of others").title
        ('Topical-Chat (USR)', 'of others')
    """
    entry = next((entry for entry in dstc10.SETS.values() if name in {entry.code, entry.name}), None)
    if entry is not None:
        return SetDescription(entry.title, entry.about, entry.url)
    if name not in publications():
        return SetDescription(name)
    published = publications()[name]
    # "FED: rated responses ..."; a set without a title of its own uses the catalogue's.
    title, colon, about = published.title.partition(": ")
    title, about = (title, f"{about[:1].upper()}{about[1:]}.") if colon else (name, f"{title}.")
    return SetDescription(title, about, published.homepage or "")


def find_corpus(name: str) -> Corpus:
    """Return the corpus `name`."""
    if name not in CORPORA:
        raise unknown_name(f"there is no corpus {name!r}", name, CORPORA)
    return CORPORA[name]


def identify(path: Path) -> Corpus | None:
    """Return the corpus whose layout a file has; None if it is the user's."""
    return _corpus_of(FileHead.of(path))


def _corpus_of(head: FileHead) -> Corpus | None:
    messages = head.value
    if isinstance(messages, Mapping):
        messages = next((messages[name] for name in ("messages", "conversations") if name in messages), None)
    if isinstance(messages, list) and messages and is_message(messages[0]):
        return None  # chat messages with any other fields: no corpus is published in this form
    return next((corpus for corpus in CORPORA.values() if corpus.recognises(head)), None)


def read_items(path: Path) -> list[Item]:
    """Read the items to score from a file, with any ratings; from a conversation, every turn of the assistant.

    Raises:
        InputError: the file is malformed, or holds no responses; the message names the line.
    """
    return [item for one in _read(path) for item in (one.items("turn") if isinstance(one, Conversation) else [one])]


def _read(path: Path) -> Sequence[Item | Conversation]:
    """Return the items of a file, conversations unchanged."""
    if (items := published_items(path, ReadingOptions())) is not None:
        return items
    return [one for one in read_rows(open_rows(str(path)), Reading(stem=path.stem)) if one is not None]


def published_items(path: Path, options: ReadingOptions) -> Sequence[Item] | None:
    """Return the items to score from a file of a published corpus; None if the file is the user's, or the options say so."""
    if options.columns or options.layout:
        return None
    try:
        corpus = identify(path)
    except InputError:
        return None  # compressed, or not UTF-8 text: the reader of logs handles the former and reports the latter
    if corpus is None or corpus.read_items is None:
        return None
    given = {"turns": options.choice, "branches": options.branches, "order": options.order, "keep": options.keep or None}
    if unused := next((name for name, one in given.items() if one is not None), None):
        raise InputError(f"{path}: is of the corpus {corpus.name}, which says what is scored. Leave --{unused} out.")
    return corpus.read_items(path)


def read_dialogues(path: Path) -> list[Dialogue]:
    """Read the dialogues of a file without their facts; raises as `read_grounded`."""
    return [grounded.dialogue for grounded in read_grounded(path)]


def read_grounded(path: Path, *, every_response: bool = False) -> list[GroundedDialogue]:
    """Read the dialogues of a file with their facts, and never with human ratings.

    In CGDIALOG+ each context with its response is a dialogue, in DailyDialog++ each context with its first positive response
    or, with `every_response`, with each of them, including the adversarial ones.

    Raises:
        InputError: the file is malformed, or its layout holds no plain dialogues; the message names the line.
    """
    corpus = identify(path)
    if corpus is None:
        dialogues = []
        for one in _read(path):
            if not isinstance(one, Conversation):
                raise InputError(f"{path}: holds responses ({one.id!r} is one). Name whole conversations.")
            dialogues.append(GroundedDialogue(Dialogue(one.id, visible_turns(one.turns))))
        return dialogues
    if corpus.read_dialogues is None:
        raise InputError(f"{path}: is of the corpus {corpus.name}, which is rated and not trained on. Name plain dialogues.")
    if every_response and corpus is dailydialog_pp.CORPUS:
        return dailydialog_pp.read_grounded(path)
    return [one if isinstance(one, GroundedDialogue) else GroundedDialogue(one) for one in corpus.read_dialogues(path)]


class ReportedSets(NamedTuple):
    """Sets by their names (a code or a file as given), and sets of a named corpus that are not on this machine."""

    sets: dict[str, list[Item]]
    absent: tuple[str, ...]


def read_reported(sources: Iterable[str]) -> ReportedSets:
    """Read evaluation sets: files in any layout, names of sets, for example "usr" or "tu", or "dstc10" for all of its sets.

    Raises:
        InputError: there is no such file or name, or a file is malformed; the message names the line.
        MissingPrerequisite: a named set, or every set of a corpus, is missing on this machine.
    """
    sets: dict[str, list[Item]] = {}
    absent: list[str] = []
    for source in sources:
        names = list(CORPORA[source].sets) if source in CORPORA else []
        if Path(source).is_file():
            sets[source] = _read_reported_file(Path(source))
        elif len(names) < 2:
            sets |= read_set(source)
        else:
            n_before = len(absent)
            for name in names:
                try:
                    sets |= read_set(name)
                except MissingPrerequisite:
                    absent.append(name)
            if len(absent) == n_before + len(names):
                raise MissingPrerequisite(
                    f"{source}: none of its sets ({', '.join(names)}) is on this machine. Type `dialeval data fetch {source}`."
                )
    return ReportedSets(sets, tuple(absent))


def _read_reported_file(path: Path) -> list[Item]:
    head = FileHead.of(path)
    if (corpus := _corpus_of(head)) is not None:
        has_items = corpus.read_items is not None
    else:
        has_items = not (isinstance(head.value, Mapping) and find(head.value)) and (
            head.is_array or not head.text or head.has("context") or head.has("response")
        )
    return read_items(path) if has_items else list(read_dialogues(path))


def read_set(name: str) -> dict[str, list[Item]]:
    """Read a rated set by its name; the key of the result is its name in tables.

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
