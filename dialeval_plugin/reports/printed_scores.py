"""Output of `dialeval score`: a running summary without all rows, their distribution, the worst ones, and conversations."""

from __future__ import annotations

import hashlib
import heapq
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dialeval_plugin.conversations.messages import left_out_text
from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output, write_text
from dialeval_plugin.core.percentiles import PERCENTILE
from dialeval_plugin.core.scope import out_of_scope_text
from dialeval_plugin.core.scorer import Scorer, count_truncated
from dialeval_plugin.core.scores import OUT_OF_SCOPE, Scores, conversation_id
from dialeval_plugin.core.signature import short_form
from dialeval_plugin.corpora.items import context_key
from dialeval_plugin.terminal import one_line

from .tables import Format, Table, TableRow, named_column, text_column

if TYPE_CHECKING:
    from dialeval_plugin.statistics.bootstrap import Estimate

MOST_CLUSTERS = 10_000
"""Conversations with separate sums; further ones are added to these, so that memory and time stay bounded."""
N_SHOWN = 20
"""Number of conversations shown in the terminal."""
_FORMATS: dict[str, Format] = {".csv": "csv", ".json": "json"}
N_BINS = 10
_LONGEST_BAR = 50
_MOST_SIGNS = 4
"""Characters per terminal column, combining accents included; longer texts are cut before they are measured."""


class Bars(NamedTuple):
    """Histogram: number of rows, shape (bins,), between edges, shape (bins + 1,)."""

    column: str
    counts: np.ndarray
    edges: np.ndarray


class WorstRow(NamedTuple):
    """Row to show; its percentile is None if percentiles are unavailable."""

    percentile: float | None
    score: float
    item: Item


class RunningSummary:
    """Sums over the blocks of a run.

    Args:
        scorer: scorer of the rows. If an end of its range is infinite, the first block's scores give that end of `bars`.
        n_worst: number of worst rows to keep.
    """

    def __init__(self, scorer: Scorer, n_worst: int = 0) -> None:
        self._scorer, self._n_worst = scorer, n_worst
        self.n_total = 0
        self._unscored: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        self.out_of_scope: Counter[str] = Counter()
        self._worst: list[tuple[float, int, WorstRow]] = []
        self.bars: Bars | None = None
        self._sums: list[float] = []
        self._judged: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        self._clusters: dict[bytes, int] = {}
        self._of_clusters = np.zeros((MOST_CLUSTERS, 2))

    def add(self, scores: Scores) -> None:
        """Add the next rows."""
        sign = -1 if scores.orientation == "lower" else 1
        percentiles = scores.columns.get(PERCENTILE)
        values = []
        for place, (item, value) in enumerate(zip(scores.items, scores.values, strict=True)):
            if value is not None:
                values.append(value)
                if (judge := scores.judged_by(place)) is not None:
                    self._judged[judge][0] += 1
                    self._judged[judge][1] += value
                self._of_clusters[self._cluster(item)] += (value, 1.0)
                row = WorstRow(None if percentiles is None else percentiles[place], value, item)
                rank = sign * value if self._scorer.has_one_scale or row.percentile is None else row.percentile
                self._worst.append((rank, self.n_total + place, row))
        self._worst = heapq.nsmallest(self._n_worst, self._worst, key=itemgetter(0, 1))
        self.n_total += scores.n_total
        self._unscored += Counter(scores.unscored_by_reason)
        self.cut += count_truncated(self._scorer, scores)
        self.out_of_scope += Counter(scores.out_of_scope_by_kind)
        self._sums.append(math.fsum(values))
        shown = values if percentiles is None else [value for value in percentiles if value is not None]
        if shown and self.bars is None and (self._scorer.has_one_scale or percentiles is not None):
            title, ends = (scores.main, self._scorer.range) if percentiles is None else (PERCENTILE, (0.0, 100.0))
            spanned = [*filter(math.isfinite, ends), *shown]
            self.bars = Bars(title, np.zeros(N_BINS, dtype=np.int64), np.linspace(min(spanned), max(spanned), N_BINS + 1))
        if shown and self.bars is not None:
            # Values beyond the first block's ends are counted in the bar at that end.
            kept = np.clip(shown, self.bars.edges[0], self.bars.edges[-1])
            self.bars.counts[:] += np.histogram(kept, bins=self.bars.edges)[0]

    def _cluster(self, item: Item) -> int:
        """Return the index of the sums of an item's conversation or, for a response without one, of its context's opening."""
        of = conversation_id(item) or context_key(item)
        key = hashlib.sha256(repr(of).encode()).digest()[:8]
        if key not in self._clusters and len(self._clusters) < MOST_CLUSTERS:
            self._clusters[key] = len(self._clusters)
        return self._clusters.get(key, int.from_bytes(key, "big") % MOST_CLUSTERS)

    @property
    def worst(self) -> list[WorstRow]:
        """The worst rows, the worst first; ties keep their order."""
        return [row for _, _, row in self._worst]

    @property
    def estimate(self) -> Estimate:
        """The mean with its 95 % interval over conversations, and its counts; without ends if there are too few."""
        from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Counts, Estimate, ratio_of_sums

        main, n_unscored = self._scorer.columns[0], self.n_total - self.n_scored
        mean = ratio_of_sums(self._of_clusters[: len(self._clusters)])
        interval = DEFAULT_BOOTSTRAP.intervals({main: mean})[main]._asdict()
        counts = Counts(self.n_total, self.n_scored, len(self._clusters), n_unscored)._asdict()
        return Estimate(name=main, value=self.mean(), **interval, **counts, bootstrap=DEFAULT_BOOTSTRAP)

    @property
    def unscored_by_reason(self) -> dict[str, int]:
        """Number of rows by reason, reasons in alphabetical order."""
        return dict(sorted(self._unscored.items()))

    @property
    def n_scored(self) -> int:
        """Number of rows with a score."""
        return self.n_total - sum(self._unscored.values())

    def mean(self) -> float | None:
        """Mean of the main column; None without a score, or if the scores of several judges have no common scale."""
        return math.fsum(self._sums) / self.n_scored if self.n_scored and self._scorer.has_one_scale else None

    @property
    def judges(self) -> dict[str, dict[str, float]]:
        """Number and mean of the scores of each judge of a combined scorer, for judges with any score."""
        return {
            name: {"n_scored": self._judged[name][0], "mean": self._judged[name][1] / self._judged[name][0]}
            for name in self._scorer.judges
            if name in self._judged
        }


def summary(meta: Mapping[str, Any], interval: str = "", n_clusters: int = 0) -> str:
    """Return the summary, the rows that were out of scope or left out, and the short signature, which identifies the run.

    Args:
        meta: metadata of all rows, as stored next to a file of scores.
        interval: interval of the mean, as text; "" if there is none.
        n_clusters: number of conversations behind the interval.
    """
    mean = "no score" if meta["mean"] is None else f"mean {meta['mean']:.4f}"
    over = f" {interval}" if interval else ""
    n = f", {n_clusters} conversations" if interval else ""
    scored = f"{meta['n_scored']} of {meta['n_total']} scored"
    lines = [f"{meta['main']}: {mean}{over}, {scored}{n}"]
    if judges := meta.get("judges"):
        if meta["mean"] is None:
            lines = [f"{meta['main']}: {scored}, by scorers that have no common scale:"]
        lines += [f"  judged by {name}: mean {of['mean']:.4f}, {of['n_scored']} scored" for name, of in judges.items()]
    if beyond := out_of_scope_text(meta.get(OUT_OF_SCOPE, {}), meta["n_scored"]):
        lines.append(beyond)
    if meta["left_out"]:
        lines.append(f"left out: {left_out_text(meta['left_out'])}")
    return "\n".join([*lines, short_form(meta["signature"])])


def drawn_bars(bars: Bars) -> str:
    """Return a title and one line per bar."""
    ends = [f"{edge:.4g}" for edge in bars.edges.tolist()]
    width, longest = max(map(len, ends)), int(bars.counts.max())
    title = "percentile among good responses" if bars.column == PERCENTILE else bars.column
    return "\n".join(
        [
            f"{title}:",
            *(
                f"  {start:>{width}} to {end:>{width}}  {'#' * math.ceil(_LONGEST_BAR * count / longest)} {count}"
                for start, end, count in zip(ends, ends[1:], bars.counts.tolist(), strict=False)
            ),
        ]
    )


def drawn_rows(
    rows: Sequence[WorstRow], explanations: Sequence[str] = (), *, n_scored: int, has_percentiles: bool, width: int = 80
) -> str:
    """Return for each row its percentile, score, id, last turn before the response, and response, then the explanation.

    Texts are cut to `width` terminal columns, explanations are not. For a dialogue, the last two turns are shown.
    """
    head = "percentile, score, id" if has_percentiles else "score, id"
    lines = [f"worst {len(rows)} of {n_scored} ({head}):"]
    for number, row in enumerate(rows):
        percentile = "" if row.percentile is None else f"{row.percentile:5.1f}  "
        lines.append(cut(f"  {percentile}{row.score:.4f}  {row.item.id}", width))
        lines += [cut(f"      {mark} {text}", width) for mark, text in _last_two(row.item)]
        if explanations:
            lines += [f"      {one_line(line)}" for line in explanations[number].split("\n")]
    return "\n".join(lines)


def _last_two(item: Item) -> list[tuple[str, str]]:
    turns = (*item.context, item.response) if isinstance(item, Example) else item.turns
    texts = [" ".join(one_line(turn.text).split()) for turn in turns[-2:]]
    return list(zip("><"[-len(texts) :], texts, strict=True))


def cut(text: str, width: int) -> str:
    r"""Return a text as one line of at most `width` terminal columns; wide East Asian characters take two.

    Example:
        >>> cut("one\ntwo three", 10), cut("三個字", 6), cut("三個字", 5)
        ('one two...', '三個字', '三...')
    """
    line = one_line(text[: _MOST_SIGNS * width])
    if len(text) <= _MOST_SIGNS * width and _columns(line) <= width:
        return line
    while line and _columns(line) > width - 3:
        line = line[:-1]
    return line.rstrip() + "..."


def _columns(text: str) -> int:
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


@dataclass(slots=True)
class _OfConversation:
    """Sums over the responses of a conversation, and its worst score with the number of that message."""

    place: int
    n_turns: int = 0
    n_scored: int = 0
    total: float = 0.0
    worst: tuple[float, int] | None = None


class ConversationTable:
    """Table with one row per conversation, built as scores arrive: mean, worst turn, and the score of that turn.

    Rows are sorted by mean, worst first, then by worst turn, then in reading order; conversations without a score come last.
    The number of a turn is that of its message in its row of the log. Without `path`, memory is constant: of more than
    `2 * MOST_CLUSTERS` conversations, those that had no response for longest are complete, and only the worst of them are kept.

    Args:
        path: file to write; its name ends in .csv or .json.
        input: file or URL that is scored.

    Raises:
        InputError: `path` has another suffix, or is the input.
    """

    def __init__(self, path: Path | None = None, input: str = "") -> None:
        if path is not None and path.suffix not in _FORMATS:
            raise InputError(f"{path}: is neither CSV nor JSON by its name. Give a name that ends in {' or '.join(_FORMATS)}.")
        if path is not None:
            check_output(path, input, "the table of the conversations")
        self.path, self._settings = path, dict[str, str]()
        self._conversations: dict[str, _OfConversation] = {}
        self._complete: list[tuple[tuple[bool, float, float, int], TableRow]] = []
        self._n = 0
        self._sign, self._has_others = 1, False

    def check(self, item: Item | None) -> None:
        """Raise InputError if a file is wanted and the item is not a turn of a conversation."""
        is_turn = item is not None and item.origin is not None and item.origin.message is not None
        if self.path is not None and not is_turn:
            raise InputError(f"{self.path}: what is scored are no turns of conversations. Leave --by-conversation out.")

    def add(self, scores: Scores) -> None:
        """Add the next scores; raises as `check`."""
        self._settings = {"main": scores.main, "orientation": scores.orientation, "signature": str(scores.signature)}
        self._sign = 1 if scores.orientation == "higher" else -1
        for item, value in zip(scores.items, scores.values, strict=True):
            self.check(item)
            if item.origin is None or item.origin.message is None:
                self._has_others = True
                continue
            name = item.origin.conversation
            if (one := self._conversations.pop(name, None)) is None:
                one, self._n = _OfConversation(self._n), self._n + 1
            self._conversations[name] = one  # the last of them
            one.n_turns += 1
            if value is not None:
                one.n_scored, one.total = one.n_scored + 1, one.total + value
                if one.worst is None or self._sign * value < self._sign * one.worst[0]:
                    one.worst = value, item.origin.message
        if self.path is None and len(self._conversations) > 2 * MOST_CLUSTERS:
            self._complete_first(MOST_CLUSTERS)
            self._complete = heapq.nsmallest(N_SHOWN, self._complete, key=itemgetter(0))

    def _complete_first(self, n: int) -> None:
        for name in list(self._conversations)[:n]:
            one = self._conversations.pop(name)
            mean = one.total / one.n_scored if one.n_scored else None
            worst, number = one.worst or (None, None)
            counts: TableRow = {"conversation": name, "n_turns": one.n_turns, "n_scored": one.n_scored}
            key = (worst is None, self._sign * (mean or 0.0), self._sign * (worst or 0.0), one.place)
            self._complete.append((key, {**counts, "mean": mean, "worst_turn": number, "worst_score": worst}))

    def report(self) -> Table | None:
        """Write all rows to the file, and return the table of the worst ones; None for a single conversation or other items."""
        self._complete_first(len(self._conversations))
        rows = [row for _, row in sorted(self._complete, key=itemgetter(0))]
        decimals = {"n_turns": 0, "n_scored": 0, "mean": 3, "worst_turn": 0, "worst_score": 3}
        columns = [text_column("conversation"), *(named_column(*one) for one in decimals.items())]
        if self.path is not None:
            write_text(self.path, Table(rows, columns, settings=self._settings).render(_FORMATS[self.path.suffix]))
        if self._n < 2 or self._has_others:
            return None
        n_more = self._n - N_SHOWN
        notes = [f"{n_more} more conversations: --by-conversation FILE.csv has all."] if n_more > 0 else []
        return Table(rows[:N_SHOWN], columns, notes)
