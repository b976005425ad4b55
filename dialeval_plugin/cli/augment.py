"""`dialeval augment`: a language model writes and checks responses to contexts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval_plugin.core.files import check_output
from dialeval_plugin.core.registry import load_scorer
from dialeval_plugin.core.scores import Reason

from .options import Answers, DryRun, LlmArgs, NoAnswers, check_judge, say_next

if TYPE_CHECKING:
    from dialeval_plugin.methods.augmentation.augmentation import Augmented

_SHOWN_REASONS = 5


def augment(
    contexts: Annotated[
        Path, typer.Argument(help="JSON lines with `context`, a list of turns, for example in DailyDialog++'s layout.")
    ],
    output: Annotated[Path, typer.Option(help="File to write in DailyDialog++'s layout, for `dialeval train slm --data`.")],
    llm: Annotated[str, typer.Option(help="lm-eval model that generates: hf, vllm, local-chat-completions, ...")],
    llm_args: LlmArgs = "",
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of a small model for a last check, by probability.")] = None,
    rounds: Annotated[int, typer.Option(help="Largest number of attempts for each context.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the samples and of the spot check.")] = 0,
    answers: Answers = None,
    no_answers: NoAnswers = False,
    dry_run: DryRun = False,
    spot_check: Annotated[
        int, typer.Option(min=0, help="Number of responses to write to <output>.spot-check.csv for people to check.")
    ] = 0,
) -> None:
    """Write five positive and five adversarial responses to each context, checked as SLIDE and DRE do.

    A run that was killed resumes with the same command, from the cached answers. Incomplete contexts are written to
    <output>.incomplete.jsonl.
    """
    from dialeval_plugin.corpora.readers.dailydialog_pp import read_contexts
    from dialeval_plugin.hosts.judges import load_cached_model
    from dialeval_plugin.methods.augmentation.augmentation import ResponseWriter, write_augmented, write_spot_check
    from dialeval_plugin.methods.augmentation.augmentation import augment as run

    items = read_contexts(contexts)
    check_output(output, contexts, "the responses")
    check_judge(llm, dry_run=dry_run, answers=answers, no_answers=no_answers)
    from transformers import set_seed

    small_model = load_scorer("slide", slm=slm, variant="slm_probability") if slm is not None else None
    model = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
    writer = ResponseWriter(model, slm=small_model, rounds=rounds, seed=seed, reseed=set_seed)
    if dry_run:
        # The requests after the first answers can only be bounded.
        for item in items:
            writer.write(item.id, item.context)
        typer.echo(f"dry run: {model.usage.estimate()}")
        typer.echo(f"Each context then has its 10 responses checked, one call each, and up to {rounds - 1} further rounds.")
        return
    augmented = run(items, writer, progress=True)
    write_augmented(augmented, output, writer.provenance)
    _report(augmented, output)
    if spot_check and augmented.complete:
        sheet = output.with_name(output.name + ".spot-check.csv")
        n_rows = write_spot_check(sheet, augmented.complete, n=spot_check, seed=seed)
        typer.echo(f"spot check: {sheet}, {n_rows} responses")
    typer.echo(f"llm: {model.usage}", err=True)
    if augmented.failed or not augmented.complete:
        raise typer.Exit(code=1)
    say_next(f"dialeval train slm --data {shlex.quote(str(output))} --output my-slm", "train on the responses")


def _report(augmented: Augmented, output: Path) -> None:
    from dialeval_plugin.methods.augmentation.augmentation import incomplete_path

    n_total = len(augmented.complete) + len(augmented.incomplete) + len(augmented.failed)
    typer.echo(f"{len(augmented.complete)} of {n_total} contexts have five positive and five adversarial responses")
    if augmented.complete:
        typer.echo(f"responses: {output}")
    reasons = [f"{item.id}: {item.reason}" for item in augmented.incomplete]
    reasons += [f"{item.id}: {why.reason.value}: {why.detail}" for item, why in augmented.failed]
    if reasons:
        typer.echo(f"not complete: {incomplete_path(output)}")
        for reason in reasons[:_SHOWN_REASONS]:
            typer.echo(f"  {reason}")
        if len(reasons) > _SHOWN_REASONS:
            typer.echo(f"  and {len(reasons) - _SHOWN_REASONS} more")
    if n_open := sum(why.reason is Reason.API_ERROR for _, why in augmented.failed):
        typer.echo(f"the model gave no answer for {n_open} contexts; the same command asks again", err=True)
