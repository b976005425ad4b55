"""The options that `dialeval meta-eval` and `dialeval rescore` share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast, get_args

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval_plugin.reports.correlation_report import Finding, ReportOptions
    from dialeval_plugin.statistics.levels import AverageBy

Coefficients: TypeAlias = Annotated[
    list[str] | None, typer.Option("--coefficient", help="pearson, spearman, kendall_b, ...; may be repeated.")
]
BySystem: TypeAlias = Annotated[bool, typer.Option("--by-system", help="Compare the systems' means instead of rows.")]
AverageByOption: TypeAlias = Annotated[
    str, typer.Option("--average-by", help="none, system or item: mean of one coefficient a system or context.")
]
WithinRange: TypeAlias = Annotated[
    tuple[float, float] | None, typer.Option("--within", help="Only rows whose rating is from LOW to HIGH.", metavar="LOW HIGH")
]
Human: TypeAlias = Annotated[
    str, typer.Option(help="One rating of several: mean, median, without_furthest, minimum or maximum.")
]
Confidence: TypeAlias = Annotated[float, typer.Option(help="Of the intervals.")]
Rounds: TypeAlias = Annotated[int, typer.Option(help="Resamples of the intervals; 0 for none.")]
Permutations: TypeAlias = Annotated[int, typer.Option(help="Of each two evaluators, for p-values and ranks; 0 for neither.")]
Alpha: TypeAlias = Annotated[float, typer.Option(help="Level of significance of the ranks.")]
Interval: TypeAlias = Annotated[str, typer.Option(help="percentile or bca.")]
Seed: TypeAlias = Annotated[int, typer.Option(help="Of the resamples.")]
MinCoverage: TypeAlias = Annotated[
    float, typer.Option(help="Withhold a coefficient where a smaller share of the rated rows has a score.")
]
MaxUnscored: TypeAlias = Annotated[
    float, typer.Option(help="Exit with 1 where a larger share of an evaluator's rows has no score.")
]
Format: TypeAlias = Annotated[str, typer.Option(help="text, markdown, csv, latex or json.")]
Output: TypeAlias = Annotated[Path | None, typer.Option(help="File to write the table to, instead of printing it.")]


def question(
    coefficients: Sequence[str] | None,
    *,
    by_system: bool,
    average_by: str,
    within: tuple[float, float] | None,
    bootstrap: tuple[int, float, int, str],
    min_coverage: float,
    tests: tuple[int, float] = (1000, 0.05),
    threshold: float | None = None,
) -> ReportOptions:
    """Make the question of what was typed.

    Raises:
        InputError: an option has a wrong value.
    """
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.reports.correlation_report import ReportOptions
    from dialeval_plugin.statistics.bootstrap import Bootstrap, IntervalKind
    from dialeval_plugin.statistics.correlation import DEFAULT_COEFFICIENTS
    from dialeval_plugin.statistics.levels import AverageBy

    rounds, confidence, seed, interval = bootstrap
    for option, value, kind in (("--average-by", average_by, AverageBy), ("--interval", interval, IntervalKind)):
        if value not in get_args(kind):
            raise InputError(f"{option} {value!r}: choose one of {', '.join(get_args(kind))}.")
    check_share("--min-coverage", min_coverage)
    return ReportOptions(
        coefficients=tuple(coefficients or DEFAULT_COEFFICIENTS),
        by_system=by_system,
        average_by=cast("AverageBy", average_by),
        within_range=within,
        bootstrap=Bootstrap(rounds, confidence, seed, cast("IntervalKind", interval)),
        min_coverage=min_coverage,
        permutations=tests[0],
        alpha=tests[1],
        threshold=threshold,
    )


def check_share(option: str, value: float) -> None:
    """Check that what was typed is a share.

    Raises:
        InputError: it is none.
    """
    from dialeval_plugin.core.errors import InputError

    if not 0 <= value <= 1:
        raise InputError(f"{option} {value}: is no share. Give a number from 0 to 1.")


def report(findings: Sequence[Finding], asked: ReportOptions, format: str, output: Path | None, max_unscored: float) -> None:
    """Print or write the table; exit with 1 where an evaluator left too many rows unscored that are such as it scores."""
    from dialeval_plugin.core.files import write_text
    from dialeval_plugin.reports.correlation_report import report_table

    text = report_table(findings, asked).render(format)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)
        typer.echo(f"table: {output}")
    worst: dict[tuple[str, str, str], Finding] = {}
    for one in findings:
        place = one.dataset, one.quality, one.evaluator
        if place not in worst or one.estimate.n_unscored > worst[place].estimate.n_unscored:
            worst[place] = one
    undefined = [one for one in worst.values() if _is_not_for(one)]
    for one in undefined:
        reasons = ", ".join(one.unscored).replace("_", " ")
        typer.echo(f"{one.evaluator}, {one.dataset}, {one.quality}: undefined ({reasons})", err=True)
    failed = [one for one in worst.values() if one not in undefined and one.estimate.n_unscored > max_unscored * one.n_rated]
    for one in failed:
        typer.echo(
            f"{one.evaluator}, {one.dataset}, {one.quality}: {one.estimate.n_unscored} of {one.n_rated} rows have no score, "
            f"more than --max-unscored {max_unscored} allows",
            err=True,
        )
    if failed:
        raise typer.Exit(code=1)


def _is_not_for(one: Finding) -> bool:
    """Whether nothing has a score because the evaluator is not for such data: nothing failed."""
    from dialeval_plugin.core.scoring import NOT_FOR_THIS_DATA

    expected = {reason.value for reason in NOT_FOR_THIS_DATA}
    return not one.estimate.n_scored and bool(one.unscored) and expected.issuperset(one.unscored)
