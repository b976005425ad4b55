"""Corpus-level metrics of the lm-eval tasks: estimates, their interval bounds and their counts.

The host has no channel for intervals, so each bound is a separate metric. All metrics of a task come from one computation.
"""

from __future__ import annotations

import functools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from dialeval_plugin.core.files import checked
from dialeval_plugin.core.scores import NOT_FOR_THIS_DATA
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate

logger = logging.getLogger(__name__)

BOOTSTRAP = Bootstrap(1000, seed=0)
BOUNDS = ("_ci_low", "_ci_high")
COUNTS = ("n_scored", "n_unscored")
AGAIN = "Run the task again."

Record = TypeVar("Record", bound="tuple[Any, ...]")


class Undefined(str):
    """A metric without a value: the reason, in place of the number in the result file; see `undefined`.

    NaN would make the file invalid JSON, 0 would be wrong, and None makes the host fail while it averages a group, after all
    inference. A task cannot choose the mean of its group, so an undefined value adds nothing to the host's own sum, and the
    mean is over the tasks with a value.
    """

    __slots__ = ()

    def __mul__(self, weight: Any) -> Any:
        return _WeightedSum(0.0, float(weight), self)

    __rmul__ = __mul__


class _WeightedSum:
    """A sum of weighted values, some of them undefined, until the host divides it by the sum of all weights."""

    def __init__(self, total: float, missing: float, reason: Undefined) -> None:
        self.total, self.missing, self.reason = total, missing, reason

    def __add__(self, other: Any) -> _WeightedSum:
        if isinstance(other, _WeightedSum):
            return _WeightedSum(self.total + other.total, self.missing + other.missing, self.reason)
        return _WeightedSum(self.total + other, self.missing, self.reason)

    __radd__ = __add__

    def __truediv__(self, weights: float) -> float | Undefined:
        return self.total / (weights - self.missing) if weights > self.missing else self.reason


class Count(int):
    """A number of items and their total, which may differ from the number of documents."""

    total: int


class RoughEnd(float):
    """An end of an interval that is rough; see `bootstrap.Estimate`."""


Figures: TypeAlias = "Mapping[str, Estimate | float | Undefined]"
Aggregation: TypeAlias = "Callable[[Sequence[Sequence[Any]]], float | Undefined]"


def undefined(reason: str | None, unscored: Iterable[str | None] = ()) -> Undefined:
    """Return the text for a missing number, short enough for a column of the host's table.

    Args:
        reason: as given by the statistic: its name, what is wrong, and what to do.
        unscored: for each document why it has no score, if none has one.

    Example:
        >>> undefined("pearson: all 4 ratings are 5.0. Give ratings that differ.")
        'undefined (all 4 ratings are 5.0)'
        >>> undefined("pearson: 0 pairs of score and rating.", ["scores_turns_only", "scores_turns_only"])
        'undefined (scores turns only)'
        >>> undefined("pearson: 0 pairs of score and rating.", ["parse_failure", "parse_failure", "refusal"])
        'undefined (no scores: parse failure 2, refusal 1)'
    """
    problem = re.sub(r"^[\w ]+: ", "", reason or "no value").partition(". ")[0].removesuffix(".")
    return Undefined(f"undefined ({no_scores(Counter(filter(None, unscored))) or problem})")


def no_scores(reasons: Counter[str]) -> str:
    """Return why no document has a score, from the number of documents by reason; empty if no reason is known.

    Example:
        >>> no_scores(Counter(needs_references=5)), no_scores(Counter())
        ('needs references', '')
    """
    counts = sorted(reasons.items())
    if len(counts) == 1 and counts[0][0] in {reason.value for reason in NOT_FOR_THIS_DATA}:
        return counts[0][0].replace("_", " ")
    return "no scores: " + ", ".join(f"{name} {number}" for name, number in counts).replace("_", " ") if counts else ""


@dataclass(frozen=True)
class CorpusMetrics(Generic[Record]):
    """All corpus-level metrics of one kind of task.

    Args:
        record: record type of a document, a `NamedTuple` with the field `unscored`.
        compute: returns the metrics by name; an `Estimate` gives itself and its two bounds.
        main: the metric that the host prints.
        ends: the other printed names: the bounds of its interval, or its deviation.
        score: the record's field that is None if the document is unscored.
        count: returns the number of items, and of those with a score; by default of the records.
        sort_key: order of the records, if the last digits of a metric depend on it.
    """

    record: type[Record]
    compute: Callable[[tuple[Record, ...], Bootstrap], Figures]
    main: str
    ends: tuple[str, ...] = BOUNDS
    score: str = "score"
    count: Callable[[tuple[Record, ...]], tuple[int, int]] | None = None
    sort_key: Callable[[Record], Any] | None = None

    @property
    def printed(self) -> tuple[str, ...]:
        """Names of the metrics that the host prints, at most four."""
        return (self.main, *(self.main + end for end in self.ends), "n_scored")

    def of_document(self, record: Record) -> dict[str, Record]:
        """Return a document's record under the name of every printed metric, as the host's `process_results` expects."""
        return dict.fromkeys(self.printed, record)

    def records(self, items: Iterable[Sequence[Any]]) -> tuple[Record, ...]:
        """Return records from the plain tuples or lists that the host gathered from several processes or wrote."""
        records = (
            item if isinstance(item, self.record) else checked(item, self.record, self.record.__name__, advice=AGAIN)
            for item in items
        )
        return tuple(sorted(records, key=self.sort_key) if self.sort_key else records)

    def estimates(self, items: Iterable[Sequence[Any]], bootstrap: Bootstrap = BOOTSTRAP) -> Figures:
        """Return the result of `compute` for the records, cached for the last few calls."""
        return _computed(self, self.records(items), bootstrap)

    def counts(self, items: Iterable[Sequence[Any]]) -> tuple[int, int]:
        """Return the number of items with a score, and without one."""
        records = self.records(items)
        if self.count:
            total, scored = self.count(records)
        else:
            total, scored = len(records), sum(getattr(record, self.score) is not None for record in records)
        return scored, total - scored

    def values(self, items: Sequence[Sequence[Any]]) -> dict[str, float | Undefined]:
        """Return every metric by name: estimates, their bounds, `n_scored` and `n_unscored`."""
        records = self.records(items)
        has_score = any(getattr(record, self.score) is not None for record in records)
        why = [] if has_score else [record.unscored for record in records]  # type: ignore[attr-defined]
        values: dict[str, float | Undefined] = {}
        for name, figure in self.estimates(records).items():
            if not isinstance(figure, Estimate):
                values[name] = figure
                continue
            for end, value in zip(("", *BOUNDS), (figure.value, figure.ci_low, figure.ci_high), strict=True):
                number = RoughEnd(value) if value is not None and end and figure.is_rough else value
                values[name + end] = undefined(figure.reason, why) if number is None else number
        counts = self.counts(records)
        for name, count in zip(COUNTS, map(Count, counts), strict=True):
            values[name], count.total = count, sum(counts)
        return values

    def metric(self, name: str) -> Aggregation:
        """Return the aggregation function of a metric, as named in a task file."""

        def aggregate(items: Sequence[Sequence[Any]]) -> float | Undefined:
            value, estimate = self.values(items)[name], self.estimates(items).get(name)
            if isinstance(value, Undefined):
                logger.warning("no %s: %s", name, value)
            elif isinstance(estimate, Estimate) and estimate.is_rough:
                logger.warning("the interval of %s is rough: it rests on %d clusters (dialogues)", name, estimate.n_clusters)
            return value

        aggregate.__name__ = aggregate.__qualname__ = name
        return aggregate

    def aggregations(self) -> tuple[Aggregation, ...]:
        """Aggregations of `printed`."""
        return tuple(map(self.metric, self.printed))


@functools.lru_cache(maxsize=32)
def _computed(metrics: CorpusMetrics[Any], records: tuple[Any, ...], bootstrap: Bootstrap) -> Figures:
    return metrics.compute(records, bootstrap)
