"""`dialeval meta-eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .agreement_options import AgreementOptions, takes_agreement_options


@takes_agreement_options
def meta_eval(
    scores: Annotated[
        list[Path], typer.Argument(help="Files of scores: from `dialeval score`, JSON or CSV with ids, or published.")
    ],
    agreement: AgreementOptions,
    ratings: Annotated[
        str | None, typer.Option(help="File of ratings in any layout, or a corpus: tu, fed, convai1, ...")
    ] = None,
    quality: Annotated[list[str] | None, typer.Option(help="Rated quality, or all; may be repeated. Default: overall.")] = None,
    rows: Annotated[Literal["turn", "dialogue"] | None, typer.Option(help="Which rows, where the ratings have both.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="Column of scores; may be repeated.")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Column of the ratings, where the file of scores has them.")] = None,
    lower: Annotated[list[str] | None, typer.Option(help="Evaluator whose lower scores are better; may be repeated.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Compare the ids that both sides have.")] = False,
    threshold: Annotated[float | None, typer.Option(help="Where ratings are 0 or 1: accuracy of this threshold too.")] = None,
) -> None:
    """Say how far scores agree with people: coefficients with intervals, coverage and what they rest on."""
    from dialeval_plugin.reports.agreement import find
    from dialeval_plugin.reports.score_alignment import Alignment, align

    asked = agreement.question(threshold)
    how = Alignment(
        ratings=ratings,
        qualities=quality or (),
        level=rows,
        columns=column or (),
        rating_column=rating_column,
        lower=lower or (),
        human=agreement.human,
        is_partial=partial,
    )
    agreement.report(find(align(scores, how), asked), asked)
