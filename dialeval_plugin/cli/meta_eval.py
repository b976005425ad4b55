"""`dialeval meta-eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from .agreement_options import (
    Alpha,
    AverageByOption,
    BySystem,
    Coefficients,
    Confidence,
    Format,
    Human,
    Interval,
    MaxUnscored,
    MinCoverage,
    Output,
    Permutations,
    Rounds,
    Seed,
    WithinRange,
    check_share,
    question,
    report,
)


def meta_eval(
    scores: Annotated[
        list[Path], typer.Argument(help="Files of scores: from `dialeval score`, JSON or CSV with ids, or published.")
    ],
    ratings: Annotated[
        str | None, typer.Option(help="File of ratings in any layout, or a corpus: tu, fed, convai1, ...")
    ] = None,
    quality: Annotated[list[str] | None, typer.Option(help="Rated quality, or all; may be repeated. Default: overall.")] = None,
    rows: Annotated[str | None, typer.Option(help="turn or dialogue, where the ratings have both.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="Column of scores; may be repeated.")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Column of the ratings, where the file of scores has them.")] = None,
    lower: Annotated[list[str] | None, typer.Option(help="Evaluator whose lower scores are better; may be repeated.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Compare the ids that both sides have.")] = False,
    coefficient: Coefficients = None,
    by_system: BySystem = False,
    average_by: AverageByOption = "none",
    within: WithinRange = None,
    threshold: Annotated[float | None, typer.Option(help="Where ratings are 0 or 1: accuracy of this threshold too.")] = None,
    human: Human = "mean",
    confidence: Confidence = 0.95,
    rounds: Rounds = 1000,
    interval: Interval = "percentile",
    seed: Seed = 0,
    permutations: Permutations = 1000,
    alpha: Alpha = 0.05,
    min_coverage: MinCoverage = 0.8,
    max_unscored: MaxUnscored = 0.05,
    format: Format = "text",
    output: Output = None,
) -> None:
    """Say how far scores agree with people: coefficients with intervals, coverage and what they rest on."""
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.core.scoring import Level
    from dialeval_plugin.reports.correlation_report import find
    from dialeval_plugin.reports.score_alignment import Alignment, align

    check_share("--max-unscored", max_unscored)
    asked = question(
        coefficient,
        by_system=by_system,
        average_by=average_by,
        within=within,
        bootstrap=(rounds, confidence, seed, interval),
        min_coverage=min_coverage,
        tests=(permutations, alpha),
        threshold=threshold,
    )
    if rows not in {None, "turn", "dialogue"}:
        raise InputError(f"--rows {rows!r}: choose turn or dialogue.")
    how = Alignment(
        ratings=ratings,
        qualities=quality or (),
        level=cast("Level | None", rows),
        columns=column or (),
        rating_column=rating_column,
        lower=lower or (),
        human=human,
        is_partial=partial,
    )
    report(find(align(scores, how), asked), asked, format, output, max_unscored)
