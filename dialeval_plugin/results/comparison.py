"""Comparison of two versions: the difference of two files of scores with its interval, and a verdict.

Intervals resample whole conversations, because their responses are similar; rows of both files are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from dialeval_plugin.core.dialogue import Item, context_turns
from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import check_name, to_json
from dialeval_plugin.core.scores import Orientation, PrintedResult, Scores
from dialeval_plugin.core.signature import short_form
from dialeval_plugin.corpora.score_files import conversation_of
from dialeval_plugin.labels.reading import rows_from
from dialeval_plugin.labels.scores import ScoredRow, ScoredRows, read_scored_rows, scored_rows_of
from dialeval_plugin.reports.printed_scores import cut
from dialeval_plugin.reports.tables import (
    COUNTS,
    ESTIMATED,
    SCHEMA_VERSION,
    Table,
    TableRow,
    figures,
    named_column,
    text_column,
)
from dialeval_plugin.statistics.bootstrap import DEFAULT_BOOTSTRAP, MIN_CLUSTERS, UNIFORM, Bootstrap, Estimate, Resampled
from dialeval_plugin.statistics.estimates import number_text
from dialeval_plugin.statistics.means import difference_of_means, difference_of_means_interval, mean_interval
from dialeval_plugin.statistics.rows import check_choice
from dialeval_plugin.statistics.significance import Detectable, detectable_difference
from dialeval_plugin.terminal import for_markdown

from .gates import Gate, check_gate

Pairing: TypeAlias = Literal["auto", "paired", "unpaired"]
MIN_MATCHED = 0.5
"""Smallest share of the smaller file's rows or conversations that must be in the other file for pairing."""
MAX_UNSCORED_GAP = 0.05
_LONGEST_NAME = 60
"""Most terminal columns for the name of a conversation, which may be its context."""


class Change(NamedTuple):
    """Conversation in both files: the means of its rows in each, and B - A."""

    conversation: str
    a: float
    b: float
    difference: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(PrintedResult):
    """Comparison of two files of scores; `difference` is the mean of B minus the mean of A over the compared rows.

    Attributes:
        matched_by: how rows are paired: by "message", "conversation", or "context" (the turns before the first response); None
            if unpaired.
        a: mean of the compared rows of the first file, with their counts; b: of the second one.
        n_rows: all rows of each file; n_conversations: their conversations; n_matched: conversations in both.
        changed: conversations in both whose means differ, largest change first; empty if unpaired.
        notes: remarks on the verdict.
        pilot: difference by cluster, from which `detectable` is simulated.
    """

    names: tuple[str, str]
    column: str
    orientation: Orientation
    signature: str | None
    matched_by: str | None
    difference: Estimate
    a: Estimate
    b: Estimate
    n_rows: tuple[int, int]
    n_conversations: tuple[int, int]
    n_matched: int
    changed: Sequence[Change] = ()
    notes: Sequence[str] = field(default_factory=list)
    pilot: Resampled | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.verdict

    @property
    def verdict(self) -> str:
        """Verdict in one sentence: which version is better, or that no difference is shown and which one would be detected."""
        sentence = verdict(self.difference, self.orientation)
        if self.is_told or self.detectable is None:
            return sentence
        n = f"{self.difference.n_clusters}" if self.matched_by else f"{self.a.n_clusters} and {self.b.n_clusters}"
        return f"{sentence} With these {n} conversations {self.detectable}."

    @property
    def is_told(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = self.difference.ci_low, self.difference.ci_high
        return low is not None and high is not None and not low <= 0 <= high

    @cached_property
    def detectable(self) -> Detectable | None:
        """Smallest difference that such data would detect with 80 % power; None without an interval."""
        if self.pilot is None or self.difference.ci_low is None:
            return None
        return detectable_difference(self.pilot, bootstrap=self.difference.bootstrap)

    def gate(self, margin: float = 0.0, min_conversations: int | None = None) -> Gate:
        """Return whether B may replace A: the gate fails if the whole interval is worse than the margin."""
        if not 0 <= margin < math.inf:
            raise InputError(f"--fail-if-worse {margin}: a margin is how much worse B may be. Give 0 or more.")
        is_lower_better = self.orientation == "lower"
        threshold = margin if is_lower_better else -margin
        gate = check_gate(self.difference, threshold, "B - A", min_conversations, is_lower_better=is_lower_better)
        if not gate.has_passed or self.is_told or self.detectable is None:
            return gate
        loss = number_text(margin + self.detectable.difference)
        return gate._replace(reason=f"{gate.reason} B worse by {loss} would fail four times in five.")


def compare(
    a: Any,
    b: Any,
    *,
    column: str | None = None,
    pairing: Pairing = "auto",
    ignore: str | Collection[str] = (),
    max_unscored_gap: float = MAX_UNSCORED_GAP,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Comparison:
    """Compare the scores of two versions, each `Scores`, a file of any tool, a data frame, rows, or an object of id to score.

    Args:
        a: scores of the current version.
        b: scores of the candidate version.
        column: score column; by default the main one.
        pairing: "paired" compares only what both files have; "unpaired" compares the means of all rows, but still resamples
            conversations in both files together; "auto" pairs if at least half of the smaller file is in the other one.
        ignore: signature fields that may differ, such as `version`.
        max_unscored_gap: largest difference between the shares of unscored rows.
        bootstrap: settings of the intervals.

    Raises:
        InputError: the files differ in how they were scored, in the column, or too much in the share of unscored rows; or they
            must be paired and have nothing in common.
    """
    a, b = (_rows_given(one, name, column) for one, name in ((a, "A"), (b, "B")))
    notes = _check_alike(a, b, {ignore} if isinstance(ignore, str) else ignore)
    _check_unscored(a, b, max_unscored_gap)
    check_choice("compare", "pairing", pairing, get_args(Pairing))
    matched = _match(a, b, pairing)
    side_a, side_b = matched.sides
    if not all(any(score is not None for score in side.scores) for side in matched.sides):
        raise InputError(
            f"{a.name}, {b.name}: no row that is compared has a score in both. Were the same conversations scored?"
        )
    of_sides = {"clusters_a": side_b.clusters, "clusters_b": side_a.clusters}
    pilot = difference_of_means(side_b.scores, side_a.scores, **of_sides)[0]
    return Comparison(
        names=(a.name, b.name),
        column=a.column,
        orientation=a.orientation,
        signature=a.signature or b.signature,
        matched_by=matched.by,
        difference=difference_of_means_interval(side_b.scores, side_a.scores, **of_sides, bootstrap=bootstrap),
        a=mean_interval(side_a.scores, clusters=side_a.clusters, bootstrap=bootstrap),
        b=mean_interval(side_b.scores, clusters=side_b.clusters, bootstrap=bootstrap),
        n_rows=(len(a.rows), len(b.rows)),
        n_conversations=(len({row.conversation for row in a.rows}), len({row.conversation for row in b.rows})),
        n_matched=matched.n,
        changed=_changes(matched) if matched.by else (),
        notes=[*notes, *matched.notes],
        pilot=None if isinstance(pilot, str) else pilot[1],
    )


def _rows_given(given: Any, name: str, column: str | None) -> ScoredRows:
    if isinstance(given, ScoredRows):
        return given
    if isinstance(given, Scores):
        return scored_rows(name, given.items, given, column)
    if not isinstance(given, (str, Path)):
        return scored_rows_of(rows_from(given, name, "score"), name, column)
    return read_scored_rows(Path(check_name(str(given))), column)


def chosen_column(scores: Scores, column: str | None = None) -> str:
    """Return the name of a column, by default the main one; raise an InputError for one that is not there."""
    if column is not None and column not in scores.columns:
        raise unknown_name(f"--column: there are no scores {column!r}", column, scores.columns)
    return column or scores.main


def scored_rows(name: str, items: Sequence[Item], scores: Scores, column: str | None = None) -> ScoredRows:
    """Return the scores of items as if read from a file called `name`."""
    column = chosen_column(scores, column)
    rows = []
    for item, score in zip(items, scores.columns[column], strict=True):
        before, origin = tuple(turn.text for turn in context_turns(item)), item.origin
        conversation = origin.conversation if origin else conversation_of(item.id, before, is_of_turns=scores.level == "turn")
        rows.append(ScoredRow(item.id, conversation, score, before, {} if origin is None else dict(origin.kept)))
    return ScoredRows(name, column, rows, scores.orientation, str(scores.signature))


def verdict(difference: Estimate, orientation: Orientation = "higher") -> str:
    """Return which version is better by the interval of B - A, or why there is no verdict."""
    value, low, high = difference.value, difference.ci_low, difference.ci_high
    if value is None:
        return f"No verdict: {difference.reason}"
    better = "better" if (value > 0) == (orientation == "higher") else "worse"
    if low is None or high is None:
        if difference.reason is not None and UNIFORM in difference.reason:
            always = (
                f"B is {better} than A by {number_text(abs(value))}, the same in all {difference.n_clusters} conversations."
            )
            return always if value else "A and B have the same scores."
        if (n := difference.n_clusters) < MIN_CLUSTERS:
            return f"No verdict: B - A is {number_text(value)}, of {n} conversations, and {MIN_CLUSTERS} are needed."
        return f"No verdict: B - A is {number_text(value)}. {difference.reason}"
    rough = ", rough" if difference.is_rough else ""
    if low <= 0 <= high:
        return f"No difference is shown: B - A is {number_text(value)} ({number_text(low)} to {number_text(high)}{rough})."
    ends = " to ".join(number_text(end) for end in sorted((abs(low), abs(high))))
    return f"B is {better} than A by {number_text(abs(value))} ({ends}{rough})."


def _check_alike(a: ScoredRows, b: ScoredRows, ignore: Collection[str]) -> list[str]:
    """Return notes on how both were scored; raises InputError if they were scored differently."""
    if (a.column, a.orientation) != (b.column, b.orientation):
        raise InputError(
            f"{b.name}: its scores are {b.column!r} ({b.orientation} is better), those of {a.name} {a.column!r} "
            f"({a.orientation}). Score both with one scorer, or name a column of both by --column."
        )
    if a.signature is None or b.signature is None:
        unknown = [one.name for one in (a, b) if one.signature is None]
        how = f"how {' and '.join(unknown)} {'were' if len(unknown) > 1 else 'was'} scored"
        return [f"it is not recorded {how} (no .meta.json); both are assumed to be scored alike"]
    fields_a, fields_b = (dict(part.partition(":")[::2] for part in one.split("|")) for one in (a.signature, b.signature))
    known = {**fields_a, **fields_b}
    differing = [name for name in known if fields_a.get(name) != fields_b.get(name)]
    differences = {name: f"{name} ({fields_a.get(name, 'none')}, {fields_b.get(name, 'none')})" for name in differing}
    if others := [name for name in differing if name not in ignore]:
        raise InputError(
            f"{a.name}, {b.name}: were scored in different ways: {', '.join(differences[name] for name in others)}. Score both "
            f"with the same scorer, release and options, or accept a difference that moves no score by --ignore {others[0]}."
        )
    notes = [f"--ignore {name}: no such field. Known are: {', '.join(known)}" for name in ignore if name not in known]
    accepted = ", ".join(differences.values())
    return [*notes, f"scored in different ways, which --ignore accepts: {accepted}"] if accepted else notes


def _check_unscored(a: ScoredRows, b: ScoredRows, max_gap: float) -> None:
    counts = [(sum(row.score is None for row in one.rows), len(one.rows)) for one in (a, b)]
    share_a, share_b = (n / of for n, of in counts)
    if abs(share_a - share_b) > max_gap:
        parts = [f"{n} of {of} rows of {one.name}" for (n, of), one in zip(counts, (a, b), strict=True)]
        raise InputError(
            f"{parts[0]} and {parts[1]} have no score: a version that fails on the hard ones would look better. Find out why "
            f"('unscored' says it), or accept it by --max-unscored-gap {abs(share_a - share_b) + 0.005:.2f}."
        )


class _Side(NamedTuple):
    """Compared rows of one file: the unit to resample, such as a conversation, and the score."""

    clusters: list[str]
    scores: list[float | None]


class _Matched(NamedTuple):
    """Compared rows of both files; `n` clusters are in both."""

    by: str | None
    n: int
    sides: tuple[_Side, _Side]
    notes: Sequence[str]


def _match(a: ScoredRows, b: ScoredRows, pairing: Pairing) -> _Matched:
    """Pair the rows by message, else by conversation, else by the turns before the first response, else not at all."""
    starts_a, starts_b = _starts(a), _starts(b)
    notes = []
    for by, units_a, units_b in _units(a, b, starts_a, starts_b) if pairing != "unpaired" else ():
        shared = [unit for unit in units_a if unit in units_b]
        if not shared or (pairing == "auto" and len(shared) < MIN_MATCHED * min(len(units_a), len(units_b))):
            continue
        begun = [(starts_a[units_a[unit][0].conversation], starts_b[units_b[unit][0].conversation]) for unit in shared]
        known = [ours[:1] == theirs[:1] for ours, theirs in begun if ours and theirs]
        if known and fmean(known) < MIN_MATCHED:
            notes = ["ids are in both files, but what they name begins differently, so nothing is paired by id"]
            continue
        sides = _Side([], []), _Side([], [])
        for unit in shared:
            rows = units_a[unit], units_b[unit]
            # A unit without a score in one version is left out of both.
            is_compared = all(any(row.score is not None for row in of) for of in rows)
            for side, of in zip(sides, rows, strict=True):
                side.clusters.extend([rows[0][0].conversation if by == "message" else unit] * len(of))
                side.scores.extend(row.score if is_compared else None for row in of)
        left_out = [len(one.rows) - len(side.scores) for one, side in zip((a, b), sides, strict=True)]
        if any(left_out):
            parts = [f"{n} of {len(one.rows)} rows of {one.name}" for n, one in zip(left_out, (a, b), strict=True)]
            notes.append(f"left out, without a counterpart in the other file: {', '.join(parts)}")
        return _Matched(by, len({*sides[0].clusters}), sides, notes)
    if pairing == "paired":
        raise InputError(
            f"{a.name}, {b.name}: no conversation is in both, by its id or by what was said before its first response. "
            "Compare the means of different conversations by --pairing unpaired."
        )
    side_a, side_b = (_Side([row.conversation for row in one.rows], [row.score for row in one.rows]) for one in (a, b))
    return _Matched(None, len({*side_a.clusters} & {*side_b.clusters}), (side_a, side_b), notes)


def _starts(of: ScoredRows) -> dict[str, tuple[str, ...] | None]:
    """Return the turns before the first response of each conversation, whose rows may come newest first."""
    starts: dict[str, tuple[str, ...] | None] = {}
    for row in of.rows:
        start = starts.setdefault(row.conversation, row.before)
        if start and row.before and row.before == start[: len(row.before)]:
            starts[row.conversation] = row.before
    return starts


_Units: TypeAlias = dict[str, list[ScoredRow]]
_Starts: TypeAlias = Mapping[str, tuple[str, ...] | None]


def _units(a: ScoredRows, b: ScoredRows, starts_a: _Starts, starts_b: _Starts) -> Iterator[tuple[str, _Units, _Units]]:
    """Yield each way of pairing with the rows of both files, grouped by it."""
    yield "message", _grouped(a, lambda row: row.id), _grouped(b, lambda row: row.id)
    yield "conversation", _grouped(a, lambda row: row.conversation), _grouped(b, lambda row: row.conversation)
    if all(starts_a.values()) and all(starts_b.values()):
        of_a, of_b = ({name: "\n".join(texts or ()) for name, texts in starts.items()} for starts in (starts_a, starts_b))
        yield "context", _grouped(a, lambda row: of_a[row.conversation]), _grouped(b, lambda row: of_b[row.conversation])


def _grouped(of: ScoredRows, label: Callable[[ScoredRow], str]) -> _Units:
    groups: _Units = {}
    for row in of.rows:
        groups.setdefault(label(row), []).append(row)
    return groups


def _changes(matched: _Matched) -> list[Change]:
    scores: dict[str, tuple[list[float], list[float]]] = {}
    for place, side in enumerate(matched.sides):
        for conversation, score in zip(*side, strict=True):
            if score is not None:
                scores.setdefault(conversation, ([], []))[place].append(score)
    means = {conversation: (fmean(of_a), fmean(of_b)) for conversation, (of_a, of_b) in scores.items() if of_a and of_b}
    changes = [Change(conversation, a, b, b - a) for conversation, (a, b) in means.items() if a != b]
    return sorted(changes, key=lambda one: (-abs(one.difference), one.conversation))


def shown(comparison: Comparison, format: str, n_changed: int, gate: Gate | None = None) -> str:
    """Return a comparison as text, Markdown or JSON with a final line break; shows at most `n_changed` conversations."""
    changed = comparison.changed[:n_changed]
    if format == "json":
        return to_json(_record(comparison, n_changed, gate), indent=2) + "\n"
    is_markdown = format == "markdown"
    rows = [
        {"": name, "file": file, **figures(one)}
        for name, file, one in zip("AB", comparison.names, (comparison.a, comparison.b), strict=True)
    ]
    names = [*map(text_column, ("", "file"))]
    sides = Table(rows, [*names, *ESTIMATED, *COUNTS])
    parts = [f"**{comparison.verdict}**" if is_markdown else comparison.verdict, sides.render(format).rstrip()]
    n_a, n_b = comparison.n_conversations
    shared = f"{comparison.n_matched} of {n_a} conversations of A and {n_b} of B are in both"
    how = f"paired by {comparison.matched_by}" if comparison.matched_by else "unpaired, the means of all"
    notes = [f"{how}: {shared}", *comparison.notes]
    parts.append("\n".join(for_markdown(f"- {note}") if is_markdown else note for note in notes))
    if changed:
        columns = [text_column("conversation"), *map(named_column, ("A", "B", "B - A"))]
        lines: list[TableRow] = [
            {"conversation": cut(one.conversation, _LONGEST_NAME), "A": one.a, "B": one.b, "B - A": one.difference}
            for one in changed
        ]
        table = Table(lines, columns).render(format).rstrip()
        title = f"changed most, {len(changed)} of {len(comparison.changed)} conversations that changed"
        parts.append(f"<details><summary>{title}</summary>\n\n{table}\n\n</details>" if is_markdown else f"{title}:\n{table}")
    if comparison.signature:
        signature = short_form(comparison.signature)
        parts.append(f"`{signature}`" if is_markdown else signature)
    if gate is not None:
        parts.append(f"**{gate}**" if is_markdown else str(gate))
    return "\n\n".join(parts) + "\n"


def _record(comparison: Comparison, n_changed: int, gate: Gate | None) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "column": comparison.column,
        "orientation": comparison.orientation,
        "signature": comparison.signature,
        "difference": comparison.difference.to_dict(),
        "detectable": None if comparison.detectable is None else comparison.detectable._asdict(),
        **{
            side: {"file": file, "n_rows": n_rows, "n_conversations": n, "mean": one.to_dict()}
            for side, file, n_rows, n, one in zip(
                "ab", comparison.names, comparison.n_rows, comparison.n_conversations, (comparison.a, comparison.b), strict=True
            )
        },
        "matched_by": comparison.matched_by,
        "n_matched": comparison.n_matched,
        "changed": [one._asdict() for one in comparison.changed[:n_changed]],
        "notes": list(comparison.notes),
        "gate": None if gate is None else gate._asdict(),
    }
