"""Conversations as people have them, made into examples: the one conversion that files, data frames and metrics share.

A row is a whole conversation, under `messages` (OpenAI), `conversations` (ShareGPT), `conversation` or `turns`; or one turn,
with `conversation`, `speaker` and `text`; or a response, with `context` and `response`. Rows that are messages themselves are
one conversation. What else stands in a row of a conversation is left alone.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Level, Turn, advice_for_list, check_text
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line, parse_json

from .messages import ASSISTANT, USER, context_and_response, is_message, left_out_text, numbered_turns
from .rows import FirstPlaces, context_lines, distinct_ids, id_field, label_field, require, unique_ids

logger = logging.getLogger(__name__)

TurnChoice: TypeAlias = Literal["assistant", "all", "last"]
"""Which turns are responses to score: those of the assistant; all but the first; the assistant's last one, or, where nobody is
known to be the assistant, the last one of all."""

OF_AN_EXAMPLE = ("context", "response", "id", "references", "facts")
OF_A_TURN = ("conversation", "speaker", "text")
_WHOLE = ("messages", "conversations", "conversation", "turns")
_IDS = ("id", "conversation_id")
COLUMNS = tuple(dict.fromkeys((*OF_AN_EXAMPLE, *OF_A_TURN, *_WHOLE)))
"""Names of fields that `columns` can give to the columns of a table."""

_N_NAMED = 20
_JSON_LIST = re.compile(r"\s*\[\s*[\"{\]]")
_PYTHON_LIST = re.compile(r"\s*\[\s*'")


def check_choice(where: str, choice: str | None) -> TurnChoice | None:
    """Return a choice of turns that the user made, or None; an InputError that begins with `where` names the choices."""
    if choice not in (None, *get_args(TurnChoice)):
        raise InputError(f"{where}: there is no choice {choice!r}. Known are: {', '.join(get_args(TurnChoice))}.")
    return cast("TurnChoice | None", choice)


class Place(NamedTuple):
    """Where a response stands: its conversation, and the number of its message there."""

    conversation: str
    number: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it was logged, and which of its turns are to be scored."""

    id: str
    turns: tuple[Turn, ...]
    numbers: tuple[int, ...]
    """The number of each turn's message in the log, from 1; what is no turn is counted there too."""
    choice: TurnChoice | None = None
    """None: the assistant's where the log has a user or an assistant, all but the first elsewhere."""

    def examples(self) -> list[Example]:
        """Return an example for each turn that is to be scored: its id is that of the conversation, a colon, its number."""
        return [
            Example(f"{self.id}:{self.numbers[place]}", self.turns[:place], self.turns[place]) for place in self._responses()
        ]

    def places(self) -> list[Place]:
        """Return where each of the examples stands."""
        return [Place(self.id, self.numbers[place]) for place in self._responses()]

    def items(self, level: Level) -> list[Item]:
        """Return what a scorer of this level takes: the examples, or the conversation as one dialogue."""
        if level == "turn":
            return list(self.examples())
        if self.choice is not None:
            raise InputError("turns: chooses responses, and this scorer scores whole dialogues. Leave it out.")
        return [Dialogue(self.id, self.turns)]

    def _responses(self) -> list[int]:
        speakers = {turn.speaker for turn in self.turns}
        has_roles = not speakers.isdisjoint({USER, ASSISTANT})
        if self.choice == "assistant" and not has_roles and self.turns:
            named = ", ".join(sorted(repr(speaker) for speaker in speakers if speaker is not None))
            raise InputError(
                f"conversation {self.id!r}: has neither a user nor an assistant, only {named or 'turns of nobody'}. "
                "Choose the turns all or last, or call the chatbot 'assistant'."
            )
        of_anyone = list(range(1, len(self.turns)))
        if self.choice == "all" or (self.choice is None and not has_roles):
            return of_anyone
        found = [place for place, turn in enumerate(self.turns) if turn.speaker == ASSISTANT] if has_roles else of_anyone
        return found[-1:] if self.choice == "last" else found


def is_conversation(value: object) -> bool:
    """Whether an object is a row that holds a whole conversation, a turn of one, or a message."""
    if not isinstance(value, Mapping) or "context" in value:
        return False
    return _messages_field(value) is not None or _is_turn(value) or is_message(value)


class RowNames(NamedTuple):
    """How rows without an id are called.

    Attributes:
        stem: begins the id of a conversation, as `chats_00012`; without it its number is the id.
        first: number of the first row.
    """

    stem: str | None = None
    first: int = 0

    def conversation(self, number: int) -> str:
        """Return the id of a conversation by its number."""
        return str(number) if self.stem is None else f"{self.stem}_{number:05d}"


@dataclass
class Reading:
    """What is kept of a source while its rows are read, all at once or a part at a time.

    Attributes:
        left_out: counts what is no turn.
        malformed: gets what is wrong with the first conversations that are left out because of a message; None: it is an error.
        places: where each id stood first, where rows are read a part at a time.
        head: the first row, of whose kind all are.
        columns: names that occurred in a row of a table.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    malformed: list[str] | None = None
    places: FirstPlaces | None = None
    head: Mapping[str, Any] | None = None
    columns: dict[str, None] = field(default_factory=dict)


def read_rows(
    rows: Iterable[Line],
    reading: Reading,
    *,
    names: RowNames,
    columns: Mapping[str, str] | None = None,
    choice: TurnChoice | None = None,
    is_table: bool = False,
    is_wanted: Callable[[object], bool] | None = None,
) -> list[Conversation | Example]:
    """Return the conversations, or the single responses, that the rows of a file or of a data set hold.

    Args:
        rows: of one kind, see the module.
        reading: of the rows before these, and of these.
        names: of rows without an id.
        columns: our name of a field to the rows' own, for every field that is read.
        choice: which turns of a conversation are to be scored.
        is_table: cells that should be lists may be text, and columns that are not known are left alone.
        is_wanted: says of each row with a response, by its context as it stands there, whether it is read; by default all are.
    """
    is_table = is_table or bool(columns)
    lines = list(rows)
    if is_table:
        reading.columns |= dict.fromkeys(name for row in lines for name in row.value)
        lines = _renamed([Line(row.where, _present(row.value)) for row in lines], columns or {}, reading.columns)
    if not lines:
        return []
    reading.head = reading.head or lines[0].value
    if is_conversation(reading.head):
        return list(read_conversations(lines, reading, names=names, choice=choice))
    if is_table:
        lines = _responses(lines, columns or reading.columns)
    numbered = list(enumerate(lines, start=names.first))
    wanted = [one for one in numbered if is_wanted is None or is_wanted(one[1].value.get("context"))]
    examples = [_example(line, number, reading.left_out, is_table=is_table) for number, line in wanted]
    # Those of rows that are not wanted too: another shard has them.
    ids = [str(number if (own := line.value.get("id")) is None or own == "" else own) for number, line in numbered]
    distinct_ids(lines, ids, "Give every example its own.", reading.places)
    if choice is not None:
        raise InputError(
            f"{lines[0].where}: is one response with its context, so there are no turns to choose. Leave --turns out."
        )
    return list(examples)


def read_conversations(
    lines: Sequence[Line],
    reading: Reading,
    *,
    names: RowNames,
    choice: TurnChoice | None = None,
) -> list[Conversation]:
    """Return the conversations that rows hold, all of the kind of the first; see `read_rows`."""
    head = reading.head = reading.head or lines[0].value
    named: Iterable[tuple[str, Iterable[tuple[str, object]]]]
    if is_message(head) and "conversation" not in head:
        places = (f"{line.where}: message {number}" for number, line in enumerate(lines, start=1))
        named = [(names.conversation(names.first), zip(places, (line.value for line in lines), strict=True))]
    elif _is_turn(head):
        named = _messages_of_turns(lines)
    else:
        ids = _conversation_ids(lines, names, reading.places)
        named = [(id, _messages(line, _whole(line), id)) for id, line in zip(ids, lines, strict=True)]
    found = []
    for id, messages in named:
        left_out: Counter[str] = Counter()
        try:
            turns = numbered_turns(messages, left_out)
        except InputError as error:
            if reading.malformed is None:
                raise
            reading.left_out["malformed conversation"] += 1
            if len(reading.malformed) < _N_NAMED:
                reading.malformed.append(str(error))
            continue
        reading.left_out.update(left_out)
        found.append(Conversation(id, tuple(turn for _, turn in turns), tuple(number for number, _ in turns), choice))
    return found


def examples_from(
    conversations: Iterable[Any], turns: TurnChoice | None = None, *, columns: Mapping[str, str] | None = None
) -> list[Example]:
    """Make examples of conversations, to be scored by `Scorer.score`.

    Args:
        conversations: a list with one conversation each: OpenAI's `{"messages": [{"role": ..., "content": ...}, ...]}`,
            ShareGPT's `{"conversations": [{"from": ..., "value": ...}, ...]}`, `{"turns": [...]}`, or the list of messages
            alone. Or a table, a `pandas.DataFrame` or a `datasets.Dataset`, whose rows are such conversations, or turns
            (columns `conversation`, `speaker`, `text`), or responses (columns `context`, `response`).
        turns: which turns are responses to score; by default those of the assistant, or all but the first where a conversation
            has neither a user nor an assistant.
        columns: our names of fields to the table's own, as `{"context": "history", "response": "answer"}`.

    Returns:
        An example a response. Its id is that of its conversation, or its number from 0, then a colon and the number of its
        message, counted from 1 with the messages that are no turns.

    Raises:
        InputError: a row or a message is none; the error names both.

    Example:
        >>> chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}]
        >>> [(one.id, one.response.text) for one in examples_from([{"messages": chat}])]
        [('0:2', 'Hello!')]
    """
    found = conversations_from(conversations, turns, columns=columns)
    return [example for one in found for example in (one.examples() if isinstance(one, Conversation) else [one])]


def conversations_from(
    conversations: Iterable[Any],
    choice: TurnChoice | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    first: int = 0,
) -> list[Conversation | Example]:
    """Return what `examples_from` makes examples of, the rows numbered from `first`."""
    reading = Reading()
    rows, is_table = _given_rows(conversations)
    check_choice("turns", choice)
    found = read_rows(rows, reading, columns=columns, choice=choice, is_table=is_table, names=RowNames(first=first))
    if reading.left_out:
        logger.info("conversations: %s left out", left_out_text(reading.left_out))
    return found


def _given_rows(given: Any) -> tuple[Iterator[Line], bool]:
    if hasattr(given, "to_dict") and hasattr(given, "columns"):
        return (Line(f"row {index}", row) for index, row in enumerate(given.to_dict("records"))), True
    if hasattr(given, "column_names"):
        return (Line(f"row {index}", row) for index, row in enumerate(given)), True
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(
            f"conversations: expected a list of conversations, or a table of them, got {given!r:.80} ({type(given).__name__}). "
            "Wrap a single one in a list; read a file by dialeval_plugin.corpora.registry.read_items."
        )
    return (_given_row(value, f"conversations[{index}]") for index, value in enumerate(given)), False


def _given_row(value: Any, where: str) -> Line:
    if isinstance(value, Mapping):
        return Line(where, dict(value))
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(
            f"{where}: expected a conversation, got {value!r:.80} ({type(value).__name__}). "
            "Give a list of messages, or an object that has one under 'messages'."
        )
    return Line(where, {"messages": list(value)})


def _present(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without what is missing: None, or NaN as pandas has it."""
    return {
        name: value for name, value in row.items() if not (value is None or (isinstance(value, float) and math.isnan(value)))
    }


def _renamed(lines: list[Line], columns: Mapping[str, str], known: Mapping[str, object]) -> list[Line]:
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise unknown_name(f"columns: there is no field {unknown[0]!r}", unknown[0], COLUMNS)
    if not columns or not lines:
        return lines
    for ours, theirs in columns.items():
        if theirs not in known:
            raise InputError(
                f"{lines[0].where}: has no column {theirs!r}, which is to be {ours!r}. There are: {', '.join(map(str, known))}."
            )
    # What is not named is not taken by chance: beside the column that is the text there may be another called `text`. An id is.
    if "id" in known and "id" not in columns.values():
        columns = {"id": "id", **columns}
    return [
        Line(line.where, {ours: line.value[name] for ours, name in columns.items() if name in line.value}) for line in lines
    ]


def _responses(lines: Sequence[Line], columns: Mapping[str, object]) -> list[Line]:
    """The rows of a table with a response each, without other columns."""
    if not {"context", "response"} <= columns.keys():
        raise InputError(
            f"{lines[0].where}: has the columns {', '.join(map(repr, columns)) or '(none)'}. Say which is which by columns: "
            "context and response of a table with a response a row; conversation, speaker and text, with a turn a row; "
            "messages, with a conversation a row."
        )
    blank = {"context": (), "response": ""}
    return [
        Line(line.where, {**blank, **{name: line.value[name] for name in OF_AN_EXAMPLE if name in line.value}})
        for line in lines
    ]


def _is_turn(value: Mapping[str, Any]) -> bool:
    """Whether a row is one turn; `conversation` is then an id."""
    return "conversation" in value and "text" in value


def _messages_field(value: Mapping[str, Any]) -> str | None:
    return None if _is_turn(value) else next((name for name in _WHOLE if name in value), None)


def _conversation_ids(lines: Sequence[Line], names: RowNames, places: FirstPlaces | None) -> list[str]:
    ids = []
    for number, line in enumerate(lines, start=names.first):
        own = next((name for name in _IDS if line.value.get(name) is not None), None)
        id = None if own is None else id_field(line, own)
        ids.append(id or names.conversation(number))
    return unique_ids(ids) if places is None else places.unique(ids, lines)


def _whole(line: Line) -> str:
    """The field of the messages."""
    name = _messages_field(line.value)
    if name is None:
        known = ", ".join(map(repr, line.value)) or "nothing"
        raise InputError(
            f"{line.where}: has no 'messages', 'conversations' or 'turns', only {known}. Give a list of messages or texts."
        )
    if "response" in line.value:
        raise InputError(
            f"{line.where}: has {name!r} and 'response'. Call the messages 'context', or let the response be the last of them."
        )
    return name


def _messages(line: Line, name: str, id: str) -> Iterator[tuple[str, object]]:
    place = f"{line.where}: conversation {id!r}"
    for number, value in enumerate(_list(line.value[name], f"{place}: {name}", "messages", is_cell=True), start=1):
        yield f"{place}, message {number}", value


def _list(values: Any, where: str, what: str, *, is_cell: bool) -> list[Any]:
    """The values of a list, an array, or a cell of a table that holds a list as JSON; `what` names them."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if is_cell and isinstance(values, str):
        if _PYTHON_LIST.match(values):
            raise InputError(f"{where}: is a list as Python prints it, {values!r:.60}. Write it as JSON, by json.dumps.")
        if _JSON_LIST.match(values):
            values = parse_json(values, where)
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Sequence):
        raise InputError(
            f"{where}: expected a list of {what}, got {values!r:.80} ({type(values).__name__}). {advice_for_list(values)}"
        )
    return list(values)


def _messages_of_turns(lines: Sequence[Line]) -> Iterator[tuple[str, Iterable[tuple[str, object]]]]:
    """The messages of each conversation, of rows that are turns each; those of one may stand among those of others."""
    rows: dict[str, list[Line]] = {}
    for line in lines:
        require(line, "conversation", advice="Name the conversation of every turn.")
        rows.setdefault(id_field(line, "conversation") or "", []).append(line)
    for id, own in rows.items():
        messages = (
            (
                f"{line.where}: conversation {id!r}, message {number}",
                {"speaker": line.value.get("speaker") or None, "text": line.value.get("text")},
            )
            for number, line in enumerate(own, start=1)
        )
        yield id, messages


def _example(line: Line, number: int, left_out: Counter[str], *, is_table: bool) -> Example:
    if unknown := sorted(set(line.value) - set(OF_AN_EXAMPLE)):
        raise unknown_name(f"{line.where}: there is no field {unknown[0]!r}", unknown[0], sorted(OF_AN_EXAMPLE))
    require(line, "context", "response", advice="Give a list of turns as context and a string as response.")
    own = label_field(line, "id")
    id = str(number) if own is None else own
    where = f"{line.where}: Example {id!r}"

    def texts(name: str) -> list[Any]:
        values = line.value.get(name, ())
        if is_table and isinstance(values, str) and not (_JSON_LIST.match(values) or _PYTHON_LIST.match(values)):
            values = context_lines(values)
        return _list(values, f"{where}: {name}", "strings", is_cell=is_table)

    names = (f"{where}: context", f"{where}: response")
    context, response = context_and_response(texts("context"), line.value["response"], names, left_out)
    references, facts = (
        tuple(check_text(text, f"{where}: {name}[{index}]") for index, text in enumerate(texts(name)))
        for name in ("references", "facts")
    )
    return Example(id, context, response, references, facts)
