"""`dialeval plot`: the plots of the papers, as PNG, SVG or PDF by the suffix of the file name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

app = typer.Typer(help="Draw the plots of the papers, as PNG, SVG or PDF.", no_args_is_help=True)


def check_ending(path: Path | None) -> Path | None:
    """Raise InputError for a wrong suffix before hours of work."""
    from dialeval_plugin.reports.plots import check_format

    if path is not None:
        check_format(path)
    return path


def _write(figure: Figure, path: Path) -> None:
    from dialeval_plugin.reports.plots import write_figure

    write_figure(figure, path)
    typer.echo(path)


Output = Annotated[Path, typer.Option(callback=check_ending, help="File to write; it ends in .png, .svg or .pdf.")]
Data = Annotated[Path, typer.Argument(help="File in DailyDialog++'s layout.")]
Slm = Annotated[str | None, typer.Option(help="Folder or hub id of the small model.")]


@app.command()
def forest(
    tables: Annotated[list[Path], typer.Argument(help="Files written by `dialeval meta-eval --format json --output FILE`.")],
    output: Output,
    statistic: Annotated[str, typer.Option(help="Coefficient to draw.")] = "spearman",
) -> None:
    """Forest plot of the agreement with people: a panel for each data set, with the agreement among people as a band."""
    from dialeval_plugin.reports.plots import forest_figure, read_panels

    _write(forest_figure(read_panels(tables, statistic), label=statistic.replace("_", " ")), output)


@app.command()
def disentangling(
    data: Data,
    output: Output,
    slm: Slm = None,
    contexts: Annotated[int, typer.Option(min=1, max=12, help="Number of contexts to show.")] = 4,
    fitted: Annotated[int, typer.Option(min=1, help="Number of contexts for t-SNE.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of t-SNE.")] = 0,
) -> None:
    """t-SNE of contexts and responses before and after disentangling (SLIDE figure 2)."""
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.reports import slm as slm_report
    from dialeval_plugin.reports.plots import disentangling_figure

    sets = dailydialog_pp.read(data)[: max(contexts, fitted)]
    normal, disentangled = slm_report.vectors(sets, slm)
    typer.echo(slm_report.leak_note(sets, slm))
    typer.echo(
        f"triplet accuracy: {100 * normal.triplet_accuracy():.1f} % before, {100 * disentangled.triplet_accuracy():.1f} % after"
    )
    title = slm_report.model_title(slm, f"{min(contexts, len(sets))} of {len(sets)} contexts")
    _write(disentangling_figure(normal, disentangled, n_shown=contexts, seed=seed, title=title), output)


@app.command()
def training(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model, or its `.training` during training.")],
    output: Output,
) -> None:
    """Loss and accuracy by epoch, with a panel for each stage (DRE figures 3 and 4)."""
    from dialeval_plugin.reports.plots import training_figure
    from dialeval_plugin.training.checkpoints import read_history

    history = read_history(model)
    n_steps = sum({row.stage: row.step for row in history}.values())  # each stage counts its own
    _write(training_figure(history, title=f"{model.resolve().name}: {n_steps} steps"), output)


@app.command()
def thresholds(data: Data, output: Output, slm: Slm = None) -> None:
    """Accuracy of the small model by threshold (DRE figure 6)."""
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.reports import slm as slm_report
    from dialeval_plugin.reports.plots import threshold_figure

    sets = dailydialog_pp.read(data)
    panels, marked = slm_report.threshold_panels(sets, slm, where=str(data))
    typer.echo(slm_report.leak_note(sets, slm))
    n_positive, n_adversarial = map(len, next(iter(panels.values())))
    title = slm_report.model_title(slm, f"{n_positive} positive and {n_adversarial} adversarial responses")
    _write(threshold_figure(panels, marked, title=title), output)


@app.command()
def distribution(
    data: Annotated[str, typer.Argument(help="File in DailyDialog++'s layout, or with --scores rated data, as for meta-eval.")],
    output: Output,
    slm: Slm = None,
    column: Annotated[
        str | None, typer.Option(help="slm (default), slm_probability or slm_distance, or with --scores a column of that file.")
    ] = None,
    scores: Annotated[Path | None, typer.Option(help="Scores of DATA from `dialeval score`; no model is run.")] = None,
    quality: Annotated[str | None, typer.Option(help="Rated quality whose levels are the classes; needs --scores.")] = None,
) -> None:
    """Distribution of the scores of each class, with kernel density (thesis figure 7.2).

    Classes are DailyDialog++'s kinds of responses, or with --scores the levels of a rating, to which means are rounded.
    """
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.reports.plots import distribution_figure

    if scores is None:
        from dialeval_plugin.reports import slm as slm_report

        sets = dailydialog_pp.read(Path(data))
        ((label, classes),) = slm_report.scores_by_class(sets, slm, (column or "slm",)).items()
        title = slm_report.model_title(slm, f"{len(sets)} contexts")
        typer.echo(slm_report.leak_note(sets, slm))
    else:
        from dialeval_plugin.reports.score_alignment import scores_by_rating

        label, classes = scores_by_rating(data, scores, column, quality)
        title = f"{scores.stem}: {sum(map(len, classes.values()))} responses of {Path(data).name}"
    _write(distribution_figure(classes, label=label, title=title), output)


@app.command()
def cascade(
    data: Annotated[str, typer.Argument(help="Rated data, as for meta-eval: a file, or name of a data set.")],
    scores: Annotated[
        list[Path], typer.Argument(help="Scores of DATA from `dialeval score --scorer slide --option small=general --llm ...`.")
    ],
    output: Output,
    quality: Annotated[str | None, typer.Option(help="Rated quality. Default: the overall one.")] = None,
    keep: Annotated[
        float, typer.Option(min=0, max=1, help="Print the share of calls that keeps this share of the coefficient.")
    ] = 0.99,
) -> None:
    """Agreement with people by the share of responses that the large model judges."""
    from dialeval_plugin.reports.plots import cascade_figure
    from dialeval_plugin.reports.score_alignment import cascade_curves
    from dialeval_plugin.statistics.choices import share_that_keeps

    curves = cascade_curves(data, scores, quality)
    for name, curve in curves.items():
        cheapest = share_that_keeps(curve, keep)
        typer.echo(
            f"{name}: {curve[0].value:.3f} without calls, {curve[-1].value:.3f} with all; {cheapest.share:.0%} of them keep "
            f"{keep:.0%} of it (cascade={cheapest.half_width:.2f})"
        )
    _write(cascade_figure({name: [(point.share, point.value) for point in curve] for name, curve in curves.items()}), output)


@app.command()
def weights(
    model: Annotated[Path, typer.Argument(help="Regression from `dialeval train proxy`.")],
    output: Output,
    title: Annotated[str, typer.Option(help="Heading.")] = "",
) -> None:
    """Weights of the regression on GLUE classifiers (thesis figure 6.2)."""
    from dialeval_plugin.methods.proxy_indicators.regression import ProxyModel
    from dialeval_plugin.reports.plots import weight_figure

    _write(weight_figure(ProxyModel.load(model).regression, title=title), output)
