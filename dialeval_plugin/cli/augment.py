"""`dialeval augment`: responses to contexts that have none, written and checked by a language model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import check_output
from dialeval_plugin.core.registry import load_scorer

from .examples import say_next

if TYPE_CHECKING:
    from dialeval_plugin.methods.augmentation.augmentation import Augmented

_SHOWN_REASONS = 5


def augment(
    contexts: Annotated[
        Path, typer.Argument(help="JSON lines with `context`, a list of turns; DailyDialog++'s layout will do.")
    ],
    output: Annotated[Path, typer.Option(help="File in DailyDialog++'s layout, for `dialeval train slm --data`.")],
    llm: Annotated[str, typer.Option(help="Any lm-eval model that generates: hf, vllm, local-chat-completions, ...")],
    llm_args: Annotated[str, typer.Option(help="Its arguments as lm-eval writes them: pretrained=...")] = "",
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of a small model that checks last, by probability.")] = None,
    rounds: Annotated[int, typer.Option(help="How often at most responses are asked for, for each context.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the draws and of the spot check's sample.")] = 0,
    answers: Annotated[
        Path | None, typer.Option(help="File that keeps the llm's answers; default in the user's cache.")
    ] = None,
    no_answers: Annotated[bool, typer.Option("--no-answers", help="Keep no answers and use none.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what the llm would be asked first, and ask nothing.")] = False,
    spot_check: Annotated[
        int, typer.Option(min=0, help="Write so many responses to a sheet for people, <output>.spot-check.csv.")
    ] = 0,
) -> None:
    """Write five positive and five adversarial responses to each context, checked as SLIDE and DRE do.

    The same command goes on where it was killed. Contexts that could not be completed are in <output>.incomplete.jsonl.
    """
    from dialeval_plugin.corpora.readers.dailydialog_pp import read_contexts
    from dialeval_plugin.hosts.judges import load_cached_model
    from dialeval_plugin.methods.augmentation.augmentation import ResponseWriter, write_augmented, write_spot_check
    from dialeval_plugin.methods.augmentation.augmentation import augment as run

    items = read_contexts(contexts)
    check_output(output, contexts, "the responses")
    if no_answers and answers is not None:
        raise InputError("--answers and --no-answers: were both given. Leave one of them out.")
    from transformers import set_seed

    small_model = load_scorer("slide", slm=slm, variant="slm_probability") if slm is not None else None
    model = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
    writer = ResponseWriter(model, slm=small_model, rounds=rounds, seed=seed, reseed=set_seed)
    if dry_run:
        # Asked nothing, the model writes nothing: what follows its first answers cannot be rehearsed, only bounded.
        for item in items:
            writer.write(item.id, item.context)
        typer.echo(f"dry run: {model.usage.estimate()}")
        typer.echo(f"Each context then has its 10 responses checked, one call each, and up to {rounds - 1} further rounds.")
        return
    journal = output.with_name(output.name + ".journal")
    augmented = run(items, writer, journal=journal, progress=True)
    write_augmented(augmented, output, writer.provenance)
    if not augmented.failed:
        journal.unlink()
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
    if augmented.failed:
        typer.echo(f"the model gave no answer for {len(augmented.failed)} contexts; the same command asks again", err=True)
