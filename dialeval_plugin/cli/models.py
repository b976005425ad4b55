"""`dialeval models`: bundled models and your own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from dialeval_plugin.core.errors import InputError

from .options import ScorerOptions, scorer_options

if TYPE_CHECKING:
    from dialeval_plugin.models.runtimes.runtime import ExportedBackend

app = typer.Typer(help="List, check, export and share trained models.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="MODEL", help="Bundled model, folder, or hub id.")]
Repository = Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Repository on the Hub.")]


_THERE = ", which exists and is complete"


@app.command("list")
def show_list() -> None:
    """List the bundled models and the default model of each scorer.

    A scorer uses the model that is named, else the one of its environment variable, else the bundled one.
    """
    from dialeval_plugin.models.folders import PRETRAINED, chosen, licence_of, pretrained_names
    from dialeval_plugin.pretrained.catalogue import KINDS, settings_file
    from dialeval_plugin.reports.tables import CellValue, Table, named_column, text_column

    names, models = [name for name in pretrained_names() if any((PRETRAINED / name / kind).is_file() for kind in KINDS)], []
    for name in names:
        folder = PRETRAINED / name
        megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        licence = licence_of(folder)
        terms, is_open = ("", False) if licence is None else licence
        row: dict[str, CellValue] = {"model": name, "scorer": KINDS[settings_file(folder)].default.scorer, "MB": megabytes}
        models.append({**row, "commercial use": "yes" if is_open else "no", "licence of the weights": terms})
    titles = ("model", "scorer", "MB", "commercial use", "licence of the weights")
    columns = [named_column(title, 1, is_number=title == "MB") for title in titles]
    Table(models, columns).print()
    typer.echo()
    defaults = []
    for kind in KINDS.values():
        default, named = kind.default, os.environ.get(kind.default.variable)
        state = f"{default.variable} (is {named})" if named else default.variable
        packaged = chosen(default.packaged) if default.packaged in names else "none"
        defaults.append({"scorer": default.scorer, "where none is named": packaged, "environment variable": state})
    columns = [*map(text_column, ("scorer", "where none is named", "environment variable"))]
    Table(defaults, columns).print()


@app.command()
def show(name: Name) -> None:
    """Print a model's card: training data, training, results, limitations."""
    from dialeval_plugin.core.files import read_text
    from dialeval_plugin.models.folders import resolve
    from dialeval_plugin.terminal import one_line

    path = resolve(name, is_used=False) / "README.md"
    if not path.is_file():
        raise InputError(f"{name}: has no card ({path.name}). Its settings file has the record of its training.")
    text = read_text(path)
    # The lines between --- are for the Hub; control characters of a stranger's card would reach the terminal.
    card = (text.partition("\n---\n")[2] if text.startswith("---\n") else text).strip()
    typer.echo("\n".join(map(one_line, card.split("\n"))))


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL", help="Models to check. Default: all bundled models.")
    ] = None,
) -> None:
    """Check a model's file hashes and reference scores; exit with 1 if a score differs by more than 0.0001."""
    from dialeval_plugin.models.folders import pretrained_names
    from dialeval_plugin.pretrained.catalogue import TOLERANCE
    from dialeval_plugin.pretrained.catalogue import verify as verify_model

    is_equal = True
    for name in names or pretrained_names():
        check = verify_model(name)
        state = "ok" if check.is_equal else f"differs by more than {TOLERANCE:g}"
        built = "" if check.instruction_set == check.golden_instruction_set else f", built with {check.golden_instruction_set}"
        scores = f"largest difference {check.largest_difference:.1e} ({check.instruction_set}{built})"
        scores = f"{check.n_scores} golden scores, {scores}" if check.n_scores else "no golden scores to compare with"
        typer.echo(f"{name}: {state}; hashes match {check.record}, {scores}")
        is_equal &= check.is_equal
    if not is_equal:
        raise typer.Exit(code=1)


@app.command()
def percentiles(
    folder: Annotated[Path, typer.Argument(help="Folder of your model.")],
    dialogues: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Dialogues between people that the model was not trained on.")
    ],
    option: ScorerOptions = None,
) -> None:
    """Write the table for the column `percentile` into a model's folder; run it for each setting of the scorer that you use."""
    from dialeval_plugin.core.signature import file_hash
    from dialeval_plugin.models.folders import PRETRAINED
    from dialeval_plugin.pretrained.catalogue import KINDS, open_scorer, settings_file
    from dialeval_plugin.training.people import write_percentiles

    from .train.options import read_all_dialogues

    if folder.resolve().parent == PRETRAINED.resolve():
        raise InputError(f"{folder}: is a bundled model, which has its tables. Give the folder of your model.")
    scorer = open_scorer(str(folder), **scorer_options(KINDS[settings_file(folder)].default.scorer, option))
    sources = {path.name: file_hash(path) for path in dialogues}
    table = write_percentiles(scorer, folder, read_all_dialogues(dialogues), sources)
    typer.echo(f"{folder}: percentiles of `{table.column}` among {table.n} {table.level}s of people")


@app.command()
def export(
    name: Name,
    output: Annotated[Path, typer.Argument(help="Folder to write.")],
    backend: Annotated[
        list[str] | None,
        typer.Option(help="Also write the model for onnx, openvino or openvino-int8; may be repeated."),
    ] = None,
) -> None:
    """Write a model as a folder that sentence-transformers (or transformers, for a language model) can open."""
    from dialeval_plugin.core.registry import check_value
    from dialeval_plugin.models.runtimes import runtime
    from dialeval_plugin.pretrained.catalogue import export as write

    for value in backend or ():
        check_value("export", "--backend", value, runtime.ExportedBackend)
    is_there = output.exists()
    write(name, output, cast("list[ExportedBackend]", backend or ()))
    typer.echo(
        f"{output}: {sum(path.stat().st_size for path in output.rglob('*') if path.is_file()) / 1e6:.0f} MB{_THERE * is_there}"
    )


@app.command()
def push(
    name: Name,
    repository: Repository,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
) -> None:
    """Upload a model to the Hub, to be used by `--option model=OWNER/NAME`."""
    from dialeval_plugin.models.folders import check_weights, of_model, resolve
    from dialeval_plugin.models.hub import check_repository, upload
    from dialeval_plugin.pretrained.catalogue import settings_file

    folder = resolve(name)
    settings_file(folder)
    check_weights(folder)
    check_repository(repository)
    upload("model", repository, folder, files=of_model(folder), private=private, message="Upload a model of dialeval-plugin")
    typer.echo(f"{repository}: {folder.name}")


@app.command()
def pull(
    repository: Repository,
    output: Annotated[Path, typer.Argument(help="Folder to write.")],
    revision: Annotated[str | None, typer.Option(help="Commit, branch or tag.")] = None,
) -> None:
    """Download a model from the Hub into a folder and check its hashes."""
    from dialeval_plugin.models.hub import check_repository
    from dialeval_plugin.pretrained.catalogue import pull as copy

    check_repository(repository)
    is_there = output.exists()
    copy(repository, output, revision)
    typer.echo(f"{output}: {repository}{_THERE * is_there}")
