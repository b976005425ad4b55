"""`dialeval rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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


def rescore(
    results: Annotated[
        list[Path], typer.Argument(help="Folders or files that lm-eval wrote with --output_path, --log_samples.")
    ],
    all_runs: Annotated[bool, typer.Option("--all-runs", help="Older runs of the same evaluator and task as well.")] = False,
    coefficient: Coefficients = None,
    by_system: BySystem = False,
    average_by: AverageByOption = "none",
    within: WithinRange = None,
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
    """Compute the agreement with people of lm-eval runs again from their samples; no model is needed."""
    from dialeval_plugin.leaderboard.rescoring import newest
    from dialeval_plugin.leaderboard.rescoring import rescore as compute
    from dialeval_plugin.leaderboard.result_files import read_runs

    check_share("--max-unscored", max_unscored)
    asked = question(
        coefficient,
        by_system=by_system,
        average_by=average_by,
        within=within,
        bootstrap=(rounds, confidence, seed, interval),
        min_coverage=min_coverage,
        tests=(permutations, alpha),
    )
    runs = read_runs(results)
    findings = compute(runs if all_runs else newest(runs), asked, human=human, only_coefficients=coefficient is not None)
    report(findings, asked, format, output, max_unscored)
