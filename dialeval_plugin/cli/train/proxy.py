"""`dialeval train proxy`: the regression over GLUE classifiers' outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError

from .options import Device, say_how_to_use


def proxy(
    data: Annotated[Path, typer.Option(help="Rated responses in the layout of USR (with facts) or of a DSTC10 set.")],
    output: Annotated[Path, typer.Option(help="File (.json) for the regression.")],
    quality: Annotated[str, typer.Option(help="Quality to predict.")] = "Overall",
    features: Annotated[Literal["all", "single", "context", "fact"], typer.Option(help="Indicators to use.")] = "all",
    models: Annotated[str | None, typer.Option(help="Classifiers instead of the defaults: rte=FOLDER;cola=OWNER/NAME.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Names of a classifier's classes, if it has none: rte=entailment/not_entailment.")
    ] = None,
    entailment: Annotated[
        Literal["entailment", "not_entailment"] | None,
        typer.Option(help="Label of QNLI and RTE whose probability counts. Default: entailment."),
    ] = None,
    absent_fact: Annotated[str | None, typer.Option(help="Text for missing facts.")] = None,
    truncate: Annotated[Literal["right", "left"], typer.Option(help="Side on which long texts are truncated.")] = "right",
    published_scores: Annotated[
        bool, typer.Option("--published-scores", help="Use the indicators in the USR file, and run no classifier.")
    ] = False,
    folds: Annotated[int, typer.Option(help="Folds of contexts for the held-out correlations.")] = 10,
    in_sample: Annotated[
        bool, typer.Option("--in-sample", help="Correlate on the training rows, as in the thesis, instead of held-out ones.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="File (.png, .svg, .pdf) for a plot of the weights.")] = None,
    device: Device = None,
) -> None:
    """Fit the regression that combines proxy indicators into one score, and test how well it predicts ratings."""
    from dialeval_plugin.methods.proxy_indicators.indicators import IndicatorModels, indicated_rows, published_rows
    from dialeval_plugin.methods.proxy_indicators.regression import ProxyModel, fit, predict_held_out
    from dialeval_plugin.methods.proxy_indicators.scorer import REGRESSION
    from dialeval_plugin.methods.proxy_indicators.tasks import IndicatorSettings, read_choices, subset
    from dialeval_plugin.reports.plots import check_format, write_figure

    if plot is not None:
        check_format(plot)
    if published_scores and entailment == "entailment":
        raise InputError("--entailment: the published scores are of not_entailment. Leave one of the options out.")
    settings = IndicatorSettings(
        features=subset(features),
        classifiers=read_choices(models, labels),
        entailment=entailment or ("not_entailment" if published_scores else "entailment"),
        # The published scores of the responses without a fact are those of this text.
        absent_fact="_nofact" if published_scores else absent_fact,
        truncate=truncate,
    )
    indicators = IndicatorModels(settings, device=device)
    rows = published_rows(data, settings, quality) if published_scores else indicated_rows(data, indicators, quality)
    if rows.n_left_out:
        n_all = rows.n_left_out + len(rows.examples)
        typer.echo(
            f"{data}: {rows.n_left_out} of {n_all} responses have no rating or lack an indicator and are left out", err=True
        )
    fitted = fit(settings.features, rows.table, rows.ratings)
    model = ProxyModel(settings, fitted, quality, {} if published_scores else indicators.hashes)
    if in_sample:
        predicted = fitted.predict(rows.table)
    else:
        contexts = [example.context for example in rows.examples]
        predicted = predict_held_out(settings.features, rows.table, rows.ratings, contexts, n_folds=folds)
    model.save(output)
    typer.echo(f"{output}: fitted on {fitted.n_rows} responses, {quality}")
    say_how_to_use(output, REGRESSION, "--option regression")
    for name, weight in zip((*fitted.names, "(intercept)"), (*fitted.weights, fitted.intercept), strict=True):
        typer.echo(f"{name:14}{weight:+9.4f}")
    _print_correlations(
        predicted, rows.examples, "on the rows of the fit" if in_sample else f"held out, {folds} folds of contexts"
    )
    if plot is not None:
        from dialeval_plugin.reports.plots import weight_figure

        write_figure(weight_figure(fitted, title=f"{quality}, fitted on {fitted.n_rows} responses"), plot)
        typer.echo(f"weights: {plot}")


def _print_correlations(predicted: FloatArray, examples: Sequence[Example], how: str) -> None:
    from dialeval_plugin.core.dialogue import mean_rating
    from dialeval_plugin.statistics.correlation import correlations
    from dialeval_plugin.statistics.estimates import interval_text

    typer.echo(f"\n{how:34}{'Pearson':>26}{'Spearman':>26}")
    contexts = [example.context for example in examples]
    for name in examples[0].ratings:
        ratings = [mean_rating(example, name) for example in examples]
        coefficients = correlations(predicted, ratings, coefficients=("pearson", "spearman"), clusters=contexts)
        intervals = [
            interval_text(entry.value, entry.ci_low, entry.ci_high, 4, bound_decimals=3, is_rough=entry.is_rough)
            for entry in coefficients.values()
        ]
        typer.echo(f"{name:34}{intervals[0]:>26}{intervals[1]:>26}")
