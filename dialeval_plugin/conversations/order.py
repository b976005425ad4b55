"""Order of a log's messages: along the branch that was shown, by their numbers, or by their times."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias

from dialeval_plugin.core.errors import InputError

Branches: TypeAlias = Literal["shown", "all"]
"""Branches to read: the one that was shown, or all, with each answer once after the messages before it."""
Order: TypeAlias = Literal["listed", "time"]
"""Whether messages are ordered as listed, or by their times."""

_IDS = ("id", "uuid", "message_id", "messageId", "_id", "node_id", "tweet_id")
_PARENTS = (
    "parent", "parent_id", "parentId", "parent_message_id", "parentMessageId", "parent_message_uuid", "parentUuid",
    "parent_uuid", "parent_message", "reply-to", "in_response_to_tweet_id",
)  # fmt: skip
_CURRENT = (
    "current_node", "currentId", "currNode", "current_leaf_message_uuid", "currentLeafMessageId", "active_leaf_id",
    "activeLeafId",
)  # fmt: skip
_INDEXES = (
    "turn_index", "turnIndex", "message_index", "messageIndex", "turn_number", "turnNumber", "turn_no", "message_number",
    "sequence_number", "sequenceNumber", "turn_id", "index", "seq", "sequence", "position", "order", "msg_index", "turn",
    "msg_no", "message_no", "line_no", "row_no", "utterance_index", "utterance_no", "utterance_id", "seq_no",
)  # fmt: skip
_REPLIES = frozenset({"reply_to_message_id", "reply_to", "replyTo", "in_reply_to", "reply_to_id"})
_SPEAKERS = ("role", "from", "sender", "author", "speaker", "user")
_NOT_OF_A_MESSAGE = re.compile(
    r"(?i)update|edit|modif|delete|read|deliver|expir|end|finish|close|birth|due|open|id$|phone|number|user"
)
"""In names of other times than that of a message, and of other numbers."""
_TIMES = (
    "timestamp", "created_at", "createdAt", "create_time", "createTime", "created_time", "createdTime", "createdDateTime",
    "created", "inserted_at", "time", "date", "ts", "timestamp_ms", "sent_at", "sentAt", "sent_time", "time_sent",
    "message_time", "datetime", "date_time", "dateTime", "start", "start_time", "startTime", "begin", "clock",
)  # fmt: skip


def current_of(row: Mapping[str, Any]) -> object:
    """Return the id of the last message shown, as stated by a conversation; None if it states none."""
    return next((row[name] for name in _CURRENT if row.get(name) is not None), None)


def id_of_message(message: object) -> Any:
    """Return the id of a message; None if it has none."""
    return _first(message, _IDS)


def place_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number and the time of a row of a conversation, as far as it has them, under usual names."""
    number = next((number for name in _INDEXES if (number := _number(row.get(name))) is not None), None)
    places = {"index": number, "timestamp": _stamp(row)}
    return {name: place for name, place in places.items() if place is not None}


def paths(
    messages: Sequence[object],
    where: str,
    *,
    current: object = None,
    branches: Branches | None = None,
    order: Order | None = None,
) -> list[list[int]]:
    """Return the positions of the messages in conversation order: one list, or one per branch.

    Args:
        messages: the messages as listed.
        where: beginning of an error message.
        current: id of the last message shown.
        branches: None: as stated by the conversation, and an error if it states nothing.
        order: None: as listed, unless numbers or times of all messages agree on another order.

    Raises:
        InputError: the messages branch, and the branch shown is unknown; or their times contradict their order.
    """
    if order is None and branches is None and (places := _answered_twice(messages)):
        raise InputError(
            f"{where}: messages {places[0] + 1} and {places[1] + 1} answer the same one, and either may not have been shown. "
            "Read all by --order listed, or take one out."
        )
    in_branches = _branches(messages, where, current, branches)
    if in_branches is not None and order is not None:
        raise InputError(f"{where}: each of its messages names the one before it, which is their order. Leave --order out.")
    return [_ordered(messages, where, order)] if in_branches is None else in_branches


def _first(message: object, names: Iterable[str]) -> Any:
    fields = message if isinstance(message, Mapping) else {}
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _stamp(message: object) -> Any:
    """Return the time of a message, of a table that has a date and a time both of them; None if it has none."""
    fields = message if isinstance(message, Mapping) else {}
    date, time = fields.get("date"), fields.get("time")
    return f"{date} {time}" if isinstance(date, str) and isinstance(time, str) else _first(message, _TIMES)


def _stamps(messages: Sequence[object]) -> list[Any]:
    """Return the times of messages, or what is in the only other field that has a date in all of them; or None for each."""
    if _stamp(messages[0]) is not None:
        return [*map(_stamp, messages)]
    first = messages[0] if isinstance(messages[0], Mapping) else {}
    names = (name for name, one in first.items() if is_date(one) and not _NOT_OF_A_MESSAGE.search(name))
    found = [name for name in names if all(isinstance(one, Mapping) and is_date(one.get(name)) for one in messages)]
    return [_first(one, found if len(found) == 1 else ()) for one in messages]


def is_date(value: object) -> bool:
    """Whether a value is a date with a time, a time of day, or seconds since 1970."""
    if isinstance(value, str) and not value.isdecimal():
        return re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d?\d:\d\d(:\d\d)?( ?[AaPp][Mm])?\Z", value) is not None
    return isinstance(value, (int, float, str)) and (10**9 < float(value) < 2 * 10**9 or 10**12 < float(value) < 2 * 10**12)


def _answered_twice(messages: Sequence[object]) -> tuple[int, int] | None:
    """Return the positions of two messages of one speaker that reply to the same one; None without."""
    seen: dict[tuple[object, ...], int] = {}
    for place, message in enumerate(messages):
        if isinstance(message, dict) and not _REPLIES.isdisjoint(message):
            answered = _first(message, _REPLIES) or f"none by {place}"
            first = seen.setdefault((str(answered), *(str(_first(message, (one,))) for one in _SPEAKERS)), place)
            if first != place:
                return first, place
    return None


def _branches(messages: Sequence[object], where: str, current: object, branches: Branches | None) -> list[list[int]] | None:
    if any(isinstance(one, Mapping) and one.get("if_chosen") is False for one in messages):
        return _candidates(messages, where, branches)
    ids = [id_of_message(message) for message in messages]
    if any(isinstance(id, (list, dict)) for id in ids):
        return None
    places = {id: place for place, id in enumerate(ids) if id is not None}
    parents = [places.get(parent) if isinstance(parent := _first(one, _PARENTS), (str, int)) else None for one in messages]
    if len(places) < len(messages) or all(parent is None for parent in parents):
        return None
    children: dict[int | None, list[int]] = {}
    for place, parent in enumerate(parents):
        children.setdefault(parent, []).append(place)

    def path(leaf: int) -> list[int]:
        way: dict[int, None] = {}  # a dict keeps order and is fast to look up
        at: int | None = leaf
        while at is not None and at not in way:
            way[at] = None
            at = parents[at]
        return [*way][::-1]

    leaves = [place for place in range(len(messages)) if place not in children]
    if len(leaves) == 1 and len(children.get(None, [])) <= 1:
        return [path(leaves[0])]
    if branches == "all":
        return [path(leaf) for leaf in leaves]
    if isinstance(current, (str, int)) and current in places:
        shown = path(places[current])
        before = _first(messages[shown[0]], _PARENTS)
        if before is not None and any(before != _first(messages[root], _PARENTS) for root in children.get(None, ())):
            raise InputError(
                f"{where}: message {shown[0] + 1} answers one that is not there ({before!r}), so that what was said before is "
                "lost. Read each piece as a conversation by --branches all."
            )
        return [shown]
    raise InputError(
        f"{where}: its messages have {len(leaves)} branches, and nothing says which was shown. "
        "Read each answer once, after what led to it, by --branches all."
    )


def _candidates(messages: Sequence[object], where: str, branches: Branches | None) -> list[list[int]]:
    """Return the branches of messages that several models answered, of which the user chose one to continue with."""
    if branches is None:
        raise InputError(
            f"{where}: has answers that were not chosen. Read the chosen ones by --branches shown, or each by --branches all."
        )
    chosen: list[int] = []
    others = []
    fields: list[Mapping[str, Any]] = [one if isinstance(one, Mapping) else {} for one in messages]
    for place, message in enumerate(fields):
        if message.get("if_chosen") is False:
            rival = (True, message.get("turn"))
            others.append([*(one for one in chosen if (fields[one].get("if_chosen"), fields[one].get("turn")) != rival), place])
        else:
            chosen.append(place)
    return [chosen, *others] if branches == "all" else [chosen]


def _ordered(messages: Sequence[object], where: str, order: Order | None) -> list[int]:
    listed = list(range(len(messages)))
    if order == "listed" or len(messages) < 2:
        return listed
    first = messages[0] if isinstance(messages[0], Mapping) else {}
    for name in (name for name in _INDEXES if name in first) if order is None else ():
        values: list[Any] = [_number(message.get(name)) if isinstance(message, Mapping) else None for message in messages]
        if None in values or sorted(values) == values:
            continue
        if len(set(values)) < len(values):
            advice = "Order them, give each of several conversations an id, or read them as they are by --order listed."
            raise InputError(
                f"{where}: its messages are not in the order of their numbers ({name!r}), some of which recur. {advice}"
            )
        return sorted(listed, key=lambda place: values[place])
    stamps = _stamps(messages)
    times: list[Any] = [*map(_time, stamps)]
    if None in times and None not in (clocks := [*map(_of_clock, stamps)]):
        n_days = itertools.accumulate((after < before - 12 * 3600 for before, after in itertools.pairwise(clocks)), initial=0)
        times = [time + 24 * 3600 * n for time, n in zip(clocks, n_days, strict=True)]
    may_be_dates = None in times and all(isinstance(stamp, str) for stamp in stamps)
    of_dates = [[_of_date(stamp, of) for stamp in stamps] for of in ("%d/%m", "%m/%d")] if may_be_dates else []
    if not (whole := [one for one in (times, *of_dates) if None not in one]):
        if order == "time":
            number = times.index(None) + 1
            raise InputError(f"{where}: message {number} has no time that can be read. Leave --order time out.")
        return listed
    times, ordered = whole[0], sorted(listed, key=whole[0].__getitem__)
    if any(sorted(listed, key=other.__getitem__) != ordered for other in whole[1:]):
        raise InputError(
            f"{where}: its times differ in order by whether the day or the month is first. Read it by --order listed."
        )
    if ordered == listed or order == "time":
        return ordered
    if ordered == listed[::-1] and len(set(times)) == len(times):
        return ordered  # newest first
    raise InputError(
        f"{where}: its messages are not in the order of their times. Say which holds by --order listed or --order time."
    )


def _number(value: Any) -> Any:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


_READERS_OF_TIMES: tuple[Callable[[str], float], ...] = (
    float,
    lambda text: datetime.fromisoformat(re.sub(r"(?: ?UTC|Z)$", "+00:00", text.strip()).replace("/", "-")).timestamp(),
    lambda text: parsedate_to_datetime(text).timestamp(),
    lambda text: datetime.strptime(re.sub(r"\s", " ", text) + " +0000", "%A, %B %d, %Y at %I:%M:%S %p UTC %z").timestamp(),
    lambda text: datetime.strptime(text, "%m/%d/%Y %H:%M:%S %z").timestamp(),
)
_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")


def _of_clock(value: Any) -> Any:
    """Return the seconds of a time without a date; None for anything else."""
    return None if not isinstance(value, str) or (time := _of_date(f"1/1/2000 {value}", "%d/%m")) is None else time


def _of_date(value: str, day_and_month: str) -> float | None:
    """Return the time of a date such as 31/12/2025 10:00, whose day and month are in this order, as a comparable value."""
    text = re.sub(r",?\s+|(?<=\d)(?=[AP]M)", " ", re.sub("[.-]", "/", value.strip().upper()))
    for clock in _CLOCKS:
        with contextlib.suppress(ValueError):
            return datetime.strptime(f"{text} +0000", f"{day_and_month}/%Y {clock} %z").timestamp()
    return None


def _time(value: Any) -> Any:
    """Return a number, or a time as of ISO 8601, of mails or of Google's exports, as a comparable value."""
    if isinstance(value, str):
        for read in _READERS_OF_TIMES:
            with contextlib.suppress(ValueError):
                return read(value)
        return None
    if isinstance(value, Mapping):  # MongoDB's, Firestore's
        return _time(next((value[name] for name in ("$date", "$numberLong", "seconds", "_seconds") if name in value), None))
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value) else None
