"""`dialeval rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .agreement_options import AgreementOptions, takes_agreement_options


@takes_agreement_options
def rescore(
    results: Annotated[
        list[Path], typer.Argument(help="Folders or files that lm-eval wrote with --output_path, --log_samples.")
    ],
    agreement: AgreementOptions,
    all_runs: Annotated[bool, typer.Option("--all-runs", help="Older runs of the same evaluator and task as well.")] = False,
) -> None:
    """Compute the agreement with people of lm-eval runs again from their samples; no model is needed."""
    from dialeval_plugin.leaderboard.rescoring import newest
    from dialeval_plugin.leaderboard.rescoring import rescore as compute
    from dialeval_plugin.leaderboard.result_files import read_runs

    asked = agreement.question()
    runs = read_runs(results)
    chosen, has_chosen = runs if all_runs else newest(runs), agreement.coefficient is not None
    agreement.report(compute(chosen, asked, human=agreement.human, only_coefficients=has_chosen), asked)
