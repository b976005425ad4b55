"""`dialeval score`, `dialeval merge` and `dialeval accuracy`."""

from __future__ import annotations

import gc
import logging
import math
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_name, check_output, is_stream
from dialeval_plugin.core.registry import load_scorer, option_kinds, scorer_factory
from dialeval_plugin.terminal import printable, say

from . import options as shared
from .options import say_next

if TYPE_CHECKING:
    from dialeval_plugin.llm.answers import CachedLanguageModel
    from dialeval_plugin.methods.judging.replay import Recorder
    from dialeval_plugin.reports.printed_scores import ConversationTable, RunningSummary
    from dialeval_plugin.streams.run import ScoreRun


@shared.takes(reading=shared.Reading)
def score(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Conversations or responses (JSON, CSV, TSV, Parquet, a saved data set, a URL), a published data set, "
            "or a folder of conversations.",
        ),
    ],
    reading: shared.Reading,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write the scores to: .jsonl, .csv or .parquet; <output>.meta.json describes the run."),
    ] = None,
    scorer: shared.ScorerNames = None,
    rubric: shared.Rubric = None,
    rubric_scale: shared.RubricScale = None,
    with_text: shared.WithText = False,
    by_conversation: Annotated[
        Path | None, typer.Option(help="File (.csv, .json) for a table of the conversations, the worst first.")
    ] = None,
    option: shared.ScorerOptions = None,
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of the small model.")] = None,
    variant: Annotated[str | None, typer.Option(help="Variant of the scorer.")] = None,
    llm: shared.Llm = None,
    llm_args: shared.LlmArgs = "",
    answers: shared.Answers = None,
    no_answers: shared.NoAnswers = False,
    record: Annotated[
        Path | None, typer.Option(help="File (.jsonl) for the llm's verdicts by item, which `--llm replay-judge` reads.")
    ] = None,
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade",
            help="Ask the llm only where the scorer is unsure or out of its scope; --option cascade=0.1 sets how unsure.",
        ),
    ] = False,
    dry_run: shared.DryRun = False,
    show_unparsed: Annotated[
        bool, typer.Option("--show-unparsed", help="Print the llm's answers that have no readable verdict to stderr.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the scores of the worst responses (general, slide, causalscore).")
    ] = False,
    worst: Annotated[int, typer.Option(min=0, help="Number of worst responses to print.")] = 10,
    max_unscored: shared.MaxUnscored = 0.05,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with 1 if the whole confidence interval of the mean is below this.")
    ] = None,
    min_conversations: Annotated[
        int | None, typer.Option(help="Conversations that --fail-under needs, at least 10; exit with 1 if there are fewer.")
    ] = None,
    shard: Annotated[
        str, typer.Option(metavar="I/N", help="Score only this part of the input; join the parts with `dialeval merge`.")
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the scores of another scorer or input.")] = False,
    commercial: shared.Commercial = False,
) -> None:
    """Score responses, and print the distribution of the scores and the worst responses.

    With --output the scores are kept, and a run that was killed resumes with the same command.

    Exit codes: 0 success; 1 no scores, more than --max-unscored without a score, or --fail-under not met; 2 wrong usage or
    unreadable input.
    """
    from dialeval_plugin.corpora.scored_input import Shard, Source
    from dialeval_plugin.hosts.judges import load_cached_model, load_scorer_with_judge
    from dialeval_plugin.reports.printed_scores import ConversationTable
    from dialeval_plugin.streams.run import ScoreRun

    if show_unparsed:
        logging.getLogger("dialeval_plugin.llm.parsing").setLevel(logging.DEBUG)
    name = shared.chosen_scorer(scorer, rubric, rubric_scale)
    options = shared.scorer_options(name, option, **({"cascade": float} if cascade else {}))
    options = shared.with_named(options, slm=slm, variant=variant, rubric=rubric, scale=rubric_scale)
    named = shared.with_named(options, llm=llm, llm_args=llm_args or None, answers=None if answers is None else str(answers))
    if llm is None:
        options = named
    stream = Source(source, reading.options(), level=options.get("level"))
    table, model = ConversationTable(by_conversation, source), None
    shared.check_judge(llm, dry_run=dry_run, answers=answers, no_answers=no_answers)
    if explain and not worst:
        raise InputError("--explain: explains the worst responses, and --worst 0 prints none. Leave one of them out.")
    part = Shard.parse(shard) if shard else None
    together = Shard.of_process() if part is None else None
    whole = {"--llm": llm, "--by-conversation": by_conversation, "--record": record, "--explain": explain}
    if together is not None:
        shared.refuse(whole, "cannot be used while several processes score parts of the input. Leave it out.")
    is_part = bool(part or together)
    _check_files(source, output, record, by_conversation, is_part=is_part)
    if cascade:
        name, options = "cascade", _cascade_options(name, options, has_llm=llm is not None)
    if llm is not None:
        model = options["llm"] = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
    run = ScoreRun(load_scorer_with_judge(name, options), stream, output, part, with_text, overwrite, max_unscored)
    _check_gate(run, fail_under, min_conversations, is_part=is_part)
    # Else garbage collection visits all objects of torch and the model again and again while rows are read.
    gc.freeze()
    if together is not None:
        from dialeval_plugin.streams.launch import score_own_shard

        if (meta := score_own_shard(run, together)) is not None and output is not None:
            print_merged(meta, output)
            refuse_incomplete(meta["unscored"], meta["n_total"], max_unscored)
        return
    recorder = _recorder(run, record)
    if model is not None and (dry_run or cascade):
        _rehearse(run, model, dry_run=dry_run)
    if dry_run:
        return
    summary = _score(run, model, table, recorder, worst, explain=explain)
    refuse_incomplete(summary.unscored_by_reason, summary.n_total, max_unscored, is_part=is_part)
    if fail_under is not None:
        _decide(summary, fail_under, min_conversations)
    if part is None:
        _say_next(output)


def _cascade_options(name: str, options: dict[str, Any], *, has_llm: bool) -> dict[str, Any]:
    """Return the options of the scorer `cascade` whose small scorer is `name` with `options`."""
    if not has_llm:
        raise InputError("--cascade: asks a language model where the scorer is unsure, and none is named. Name one with --llm.")
    kinds = option_kinds(scorer_factory(name))
    if kinds is None or "llm" in kinds:
        raise InputError(
            f"--cascade: {name} asks a language model itself. Leave it out, or name a scorer that asks none, as assistant."
        )
    level, within = options.get("level"), options.pop("cascade", None)
    made = {"small": load_scorer(name, **options), "level": level, "cascade": within}
    return {key: value for key, value in made.items() if value is not None}


def _check_gate(run: ScoreRun, threshold: float | None, min_conversations: int | None, *, is_part: bool) -> None:
    """Refuse a `--fail-under` that cannot be decided, before hours of work."""
    from dialeval_plugin.results.gates import check_needed

    if threshold is None:
        if min_conversations is not None:
            raise InputError("--min-conversations: needs a threshold. Add --fail-under, or leave it out.")
        return
    if not math.isfinite(threshold):
        raise InputError(f"--fail-under {threshold}: is not a threshold. Give a number.")
    if is_part:
        raise InputError("--fail-under: needs the whole input, and only a part is scored. Leave it out.")
    if not run.scorer.has_one_scale:
        raise InputError(
            f"--fail-under: {run.scorer.name} has no mean, since its scorers have no common scale. Name one of them: "
            f"{' or '.join(run.scorer.judges)}."
        )
    if run.scorer.orientation == "lower":
        raise InputError(
            f"--fail-under: lower scores of {run.scorer.name} are better. "
            "Compare with an earlier version by dialeval compare --fail-if-worse."
        )
    check_needed(min_conversations)


def _decide(summary: RunningSummary, threshold: float, min_conversations: int | None) -> None:
    """Print whether the scores pass `--fail-under`; exit with 1 where they do not."""
    from dialeval_plugin.results.gates import check_gate

    gate = check_gate(summary.estimate, threshold, "mean", min_conversations)
    typer.echo(gate)
    if not gate.has_passed:
        raise typer.Exit(code=1)


def _check_files(source: str, output: Path | None, record: Path | None, by_conversation: Path | None, *, is_part: bool) -> None:
    from dialeval_plugin.conversations.files import reading

    if check_name(source) != "-" and "://" not in source and "::" not in source:
        with reading(source):
            Path(source).stat()  # before a model is opened, which takes seconds
    files = [one.resolve() for one in (output, record, by_conversation) if one is not None]
    if len(set(files)) < len(files):
        raise InputError("--output, --record, --by-conversation: two of them name the same file. Give each its own.")
    for file, what in ((output, "the scores"), (record, "the verdicts")):
        if file is not None:
            check_output(file, source, what)
    if is_part and output is None:
        raise InputError("--output: is required for a part of the input. Name a file.")


def _recorder(run: ScoreRun, record: Path | None) -> Recorder | None:
    """Return what writes the verdicts to a file; a file with other verdicts is refused before anything is asked."""
    if record is None:
        return None
    from dialeval_plugin.methods.judging.replay import Recorder

    recorder = Recorder.of(run.scorer, record)
    if not run.overwrite:
        recorder.refuse_others(run.items())
    return recorder


def _rehearse(run: ScoreRun, model: CachedLanguageModel, *, dry_run: bool) -> None:
    """Count what the language model would be asked, without asking it, and print it."""
    with model.dry_run():
        run.rehearse()
        estimate = model.usage.estimate()
    if dry_run:
        typer.echo(run.source.reading.remarks(), nl=False, err=True)
        typer.echo(f"dry run: {estimate}")
    else:
        say(f"cascade: {run.source.n_items} to score; the llm: {estimate}")


def _score(
    run: ScoreRun,
    model: CachedLanguageModel | None,
    table: ConversationTable,
    recorder: Recorder | None,
    worst: int,
    *,
    explain: bool,
) -> RunningSummary:
    """Score and print."""
    from dialeval_plugin.corpora.scored_input import is_streamed
    from dialeval_plugin.llm.language_model import PromptingScorer

    scorer = run.scorer
    if table.path is not None:
        table.check(next(run.items(), None))
    if explain:
        scorer.explain([])  # refuses before hours of work
    each = len(scorer.questions) if isinstance(scorer, PromptingScorer) else 0
    # A small input is read to its end before hours of work.
    total = None if is_streamed(run.source.name) and each < 2 else sum(1 for _ in run.items())
    if total is not None and each > 1:
        say(f"{scorer.name}: {each} questions a response, up to {each * total} in all; --dry-run counts them, asks none")
    collectors = [table.add, *([recorder.add] if recorder is not None else [])]
    summary = run.score(worst, progress=True, total=total, collectors=collectors)
    typer.echo(run.source.reading.remarks(), nl=False, err=True)
    _print_summary(run, summary, explain=explain)
    if (conversations := table.report()) is not None:
        conversations.print()
    if recorder is not None:
        typer.echo(f"verdicts: {recorder.write(overwrite=run.overwrite)} in {recorder.path}")
    if run.output is not None:
        typer.echo(f"scores: {run.output}")
    if model is not None:
        typer.echo(f"llm: {model.usage}", err=True)
    return summary


def refuse_incomplete(unscored: Mapping[str, int], n_total: int, max_unscored: float, *, is_part: bool = False) -> None:
    """Exit with 1 where a larger share has no score, or, unless a part is scored, nothing has one."""
    n_unscored = sum(unscored.values())
    if n_unscored > max_unscored * n_total:
        problem = (
            f"{n_unscored} of {n_total} examples have no score, more than --max-unscored {max_unscored} allows: {unscored}"
        )
    elif n_unscored == n_total and not is_part:
        problem = f"none of {n_total} examples has a score: {unscored}"
    else:
        return
    typer.echo(problem, err=True)
    raise typer.Exit(code=1)


def _print_summary(run: ScoreRun, result: RunningSummary, *, explain: bool) -> None:
    """Print the mean, the distribution and the worst responses."""
    from dialeval_plugin.reports.printed_scores import drawn_bars, drawn_rows, summary
    from dialeval_plugin.statistics.estimates import bounds_text

    estimate = result.estimate
    bounds = bounds_text(estimate.ci_low, estimate.ci_high, 4, is_rough=estimate.is_rough)
    parts = [summary(run.meta(result), bounds, estimate.n_clusters)]
    if result.bars is not None and result.n_scored > 1:
        parts.append(drawn_bars(result.bars))
    if rows := result.worst:
        explanations = run.scorer.explain([row.item for row in rows]) if explain else ()
        has_percentiles, width = run.scorer.percentiles is not None, shutil.get_terminal_size().columns
        parts.append(drawn_rows(rows, explanations, n_scored=result.n_scored, has_percentiles=has_percentiles, width=width))
    typer.echo(printable("\n".join(parts)))


def merge(
    output: Annotated[Path, typer.Argument(help="File to write: .jsonl, .csv or .parquet.")],
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD...", help="All files that `dialeval score --shard` wrote.")],
) -> None:
    """Merge the scores of all shards into one file, in input order.

    Shards of another scorer or input, and missing or repeated rows, are an error.
    """
    from dialeval_plugin.streams.output import merge as merge_shards

    print_merged(merge_shards(shards, output), output)


def print_merged(meta: Mapping[str, Any], output: Path) -> None:
    """Print the summary of a merged file."""
    from dialeval_plugin.reports.printed_scores import summary

    typer.echo(summary(meta))
    typer.echo(f"scores: {output}")
    _say_next(output)


def _say_next(output: Path | None) -> None:
    if output is None:
        say_next("the same with --output scores.jsonl", "keeps the scores")
    elif not is_stream(output):
        words = f"dialeval meta-eval {shlex.quote(str(output))} --ratings FILE"
        say_next(words, "how far the scores agree with people's ratings")


def accuracy(
    data: Annotated[Path, typer.Argument(help="File in DailyDialog++'s layout with positive and adversarial responses.")],
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of the small model.")] = None,
) -> None:
    """Classify positive and adversarial responses with SLIDE's small model, with 95 % confidence intervals.

    The table is that of the paper (Table 1). The threshold was chosen on validation contexts; the last row has the paper's,
    Score_SLM >= 0.5. Contexts of the training data are counted.
    """
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.reports.slm import classification_table

    typer.echo(classification_table(dailydialog_pp.read(data), slm))
