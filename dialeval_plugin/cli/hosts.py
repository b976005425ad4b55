"""`dialeval enable`, `disable`, `status`, `validate`, `rubric`, `lm-eval`, `tasks-path` and `metrics-path`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval_plugin.core import resources
from dialeval_plugin.core.files import parse_json, read_text

from .options import RubricScale, say_next

if TYPE_CHECKING:
    from dialeval_plugin.hosts.enable import Change


def enable() -> None:
    """Register this package's tasks, models and metrics with `lm_eval` and `evaluate.load` in this Python environment."""
    from dialeval_plugin.hosts import enable as hosts

    _show(hosts.enable())
    typer.echo("New Python processes know dialeval's tasks, models and metrics. `dialeval disable` undoes this.")


def disable() -> None:
    """Undo `dialeval enable`."""
    from dialeval_plugin.hosts import enable as hosts

    _show(hosts.disable())


def _show(changes: Iterable[Change]) -> None:
    for change in changes:
        typer.echo(f"{change.action}: {change.path}")


def status() -> None:
    """Show whether `dialeval enable` is active here, and whether it works."""
    from dialeval_plugin.hosts import enable as hosts

    state = hosts.status()
    typer.echo(f"{state.state} in {state.folder}")
    if state.state == "outdated":
        typer.echo("The files are of another version. Run `dialeval enable` to update them.")
    for problem in state.problems:
        typer.echo(f"problem: {problem}")
    if state.problems:
        raise typer.Exit(code=1)


def validate(
    tasks: Annotated[Path | None, typer.Option(help="Folder of lm-eval task files. Default: this package's.")] = None,
    metrics: Annotated[Path | None, typer.Option(help="Folder of metric folders. Default: this package's.")] = None,
) -> None:
    """Build every lm-eval task and load every metric; exit with 1 if one fails."""
    from dialeval_plugin.hosts.lm_eval import validation

    results = validation.validate(tasks, metrics)
    for name, kind, state, detail in results:
        typer.echo(f"{state:6} {kind:6} {name}" + (f": {detail}" if detail else ""))
    counts = {state: sum(result.state == state for result in results) for state in ("ok", "absent", "error")}
    typer.echo(", ".join(f"{number} {state}" for state, number in counts.items()))
    if counts["error"]:
        raise typer.Exit(code=1)


def tasks_path() -> None:
    """Print the folder of the lm-eval tasks: lm_eval --include_path "$(dialeval tasks-path)"."""
    typer.echo(resources.tasks_path())


def metrics_path() -> None:
    """Print the folder of the `evaluate` metrics."""
    typer.echo(resources.metrics_path())


def rubric(
    rubric: Annotated[str, typer.Argument(metavar="RUBRIC", help="Question, or a file of questions (.yaml, .json).")],
    data: Annotated[str, typer.Option(help="File of rated responses or dialogues, or name of a rated data set.")],
    output: Annotated[Path, typer.Option(help="Folder for the task files.")],
    rubric_scale: RubricScale = None,
    level: Annotated[Literal["turn", "dialogue"] | None, typer.Option(help="Level that the question is about.")] = None,
    quality: Annotated[str | None, typer.Option(help="Quality to compare with, if several are rated.")] = None,
) -> None:
    """Write an lm-eval task in which the model under test answers your question about rated data."""
    from dialeval_plugin.hosts.registration import importing
    from dialeval_plugin.methods.judging.rubric import read_rubrics

    with importing("lm_eval"):
        from dialeval_plugin.hosts.lm_eval.tasks.rubric import write_task
    paths = [write_task(one, data, output, quality) for one in read_rubrics(rubric, rubric_scale, level)]
    for path in paths:
        typer.echo(f"task: {path}")
    names = ",".join(path.stem for path in paths)
    say_next(f"dialeval lm-eval run --model hf --include_path {shlex.quote(str(output))} --tasks {names}", "runs it")


def lm_eval(context: typer.Context) -> None:
    """Run lm-eval's command line with this package's tasks and models."""
    from dialeval_plugin.hosts.lm_eval.cli import main as run
    from dialeval_plugin.hosts.lm_eval.versions import is_predicted_only
    from dialeval_plugin.leaderboard.result_files import NO_NUMBERS

    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--output_path", "-o", type=Path)
    parser.add_argument("--log_samples", "-s", action="store_true")
    options, _ = parser.parse_known_args(context.args)
    known = set(_result_files(options.output_path))
    run(context.args)
    written = [path for path in _result_files(options.output_path) if path not in known]
    for path in written:
        typer.echo(f"results: {path}")
    results = [parse_json(read_text(path), str(path), constants=NO_NUMBERS) for path in written]
    configs = [config for result in results for config in result["configs"].values()]
    ours = [config for config in configs if "dialeval" in (config.get("metadata") or {})]
    if ours and all(map(is_predicted_only, ours)):
        say_next("the same command without --predict_only", "answers that were kept are not scored later")
    elif ours:
        # The host adds the date to a name that ends in .json.
        folder = shlex.join(map(str, written if options.output_path.suffix == ".json" else [options.output_path]))
        why = (
            "their table with intervals and plots" if options.log_samples else "their table; --log_samples adds plots and cases"
        )
        say_next(f"dialeval leaderboard build {folder} --output board", why)


def _result_files(output: Path | None) -> list[Path]:
    """Return the result files at `--output_path`, a folder or a name to which the host adds the date."""
    if output is None:
        return []
    return sorted(output.parent.glob(f"{output.stem}_*.json") if output.suffix == ".json" else output.rglob("results_*.json"))
