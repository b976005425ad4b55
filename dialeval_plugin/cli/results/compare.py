"""`dialeval compare`: which of two versions is better, means of one file by groups, and preferred answers of pairs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval_plugin.cli.options import DEFAULT_SCORER, Command, Commercial, ScorerOptions, check_share, refuse, scorer_options
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_name, write_text
from dialeval_plugin.core.registry import scorer_names

from .plot import check_ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval_plugin.core.scorer import Scorer
    from dialeval_plugin.labels.scores import ScoredRows
    from dialeval_plugin.reports.tables import Table
    from dialeval_plugin.results.groups import Groups
    from dialeval_plugin.statistics.bootstrap import Bootstrap

_GATE = "--fail-if-worse"
_PLAN = "--plan"


class OptionalNumber(Command):
    """Command whose gate or plan option may omit its number, which is then 0."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert 0 where the next word is not a number."""
        from dialeval_plugin.corpora.rows import is_number

        words = [
            f"{word}=0" if word in {_GATE, _PLAN} and not (following and is_number(following[0])) else word
            for word, *following in (args[place:] for place in range(len(args)))
        ]
        parsed: list[str] = super().parse_args(ctx, words)
        return parsed


def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", callback=check_name, help="Scores of the present version (.jsonl, .csv, .parquet), or a log."
        ),
    ],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", callback=check_name, help="Scores of the new version, or a log.")
    ] = None,
    scorer: Annotated[str | None, typer.Option(help="Scorer for logs. Default: general.", autocompletion=scorer_names)] = None,
    option: ScorerOptions = None,
    commercial: Commercial = False,
    column: Annotated[str | None, typer.Option(help="Column of the scores. Default: the main one.")] = None,
    pairing: Annotated[
        Literal["auto", "paired", "unpaired"] | None,
        typer.Option(
            help="paired: rows in both files; unpaired: means of all rows; auto (the default): paired if most rows are in both."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Field of the signatures that may differ, such as version; may be repeated.")
    ] = None,
    max_unscored_gap: Annotated[
        float | None,
        typer.Option(callback=check_share, help="Refuse files whose shares of unscored rows differ by more. Default: 0.05."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Compare parts of one file by a field of its rows: model, version, ..., or created_at:day for time stamps.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(callback=check_ending, help="File for a plot (.png, .svg, .pdf); needs --by.")
    ] = None,
    changed: Annotated[
        int | None, typer.Option(min=0, help="Number of conversations to list that changed most. Default: 10.")
    ] = None,
    fail_if_worse: Annotated[
        float | None,
        typer.Option(_GATE, metavar="[MARGIN]", help="Exit with 1 if B is worse by more than this. Default: 0."),
    ] = None,
    min_conversations: Annotated[
        int | None, typer.Option(help="Exit with 1 if fewer conversations are compared; at least 10.")
    ] = None,
    interval: Annotated[
        Literal["percentile", "expanded", "bca"],
        typer.Option(help="Method of the intervals; percentile and bca are too narrow with few conversations."),
    ] = "expanded",
    plan: Annotated[
        float | None,
        typer.Option(
            _PLAN,
            metavar="[DIFFERENCE]",
            help="Estimate from a pilot, A or both, how many conversations show which difference.",
        ),
    ] = None,
    format: Annotated[Literal["text", "markdown", "json"], typer.Option(help="Format of the output.")] = "text",
    output: Annotated[Path | None, typer.Option(help="File to write the output to, instead of printing it.")] = None,
) -> None:
    """Compare two versions: the difference of their scores with its confidence interval, and a verdict.

    Conversations in both files are compared in pairs. The gate fails only if the interval supports it.
    """
    from dialeval_plugin.results.comparison import MAX_UNSCORED_GAP, shown
    from dialeval_plugin.results.comparison import compare as compare_scores
    from dialeval_plugin.results.groups import field_of, group
    from dialeval_plugin.results.plans import plan as planned
    from dialeval_plugin.statistics.bootstrap import Bootstrap

    if min_conversations is not None and fail_if_worse is None:
        raise InputError(f"--min-conversations: is of a gate, and there is none. Add {_GATE}, or leave it out.")
    if plot is not None and by is None:
        raise InputError("--plot: draws groups, and there are none. Add --by FIELD, or leave it out.")
    if plan is not None and (by is not None or fail_if_worse is not None):
        raise InputError(f"{_PLAN}: is made of one pilot, or two, before a run. Leave out --by and {_GATE}.")
    bootstrap = Bootstrap(interval=interval)
    if b is None:
        of_two = {"--pairing": pairing, "--ignore": ignore, "--max-unscored-gap": max_unscored_gap, "--changed": changed}
        refuse(of_two, "compares two files, and one is given. Name a second one, B, or leave it out.")
        if fail_if_worse is not None:
            raise InputError(f"{_GATE}: compares two versions, and one file is given. Name a second one, B.")
        if plan is not None:
            show(planned(_scores([a], column, scorer, option)[0], plan, bootstrap=bootstrap).render(format), output)
        elif by is None:
            show(_pairs(Path(a), column, scorer, option, bootstrap).render(format), output)
        else:
            (scores,) = _scores([a], column, scorer, option, keep=(field_of(by)[0],))
            _show_groups(group(scores, by, bootstrap), plot, format, output)
        return
    if by is not None:
        raise InputError("--by: is of one file, and two are given. Leave one of them out.")
    sides = _scores([a, b], column, scorer, option)
    max_gap = MAX_UNSCORED_GAP if max_unscored_gap is None else max_unscored_gap
    pairing = pairing or "auto"
    comparison = compare_scores(*sides, pairing=pairing, ignore=ignore or (), max_unscored_gap=max_gap, bootstrap=bootstrap)
    if plan is not None:
        show(planned(comparison, plan, bootstrap=bootstrap).render(format), output)
        return
    if fail_if_worse is not None and pairing == "auto" and comparison.matched_by is None:
        raise InputError(
            f"{a}, {b}: {comparison.n_matched} conversations are in both, too few to pair them, and unpaired the gate sees "
            "less. Compare the same conversations, or accept the means of different ones by --pairing unpaired."
        )
    gate = None if fail_if_worse is None else comparison.gate(fail_if_worse, min_conversations)
    show(shown(comparison, format, 10 if changed is None else changed, gate), output)
    if gate is not None and not gate.has_passed:
        raise typer.Exit(code=1)


def _show_groups(groups: Groups, plot: Path | None, format: str, output: Path | None) -> None:
    show(groups.table().render(format), output)
    if plot is not None:
        from dialeval_plugin.reports.plots import means_figure, write_figure

        figure = means_figure(groups.means, label=groups.scores.column, whole=groups.whole.value, times=groups.starts)
        write_figure(figure, plot)
        typer.echo(f"plot: {plot}", err=True)


def _pairs(path: Path, column: str | None, scorer: str | None, option: list[str] | None, bootstrap: Bootstrap) -> Table:
    from dialeval_plugin.results.preferences import preference_shares, read_pairs

    if path.is_dir() or (pairs := read_pairs(path)) is None:
        raise InputError(
            f"{path}: one file is given, and it holds no pairs of a preferred and another answer. Name a second file, B, or a "
            "field of its rows by --by."
        )
    return preference_shares(pairs, _scorer(scorer, option), column, bootstrap=bootstrap, progress=True).table()


def _scorer(name: str | None, option: list[str] | None) -> Scorer:
    from dialeval_plugin.core.registry import load_scorer

    name = name or DEFAULT_SCORER
    return load_scorer(name, **scorer_options(name, option))


def show(text: str, output: Path | None) -> None:
    """Print a text, or write it to a file."""
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_text(output, text)


def _scores(
    files: Sequence[str], column: str | None, scorer: str | None, option: list[str] | None, keep: tuple[str, ...] = ()
) -> list[ScoredRows]:
    """Return the scores of files, or of logs that are scored first, with the fields to `keep`.

    InputError: a scorer is named, or an option of it, and no file is a log.
    """
    from dialeval_plugin.conversations.record import ReadingOptions
    from dialeval_plugin.core import scorer as pipeline
    from dialeval_plugin.corpora.scored_input import Source
    from dialeval_plugin.labels.scores import find_scored_rows
    from dialeval_plugin.results.comparison import chosen_column, scored_rows

    found = {place: find_scored_rows(Path(one), column) for place, one in enumerate(files) if Path(one).is_file()}
    given = {place: scores for place, scores in found.items() if scores is not None}
    if len(given) == len(files):
        refuse({"--scorer": scorer, "--option": option}, f"{files[0]} has scores already. Name a log, or leave it out.")
        return list(given.values())
    method = _scorer(scorer, option)
    level = method.input_level(scorer_options(scorer or DEFAULT_SCORER, option).get("level"))
    # An error in the column or a log is reported before hours of work.
    chosen_column(pipeline.scores_of(method, (), ()), column)
    logs = {}
    for place, one in enumerate(files):
        if place not in given:
            log = Source(one, ReadingOptions(keep=keep), level=level)
            try:
                logs[place] = log.read(method.level)
            except InputError as error:
                if (named := re.search(r"--(columns|layout|branches|order)\b", str(error))) is None:
                    raise
                advice = f"{named[0]} is an option of `dialeval score`: score each log with it, and compare the scores."
                raise InputError(f"{error} {advice}") from error
            typer.echo(log.reading.remarks(), nl=False, err=True)
    for place, items in logs.items():
        given[place] = scored_rows(files[place], items, pipeline.run(method, items, progress=True), column)
    return [given[place] for place in range(len(files))]
