"""`dialeval score` and `dialeval accuracy`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .agreement_options import check_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval_plugin.core.dialogue import Item
    from dialeval_plugin.core.scoring import Scorer, Scores


def score(
    input: Annotated[Path, typer.Argument(help="JSON lines with context and response, or a published layout.")],
    output: Annotated[Path, typer.Option(help="JSON-lines file of the scores; beside it comes <output>.meta.json.")],
    scorer: Annotated[str, typer.Option(help="Name of the scorer.")] = "slide",
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
    max_unscored: Annotated[float, typer.Option(help="Exit with 1 where a larger share has no score.")] = 0.05,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace scores of another scorer or input.")] = False,
) -> None:
    """Score responses; the same command goes on where it was killed."""
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.core.runner import rehearse, run_id
    from dialeval_plugin.corpora.registry import read_items
    from dialeval_plugin.hosts.judges import load_cached_model, load_scorer_with_judge

    check_share("--max-unscored", max_unscored)
    options: dict[str, Any] = dict(_pair(text) for text in option or ())
    options |= {name: value for name, value in {"slm": slm, "variant": variant}.items() if value is not None}
    if no_answers and answers is not None:
        raise InputError("--answers and --no-answers: were both given. Leave one of them out.")
    if dry_run and llm is None:
        raise InputError("--dry-run: shows what a language model would be asked, and none is named. Name one with --llm.")
    items = read_items(input)
    _check_output(output, input)
    model = None
    if llm is None:
        options |= {name: value for name, value in {"llm_args": llm_args, "answers": answers and str(answers)}.items() if value}
    else:
        model = load_cached_model(llm, llm_args, answers=False if no_answers else answers, dry_run=dry_run)
        options["llm"] = model
    method = load_scorer_with_judge(scorer, options)
    if model is not None and dry_run:
        rehearse(method, items)
        typer.echo(f"dry run: {model.usage.estimate()}")
        return
    identity = run_id(method, items)
    if not overwrite and not _journal(output).exists():
        _refuse_other_file(output, identity)
    if explain:
        method.explain([])  # one that cannot says so before hours of work
    scores = _scored(method, items, output)
    complete = scores.n_unscored <= max_unscored * scores.n_total
    write_scores(scores, output, run=identity, complete=complete)
    _journal(output).unlink(missing_ok=True)
    if explain:
        for start in range(0, len(items), method.window):
            typer.echo("\n".join(method.explain(items[start : start + method.window])))
    typer.echo(summary(scores))
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


def _journal(output: Path) -> Path:
    return output.with_name(output.name + ".journal")


def _meta_file(output: Path) -> Path:
    return output.with_name(output.name + ".meta.json")


def _check_output(output: Path, input: Path) -> None:
    from dialeval_plugin.core.errors import InputError

    if output.is_dir():
        raise InputError(f"{output}: is a folder, expected the name of a file to write.")
    if output.exists() and output.samefile(input):
        raise InputError(f"{output}: is the input. Choose another name for the scores.")


def _refuse_other_file(output: Path, run: str) -> None:
    """Refuse to replace a file that does not hold the scores of this run, as the file beside it says."""
    from dialeval_plugin.core.errors import InputError
    from dialeval_plugin.core.files import is_stream, read_json

    if is_stream(output) or not output.is_file():
        return
    meta = _meta_file(output)
    found = read_json(meta) if meta.is_file() else None
    if not isinstance(found, dict) or found.get("run") != run:
        raise InputError(
            f"{output}: holds something else than the scores of this scorer, with these options, of this input. "
            "Choose another name, or add --overwrite to replace it."
        )


def _scored(method: Scorer, items: Sequence[Item], output: Path) -> Scores:
    from dialeval_plugin.core.files import is_stream
    from dialeval_plugin.core.runner import run

    return run(method, items, progress=True, journal=None if is_stream(output) else _journal(output))


def write_scores(scores: Scores, output: Path, *, run: str, complete: bool) -> None:
    """Write the rows to `output` and, where that is a file, what belongs to all of them to `<output>.meta.json`."""
    from dialeval_plugin.core.files import is_stream, to_json, write_json_lines, write_text
    from dialeval_plugin.core.scoring import SCHEMA_VERSION

    write_json_lines(output, scores.rows())
    if is_stream(output):
        return
    meta = {
        "run": run,
        "schema_version": SCHEMA_VERSION,
        "main": scores.main,
        "mean": scores.mean(),
        "level": scores.level,
        "orientation": scores.orientation,
        "n_total": scores.n_total,
        "n_scored": scores.n_scored,
        "unscored": scores.unscored_by_reason,
        "complete": complete,
        "signature": str(scores.signature),
    }
    write_text(_meta_file(output), to_json(meta, indent=2) + "\n")


def summary(scores: Scores) -> str:
    """One line for people, one for whoever repeats the run."""
    mean = scores.mean()
    shown = "no score" if mean is None else f"mean {mean:.4f}"
    return f"{scores.main}: {shown}, {scores.n_scored} of {scores.n_total} scored\n{scores.signature}"


def accuracy(
    data: Annotated[Path, typer.Argument(help="File in DailyDialog++'s layout with positive and adversarial responses.")],
    slm: Annotated[str | None, typer.Option(help="Folder or hub id of the small model.")] = None,
) -> None:
    """Classify positive and adversarial responses with the small model and print SLIDE's Table 1 with 95 % intervals.

    A response counts as positive from the threshold that the model's validation contexts gave; the paper's rule,
    Score_SLM >= 0.5, stands in the last row. Contexts that the model was trained on are counted.
    """
    from dialeval_plugin.corpora.readers import dailydialog_pp
    from dialeval_plugin.reports.slm_accuracy import classification_table

    typer.echo(classification_table(dailydialog_pp.read(data), slm))


def _pair(text: str) -> tuple[str, Any]:
    from dialeval_plugin.core.errors import InputError

    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--option {text!r}: expected name=value.")
    literals = {"true": True, "false": False, "none": None}
    if value.lower() in literals:
        return name, literals[value.lower()]
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
