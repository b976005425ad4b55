"""Reader of rows of a file, a table or a data set, as conversations, or as single responses if a row is one.

A row is a whole conversation in one of `layouts`; or one message, with its role, its text, and the id of its conversation; or a
response, with `context` and `response`. Other fields are ignored.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import Line

from .files import NAME_EACH, Rows, row_of
from .layouts import find
from .layouts.layout import CONVERSATION_IDS, IDS, WHOLE, Layout, Logged, Value, id_of
from .messages import (
    ASSISTANT,
    ID_WORDS,
    SYSTEM,
    Fields,
    at,
    columns_of,
    is_message,
    left_out_text,
    numbered_turns,
    parsed_cell,
    sides_of,
    speaker_of,
    unwrapped,
    words_in,
    words_of,
)
from .order import Branches, Order, current_of, id_of_message, is_date, paths, place_of
from .record import REPEATED, Conversation, Kept, Reading, ReadingOptions, TurnChoice, id_text, kept_fields
from .responses import OF_AN_EXAMPLE, QUESTIONS, answer_beside, likely_table, response_of

logger = logging.getLogger(__name__)

COLUMNS = tuple(dict.fromkeys((*OF_AN_EXAMPLE, "conversation", "speaker", "text", *WHOLE)))
"""Field names that `columns` can map to the columns of a table."""
_CONVERSATIONS = (*CONVERSATION_IDS, "message_tree_id", "trace_id")
"""Names of the id of a message's conversation; `id` is the message's own, unless several messages share it."""
_USERS = frozenset({"user", "participant", "customer", "sender", "author", "person", "email", "phone"})
"""Words of columns of a user, with whom somebody else speaks."""
_MESSAGE_ROWS = "message rows"
"""Name of the layout of rows that are one message each, in no product's layout."""


def read_rows(
    rows: Rows, reading: Reading, is_wanted: Callable[[object], bool] | None = None
) -> Iterator[Conversation | Example | None]:
    """Yield the conversations, or the single responses, of rows; conversations made from message rows come last.

    Args:
        rows: see the module. Cells of a table that should be lists may be text, and its unknown columns are ignored.
        reading: the user's options, and counts of earlier rows, to which these are added.
        is_wanted: tells for a response's context, as in its row, whether the row is read; None is yielded if not.
    """
    options, is_table, number = reading.options, rows.is_table, reading.first
    messages: dict[str, dict[str | None, list[_Packed]]] = {}
    parts: dict[str, tuple[Layout, list[Line]]] = {}

    def gather(layout: str, message: Line, named: Line, source: Line) -> None:
        packed = _Packed.of(*message, kept_fields({}, source.value, reading))
        messages.setdefault(layout, {}).setdefault(_conversation_of(named), []).append(packed)

    _check_columns(options.columns)
    for given in rows.lines:
        line = _of_table(given, options.columns) if is_table else given
        row = _renamed(line, options.columns, given.value if is_table or number == reading.first else None)
        is_one = is_message_row(row.value)
        row, layout = _with_layout(row, options, is_one=is_one, is_table=is_table)
        if layout is None and is_one:
            gather(_MESSAGE_ROWS, Line(row.where, {**line.value, **row.value} if options.columns else line.value), row, line)
        elif layout is not None and layout.joined_by:
            parts.setdefault(str(row.value.get(layout.joined_by)), (layout, []))[1].append(row)
        elif layout is not None and layout.message is not None:
            for message in _messages_of_row(row, layout, layout.message, reading):
                gather(layout.name, message, message, line)
        elif layout is not None:
            yield from _conversations_of(row, line, layout, reading, reading.name(number))
        elif "context" in row.value or "response" in row.value or "context" in options.columns:
            yield response_of(row, line, number, reading, is_table=is_table, is_wanted=is_wanted)
        else:
            reading.refuse(_unknown(row))
        number += 1
    for index, (layout, joined) in enumerate(parts.values()):
        row = _joined(joined)
        yield from _conversations_of(row, row, layout, reading, reading.name(reading.first + index))
    if len(messages) > 1 and _MESSAGE_ROWS in messages:
        other = next(name for name in messages if name != _MESSAGE_ROWS)
        where = next(packed.where for group in messages[other].values() for packed in group)
        raise InputError(
            f"{where}: is read as a message of the layout {other!r}, which other rows do not have. Read all rows alike by "
            f"--layout {other}, or by --columns speaker=NAME,text=NAME."
        )
    for name, of_layout in messages.items():
        yield from _grouped(name, of_layout, reading, next(iter(rows.begins), None))


def _with_layout(row: Line, options: ReadingOptions, *, is_one: bool, is_table: bool) -> tuple[Line, Layout | None]:
    """Return the layout of a row, and the row as it has it: the cells of a table may have objects as JSON."""
    layout = find(row.value, options.layout, is_message=is_one)
    if layout is None and is_table and not is_one and "context" not in row.value:
        cells = Line(row.where, {name: parsed_cell(one) for name, one in row.value.items()})
        if (layout := find(cells.value)) is not None:
            row = cells
    if layout is not None:
        layout.ask(row.where, options.layout)
    return row, layout


def _check_columns(columns: Mapping[str, str]) -> None:
    """Raise an error for a field that is not known, or one that rows with the other fields do not have."""
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise unknown_name(f"columns: there is no field {unknown[0]!r}", unknown[0], COLUMNS)
    of_messages = {"id", "speaker", "text"}
    kinds: list[set[str]] = [set(OF_AN_EXAMPLE), *(of_messages | {name} for name in ("conversation", *WHOLE))]
    if not any(columns.keys() <= kind for kind in kinds):
        raise InputError(
            f"columns: {' and '.join(map(repr, columns))} are not fields of one row. Name those of a response "
            f"({', '.join(OF_AN_EXAMPLE)}), of a message (conversation, speaker, text), or of a conversation (messages, and "
            "the speaker and text of its messages)."
        )


def _messages_of_row(row: Line, layout: Layout, read: Callable[[Value], Any], reading: Reading) -> list[Line]:
    """Return the messages of a row, for a layout with a message per row."""
    try:
        with layout.reading(row.where):
            messages = read(row.value)
    except InputError as error:
        reading.refuse(error)
        return []
    if isinstance(messages, str):
        reading.left_out.update(filter(None, [messages]))
        return []
    return [Line(row.where, dict(one)) for one in (messages if isinstance(messages, list) else [messages])]


def _present(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's row without missing values (None, or pandas' NaN), and with lists for arrays."""
    plain = {name: _plain(value) for name, value in row.items()}
    return {
        name: value for name, value in plain.items() if not (value is None or (isinstance(value, float) and math.isnan(value)))
    }


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _renamed(line: Line, columns: Mapping[str, str], known: Mapping[str, Any] | None) -> Line:
    """Return the row under our field names, for the fields in `columns`; those of a message may be inside the row's messages.

    `known` has all columns, if every row is known to have them.
    """
    if not columns:
        return line
    theirs = {ours: name for ours, name in columns.items() if at(line.value, name) is not None or name in line.value}
    of_messages = {"speaker", "text"} if columns.keys() & set(WHOLE) or not columns.keys() - {"speaker", "text"} else set()
    for ours, name in columns.items():
        if known is not None and name not in known and at(known, name) is None and ours not in of_messages:
            raise InputError(
                f"{line.where}: has no column {name!r}, which is to be {ours!r}. There are: {', '.join(map(str, known))}."
            )
    # Unnamed columns are not read by chance: next to the chosen text column there may be another called `text`. An id is read.
    own = {"id": line.value["id"]} if "id" in line.value and "id" not in (*columns, *columns.values()) else {}
    if not theirs and not columns.keys() - {"speaker", "text"}:
        return line
    return Line(line.where, {**own, **{ours: at(line.value, name) for ours, name in theirs.items()}})


def _of_table(line: Line, columns: Mapping[str, str]) -> Line:
    """Return a table's row without its missing values; and with usual names next to its own, if it can be read by them.

    "Conversation ID" is also `conversation_id`. A row that can be read under its own names is not given others.
    """
    row = _present(line.value)
    # A message may have no text, such as a call of a tool.
    silent = {name: None for name in (columns.get("text", "text"), "content") if name in line.value and name not in row}
    if silent and ("text" in columns or (not is_message_row(row) and is_message_row({**row, **silent}))):
        row |= silent
    aliases = () if columns else _aliases(tuple(row))
    named = {**row, **{usual: row[name] for name, usual in aliases}}
    return Line(line.where, named if aliases and not _is_readable(row) and _is_readable(named) else row)


def _is_readable(value: Mapping[str, Any]) -> bool:
    is_response = {"context", "response"} <= value.keys() and not value.keys() & set(QUESTIONS)
    return is_response or is_conversation(value)


@functools.lru_cache(maxsize=1024)
def _aliases(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the columns whose names are usual but for case, spaces and hyphens, each with its usual name."""
    changed = (name for name in names if name != name.lower() or " " in name)
    usual = [(name, re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name.strip()).lower()) for name in changed]
    return tuple((name, one) for name, one in usual if one not in names)


def is_message_row(value: Mapping[str, Any]) -> bool:
    """Whether a row is one message, whoever said it."""
    if value.keys() & {"response", "messages", "conversations", "turns"} or isinstance(value.get("conversation"), list):
        return False
    inner = parsed_cell(value.get("message") or value.get("data") or value.get("payload") or value.get("kwargs"))
    return (
        {"conversation", "text"} <= value.keys()
        or {"speaker", "text"} <= value.keys()
        or is_message(value)
        or (isinstance(inner, Mapping) and (is_message({**value, **inner}) or is_message(unwrapped(value))))
    )


def is_conversation(value: Mapping[str, Any], *, is_table: bool = False) -> bool:
    """Whether a row is a whole conversation of a known layout, or a message of one."""
    value = _of_table(Line("", dict(value)), {}).value if is_table else value
    return is_message_row(value) or find(value) is not None


def _conversation_of(row: Line) -> str | None:
    name = next((name for name in _CONVERSATIONS if row.value.get(name) not in (None, "")), None)
    return None if name is None else id_text(row.value[name], f"{row.where}: {name}")


def _conversations_of(row: Line, line: Line, layout: Layout, reading: Reading, name: str) -> Iterator[Conversation]:
    try:
        found = [_continued(one, row.where, reading) for one in layout.conversations(row.value, row.where)]
        logged = [part for one in found for part in _by_conversation(one, row.where)]
    except InputError as error:
        reading.refuse(error)
        return
    named = next((str(row.value[name]) for name in IDS[1:] if row.value.get(name) is not None), None)
    if named is not None and reading.is_copy(line.value):
        reading.left_out[REPEATED] += len(logged)
        return
    reading.left_out.update(one.left_out for one in logged if one.left_out)
    for index, one in enumerate(logged):
        if one.left_out:
            continue
        own = id_of(row.value) if one.id is None and len(logged) == 1 else one.id
        id = name if len(logged) == 1 else f"{name}_{index}"
        if own is not None:
            id = id_text(own, f"{row.where}: id")
        id = reading.places.unique(id, row.where)
        # A row with several conversations in one list has none beside it.
        may_lack_answer = layout.is_of_any_product and len(logged) == 1
        key = (row.where.rpartition(":")[0], str(own)) if named is None else (named, None)
        n = len(one.messages)
        places = [row.where] * n, [line.value] * n
        yield from _in_order(one._replace(id=id), *places, layout.name, reading, key, may_lack_answer=may_lack_answer)


def _continued(logged: Logged, where: str, reading: Reading) -> Logged:
    """Return a request and its answer below the earlier ones that it continues, as of OpenAI's Responses."""
    before = [] if logged.continues is None else reading.answers.get(str(logged.continues))
    if before is None:
        raise InputError(
            f"{where}: continues the answer {logged.continues!r}, which is not above it, so that what was said before is not "
            "known. Put its row above, or read each alone by --columns context=NAME,response=NAME."
        )
    messages = [*before, *logged.messages]
    if logged.answer_id is not None:
        reading.answers[str(logged.answer_id)] = messages
    return logged._replace(messages=messages, n_history=logged.n_history + len(before))


def _by_conversation(logged: Logged, where: str) -> list[Logged]:
    """Return the conversations of a list of messages, a field of which names that of each."""
    messages = [unwrapped(one) if isinstance(one, Mapping) else {} for one in logged.messages]
    for name in CONVERSATION_IDS:
        parts: dict[str | None, list[object]] = {}
        for one, message in zip(logged.messages, messages, strict=True):
            own = message.get(name)
            parts.setdefault(None if own is None else str(own), []).append(one)
        if len(parts.keys() - {None}) < 2:
            continue
        if None in parts or len(parts) == len(messages):
            advice = "Give all messages of a conversation the same name of it."
            raise InputError(f"{where}: has messages of several conversations by {name!r}, or without one. {advice}")
        return [logged._replace(id=id, messages=part) for id, part in parts.items()]
    return [logged]


def _in_order(
    logged: Logged,
    sources: Sequence[str],
    rows: Sequence[Value],
    layout: str,
    reading: Reading,
    key: tuple[object, object],
    *,
    may_lack_answer: bool = False,
) -> Iterator[Conversation]:
    """Yield the conversation, or one per branch, in conversation order.

    `sources` has the location of each message, `rows` the other fields of its source, and `key` what it shares with those that
    it repeats; `may_lack_answer` asks whether another field of its row has the last answer.
    """
    messages, id = logged.messages, str(logged.id)
    options = reading.options
    fields = Fields(options.columns.get("speaker"), options.columns.get("text"))
    for ours in options.columns.keys() & {"speaker", "text"} if messages else ():
        name = options.columns[ours]
        if not any(at(one, name) is not None for one in messages):
            leave = "" if options.columns.keys() & set(WHOLE) else f", or name their list too (messages=NAME,{ours}={name})"
            raise InputError(
                f"{sources[0]}: conversation {id!r}: no message of it, as the layout {layout!r} reads it, has a field "
                f"{name!r}, which is to be its {ours}. Leave --columns {ours}={name} out{leave}."
            )
    places = [f"{source}: conversation {id!r}, message {number}" for number, source in enumerate(sources, start=1)]
    where = f"{sources[0]}: conversation {id!r}" if sources else id
    beside, is_unsettled = None, may_lack_answer and not (options.layout or options.columns.keys() & set(WHOLE))
    try:
        ways = paths(messages, where, current=logged.current, branches=options.branches, order=options.order)
        seen: set[int] = set()
        first: str | None = None
        for branch, way in enumerate(ways, start=1):
            left_out: Counter[str] = Counter()
            numbered = numbered_turns([(places[place], messages[place]) for place in way], left_out, fields)
            turns, of_turns = tuple(turn for _, turn in numbered), [way[number - 1] for number, _ in numbered]
            n_history = sum(place in seen or place < logged.n_history for place in of_turns)
            seen.update(way)
            continues = first
            if (logged.once is not None or len(turns) > 1) and branch == 1:
                is_once = logged.once is not None
                of = (logged.once, None) if is_once else key
                n_repeated, continues = reading.repeated(turns, *of, id, n_history, is_once=is_once)
                if turns and n_repeated == len(turns):
                    reading.left_out[REPEATED] += 1
                    continue
                n_history = n_history or n_repeated
                left_out += Counter({"repeated message": n_repeated})
                if logged.n_history and turns and continues is None:
                    continues = reading.continued(turns, n_history, sources[0].rpartition(":")[0], logged.thread, id)
            reading.left_out.update(left_out)
            if is_unsettled and turns and (beside := answer_beside(rows[0], messages, turns)):
                break
            conversation = Conversation(
                id if branch == 1 else f"{id}/{branch}",
                turns,
                tuple(place + 1 for place in of_turns),
                options.choice,
                n_history,
                tuple(sources[place] for place in of_turns),
                tuple(kept_fields(messages[place], rows[place], reading) for place in of_turns) if options.keep else (),
                continues,
            )
            first = first or continues or f"{reading.below}{conversation.id}"
            reading.count(conversation, layout)
            yield conversation
    except InputError as error:
        reading.refuse(error)
    if beside:
        raise InputError(f"{where}: {beside} Or read the turns alone by --layout {layout}.")


def _joined(parts: Sequence[Line]) -> Line:
    """Return one row joined from its parts, for example a question and its answer."""
    whole: dict[str, Any] = {}
    for part in parts:
        for name, value in part.value.items():
            if name != "id" and whole.setdefault(name, value) != value:
                raise InputError(
                    f"{part.where}: has another {name!r} than what it belongs to ({parts[0].where}). Keep one of the two."
                )
    return Line(parts[0].where, whole)


class _Packed(NamedTuple):
    """A row kept in a third of the memory until all rows are read: similar rows share the names of their fields."""

    where: str
    names: tuple[str, ...]
    values: tuple[Any, ...]
    kept: Kept

    @classmethod
    def of(cls, where: str, value: Mapping[str, Any], kept: Kept) -> _Packed:
        # Names of speakers and conversations recur, so each is stored once.
        values = (sys.intern(one) if type(one) is str and len(one) < 40 else one for one in value.values())
        return cls(where, _names(tuple(value)), tuple(values), kept)

    @property
    def value(self) -> dict[str, Any]:
        """Return the original row."""
        return dict(zip(self.names, self.values, strict=True))


_names: Callable[[tuple[str, ...]], tuple[str, ...]] = functools.lru_cache(maxsize=1024)(tuple)
"""One shared object for equal tuples."""


def _grouped(
    layout: str, groups: dict[str | None, list[_Packed]], reading: Reading, begins: str | None
) -> Iterator[Conversation]:
    """Yield the conversations of message rows, which may alternate; `begins` says why one may begin somewhere."""
    is_layout, is_asked = layout != _MESSAGE_ROWS, reading.options.order is None
    if list(groups) == [None]:
        # If nothing else names a conversation, an id shared by several messages is the conversation's.
        ids = [None if is_layout else packed.value.get("id") for packed in groups[None]]
        if None not in ids and len(set(map(str, ids))) < len(ids):
            by_id: dict[str | None, list[_Packed]] = {}
            for packed, own in zip(groups[None], ids, strict=True):
                by_id.setdefault(id_text(own, f"{packed.where}: id"), []).append(packed)
            groups = by_id
        elif is_asked and not is_layout and (unnamed := _parting_column(groups[None])):
            columns = columns_of(groups[None][0].value, {"conversation": unnamed, **reading.options.columns})
            raise InputError(
                f"{groups[None][0].where}: has no conversation, and {unnamed!r} may be it. "
                f"Say so by --columns {columns}. Or read all rows as one by --order listed."
            )
        elif is_asked and (begins := begins or (None if is_layout else _begins_again(groups[None]))):
            raise InputError(f"{begins}, or read all as one by --order listed.")
    elif None in groups and len(groups) > 1:
        advice = "Name the conversation of every message. Of merged cells, copy it into each row."
        raise InputError(f"{groups[None][0].where}: has no conversation, which other rows have. {advice}")
    for given in list(groups):
        group = groups.pop(given)
        if (n_copies := len(group) - len(group := _once(group))) > 0:
            reading.left_out["repeated message"] += n_copies
        lines, kept = [Line(packed.where, packed.value) for packed in group], [dict(packed.kept) for packed in group]
        if is_asked and not is_layout and (doubt := _joined_by_name(lines)):
            raise InputError(doubt)
        id = reading.places.unique(reading.name(reading.first) if given is None else given, lines[0].where)
        if latest := {str(line.value["replaces"]): place for place, line in enumerate(lines) if "replaces" in line.value}:
            valid = [place for place, line in enumerate(lines) if latest.get(str(line.value.get("replaces")), place) == place]
            lines, kept = [lines[place] for place in valid], [kept[place] for place in valid]
        messages = [line.value if is_layout else _message_of_row(line.value) for line in lines]
        if given is None and not is_layout and sides_of(messages) == {ASSISTANT}:
            advice = "Put each after its request, and name the conversation of every message."
            reading.refuse(InputError(f"{lines[0].where}: has answers alone, and nothing says what was asked. {advice}"))
            continue
        logged = Logged(messages, id, current=current_of(messages[-1]) if is_layout else None)
        key = str(id_of_message(messages[0]) or given or ""), None
        yield from _in_order(logged, [line.where for line in lines], kept, layout, reading, key)


def _once(group: list[_Packed]) -> list[_Packed]:
    """Return the rows of a conversation without copies of one, which has the same id; a table may be put together from two."""
    with contextlib.suppress(TypeError):  # lists and objects, as in JSON, have no hash
        if len({packed.values for packed in group}) == len(group):
            return group
    rows = {(packed.names, repr(packed.values)): packed for packed in reversed(group)}
    return group if id_of_message(group[0].value) is None else [*rows.values()][::-1]


def _joined_by_name(lines: Sequence[Line]) -> str | None:
    """Say which row repeats the one before it, or the first, but for a field, or which column has several users; or None."""
    texts = {str(line.value.get("content", line.value.get("text"))) for line in lines}
    words = [words_of(line.value) for line in lines] if len(texts) < len(lines) else []
    is_own = functools.cache(lambda name: len({str(line.value.get(name)) for line in lines}) == len(lines))
    for old, new in itertools.chain(itertools.pairwise(range(len(words))), ((0, n) for n in range(2, len(words)))):
        (where, before), (place, row) = lines[old], lines[new]
        is_again = words[old] == words[new] != [] and all(of(before) == of(row) for of in (place_of, id_of_message))
        names = (name for name in row if is_again and row[name] != before.get(name) and not is_date(row[name]))
        if (name := next((name for name in names if not is_own(name)), None)) is not None:
            advice = "Keep one row of each message, or read all by --order listed."
            return f"{place}: says what {where} says, and differs in {name!r}, such as by who judged it. {advice}"
    if (name := _parting_column(lines, of_users=True)) is not None:
        advice = "Join both columns into one, and name it by --columns conversation=NAME, or read them so by --order listed."
        return f"{lines[0].where}: is of a conversation with several users by {name!r}. {advice}"
    return None


def _parting_column(lines: Sequence[_Packed | Line], *, of_users: bool = False) -> str | None:
    """Return a column that is called an id, or by whose values, each in a block or a user's, several speak; None without."""
    of_message = words_of(lines[0].value)
    for name, one in lines[0].value.items():
        is_user = bool(words_in(name) & _USERS)
        if name in ("id", "parent_id", "date") or one in of_message or (of_users and not is_user):
            continue
        values, speakers = [str(line.value.get(name)) for line in lines], dict[str, set[str]]()
        for value, line in zip(values, lines, strict=True):
            speakers.setdefault(value, set()).add(str(words_of(line.value)[:1]))
        several_speak = 2 * sum(len(one) > 1 for one in speakers.values()) > len(speakers)
        is_in_blocks = len(speakers) == sum(1 for _ in itertools.groupby(values))
        may_part = (several_speak and (is_user or is_in_blocks)) or (not is_user and words_in(name) & ID_WORDS)
        if 1 < len(speakers) < len(lines) and may_part:
            return name
    return None


def _begins_again(lines: Sequence[_Packed]) -> str | None:
    """Return the location of a row that says what the first one says, and that it does; None without one.

    It begins another conversation if that is a prompt or a greeting, or if the next row says what the second one says.
    """
    words = [words_of(line.value) for line in lines]
    is_opening = any(isinstance(one, str) and speaker_of(one) in (SYSTEM, ASSISTANT) for one in words[0])
    again = (place for place in range(1, len(words)) if words[place] == words[0] != [])
    found = (lines[place].where for place in again if is_opening or words[place : place + 2] == words[:2])
    return next((f"{where}: says what {lines[0].where} says again, {NAME_EACH}" for where in found), None)


_PART = {"type", "content_type", "parts", "text", "content", "value"}
"""Fields of a message part, which has at least one of them."""


def _message_of_row(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of a row, whose cells may hold its parts as JSON."""
    row = {**value}
    if "speaker" in row and "role" not in row:
        row["speaker"] = row["speaker"] or None
    for name in ("content", "text", "value", "parts", "message"):
        if isinstance(row.get(name), str) and row[name].lstrip()[:1] in ("{", "["):
            cell = parsed_cell(row[name])
            parts = [cell] if isinstance(cell, Mapping) else cell if isinstance(cell, list) else []
            # A user may write JSON too: it is a text unless a name in it is that of a part.
            if all(isinstance(part, Mapping) and (name == "parts" or part.keys() & _PART) for part in parts) and parts:
                row[name] = cell
    return row


def _unknown(row: Line) -> InputError:
    if row.value.keys() & {"choices", "candidates", "delta"}:
        what = "a piece of a streamed answer" if "chunk" in str(row.value.get("object")) else "an answer without its request"
        advice = 'Log both: {"request": {"messages": [...]}, "response": {...}}, with the whole answer.'
        return InputError(f"{row.where}: is {what}, and nothing says what was asked. {advice}")
    if not row.value:
        return InputError(f"{row.where}: has no value in any column. Leave it out, of a data frame by dropna(how='all').")
    advice = (
        "Say what its fields are by --columns: messages=NAME of a whole conversation; context=NAME,response=NAME of a "
        "response; conversation=NAME,speaker=NAME,text=NAME of a message. Or name its layout by --layout, or write each "
        'conversation as {"messages": [{"role": "user", "content": "..."}, ...]}.'
    )
    if likely := likely_table(row.value):
        is_without_speaker = re.search(r"\btext=", likely) and "speaker=" not in likely
        who = " Add speaker=NAME if another field says who speaks." if is_without_speaker else ""
        advice = f"It may be read by {likely}.{who}"
    known = ", ".join(map(repr, list(row.value)[:12]))
    return InputError(f"{row.where}: is no conversation of a known layout; it has {known}. {advice}")


def examples_from(
    conversations: Any,
    turns: TurnChoice | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    layout: str | None = None,
    branches: Branches | None = None,
    order: Order | None = None,
    keep: str | Sequence[str] = (),
) -> list[Example]:
    """Make examples from conversations, for `Scorer.score`.

    Args:
        conversations: a list of conversations, in any of the layouts that `dialeval score` reads: OpenAI's `{"messages":
            [{"role": ..., "content": ...}, ...]}`, ShareGPT's `{"conversations": [{"from": ..., "value": ...}]}`, or only the
            list of messages. Or a table, a `pandas.DataFrame`, a `datasets.Dataset` or a `pyarrow.Table`, whose rows are such
            conversations, or messages, or responses (columns `context`, `response`).
        turns: which turns are responses to score; by default those of the assistant, or all but the first in a conversation
            with neither a user nor an assistant.
        columns: maps our field names to the table's own, for example `{"context": "history", "response": "answer"}`.
        layout: name of the layout, if it is not recognised.
        branches: "shown" or "all", for conversations that branch.
        order: order of messages, "listed" or "time".
        keep: fields that each example keeps in its `origin`.

    Returns:
        One example per response. Its id is that of its conversation, or its number from 0, then a colon and the number of its
        message, counted from 1 and including messages that are no turns.

    Raises:
        InputError: a row or a message is malformed; the error names both.

    Example:
        >>> chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}]
        >>> [(one.id, one.response.text) for one in examples_from([{"messages": chat}])]
        [('0:2', 'Hello!')]
    """
    options = ReadingOptions.from_arguments(turns, columns, keep, layout=layout, branches=branches, order=order)
    read = conversations_from(conversations, options)
    examples = [example for one in read for example in (one.examples() if isinstance(one, Conversation) else [one])]
    if read and not examples:
        advice = "Call the assistant 'assistant', or choose turns='all'."
        logger.warning("conversations: there is no turn to score in any of %d. %s", len(read), advice)
    return examples


def conversations_from(conversations: Any, options: ReadingOptions, *, first: int = 0) -> list[Conversation | Example]:
    """Return the conversations behind `examples_from`, with rows numbered from `first`."""
    reading = Reading(options, first=first)
    read = [one for one in read_rows(given_rows(conversations), reading) if one is not None]
    if reading.left_out:
        logger.info("conversations: %s left out", left_out_text(reading.left_out))
    if lacking := set(options.keep) - reading.fields_present if read else ():
        logger.warning("conversations: nothing that was read has a field %s to keep", " or ".join(map(repr, sorted(lacking))))
    return read


def given_rows(given: Any) -> Rows:
    """Return the rows of a Python object.

    Raises:
        InputError: it is neither a list of conversations nor a table, or holds several tables.
    """
    if isinstance(given, Mapping) and given and all(hasattr(one, "column_names") for one in given.values()):
        if len(given) == 1:
            return given_rows(*given.values())
        raise InputError(
            f"conversations: are several tables ({', '.join(map(str, given))}). Name one, as given[{next(iter(given))!r}]."
        )
    if hasattr(given, "collect") and hasattr(given, "collect_schema"):  # a query of polars
        given = given.collect()
    form = getattr(given, "format", None)
    if isinstance(form, Mapping) and form.get("type") in ("arrow", "pandas", "polars"):  # a Dataset whose rows are tables
        given = given.with_format(None, columns=form["columns"])
    rows: Iterable[Any] | None = None
    if hasattr(given, "to_pylist") and hasattr(given, "column_names"):
        rows = (row for batch in (given.to_batches() if hasattr(given, "to_batches") else [given]) for row in batch.to_pylist())
    elif hasattr(given, "iter_rows") and hasattr(given, "columns"):
        rows = given.iter_rows(named=True)  # polars
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):
        if doubled := [name for name, is_second in zip(given.columns, given.columns.duplicated(), strict=True) if is_second]:
            raise InputError(f"table: the column {doubled[0]!r} occurs twice. Rename one.")
        is_named = {*given.index.names} - {None, *given.columns}  # by set_index or groupby
        rows = (given.reset_index() if is_named else given).rename(columns=str).to_dict("records")
    elif hasattr(given, "column_names"):
        rows = given
    if rows is not None:
        return Rows((Line(f"row {index}", row) for index, row in enumerate(rows)), is_table=True)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(
            f"conversations: expected a list of conversations, or a table of them, got {given!r:.80} ({type(given).__name__}). "
            "Wrap a single one in a list; score a file by dialeval_plugin.score."
        )
    return Rows(row_of(value, f"conversations[{index}]") for index, value in enumerate(given))
