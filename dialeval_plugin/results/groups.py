"""Means of one file of scores by a field of its rows, such as model, version, tag or day, with intervals."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pydantic import TypeAdapter

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.rows import is_number, words_of
from dialeval_plugin.labels.scores import ScoredRow, ScoredRows
from dialeval_plugin.reports.tables import COUNTS, ESTIMATED, Table, TableColumn, figures
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, MIN_CLUSTERS, Bootstrap, Estimate
from dialeval_plugin.statistics.means import difference_of_means, mean_interval
from dialeval_plugin.statistics.significance import detectable_difference

ALL = "all"
MAX_GROUPS = 100
SPANS = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "week": "week of %Y-%m-%d", "month": "%Y-%m"}
"""Time spans for grouping a column of timestamps, and the name of a span by its start."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = TypeAdapter(datetime)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - all timestamps here are UTC without a time zone
_LARGEST_SECONDS = 1e11
"""Larger timestamps are in milliseconds: as seconds this is the year 5138, as milliseconds 1973."""
_SMALLEST_SECONDS = 1e8
"""Smaller numbers, before March 1973, are no seconds: years, dates as 20260301, or days of a spreadsheet."""


@dataclass(frozen=True)
class Groups:
    """Means by group, in the order of the groups' names or times; `starts` are the start times of time spans."""

    field: str
    scores: ScoredRows
    means: Mapping[str, Estimate]
    whole: Estimate
    starts: Sequence[datetime] = ()
    notes: Sequence[str] = ()

    def table(self) -> Table:
        """Return the means as a table that ends with the mean of all rows."""
        # A group, or the field, may have a name of this table's own.
        key = "group" if self.field in figures(self.whole) else self.field
        total = f"{ALL} rows" if ALL in self.means else ALL
        rows = [{key: name, **figures(one)} for name, one in [*self.means.items(), (total, self.whole)]]
        name = TableColumn(self.field, lambda row: str(row[key]), is_number=False)
        settings = {"file": self.scores.name, "column": self.scores.column, "signature": self.scores.signature}
        return Table(rows, [name, *ESTIMATED, *COUNTS], self.notes, settings)


def field_of(by: str) -> tuple[str, str]:
    """Split `FIELD` or `FIELD:day` into the field and the time span or "".

    Example:
        >>> field_of("created_at:day"), field_of("model"), field_of("meta:model")
        (('created_at', 'day'), ('model', ''), ('meta:model', ''))
    """
    field, _, span = by.rpartition(":")
    return (field, span) if field and span in SPANS else (by, "")


def group(scores: ScoredRows, by: str, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> Groups:
    """Return the mean of each group of rows with the same value of a field; a row with a list is in the group of each element.

    Args:
        scores: a file, see `read_scored_rows`.
        by: name of the field; for timestamps (UTC) `FIELD:hour`, `FIELD:day`, `FIELD:week` or `FIELD:month`.
        bootstrap: settings of the intervals; clusters are conversations.

    Raises:
        InputError: no row has the field, a value is not a timestamp although a span is given, or there are more than
            `MAX_GROUPS`.
    """
    field, span = field_of(by)
    members: defaultdict[str, list[ScoredRow]] = defaultdict(list)
    starts: dict[str, datetime] = {}
    n_without = 0
    for row in scores.rows:
        value = row.fields.get(field)
        known = words_of(value)
        if not known:
            n_without += 1
        elif span:
            moment = _timestamp(value, f"{scores.name}: {row.id!r}: {field}")
            days = {"week": moment.weekday(), "month": moment.day - 1}.get(span, 0)
            hour = moment.hour if span == "hour" else 0
            start = (moment - timedelta(days)).replace(hour=hour, minute=0, second=0, microsecond=0)
            name = start.strftime(SPANS[span])
            starts[name] = start
            members[name].append(row)
        else:
            for name in dict.fromkeys(known):
                members[name].append(row)
    if not members:
        there = Counter(name for row in scores.rows for name in row.fields)
        raise InputError(f"{scores.name}: no row has {field!r}. They have: {', '.join(there) or 'nothing else'}.")
    if len(members) > MAX_GROUPS:
        spans = f" Timestamps are grouped by --by {field}:day." if not span and _DATE.match(next(iter(members))) else ""
        raise InputError(f"--by {by}: has {len(members)} different values, and {MAX_GROUPS} can be shown.{spans}")
    names = sorted(members, key=starts.__getitem__ if span else _natural)
    means = {name: _mean(members[name], bootstrap) for name in names}
    notes = [f"without {field}, in no group: {n_without} of {len(scores.rows)} rows"] if n_without else []
    largest = sorted(names, key=lambda name: -means[name].n_clusters)[:2]
    if len(largest) == 2 and min(means[name].n_clusters for name in largest) >= MIN_CLUSTERS:
        (values_a, clusters_a), (values_b, clusters_b) = (_columns(members[name]) for name in largest)
        computed, _ = difference_of_means(values_a, values_b, clusters_a=clusters_a, clusters_b=clusters_b)
        detectable = None if isinstance(computed, str) else detectable_difference(computed[1], bootstrap=bootstrap)
        if detectable is not None:
            notes.append(f"between {' and '.join(largest)}, the largest groups, {detectable}")
    return Groups(by, scores, means, _mean(scores.rows, bootstrap), [starts[name] for name in names] if span else (), notes)


def _mean(rows: Sequence[ScoredRow], bootstrap: Bootstrap) -> Estimate:
    scores, clusters = _columns(rows)
    return mean_interval(scores, clusters=clusters, bootstrap=bootstrap)


def _columns(rows: Sequence[ScoredRow]) -> tuple[list[float | None], list[str]]:
    return [row.score for row in rows], [row.conversation for row in rows]


def _natural(name: str) -> list[Any]:
    """Return a sort key with numbers by value: 1.9 comes before 1.10."""
    return [int(part) if place % 2 else part for place, part in enumerate(re.split(r"(\d+)", name))]


def _timestamp(value: Any, where: str) -> datetime:
    """Return a time in UTC, from ISO 8601, a date such as 20260301, or seconds or milliseconds since 1970."""
    try:
        if is_number(value):
            number = float(value)
            if number < _SMALLEST_SECONDS:
                return datetime.strptime(f"{number:08.15g}", "%Y%m%d")  # noqa: DTZ007 - a day without a time zone
            return _EPOCH + timedelta(seconds=number if number < _LARGEST_SECONDS else number / 1000)
        if not isinstance(value, str) or _DATE.match(value):
            text = value.strip().replace(" UTC", "Z") if isinstance(value, str) else value
            moment = _MOMENT.validate_python(text)
            return moment if moment.tzinfo is None else moment.astimezone(timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"{where}: {value!r} is no timestamp. Write 2026-03-01T09:30:00Z, or seconds since 1970.")
