"""`dialeval score` and `dialeval accuracy`."""

from __future__ import annotations

import contextlib
import gc
import logging
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialeval_plugin.core import scorer as pipeline
from dialeval_plugin.core.dialogue import Item
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output, is_stream
from dialeval_plugin.core.journal import sole_process
from dialeval_plugin.core.options import option_kinds, pairs_from_text
from dialeval_plugin.core.registry import load_scorer, scorer_factory
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Scores
from dialeval_plugin.terminal.progress import say

from .agreement import check_share
from .examples import say_next

if TYPE_CHECKING:
    from dialeval_plugin.conversations.record import TurnChoice
    from dialeval_plugin.corpora.scored_input import ScoredInput, Shard, Source
    from dialeval_plugin.llm.answers import CachedLanguageModel


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
        typer.Option(help="File of the scores, JSON lines or .parquet; beside it comes <output>.meta.json. None by default."),
    ] = None,
    scorer: Annotated[str, typer.Option(help="Name of the scorer.")] = "general",
    turns: Annotated[
        str | None,
        typer.Option(
            help="Which turns of a conversation are scored: assistant, all (but the first), last. "
            "Default assistant, and all where there is none."
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Columns of a table: context=NAME,response=NAME or conversation=NAME,speaker=NAME,text=NAME.")
    ] = "",
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
    shard: Annotated[str, typer.Option(metavar="I/N", help="Score this part of the input alone; see `dialeval merge`.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace scores of another scorer or input.")] = False,
) -> None:
    """Score responses and print how the scores are distributed, and the worst responses.

    With --output the scores are kept, and the same command goes on where it was killed. Parquet, data sets, URLs, shards and
    large files of JSON lines are read and written block by block, in constant memory.
    """
    from dialeval_plugin.conversations.reading import COLUMNS, ReadingOptions
    from dialeval_plugin.conversations.record import check_choice
    from dialeval_plugin.corpora.scored_input import Shard, Source, is_streamed
    from dialeval_plugin.hosts.judges import load_cached_model, load_scorer_with_judge

    if show_unparsed:
        logging.getLogger("dialeval_plugin.llm.parsing").setLevel(logging.DEBUG)
    options = pairs_from_text(option or (), "--option", option_kinds(scorer_factory(scorer)))
    options |= {name: value for name, value in {"slm": slm, "variant": variant}.items() if value is not None}
    wanted = _Wanted(output, by_conversation, record, worst, max_unscored, explain=explain, overwrite=overwrite)
    named = pairs_from_text(filter(None, columns.split(",")), "--columns", dict.fromkeys(COLUMNS, str))
    choice = check_choice("--turns", turns)
    part = Shard.parse(shard) if shard else None
    together = Shard.of_process() if part is None else None
    if part or together or is_streamed(source) or (output is not None and output.suffix == ".parquet"):
        if llm is not None:
            raise InputError(f"--llm: {_WHOLE_INPUT}")
        method, stream = load_scorer(scorer, **options), Source(source, ReadingOptions(choice=choice, columns=named))
        # Else the garbage collector looks through all that torch and the model consist of, again and again while rows are read.
        gc.freeze()
        if together is None:
            _score_stream(method, stream, part, wanted)
        else:
            _score_together(method, stream, together, wanted)
        return
    if no_answers and answers is not None:
        raise InputError("--answers and --no-answers: were both given. Leave one of them out.")
    if dry_run and llm is None:
        raise InputError("--dry-run: shows what a language model would be asked, and none is named. Name one with --llm.")
    if explain and not worst:
        raise InputError("--explain: explains the worst responses, and --worst 0 shows none. Leave one of them out.")
    found = _read(Path(source), choice, named, output)
    model = None
    if llm is None:
        options |= {name: value for name, value in {"llm_args": llm_args, "answers": answers and str(answers)}.items() if value}
    else:
        model = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
        options["llm"] = model
    _score_whole(load_scorer_with_judge(scorer, options), found, Path(source), wanted, model, dry_run=dry_run)


@dataclass(frozen=True)
class _Wanted:
    """What is to be made of the scores: the options of `score` by their names."""

    output: Path | None
    by_conversation: Path | None
    record: Path | None
    worst: int
    max_unscored: float
    explain: bool
    overwrite: bool

    def streamed_output(self, source: Source) -> Path:
        """The file for an input that is read block by block.

        Raises:
            InputError: none is named, or something is wanted that needs the whole input.
        """
        given = {"--by-conversation": self.by_conversation, "--record": self.record, "--explain": self.explain or None}
        if whole := [name for name, value in given.items() if value is not None]:
            raise InputError(f"{whole[0]}: {_WHOLE_INPUT}")
        if self.output is None:
            raise InputError("--output: what is read block by block is written block by block. Name a file.")
        check_output(self.output, source.name, "the scores")
        return self.output


_WHOLE_INPUT = "needs the whole input at once, and this one is read block by block. Leave it out."


def _read(path: Path, choice: TurnChoice | None, columns: Mapping[str, str], output: Path | None) -> ScoredInput:
    from dialeval_plugin.corpora.scored_input import read_input

    found = read_input(path, choice, columns)
    if output is not None:
        check_output(output, path, "the scores")
    return found


def _score_whole(
    method: Scorer, found: ScoredInput, path: Path, wanted: _Wanted, model: CachedLanguageModel | None, *, dry_run: bool
) -> None:
    """Score what was read of `path`, with a judge where there is one; in a dry run say what it would be asked."""
    from dialeval_plugin.llm.language_model import PromptingScorer
    from dialeval_plugin.methods.judging.recording import Recorder
    from dialeval_plugin.reports.conversations import check_table_file, report_conversations

    files = [one.resolve() for one in (wanted.output, wanted.record, wanted.by_conversation) if one is not None]
    if len(set(files)) < len(files):
        raise InputError("--output, --record, --by-conversation: two of them name one file. Give each its own.")
    items = found.items(method.level)
    typer.echo(found.remarks(), nl=False, err=True)
    places = [item.origin for item in items if item.origin is not None and item.origin.message is not None]
    recorder = None if wanted.record is None else Recorder.of(method, wanted.record)
    if recorder is not None:
        check_output(recorder.path, path, "the verdicts")
        if not wanted.overwrite:
            recorder.refuse_others(items)
    check_table_file(wanted.by_conversation, path, places, method.level)
    if model is not None and dry_run:
        pipeline.dry_run(method, items)
        typer.echo(f"dry run: {model.usage.estimate()}")
        return
    if wanted.explain:
        method.explain([])  # one that cannot says so before hours of work
    if isinstance(method, PromptingScorer) and (each := len(method.questions())) > 1:
        say(f"{method.name}: {each} questions a response, up to {each * len(items)} in all; --dry-run counts them, asks none")
    scores = _scores(method, items, wanted)
    _show(scores, items, method, worst=wanted.worst, explain=wanted.explain)
    if (table := report_conversations(scores, places, wanted.by_conversation)) is not None:
        table.print()
    if recorder is not None:
        typer.echo(f"verdicts: {recorder.record(scores, items, overwrite=wanted.overwrite)} in {recorder.path}")
    if wanted.output is not None:
        typer.echo(f"scores: {wanted.output}")
    if model is not None:
        typer.echo(f"llm: {model.usage}", err=True)
    _refuse_incomplete(scores.unscored_by_reason, scores.n_total, wanted.max_unscored)
    if wanted.output is None:
        say_next("the same with --output scores.jsonl", "keeps the scores")
    elif not is_stream(wanted.output):
        _say_next(wanted.output)


def _score_stream(method: Scorer, source: Source, shard: Shard | None, wanted: _Wanted) -> None:
    from dialeval_plugin.conversations.messages import left_out_text
    from dialeval_plugin.reports.printed_scores import drawn_bars, drawn_rows, summary
    from dialeval_plugin.streams.run import score_file

    found = score_file(
        method,
        source,
        output := wanted.streamed_output(source),
        shard=shard,
        overwrite=wanted.overwrite,
        n_worst=wanted.worst,
        progress=True,
    )
    if source.left_out:
        typer.echo(f"no turns, left out: {left_out_text(source.left_out)}", err=True)
    for problem in source.malformed:
        typer.echo(f"malformed, left out: {problem}", err=True)
    shown = [summary(found)]
    if found.bars is not None and found.n_scored > 1:
        shown.append(drawn_bars(found.bars))
    if rows := [one.row for one in found.worst]:
        has_percentiles = method.percentiles is not None
        width = shutil.get_terminal_size().columns
        shown.append(drawn_rows(rows, n_scored=found.n_scored, has_percentiles=has_percentiles, width=width))
    _print(shown)
    typer.echo(f"scores: {output}")
    if found.n_total or shard is None:  # a shard may be empty
        _refuse_incomplete(found.unscored_by_reason, found.n_total, wanted.max_unscored)
    if shard is None:
        _say_next(output)


def _score_together(method: Scorer, source: Source, shard: Shard, wanted: _Wanted) -> None:
    """Score with the other processes of `accelerate launch`; the first speaks for all."""
    from dialeval_plugin.streams.launch import ShardedRun, score_own_shard

    output = wanted.streamed_output(source)
    words = ["--turns", str(source.options.choice), "--columns", str(source.options.columns)]
    run = ShardedRun.of(words, method, source.name, output, shard.of)
    if (meta := score_own_shard(run, method, source, shard)) is not None:
        print_merged(meta, output)
        _refuse_incomplete(meta["unscored"], meta["n_total"], wanted.max_unscored)


def _scores(method: Scorer, items: Sequence[Item], wanted: _Wanted) -> Scores:
    """Score and, with an output, keep a journal and write the scores."""
    from dialeval_plugin.reports.scored_output import journal_of, percentiles_of, stored_meta, write_scores

    if (output := wanted.output) is None:
        return pipeline.run(method, items, progress=True)
    identity, is_file = pipeline.run_id(method, items), not is_stream(output)
    with sole_process(output) if is_file else contextlib.nullcontext():
        if not wanted.overwrite:
            stored_meta(output, {"run": identity, **percentiles_of(method.percentiles)})
        journal = journal_of(output) if is_file else None
        scores = pipeline.run(method, items, progress=True, journal=journal, overwrite=wanted.overwrite)
        is_complete = not _is_incomplete(scores.unscored_by_reason, scores.n_total, wanted.max_unscored)
        write_scores(scores, output, run=identity, complete=is_complete, percentiles=method.percentiles)
    return scores


def _is_incomplete(unscored: Mapping[str, int], n_total: int, max_unscored: float) -> bool:
    return not n_total or sum(unscored.values()) > max_unscored * n_total


def _refuse_incomplete(unscored: Mapping[str, int], n_total: int, max_unscored: float) -> None:
    """Exit with 1 where a larger share has no score, or nothing was scored; `unscored` counts them by reason."""
    if not n_total:
        typer.echo("nothing to score. Call the chatbot 'assistant', or choose the turns to score by --turns all.", err=True)
        raise typer.Exit(code=1)
    if _is_incomplete(unscored, n_total, max_unscored):
        typer.echo(
            f"{sum(unscored.values())} of {n_total} examples have no score, more than --max-unscored {max_unscored} allows: "
            f"{unscored}",
            err=True,
        )
        raise typer.Exit(code=1)


def _show(scores: Scores, items: Sequence[Item], method: Scorer, *, worst: int, explain: bool) -> None:
    """Print a summary, the distribution and the worst responses."""
    from dialeval_plugin.reports.printed_scores import histogram, summary, worst_places, worst_rows

    shown = [summary(scores)]
    if bars := histogram(scores, method.range):
        shown.append(bars)
    if places := worst_places(scores, worst):
        explanations = method.explain([items[place] for place in places]) if explain else ()
        shown.append(worst_rows(scores, items, places, explanations, width=shutil.get_terminal_size().columns))
    _print(shown)


def _print(texts: Sequence[str]) -> None:
    # A terminal that has no sign for a character gets its number.
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo("\n".join(texts).encode(encoding, "backslashreplace").decode(encoding))


def merge(
    output: Annotated[Path, typer.Argument(help="File that is made, JSON lines or .parquet.")],
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD...", help="What `dialeval score --shard` wrote, all of them.")],
) -> None:
    """Make one file of the scores of all shards, in the order of their input.

    Refused are shards that were scored otherwise or of another input, and a row that is missing or there twice.
    """
    from dialeval_plugin.streams.output import merge as merge_shards

    print_merged(merge_shards(shards, output), output)


def print_merged(meta: Mapping[str, Any], output: Path) -> None:
    """Print what a file holds that was made of shards."""
    mean = "no score" if meta["mean"] is None else f"mean {meta['mean']:.4f}"
    typer.echo(f"{meta['main']}: {mean}, {meta['n_scored']} of {meta['n_total']} scored\n{meta['signature']}\nscores: {output}")
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
