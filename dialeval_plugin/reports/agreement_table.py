"""Findings of `agreement` as one table: a row for each evaluator and statistic."""

from __future__ import annotations

from collections.abc import Sequence

from dialeval_plugin.statistics.bootstrap import ROUGH_CLUSTERS
from dialeval_plugin.statistics.correlation import Correlation

from .agreement import Finding, Question
from .tables import Cell, Column, Row, Table, figure


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
        *_optional(rows),
        Column("scored", lambda row: f"{row['n_scored']}/{row['n_rated']}"),
        Column("clusters", lambda row: str(row["n_clusters"])),
    ]
    return Table(rows, columns, _notes(findings, question), _settings(question))


def _optional(rows: Sequence[Row]) -> list[Column]:
    """Columns that are shown where some row has a value in them."""
    columns = {
        "rank": Column("rank", lambda row: figure(row["rank"], 0)),
        "p_value": Column("p", lambda row: figure(row["p_value"])),
        "if_unscored_low": Column("if unscored", lambda row: _range(row, "if_unscored_low", "if_unscored_high")),
        "people_leave_one_out": Column("one person", lambda row: figure(row["people_leave_one_out"])),
        "people_split_half": Column("half the people", lambda row: figure(row["people_split_half"])),
        "length_bias": Column("length bias", lambda row: figure(row["length_bias"])),
    }
    return [column for name, column in columns.items() if any(row[name] is not None for row in rows)]


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
        "is_rough": found.is_rough and not is_withheld,
        "rank": None if is_withheld else finding.beside.rank,
        "p_value": None if is_withheld else finding.beside.p_value,
        "if_unscored_low": finding.beside.if_unscored_low,
        "if_unscored_high": finding.beside.if_unscored_high,
        "people_leave_one_out": finding.beside.leave_one_out,
        "people_split_half": finding.beside.split_half,
        "length_of_scores": finding.lengths.of_scores,
        "length_of_ratings": finding.lengths.of_ratings,
        "length_bias": finding.lengths.bias,
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
    return f"{_range(row, 'ci_low', 'ci_high')}{', rough' if row['is_rough'] else ''}"


def _range(row: Row, low: str, high: str) -> str:
    return "" if row[low] is None or row[high] is None else f"{figure(row[low])} to {figure(row[high])}"


def _notes(findings: Sequence[Finding], question: Question) -> list[str]:
    notes = []
    if question.bootstrap.rounds and not all(finding.is_clustered for finding in findings):
        notes.append("No file says which rows belong to one dialogue: intervals resample single rows and may be too narrow.")
    if any(finding.estimate.is_rough and not finding.is_withheld for finding in findings):
        notes.append(
            f"Rough: an interval of fewer than {ROUGH_CLUSTERS} clusters holds the true value less often than it says."
        )
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
        "permutations": question.permutations,
        "alpha": question.alpha,
        "min_coverage": question.min_coverage,
    }
