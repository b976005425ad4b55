"""Preference files: how often the preferred answer scores higher, and how often it is merely longer.

The last answer of each conversation is scored, after all turns before it; see the layouts `preferred` and `dispreferred`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.conversations.files import open_rows
from dialeval_plugin.conversations.layouts.datasets import UNDECIDED, two_answers
from dialeval_plugin.conversations.record import MALFORMED, REPEATED, Conversation, ReadingOptions
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.scorer import Scorer, run, scores_of
from dialeval_plugin.core.signature import short_form
from dialeval_plugin.corpora.scored_input import Source
from dialeval_plugin.reports.tables import Table, TableColumn, estimated, figures
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, Bootstrap, Estimate
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.means import clustered_mean, mean_interval
from dialeval_plugin.statistics.significance import Detectable, detectable_difference

from .comparison import chosen_column

TIE, EQUAL, UNSCORED = "ties of the raters", "equal answers", "an answer without a score"
UNREADABLE, COPY = "an answer that cannot be read", "copies of earlier rows"
LIKE_LENGTH = 1.25
"""Largest ratio of word counts of two answers of similar length."""
SHORTER, ALIKE, LONGER = "is shorter", "is of like length", "is longer"


class Pair(NamedTuple):
    """The preferred answer and the other one, each after its context."""

    preferred: Example
    other: Example


class Pairs(NamedTuple):
    """Pairs of a file; `left_out` counts the rows without a pair by reason."""

    name: str
    pairs: Sequence[Pair]
    left_out: Counter[str]


@dataclass(frozen=True)
class PreferenceShares:
    """Shares of pairs, by length bucket and overall, in which the preferred answer scores higher, and in which it is longer.

    A tie counts as half. Pairs whose conversations have the same first turn are one cluster and are resampled together.
    """

    pairs: Pairs
    shares: Mapping[str, tuple[Estimate, Estimate]]
    n_ties: int
    signature: str
    column: str
    detectable: Detectable | None = None
    """Smallest detectable difference of the share from 0.5; None if the difference is significant or has no interval."""

    @property
    def verdict(self) -> str:
        """Sentence that reports how often the preferred answer scores higher, and whether that may be chance."""
        share, longer = self.shares["all"]
        sentence = (
            f"The preferred answer scores higher in {share.text()} of {share.n_scored} pairs; it is the longer one in "
            f"{longer.text()}."
        )
        if self.detectable is None:
            return sentence
        seen = f"{number_text(0.5 + self.detectable.difference)} would be shown four times in five"
        return f"{sentence} That may be chance: with these {share.n_clusters} prompts {seen}."

    def table(self) -> Table:
        """Return the shares, one row per length bucket."""
        rows = [
            {"preferred": name, **figures(share), **figures(longer, "longer_")} for name, (share, longer) in self.shares.items()
        ]
        notes = [self.verdict, f"equal scores, which count as half: {self.n_ties} of {self.shares['all'][0].n_scored} pairs"]
        notes += [f"left out, {what}: {n} pairs" for what, n in self.pairs.left_out.items()]
        names = TableColumn("the preferred answer", lambda row: str(row["preferred"]), is_number=False)
        counts = (
            TableColumn("pairs", lambda row: str(row["n_scored"])),
            TableColumn("prompts", lambda row: str(row["n_clusters"])),
        )
        columns = [names, *estimated("scores higher"), *estimated("is longer", "longer_"), *counts]
        settings = {"verdict": self.verdict, "file": self.pairs.name, "column": self.column, "signature": self.signature}
        return Table(rows, columns, [*notes, short_form(self.signature)], settings)


def read_pairs(path: Path) -> Pairs | None:
    """Read the pairs of a file; None if its first row is not a pair; raises InputError for a malformed row."""
    first = next(open_rows(str(path)).lines, None)
    if first is None or two_answers(first.value) is None:
        return None
    (chosen, read), (rejected, _) = (_last_answers(path, name) for name in ("preferred", "dispreferred"))
    left_out = Counter({COPY: read[REPEATED], UNREADABLE: read[MALFORMED]})
    pairs = []
    for name, one in chosen.items():
        other = rejected.get(name)
        if one is None or other is None:
            left_out[UNREADABLE] += 1
            continue
        pair = Pair(replace(one, id=f"{name}+"), replace(other, id=f"{name}-"))
        if pair.preferred.response.text.split() == pair.other.response.text.split():
            left_out[EQUAL] += 1
        else:
            pairs.append(pair)
    left_out[TIE] = read[UNDECIDED]
    if not pairs:
        raise InputError(f"{path}: has no pair of which one answer is preferred. Give some.")
    return Pairs(str(path), pairs, +left_out)


def _last_answers(path: Path, layout: str) -> tuple[dict[str, Example | None], Counter[str]]:
    """Return the last answer of each conversation by id, None without one, and the numbers of rows that are left out."""
    source = Source(str(path), ReadingOptions(choice="last", layout=layout))
    conversations = (one for one in source.conversations() if isinstance(one, Conversation))
    answers = {one.id: next(reversed(one.examples()), None) for one in conversations}
    return answers, source.reading.left_out


def preference_shares(
    pairs: Pairs, scorer: Scorer, column: str | None = None, *, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, progress: bool = False
) -> PreferenceShares:
    """Score both answers of each pair and return the share of pairs in which the preferred one scores higher.

    Raises InputError if the scorer judges whole dialogues or has no such column.
    """
    if scorer.level != "turn":
        raise InputError(f"{scorer.name}: scores whole dialogues, and pairs are of answers. Choose another scorer.")
    column = chosen_column(scores_of(scorer, (), ()), column)
    scores = run(scorer, [one for side in zip(*pairs.pairs, strict=True) for one in side], progress=progress)
    values, n = scores.columns[column], len(pairs.pairs)
    sign = -1 if scores.orientation == "lower" else 1
    buckets: dict[str, list[tuple[float, float, str]]] = {name: [] for name in (SHORTER, ALIKE, LONGER, "all")}
    left_out = Counter(pairs.left_out)
    for pair, preferred, other in zip(pairs.pairs, values[:n], values[n:], strict=True):
        if preferred is None or other is None:
            left_out[UNSCORED] += 1
            continue
        words, others = (len(one.response.text.split()) for one in pair)
        bucket = LONGER if words > LIKE_LENGTH * others else SHORTER if others > LIKE_LENGTH * words else ALIKE
        opening = pair.preferred.context[0].text if pair.preferred.context else ""
        one = _points(sign * preferred, sign * other), _points(words, others), opening
        buckets[bucket].append(one)
        buckets["all"].append(one)
    shares = {name: _shares(rows, bootstrap) for name, rows in buckets.items() if rows or name == "all"}
    n_ties = sum(points == 0.5 for points, _, _ in buckets["all"])
    detectable, whole = None, shares["all"][0]
    if whole.ci_low is not None and whole.ci_high is not None and whole.ci_low <= 0.5 <= whole.ci_high:
        points, _, openings = zip(*buckets["all"], strict=True)
        detectable = detectable_difference(clustered_mean(points, openings), bootstrap=bootstrap)
    return PreferenceShares(pairs._replace(left_out=left_out), shares, n_ties, str(scores.signature), column, detectable)


def _points(preferred: float, other: float) -> float:
    return 0.5 if preferred == other else float(preferred > other)


def _shares(rows: Sequence[tuple[float, float, str]], bootstrap: Bootstrap) -> tuple[Estimate, Estimate]:
    points, lengths, openings = zip(*rows, strict=True) if rows else ((), (), ())
    return (
        mean_interval(points, clusters=openings, bootstrap=bootstrap),
        mean_interval(lengths, clusters=openings, bootstrap=bootstrap),
    )
