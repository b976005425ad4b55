"""`dialeval score` and `dialeval accuracy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval_plugin.core import scorer as pipeline
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output, is_stream
from dialeval_plugin.core.options import option_kinds, pairs_from_text
from dialeval_plugin.core.registry import scorer_factory

from .agreement import check_share


def score(
    input: Annotated[
        Path,
        typer.Argument(help="Conversations or responses (JSON, CSV, TSV), a published layout, or a folder of conversations."),
    ],
    output: Annotated[Path, typer.Option(help="JSON-lines file of the scores; beside it comes <output>.meta.json.")],
    scorer: Annotated[str, typer.Option(help="Name of the scorer.")] = "slide",
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what the llm would be asked, and ask nothing.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print why each response has its score (causalscore), in a second pass.")
    ] = False,
    max_unscored: Annotated[
        float, typer.Option(callback=check_share, help="Exit with 1 where a larger share has no score.")
    ] = 0.05,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace scores of another scorer or input.")] = False,
) -> None:
    """Score responses; the same command goes on where it was killed."""
    from dialeval_plugin.corpora.conversations import COLUMNS, check_choice
    from dialeval_plugin.corpora.scored_input import read_input
    from dialeval_plugin.hosts.judges import load_cached_model, load_scorer_with_judge
    from dialeval_plugin.reports.conversations import check_table_file, report_conversations
    from dialeval_plugin.reports.scored_output import journal_of, refuse_other_scores, summary, write_scores

    options = pairs_from_text(option or (), "--option", option_kinds(scorer_factory(scorer)))
    options |= {name: value for name, value in {"slm": slm, "variant": variant}.items() if value is not None}
    if no_answers and answers is not None:
        raise InputError("--answers and --no-answers: were both given. Leave one of them out.")
    if dry_run and llm is None:
        raise InputError("--dry-run: shows what a language model would be asked, and none is named. Name one with --llm.")
    named = pairs_from_text(filter(None, columns.split(",")), "--columns", dict.fromkeys(COLUMNS, str))
    found = read_input(input, check_choice("--turns", turns), named)
    places = found.places()
    typer.echo(found.remarks(), nl=False, err=True)
    check_output(output, input, "the scores")
    model = None
    if llm is None:
        options |= {name: value for name, value in {"llm_args": llm_args, "answers": answers and str(answers)}.items() if value}
    else:
        model = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
        options["llm"] = model
    method = load_scorer_with_judge(scorer, options)
    items = found.items(method.level)
    check_table_file(by_conversation, input, places, method.level)
    if model is not None and dry_run:
        pipeline.dry_run(method, items)
        typer.echo(f"dry run: {model.usage.estimate()}")
        return
    identity = pipeline.run_id(method, items)
    if not overwrite:
        refuse_other_scores(output, identity)
    if explain:
        method.explain([])  # one that cannot says so before hours of work
    scores = pipeline.run(method, items, progress=True, journal=None if is_stream(output) else journal_of(output))
    complete = scores.n_unscored <= max_unscored * scores.n_total
    write_scores(scores, output, run=identity, complete=complete)
    if explain:
        for start in range(0, len(items), method.window):
            typer.echo("\n".join(method.explain(items[start : start + method.window])))
    typer.echo(summary(scores))
    typer.echo(report_conversations(scores, places, by_conversation), nl=False)
    typer.echo(f"scores: {output}")
    if model is not None:
        typer.echo(f"llm: {model.usage}", err=True)
    if not complete:
        typer.echo(
            f"{scores.n_unscored} of {scores.n_total} examples have no score, more than --max-unscored {max_unscored} allows: "
            f"{scores.unscored_by_reason}",
            err=True,
        )
        raise typer.Exit(code=1)


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
