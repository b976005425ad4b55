"""`Conversation`, the type that every layout is read into, the options of reading, and the counts of what was read."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Origin, Turn, check_text
from dialeval_plugin.core.errors import InputError

from .messages import ASSISTANT, USER, answering, at, left_out_text
from .order import Branches, Order

TurnChoice: TypeAlias = Literal["assistant", "all", "last"]
"""Turns that are responses to score: those of the assistant; all but the first; or the assistant's last one, which without a
known assistant is the last turn.
"""

Kept: TypeAlias = tuple[tuple[str, object], ...]
"""Names and values of fields to keep next to the score."""
_N_NAMED = 20
_MANY_ROWS = 10
"""Number of requests of one session from which it is said that nothing else was read."""


def check_choice(where: str, choice: str | None) -> TurnChoice | None:
    """Return the user's choice of turns, or None; an InputError begins with `where` and lists the choices."""
    if choice not in (None, *get_args(TurnChoice)):
        raise InputError(f"{where}: there is no choice {choice!r}. Known are: {', '.join(get_args(TurnChoice))}.")
    return cast("TurnChoice | None", choice)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A logged conversation, and which of its turns are scored."""

    id: str
    turns: tuple[Turn, ...]
    numbers: tuple[int, ...]
    """The number of each turn's message in the log, from 1, including messages that are no turns."""
    choice: TurnChoice | None = None
    """None: the assistant's turns if the log has a user or an assistant, otherwise all but the first."""
    n_history: int = 0
    """Number of first turns that are only context: they were scored elsewhere, or are the request."""
    sources: tuple[str, ...] = ()
    """Location of each turn's message; () if unknown."""
    kept: tuple[Kept, ...] = ()
    """The kept fields of each turn; () if nothing is kept."""
    continues: str | None = None
    """Id of the conversation of which this is another branch or, in a log that repeats the history, a later row; None: a new
    one.
    """

    def examples(self) -> list[Example]:
        """Return an example for each turn to score, with the conversation's id, a colon and the turn's number as its id."""
        return [
            Example(f"{self.id}:{self.numbers[place]}", self.turns[:place], self.turns[place], origin=self._origin(place))
            for place in self.responses()
        ]

    def items(self, level: Level) -> list[Item]:
        """Return the input of a scorer of this level: the examples, or the conversation as one dialogue."""
        if level == "turn":
            return list(self.examples())
        if self.choice is not None:
            raise InputError("turns: chooses responses, and this scorer scores whole dialogues. Leave it out.")
        origin = Origin(self.continues or self.id, None, next(iter(self.sources), None), next(iter(self.kept), ()))
        return [Dialogue(self.id, self.turns, origin=origin)]

    def responses(self) -> list[int]:
        """Return the positions of the turns to score."""
        answerer = answering(self.turns)
        has_roles = answerer is not None or any(turn.speaker == USER for turn in self.turns)
        if self.choice == "assistant" and not has_roles and self.turns:
            named = ", ".join(sorted({repr(turn.speaker) for turn in self.turns if turn.speaker is not None}))
            raise InputError(
                f"conversation {self.id!r}: has neither a user nor an assistant, only {named or 'turns of nobody'}. "
                "Choose the turns all or last, or call the chatbot 'assistant'."
            )
        places = list(range(max(1, self.n_history), len(self.turns)))
        if self.choice == "all" or (self.choice is None and not has_roles):
            return places
        if has_roles:
            speakers = [turn.speaker for turn in self.turns]
            places = [one for one in range(self.n_history, len(speakers)) if answerer is not None and speakers[one] == answerer]
        return places[-1:] if self.choice == "last" else places

    def _origin(self, place: int) -> Origin:
        source = self.sources[place] if self.sources else None
        return Origin(self.continues or self.id, self.numbers[place], source, self.kept[place] if self.kept else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """Options of reading an input.

    Attributes:
        choice: which turns of a conversation are scored.
        columns: maps our field names to the rows' own, for every field that is read.
        layout: name of the layout; None: each row's layout is recognised.
        branches: which branches to read; None: the one that the conversation marks as shown.
        order: order of messages; None: as listed, unless their numbers or times differ.
        keep: fields of a message, or of its conversation, that are kept next to the score.
        strict: whether leaving something out is an error.
    """

    choice: TurnChoice | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    layout: str | None = None
    branches: Branches | None = None
    order: Order | None = None
    keep: tuple[str, ...] = ()
    strict: bool = False

    @classmethod
    def from_arguments(cls, turns: str | None, columns: Any, keep: str | Iterable[str] | None, **others: Any) -> ReadingOptions:
        """Return the options of a call in Python; an InputError names one that cannot be."""
        if not isinstance(columns or {}, Mapping):
            raise InputError(f"columns: expected names of fields, as {{'context': 'history'}}, got {columns!r}.")
        names = (keep,) if isinstance(keep, str) else tuple(keep or ())
        return cls(choice=check_choice("turns", turns), columns=columns or {}, keep=names, **others)


class FirstPlaces:
    """First location of each id of a source of any length; beyond some megabytes on disk, deleted with this object."""

    @cached_property
    def _database(self) -> sqlite3.Connection:
        database = sqlite3.connect("", isolation_level=None)
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("CREATE TABLE first (id TEXT PRIMARY KEY, place TEXT, n DEFAULT 1) WITHOUT ROWID")
        database.execute("BEGIN")
        return database

    def other(self, id: str, place: str) -> str | None:
        """Return the first location of an id; None for a new one, which is stored with its location."""
        if self._database.execute("INSERT OR IGNORE INTO first (id, place) VALUES (?, ?)", (id, place)).rowcount:
            return None
        return str(self._database.execute("SELECT place FROM first WHERE id = ?", (id,)).fetchone()[0])

    def unique(self, id: str, place: str) -> str:
        """Return the id, marked `#2`, `#3`, ... if it occurred before, and store it."""
        name = id
        while self.other(name, place) is not None:
            self._database.execute("UPDATE first SET n = n + 1 WHERE id = ?", (id,))
            (n,) = self._database.execute("SELECT n FROM first WHERE id = ?", (id,)).fetchone()
            name = f"{id}#{n}"
        return name


MALFORMED, REPEATED = "malformed conversation", "repeated conversation"
"""Kinds of rows that are left out."""


@dataclass
class Reading:
    """Options, counts and ids of a source while its rows are read.

    Attributes:
        stem: beginning of the ids of conversations without one, for example `chats` of `chats_00012`; None: ids are numbers.
        first: number of the first row.
        left_out: number of messages and parts that are no turns, by kind.
        leaves_out_malformed: whether a conversation is left out because of a malformed message, which otherwise is an error.
        malformed: errors of the first conversations that were left out for that.
        passed_over: remarks on what was not read: files without conversations, items of another level.
        places: first location of each id.
        layouts: number of conversations by layout.
        n_conversations: number of conversations read; `n_silent` of them have no turn to score.
        others: speakers in conversations with neither a user nor an assistant.
        fields_present: names of the fields to keep that occurred.
        answers: messages up to each answer that a later one may continue, by its id.
        below: beginning of the ids of a file in a folder.
    """

    options: ReadingOptions = field(default_factory=ReadingOptions)
    stem: str | None = None
    first: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    leaves_out_malformed: bool = False
    malformed: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    places: FirstPlaces = field(default_factory=FirstPlaces)
    layouts: Counter[str] = field(default_factory=Counter)
    n_conversations: int = 0
    n_silent: int = 0
    others: set[str] = field(default_factory=set)
    fields_present: set[str] = field(default_factory=set)
    below: str = ""
    answers: dict[str, Sequence[object]] = field(default_factory=dict)
    _heard: set[int] = field(default_factory=set)
    _begun: dict[bytes, str] = field(default_factory=dict)
    _of_threads: dict[tuple[str, str], str] = field(default_factory=dict)
    _later: dict[bytes, list[str]] = field(default_factory=dict)
    _earlier: dict[bytes, list[str]] = field(default_factory=dict)

    def name(self, number: int) -> str:
        """Return the id of a conversation without one, by the number of its row."""
        return str(number) if self.stem is None else f"{self.stem}_{number:05d}"

    def refuse(self, error: InputError) -> None:
        """Count an unreadable conversation and keep its error, or raise the error."""
        if not self.leaves_out_malformed:
            raise error
        self.left_out[MALFORMED] += 1
        if len(self.malformed) < _N_NAMED:
            self.malformed.append(str(error))

    def count(self, conversation: Conversation, layout: str) -> None:
        """Count a conversation; one that continues another, in a log that repeats the history, is none of its own."""
        self.layouts[layout] += 1
        if conversation.continues is not None:
            return
        self.n_conversations += 1
        if not conversation.responses():
            self.n_silent += 1
            self.others |= {turn.speaker for turn in conversation.turns if turn.speaker} - {USER, ASSISTANT}

    def remarks(self) -> str:
        """Report what was left out, one line each; "" if nothing was."""
        lines = [*self.passed_over, *([f"no turns, left out: {left_out_text(self.left_out)}"] if self.left_out else [])]
        lines += [f"malformed, left out: {problem}" for problem in self.malformed]
        lines += [
            f"--keep {name}: nothing that was read has such a field"
            for name in self.options.keep
            if name not in self.fields_present
        ]
        if self.n_conversations == 1 and self._of_threads and (n := self.layouts.total()) >= _MANY_ROWS:
            named = repr(next(iter(self._of_threads))[1])
            lines.append(f"one conversation: all {n} rows name the session {named}. If they are of several, remove that field")
        if self.n_silent:
            others = ", ".join(map(repr, sorted(self.others)[:_N_NAMED]))
            names = f" (call the assistant {ASSISTANT!r}; unknown are {others})" if others else ""
            lines.append(f"without a turn to score: {self.n_silent} of {self.n_conversations} conversations{names}")
        return "".join(f"{line}\n" for line in lines)

    def is_copy(self, row: Mapping[str, Any]) -> bool:
        """Whether an equal row was read earlier, as in a file that is put together from two exports."""
        is_copy = (text := hash(repr(row))) in self._heard
        self._heard.add(text)
        return is_copy

    def continued(self, turns: Sequence[Turn], n_history: int, file: str, thread: object, id: str) -> str | None:
        """Return the id of the conversation of which a request and its answer are a further row; None: a new one.

        It is that of the thread that the row names, or else of the row that ends where the last question begins, or of the one
        that asks the next question. Each row has one before and one after it: conversations that begin alike are not joined.
        """
        name = f"{self.below}{id}"
        if thread is not None:
            of_thread = self._of_threads.setdefault((file, str(thread)), name)
            return None if of_thread == name else of_thread
        digests = _digests(turns, repr(("request", file)))
        last = max((place for place in range(n_history) if turns[place].speaker == ASSISTANT), default=None)
        after = self._earlier.get(digests[-1])
        before = None if after or last is None else self._later.get(digests[last])
        found = after or before
        first = found.pop(0) if found else None
        if not after:
            self._later.setdefault(digests[-1], []).append(first or name)
        if not before and last is not None:
            self._earlier.setdefault(digests[last], []).append(first or name)
        return first

    def repeated(
        self, turns: Sequence[Turn], key: object, own: object, id: str, n_history: int, *, is_once: bool
    ) -> tuple[int, str | None]:
        """Return how many of the first turns an earlier conversation with the same key has, and its id.

        These are all of them if the earlier one, with the same `own` id, begins with these turns, apart from its history, or
        with `is_once` equals them; otherwise those of an earlier row, as in growing histories. `id` is the conversation's.
        """
        prefixes = _digests(turns, repr(key))
        if prefixes and hash((prefixes[-1], own)) in self._heard:
            return len(turns), None
        self._heard.update(hash((one, own)) for one in prefixes[n_history : None if is_once else -1])
        known = [] if n_history else [(n, self._begun[one]) for n, one in enumerate(prefixes, start=1) if one in self._begun]
        n_repeated, first = max((one for one in known if one[0] < len(turns)), default=(0, None))
        if not n_history and prefixes:
            self._begun.setdefault(prefixes[-1], first or f"{self.below}{id}")
        return n_repeated, first


def _digests(turns: Sequence[Turn], key: str) -> list[bytes]:
    """Return a digest of the key and the first turns, for each number of them."""
    digest = hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=12)
    digests = []
    for turn in turns:
        digest.update(f"{turn.speaker}\0{turn.text}\0".encode(errors="surrogatepass"))
        digests.append(digest.digest())
    return digests


def id_text(value: Any, where: str) -> str:
    """Return an id as text; an InputError begins with `where`."""
    if isinstance(value, Mapping) and [*value] == ["$oid"]:  # MongoDB's
        value = value["$oid"]
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # pandas' form of a column with gaps
    if isinstance(value, bool) or not (isinstance(value, (str, int, uuid.UUID)) or hasattr(value, "isoformat")):
        raise InputError(f"{where}: expected a string or an integer, got {value!r}.")
    return check_text(str(value), where)


def kept_fields(message: object, row: Mapping[str, Any], reading: Reading) -> Kept:
    """Return the fields to keep of a message, or else of its conversation's row."""
    if not reading.options.keep:
        return ()
    own = message if isinstance(message, Mapping) else {}
    values = {name: at(row, name) if own.get(name) is None else own[name] for name in reading.options.keep}
    values = {name: value for name, value in values.items() if value is not None}
    reading.fields_present.update(values)
    return tuple((name, value if isinstance(value, (int, float)) else _encodable(value)) for name, value in values.items())


def _encodable(value: Any) -> Any:
    """Return a kept value that can be written: as JSON, with "?" for half of a surrogate pair."""
    return json.loads(json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace"))
