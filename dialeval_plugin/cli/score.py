"""`dialeval score` and `dialeval accuracy`."""

from __future__ import annotations

import gc
import logging
import math
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output, is_stream
from dialeval_plugin.core.options import option_kinds, pairs_from_text
from dialeval_plugin.core.registry import scorer_factory, scorer_names
from dialeval_plugin.terminal.progress import say

from .agreement import check_share
from .examples import say_next
from .models import Commercial
from .reading import BranchChoice, Columns, Keep, LayoutName, OrderChoice, Strict, Turns, reading_options

if TYPE_CHECKING:
    from dialeval_plugin.corpora.scored_input import Shard
    from dialeval_plugin.llm.answers import CachedLanguageModel
    from dialeval_plugin.methods.judging.replay import Recorder
    from dialeval_plugin.reports.conversations import ConversationTable
    from dialeval_plugin.streams.run import ScoreRun
    from dialeval_plugin.streams.summary import RunningSummary


def score(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Conversations or responses (JSON, CSV, TSV, Parquet, a saved data set, a URL), a published layout, "
            "or a folder of conversations.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="File of the scores: .jsonl, .csv or .parquet; beside it comes <output>.meta.json. None by default."),
    ] = None,
    scorer: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the scorer; auto takes general or assistant by how each conversation begins. Default general.",
            autocompletion=scorer_names,
        ),
    ] = None,
    rubric: Annotated[
        str | None,
        typer.Option(help="Question that the llm answers about each response, or file of several (.yaml, .json)."),
    ] = None,
    rubric_scale: Annotated[
        str | None,
        typer.Option(help="Of the question: pass-fail, yes-no, 1-5, or words from the worst to the best: bad,ok,good."),
    ] = None,
    turns: Turns = None,
    columns: Columns = "",
    layout: LayoutName = None,
    branches: BranchChoice = None,
    order: OrderChoice = None,
    strict: Strict = False,
    keep: Keep = None,
    with_text: Annotated[bool, typer.Option("--with-text", help="Keep what was said beside the scores.")] = False,
    by_conversation: Annotated[
        Path | None, typer.Option(help="File (.csv, .json) of a table of the conversations, the worst first.")
    ] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value, passed to the scorer; may be repeated.")] = None,
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of the small model.")] = None,
    variant: Annotated[str | None, typer.Option(help="Variant of the scorer.")] = None,
    llm: Annotated[str | None, typer.Option(help="Any lm-eval model as the judge: hf, local-chat-completions, ...")] = None,
    llm_args: Annotated[str, typer.Option(help="Its arguments as lm-eval writes them: pretrained=...")] = "",
    answers: Annotated[
        Path | None, typer.Option(help="File that keeps the llm's answers; default in the user's cache.")
    ] = None,
    no_answers: Annotated[bool, typer.Option("--no-answers", help="Keep no answers and use none.")] = False,
    record: Annotated[
        Path | None, typer.Option(help="File (.jsonl) to keep the llm's verdicts in by item, for `--llm replay-judge`.")
    ] = None,
    cascade: Annotated[
        bool,
        typer.Option(
            "--cascade",
            help="Ask the llm only about what the scorer is unsure of or does not know; --option cascade=0.1 says how unsure.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what the llm would be asked, and ask nothing.")] = False,
    show_unparsed: Annotated[
        bool, typer.Option("--show-unparsed", help="Print each answer of the llm that has no readable verdict to stderr.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print why the worst responses have their scores (general, slide, causalscore).")
    ] = False,
    worst: Annotated[int, typer.Option(min=0, help="So many of the worst responses are printed.")] = 10,
    max_unscored: Annotated[
        float, typer.Option(callback=check_share, help="Exit with 1 where a larger share has no score.")
    ] = 0.05,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with 1 where the whole interval of the mean is below this.")
    ] = None,
    min_conversations: Annotated[
        int | None, typer.Option(help="Of --fail-under: exit with 1, undecided, where fewer are scored; at least 10.")
    ] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help="Score this part of the input alone; see `dialeval merge`.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace scores of another scorer or input.")] = False,
    commercial: Commercial = False,
) -> None:
    """Score responses and print how the scores are distributed, and the worst responses.

    With --output the scores are kept, and the same command goes on where it was killed. Whatever the input, it is scored block
    by block. Exit code: 0 good; 1 nothing, or less than --max-unscored asks, has a
    score, or --fail-under is not met; 2 wrong use, or unreadable input.
    """
    from dialeval_plugin.corpora.scored_input import Shard, Source
    from dialeval_plugin.hosts.judges import load_cached_model, load_scorer_with_judge
    from dialeval_plugin.reports.conversations import ConversationTable
    from dialeval_plugin.streams.run import ScoreRun

    if show_unparsed:
        logging.getLogger("dialeval_plugin.llm.parsing").setLevel(logging.DEBUG)
    name = one_scorer(scorer or (), rubric, rubric_scale)
    kinds = option_kinds(scorer_factory(name))
    options = pairs_from_text(option or (), "--option", {**kinds, "cascade": float} if cascade and kinds is not None else kinds)
    given = {"slm": slm, "variant": variant, "llm_args": llm_args or None, "answers": answers and str(answers)}
    given |= {"rubric": rubric, "scale": rubric_scale}
    options |= {name: value for name, value in given.items() if value is not None and (llm is None or name not in _OF_LLM)}
    reading = reading_options(turns, columns, layout, branches, order, keep, strict=strict)
    if no_answers and answers is not None:
        raise InputError("--answers and --no-answers: were both given. Leave one of them out.")
    if dry_run and llm is None:
        raise InputError("--dry-run: shows what a language model would be asked, and none is named. Name one with --llm.")
    if explain and not worst:
        raise InputError("--explain: explains the worst responses, and --worst 0 shows none. Leave one of them out.")
    part = Shard.parse(shard) if shard else None
    together = Shard.of_process() if part is None else None
    if together is not None:
        _refuse_together({"--llm": llm, "--by-conversation": by_conversation, "--record": record, "--explain": explain})
    _check_files(source, output, record, by_conversation, is_part=bool(part or together))
    stream, table, model = Source(source, reading), ConversationTable(by_conversation, source), None
    if cascade:
        name, options = "cascade", _cascaded(name, options, kinds, has_llm=llm is not None)
    if llm is not None:
        model = options["llm"] = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
    run = ScoreRun(load_scorer_with_judge(name, options), stream, output, part, with_text, overwrite, max_unscored)
    gate = _Gate.of(run, fail_under, min_conversations, is_part=bool(part or together))
    # Else the garbage collector looks through all that torch and the model consist of, again and again while rows are read.
    gc.freeze()
    if together is not None:
        _score_together(run, together)
    elif model is not None and dry_run:
        _rehearse(run, model, record)
    else:
        if cascade and model is not None:
            with model.dry_run():
                run.rehearse()
                say(f"cascade: {run.source.n_items} to score; the llm: {model.usage.estimate()}")
        _score(run, model, table, record, worst, gate, explain=explain)


def one_scorer(names: Sequence[str], rubric: str | None, rubric_scale: str | None) -> str:
    """Return the one scorer that is meant: that of a rubric where there is one, general where none is named."""
    if rubric is None and rubric_scale is not None:
        raise InputError("--rubric-scale: is of a rubric, and there is none. Add --rubric, or leave it out.")
    if rubric is not None:
        if others := [name for name in names if name != "rubric"]:
            raise InputError(f"--rubric: is a scorer of its own, and --scorer names {others[0]}. Leave one of them out.")
        names = ["rubric"]
    if len(names) > 1:
        raise InputError(
            f"--scorer: is given {len(names)} times, {', '.join(names)}. Run the command for each, with its own --output, "
            "or name auto, which takes general or assistant by how each conversation begins."
        )
    return names[0] if names else "general"


def _cascaded(name: str, options: dict[str, Any], kinds: Mapping[str, Any] | None, *, has_llm: bool) -> dict[str, Any]:
    """The options of the scorer `cascade` in which the scorer `name`, with the options that are its own, is the small one."""
    from dialeval_plugin.core.registry import load_scorer

    if not has_llm:
        raise InputError("--cascade: asks a language model where the scorer is unsure, and none is named. Name one with --llm.")
    if kinds is None or "llm" in kinds:
        raise InputError(
            f"--cascade: {name} asks a language model itself. Leave it out, or name a scorer that asks none, as assistant."
        )
    level, within = options.get("level"), options.pop("cascade", None)
    found = {"small": load_scorer(name, **options), "level": level, "cascade": within}
    return {key: value for key, value in found.items() if value is not None}


_OF_LLM = ("llm_args", "answers")


class _Gate(NamedTuple):
    """What `--fail-under` asks."""

    threshold: float
    min_conversations: int

    @classmethod
    def of(cls, run: ScoreRun, threshold: float | None, min_conversations: int | None, *, is_part: bool) -> _Gate | None:
        """Return what is asked, checked before hours of work; None where nothing is."""
        from dialeval_plugin.results.gates import check_needed

        if threshold is None:
            if min_conversations is not None:
                raise InputError("--min-conversations: is of a gate, and there is none. Add --fail-under, or leave it out.")
            return None
        if not math.isfinite(threshold):
            raise InputError(f"--fail-under {threshold}: is no threshold. Give a number.")
        if is_part:
            raise InputError("--fail-under: a part of the input is scored, and a gate is of the whole. Leave it out.")
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
        return cls(threshold, check_needed(min_conversations))

    def check(self, found: RunningSummary) -> None:
        """Say whether the scores pass; exit with 1 where they do not."""
        from dialeval_plugin.results.gates import check_gate

        gate = check_gate(found.estimate, self.threshold, "mean", self.min_conversations)
        typer.echo(gate)
        if not gate.has_passed:
            raise typer.Exit(code=1)


def _check_files(source: str, output: Path | None, record: Path | None, by_conversation: Path | None, *, is_part: bool) -> None:
    files = [one.resolve() for one in (output, record, by_conversation) if one is not None]
    if len(set(files)) < len(files):
        raise InputError("--output, --record, --by-conversation: two of them name one file. Give each its own.")
    for file, what in ((output, "the scores"), (record, "the verdicts")):
        if file is not None:
            check_output(file, source, what)
    if is_part and output is None:
        raise InputError("--output: a part of the input is scored into a file. Name one.")


def _recorder(run: ScoreRun, record: Path | None) -> Recorder | None:
    """What keeps the verdicts in a file, whose other verdicts are refused before anything is asked."""
    from dialeval_plugin.methods.judging.replay import Recorder

    if record is None:
        return None
    recorder = Recorder.of(run.scorer, record)
    if not run.overwrite:
        recorder.refuse_others(run.items())
    return recorder


def _rehearse(run: ScoreRun, model: CachedLanguageModel, record: Path | None) -> None:
    _recorder(run, record)
    run.rehearse()
    typer.echo(run.source.remarks(), nl=False, err=True)
    typer.echo(f"dry run: {model.usage.estimate()}")


def _score(
    run: ScoreRun,
    model: CachedLanguageModel | None,
    table: ConversationTable,
    record: Path | None,
    worst: int,
    gate: _Gate | None,
    *,
    explain: bool,
) -> None:
    from dialeval_plugin.corpora.scored_input import is_streamed
    from dialeval_plugin.llm.language_model import PromptingScorer

    scorer, recorder = run.scorer, _recorder(run, record)
    if table.path is not None:
        table.check(next(run.items(), None))
    if explain:
        scorer.explain([])  # one that cannot says so before hours of work
    each = len(scorer.questions()) if isinstance(scorer, PromptingScorer) else 0
    # What is small is read to its end before hours of work.
    total = None if is_streamed(run.source.name) and each < 2 else sum(1 for _ in run.items())
    if total is not None and each > 1:
        say(f"{scorer.name}: {each} questions a response, up to {each * total} in all; --dry-run counts them, asks none")
    found = run.score(
        worst, progress=True, total=total, collectors=[table.add, *([recorder.add] if recorder is not None else [])]
    )
    typer.echo(run.source.remarks(), nl=False, err=True)
    _show(run, found, explain=explain)
    if (shown := table.report()) is not None:
        shown.print()
    if recorder is not None:
        typer.echo(f"verdicts: {recorder.write(overwrite=run.overwrite)} in {recorder.path}")
    if run.output is not None:
        typer.echo(f"scores: {run.output}")
    if model is not None:
        typer.echo(f"llm: {model.usage}", err=True)
    _refuse_incomplete(found.unscored_by_reason, found.n_total, run.max_unscored, is_part=run.shard is not None)
    if gate is not None:
        gate.check(found)
    if run.output is None:
        say_next("the same with --output scores.jsonl", "keeps the scores")
    elif run.shard is None and not is_stream(run.output):
        _say_next(run.output)


def _refuse_together(given: Mapping[str, object]) -> None:
    if named := [name for name, value in given.items() if value]:
        raise InputError(f"{named[0]}: several processes score together, each a part of the input. Leave it out.")


def _score_together(run: ScoreRun, shard: Shard) -> None:
    """Score with the other processes of `accelerate launch`; the first speaks for all."""
    from dialeval_plugin.streams.launch import score_own_shard

    if (meta := score_own_shard(run, shard)) is not None and run.output is not None:
        print_merged(meta, run.output)
        _refuse_incomplete(meta["unscored"], meta["n_total"], run.max_unscored)


def _refuse_incomplete(unscored: Mapping[str, int], n_total: int, max_unscored: float, *, is_part: bool = False) -> None:
    """Exit with 1 where a larger share has no score, or nothing has one; `unscored` counts them by reason.

    A part of an input may be empty, or without a score.
    """
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


def _show(run: ScoreRun, found: RunningSummary, *, explain: bool) -> None:
    """Print a summary, the distribution and the worst responses."""
    from dialeval_plugin.reports.printed_scores import drawn_bars, drawn_rows, summary
    from dialeval_plugin.statistics.estimates import bounds_text

    interval = found.interval
    bounds = bounds_text(interval.ci_low, interval.ci_high, 4, is_rough=interval.is_rough)
    shown = [summary(run.meta(found), bounds, found.n_clusters)]
    if found.bars is not None and found.n_scored > 1:
        shown.append(drawn_bars(found.bars))
    if rows := found.worst:
        explanations = run.scorer.explain([row.item for row in rows]) if explain else ()
        has_percentiles, width = run.scorer.percentiles is not None, shutil.get_terminal_size().columns
        shown.append(drawn_rows(rows, explanations, n_scored=found.n_scored, has_percentiles=has_percentiles, width=width))
    # A terminal that has no sign for a character gets its number.
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo("\n".join(shown).encode(encoding, "backslashreplace").decode(encoding))


def merge(
    output: Annotated[Path, typer.Argument(help="File that is made: .jsonl, .csv or .parquet.")],
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD...", help="What `dialeval score --shard` wrote, all of them.")],
) -> None:
    """Make one file of the scores of all shards, in the order of their input.

    Refused are shards that were scored otherwise or of another input, and a row that is missing or there twice.
    """
    from dialeval_plugin.streams.output import merge as merge_shards

    print_merged(merge_shards(shards, output), output)


def print_merged(meta: Mapping[str, Any], output: Path) -> None:
    """Print what a file holds that was made of shards."""
    from dialeval_plugin.reports.printed_scores import summary

    typer.echo(summary(meta))
    typer.echo(f"scores: {output}")
    _say_next(output)


def _say_next(output: Path) -> None:
    say_next(f"dialeval meta-eval {shlex.quote(str(output))} --ratings FILE", "how far the scores agree with people's ratings")


def accuracy(
    data: Annotated[Path, typer.Argument(help="File in DailyDialog++'s layout with positive and adversarial responses.")],
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of the small model.")] = None,
) -> None:
    """Classify positive and adversarial responses with the small model and print SLIDE's Table 1 with 95 % intervals.

    A response counts as positive from the threshold that the model's validation contexts gave; the paper's rule,
    Score_SLM >= 0.5, stands in the last row. Contexts that the model was trained on are counted.
    """
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.reports.slm import classification_table

    typer.echo(classification_table(dailydialog_pp.read(data), slm))
