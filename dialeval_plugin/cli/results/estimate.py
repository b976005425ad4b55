"""`dialeval estimate` and `dialeval label`: the true mean of scored rows, and which rows people should label for it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval_plugin.cli.options import say_next
from dialeval_plugin.core.errors import InputError

from .compare import show

Labels = Annotated[
    list[Path], typer.Option(help="File of people's labels of some rows, by id (.csv, .jsonl, ...); may be repeated.")
]
Column = Annotated[str | None, typer.Option(help="Column of the scores. Default: the main one.")]
Quality = Annotated[str | None, typer.Option(help="Column of the labels, if there are several.")]
Raters = Annotated[str, typer.Option(help="Columns of the raters, as anna,ben.")]
Positive = Annotated[str | None, typer.Option(help="Labels that count as pass, if they are not known.", metavar="WORD,WORD")]


def estimate(
    scores: Annotated[Path, typer.Option(help="A judge's scores of all rows (.jsonl, .csv, .parquet, ...).")],
    labels: Labels,
    against: Annotated[
        Path | None, typer.Option(help="Scores of another chatbot, B, to estimate how much better it is.")
    ] = None,
    labels_against: Annotated[list[Path] | None, typer.Option(help="Labels of B, if they are in separate files.")] = None,
    method: Annotated[
        Literal["auto", "ppi", "rogan-gladen"],
        typer.Option(help="ppi (auto): prediction-powered, for a random sample; rogan-gladen: by the judge's TPR and TNR."),
    ] = "auto",
    strata: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Field whose values are weighted by their rows; scores: for labels chosen by the scores."
        ),
    ] = None,
    width: Annotated[
        float | None, typer.Option(help="Wanted width of the interval, as 0.05. Default: half of the present width.")
    ] = None,
    column: Column = None,
    quality: Quality = None,
    raters: Raters = "",
    positive: Positive = None,
    format: Annotated[Literal["text", "markdown", "json"], typer.Option(help="Format of the output.")] = "text",
    output: Annotated[Path | None, typer.Option(help="File to write the output to, instead of printing it.")] = None,
) -> None:
    """Estimate the true pass rate or mean of all rows from a judge's scores and people's labels of some rows.

    The confidence interval resamples whole conversations. The labels must be a random sample, see `dialeval label`.
    """
    from dialeval_plugin.results.true_mean import estimate as estimated
    from dialeval_plugin.results.true_mean import shown

    result = estimated(
        scores,
        labels,
        against=against,
        labels_against=labels_against or None,
        method=method,
        strata=strata,
        width=width,
        column=column,
        **_asked(quality, raters, positive),
    )
    show(shown(result, format), output)


def label(
    scores: Annotated[Path, typer.Argument(help="Scores of all rows, with the texts from `dialeval score --with-text`.")],
    output: Annotated[
        Path,
        typer.Option(help="CSV file to fill in, or with --serve the file of the answers, from which a second start resumes."),
    ],
    next: Annotated[int, typer.Option("--next", min=1, help="Number of rows.")] = 50,
    labels: Annotated[list[Path] | None, typer.Option(help="File of earlier labels; may be repeated.")] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve a page for labelling on this machine, with a key for each label.")
    ] = False,
    scale: Annotated[
        Literal["pass-fail", "1-5"] | None, typer.Option(help="Scale of the page. Default: that of --labels, or pass-fail.")
    ] = None,
    question: Annotated[
        str, typer.Option(help="Question above each conversation of the page.")
    ] = "How good is the last answer?",
    rater: Annotated[str, typer.Option(help="Name of the rater. Default: the page asks for it.")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page. Default: any free port.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample and its order.")] = 0,
    column: Column = None,
    quality: Quality = None,
    raters: Raters = "",
    positive: Positive = None,
) -> None:
    """Choose the rows that people should label next for `dialeval estimate`, in random order and without scores.

    More rows are drawn where labels differ most among rows with similar scores; `estimate` weights them.
    """
    from dialeval_plugin.core.locks import sole_process
    from dialeval_plugin.labels.answers import AnswerFile, write_table_to_fill
    from dialeval_plugin.results.true_mean import next_labels

    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: rows to label are written as CSV. End the name in .csv.")
    label_options = _asked(quality, raters, positive)
    drawn = next_labels(scores, next, labels=labels or (), column=column, seed=seed, **label_options)
    if not any(row.text or row.before for row in drawn.rows):
        typer.echo("the scores have no texts, so only ids are shown: run `dialeval score` with --with-text", err=True)
    if not serve:
        if output.exists():
            raise InputError(f"{output}: is there, and may hold labels. Choose another name.")
        write_table_to_fill(output, drawn.rows, drawn.drawn)
        typer.echo(output)
        label_files = "".join(f" --labels {shlex.quote(str(one))}" for one in [*(labels or ()), output])
        say_next(f"dialeval estimate --scores {shlex.quote(str(scores))}{label_files}", "when its column `label` is filled in")
        return
    from dialeval_plugin.pages.labelling import CHOICES, LabellingServer

    of_page = scale or ("1-5" if drawn.is_rate is False else "pass-fail")
    with sole_process(output):
        answers = AnswerFile(output, drawn.drawn)
        if others := sorted(set(answers.given.values()) - set(CHOICES[of_page].values())):
            raise InputError(f"{output}: has answers on another scale than {of_page}: {others[0]}. Choose another --output.")
        server = LabellingServer(drawn.rows, answers, of_page, question=question, port=port, rater=rater)
        typer.echo(server.url)
        typer.echo(f"open it in a browser; answers are added to {output}; end with Ctrl-C, the same command goes on", err=True)
        with server:
            server.serve_forever()


def _asked(quality: str | None, raters: str, positive: str | None) -> dict[str, object]:
    return {"quality": quality, "raters": [name.strip() for name in raters.split(",") if name.strip()], "positive": positive}
