"""How far evaluators agree with people, as one table: a row for each evaluator and coefficient.

`dialeval meta-eval` makes `Judgements` of score files, `dialeval rescore` of lm-eval's result files; from there on both are the
same. The statistics are those of `meta_evaluation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dialeval_plugin.meta_evaluation.bootstrap import Bootstrap, Estimate
from dialeval_plugin.meta_evaluation.correlation import DEFAULT_COEFFICIENTS, Correlation, level_correlations
from dialeval_plugin.meta_evaluation.levels import AverageBy, Level, Range, Rated

from .tables import Cell, Column, Row, Table, figure


@dataclass(frozen=True, kw_only=True)
class Judgements:
    """What an evaluator and people said of the same responses or dialogues; all columns have one value a row."""

    evaluator: str
    dataset: str
    quality: str
    level: Level
    ids: Sequence[str]
    scores: Sequence[float | None]
    """Higher is better; None where unscored."""
    ratings: Sequence[float | None]
    """One a row, after aggregating the raters; None where nobody rated it."""
    raters: Sequence[Sequence[float]]
    """Each rater's answer; () where they are not known."""
    clusters: Sequence[str] | None
    items: Sequence[str] | None
    systems: Sequence[str] | None
    words: Sequence[int] | None
    """Of the responses, or of the dialogues."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """How many rows have no score, by reason."""

    @property
    def rated(self) -> Rated:
        """What the statistics take."""
        return Rated(scores=self.scores, ratings=self.ratings, clusters=self.clusters, systems=self.systems, items=self.items)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of all judgements alike."""

    coefficients: Sequence[str] = DEFAULT_COEFFICIENTS
    by_system: bool = False
    """Compare the systems' means instead of rows."""
    average_by: AverageBy = "none"
    within_range: Range | None = None
    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    min_coverage: float = 0.8
    """A coefficient is withheld where a smaller share of the rated rows has a score."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statistic of one evaluator."""

    evaluator: str
    dataset: str
    quality: str
    level: Level
    statistic: str
    estimate: Estimate
    unscored: Mapping[str, int]
    is_withheld: bool = False
    is_clustered: bool = True
    """Whether it is known which rows belong to one dialogue."""

    @property
    def value(self) -> float | None:
        """The statistic, if it is defined and not withheld."""
        return None if self.is_withheld else self.estimate.value

    @property
    def n_rated(self) -> int:
        """Rows that the statistic could rest on."""
        return self.estimate.n_scored + self.estimate.n_unscored


def find(judgements: Sequence[Judgements], question: Question) -> list[Finding]:
    """Return every coefficient of every evaluator."""
    found = []
    for one in judgements:
        by_name = level_correlations(
            one.rated,
            level="system" if question.by_system else one.level,
            average_by=question.average_by,
            coefficients=question.coefficients,
            within_range=question.within_range,
            bootstrap=question.bootstrap,
        )
        for name, correlation in by_name.items():
            coverage = correlation.coverage
            finding = Finding(
                evaluator=one.evaluator,
                dataset=one.dataset,
                quality=one.quality,
                level="system" if question.by_system else one.level,
                statistic=name,
                estimate=correlation,
                unscored=one.unscored,
                is_withheld=coverage is not None and coverage < question.min_coverage,
                is_clustered=one.clusters is not None,
            )
            found.append(finding)
    return found


def table(findings: Sequence[Finding], question: Question) -> Table:
    """Return the findings as a table: data, qualities and statistics in their order, the best evaluator of each first."""
    rows = [_row(finding) for finding in _ordered(findings)]
    columns = [
        *(_text_column(name) for name in ("dataset", "quality") if len({row[name] for row in rows}) > 1),
        _text_column("level"),
        _text_column("statistic"),
        _text_column("evaluator"),
        Column("value", _value),
        Column(f"{100 * question.bootstrap.confidence:g} % interval", _interval),
        Column("scored", lambda row: f"{row['n_scored']}/{row['n_rated']}"),
        Column("clusters", lambda row: str(row["n_clusters"])),
    ]
    return Table(rows, columns, _notes(findings, question), _settings(question))


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    cells: dict[tuple[str, str, str], int] = {}
    statistics: dict[str, int] = {}
    for finding in findings:
        cells.setdefault((finding.dataset, finding.quality, finding.level), len(cells))
        statistics.setdefault(finding.statistic, len(statistics))

    def place(finding: Finding) -> tuple[int, int, bool, float]:
        cell = cells[finding.dataset, finding.quality, finding.level]
        return cell, statistics[finding.statistic], finding.value is None, -(finding.value or 0.0)

    return sorted(findings, key=place)


def _row(finding: Finding) -> Row:
    found, is_withheld = finding.estimate, finding.is_withheld
    correlation = found if isinstance(found, Correlation) else None
    why = f"withheld: {found.n_scored} of {finding.n_rated} rated rows have a score" if is_withheld else found.reason
    return {
        "dataset": finding.dataset,
        "quality": finding.quality,
        "level": finding.level,
        "average_by": correlation.average_by if correlation else "none",
        "statistic": finding.statistic,
        "evaluator": finding.evaluator,
        "value": finding.value,
        "ci_low": None if is_withheld else found.ci_low,
        "ci_high": None if is_withheld else found.ci_high,
        "n_total": found.n_total,
        "n_rated": finding.n_rated,
        "n_scored": found.n_scored,
        "n_unscored": found.n_unscored,
        "unscored": ", ".join(f"{reason} {number}" for reason, number in sorted(finding.unscored.items())),
        "coverage": found.n_scored / finding.n_rated if finding.n_rated else None,
        "n_clusters": found.n_clusters,
        "n_groups": correlation.n_groups if correlation else None,
        "epsilon": correlation.epsilon if correlation else None,
        "is_withheld": is_withheld,
        "reason": why,
    }


def _text_column(name: str) -> Column:
    return Column(name, lambda row: str(row[name]), is_number=False)


def _value(row: Row) -> str:
    if row["is_withheld"]:
        return "withheld"
    return "undefined" if row["value"] is None else figure(row["value"])


def _interval(row: Row) -> str:
    low, high = row["ci_low"], row["ci_high"]
    return "" if low is None or high is None else f"{figure(low)} to {figure(high)}"


def _notes(findings: Sequence[Finding], question: Question) -> list[str]:
    notes = []
    if question.bootstrap.rounds and not all(finding.is_clustered for finding in findings):
        notes.append("No file says which rows belong to one dialogue: intervals resample single rows and may be too narrow.")
    if any(finding.is_withheld for finding in findings):
        notes.append(f"Withheld: fewer than {100 * question.min_coverage:g} % of the rated rows have a score (--min-coverage).")
    reasons = [
        finding.estimate.reason
        for finding in findings
        if finding.estimate.reason and not finding.is_withheld and (question.bootstrap.rounds or finding.value is None)
    ]
    return [*notes, *dict.fromkeys(reasons)]


def _settings(question: Question) -> dict[str, Cell | list[float]]:
    bootstrap = question.bootstrap
    return {
        "average_by": question.average_by,
        "within_range": list(question.within_range) if question.within_range else None,
        "rounds": bootstrap.rounds,
        "confidence": bootstrap.confidence,
        "interval": bootstrap.interval,
        "seed": bootstrap.seed,
        "min_coverage": question.min_coverage,
    }
