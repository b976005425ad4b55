"""Exports of the leaderboard: the Hub's `.eval_results`, a model card's `model-index`, Every Eval Ever; and its upload.

On the Hub it is a data set with the table, and a Space that shows the page.

Each evaluator gets its own folder, because the Hub and Every Eval Ever store results with their model. These formats have no
undefined coefficients: those are left out and counted, never written as 0.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from dialeval_plugin.core.errors import InputError, unknown_name
from dialeval_plugin.core.files import read_text, to_json, write_text, write_together
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.models.hub import Kind, check_repository, upload
from dialeval_plugin.pages.html import static_text
from dialeval_plugin.statistics.estimates import bounds_text
from dialeval_plugin.terminal import for_markdown
from dialeval_plugin.version import __version__

from .board import Cell, Figure, Identity, Leaderboard
from .build import CSV_FILE, FILES, read
from .page import TITLE, coefficient_name

SDK_VERSION = "6.31.0"
"""Release of gradio in the Space."""
EVERY_EVAL_EVER = "0.3.0"
"""Version of the JSON schema (evaleval/every_eval_ever, eval.schema.json) of the files."""
TASK_TYPE = "dialogue-evaluation"
CONFIDENCE = 0.95

_FROM_0 = ("accuracy", "f1", "jsd", "mse")
_HUB_METRICS = {"spearman": "spearmanr", "pearson": "pearsonr", "kendall": "kendalltau"}


class Exported(NamedTuple):
    """Files of an export."""

    paths: list[Path]
    n_left_out: int
    """Number of figures without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Details that a format needs and result files lack.

    `dataset_id` is the Hub repository of the human ratings, OWNER/NAME, needed by `eval-results`; `source_url` a page that
    shows the results; `organization` who ran the evaluation.
    """

    dataset_id: str | None = None
    source_url: str | None = None
    organization: str = "unknown"
    created: datetime = field(default_factory=lambda: datetime.now(timezone.utc))


def export(board: Leaderboard, format: str, folder: Path, options: ExportOptions) -> Exported:
    """Write the files of one format below `folder`; an InputError names the option that is wrong or missing."""
    if options.source_url is not None and not re.fullmatch(r"https?://[^\s<>\"'()\[\]]+", options.source_url):
        raise InputError(f"--source-url {options.source_url!r}: is no address of a page. Give one that begins with https://.")
    if format not in FORMATS:
        raise unknown_name(f"--format {format!r}: there is no such format", format, FORMATS)
    paths = []
    for evaluator in board.evaluators:
        cells = [cell for cell in board.cells if cell.evaluator == evaluator]
        if not _values(cells):
            continue
        identity = board.identities.get(evaluator, Identity())
        for name, text in FORMATS[format](evaluator, cells, identity, options).items():
            write_text(folder / name, text)
            paths.append(folder / name)
    figures = [figure for cell in board.cells for figure in cell.figures.values()]
    return Exported(paths, sum(figure.value is None for figure in figures))


def eval_results(evaluator: str, cells: list[Cell], _: Identity, options: ExportOptions) -> dict[str, str]:
    """Return `.eval_results/dialeval_<coefficient>.yaml` for a model repository of the Hub, one file per coefficient."""
    if not options.dataset_id or not re.fullmatch(r"[\w.-]+/[\w.-]+", options.dataset_id):
        raise InputError(
            f"--dataset-id {options.dataset_id!r}: the format names the Hub's data set of the human ratings. Give OWNER/NAME."
        )
    entries: dict[str, list[dict[str, Any]]] = {}
    for cell, coefficient, figure in _values(cells):
        entry: dict[str, Any] = {"dataset": {"id": options.dataset_id, "task_id": _task_id(cell)}, "value": figure.value}
        if cell.date:
            entry["date"] = cell.date
        if options.source_url:
            entry["source"] = {"url": options.source_url, "name": "dialeval-plugin"}
        interval = bounds_text(figure.ci_low, figure.ci_high, is_rough=figure.is_rough)
        name = f"{coefficient_name(coefficient)} {interval}".rstrip()
        of_rows = f"{cell.n_scored} of {cell.n_total} rows{' of a part of the set' if cell.is_partial else ''} scored"
        entry["notes"] = f"{name}, {cell.column.detail or cell.column.dataset}, {of_rows}; signature {cell.signature}"
        entries.setdefault(coefficient, []).append(entry)
    files = {}
    for coefficient, results in entries.items():
        # Names from result files are untrusted.
        name = coefficient if re.fullmatch(r"[a-z0-9_]{1,60}", coefficient) else slug(coefficient)
        path = f"{slug(evaluator)}/.eval_results/dialeval_{name}.yaml"
        files[path] = yaml.safe_dump(results, sort_keys=False, allow_unicode=True, width=1000)
    return files


def model_index(evaluator: str, cells: list[Cell], _: Identity, options: ExportOptions) -> dict[str, str]:
    """Return a model card, README.md, with the results as `model-index` metadata and as a table."""
    from huggingface_hub import EvalResult, ModelCardData

    results = [
        EvalResult(
            task_type=TASK_TYPE,
            task_name="Agreement with human ratings",
            dataset_type=options.dataset_id or cell.column.dataset,
            dataset_name=str(cell.column),
            dataset_config=_task_id(cell),
            metric_type=_HUB_METRICS.get(coefficient, coefficient),
            metric_name=coefficient_name(coefficient),
            metric_value=figure.value,
            source_url=options.source_url,
            source_name="dialeval-plugin" if options.source_url else None,
        )
        for cell, coefficient, figure in _values(cells)
    ]
    data = ModelCardData(model_name=evaluator, eval_results=results, tags=["dialogue", "evaluation"])
    board = Leaderboard(tuple(cells))
    tables = [f"## {for_markdown(coefficient_name(name))}\n\n{board.to_markdown(name)}" for name in board.coefficients]
    return {f"{slug(evaluator)}/README.md": f"---\n{data.to_yaml()}\n---\n\n" + "\n".join(tables)}


def every_eval_ever(evaluator: str, cells: list[Cell], identity: Identity, options: ExportOptions) -> dict[str, str]:
    """Return one record in the schema of Every Eval Ever by its path there; its name is a hash of the results."""
    created, id = str(options.created.timestamp()), f"dialeval/{slug(evaluator)}"
    runs_here = identity.method in ("rule", "trained") or identity.model_url
    details = {
        "deployment_type": "self_deployed" if runs_here else "unknown",
        "model_availability": "open_weights" if identity.model_card else "unknown",
    }
    record = {
        "schema_version": EVERY_EVAL_EVER,
        "evaluation_id": f"dialeval/{id}/{created}",
        "evaluation_timestamp": max(cell.date for cell in cells),
        "retrieved_timestamp": created,
        "source_metadata": {
            "source_name": "dialeval-plugin leaderboard",
            "source_type": "evaluation_run",
            "source_organization_name": options.organization,
            **({"source_organization_url": options.source_url} if options.source_url else {}),
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "dialeval-plugin", "version": __version__, "additional_details": {"host": "lm_eval"}},
        "model_info": {"name": evaluator, "id": id, "additional_details": details},
        "evaluation_results": [_every_eval_ever_result(*value) for value in _values(cells)],
    }
    # Another export of the same results replaces the record. The validator expects random identifiers (UUID version 4).
    same = to_json({**record, "evaluation_id": None, "retrieved_timestamp": None})
    name = uuid.UUID(bytes=hashlib.sha256(same.encode()).digest()[:16], version=4)
    return {f"data/dialeval/{id}/{name}.json": to_json(record, indent=1) + "\n"}


FORMATS: Mapping[str, Callable[[str, list[Cell], Identity, ExportOptions], dict[str, str]]] = {
    "eval-results": eval_results,
    "model-index": model_index,
    "every-eval-ever": every_eval_ever,
}


def slug(evaluator: str) -> str:
    """Return a folder name: the evaluator's, without characters special in paths or URLs, and with a hash to make it unique.

    Example:
        >>> slug("openai-community/gpt2, dstc10_dialog")
        'openai-community-gpt2-dstc10_dialog-041bc4'
    """
    readable = re.sub(r"[^\w]+", "-", evaluator, flags=re.ASCII).strip("-")[:60] or "evaluator"
    return f"{readable}-{text_hash(evaluator)[:6]}"


def _values(cells: list[Cell]) -> list[tuple[Cell, str, Figure]]:
    return [(cell, name, figure) for cell in cells for name, figure in cell.figures.items() if figure.value is not None]


def _every_eval_ever_result(cell: Cell, coefficient: str, figure: Figure) -> dict[str, Any]:
    # All further details have to be strings.
    details = {"n_scored": str(cell.n_scored), "n_total": str(cell.n_total), "is_partial": str(cell.is_partial).lower()}
    details |= {"signature": cell.signature, "result_file": cell.source, **cell.metadata}
    interval = {}
    if figure.ci_low is not None and figure.ci_high is not None:
        interval = {
            "confidence_interval": {
                "lower": figure.ci_low,
                "upper": figure.ci_high,
                "confidence_level": CONFIDENCE,
                "method": f"expanded percentile bootstrap over dialogues{', rough: there are few' if figure.is_rough else ''}",
            }
        }
    return {
        "evaluation_result_id": f"{_task_id(cell)}/{coefficient}",
        "evaluation_name": f"{cell.column}, {coefficient_name(coefficient)}",
        "source_data": {"dataset_name": cell.column.dataset, "source_type": "other"},
        "evaluation_timestamp": cell.date,
        "metric_config": {
            "evaluation_description": "Agreement of the evaluator's scores with the mean human ratings",
            "metric_id": f"dialeval.{coefficient}",
            "metric_name": coefficient_name(coefficient),
            "lower_is_better": not figure.higher_is_better,
            "score_type": "continuous",
            "min_score": 0.0 if coefficient.startswith(_FROM_0) else -1.0,
            "max_score": 1.0,
        },
        "score_details": {"score": figure.value, "details": details, "uncertainty": {**interval, "num_samples": cell.n_scored}},
    }


def _task_id(cell: Cell) -> str:
    parts = (cell.column.dataset, cell.column.level, cell.column.quality)
    return "_".join(re.sub(r"[^\w]+", "_", part.lower()) for part in parts if part)


class Upload(NamedTuple):
    """Repository and its files."""

    kind: Kind
    repo_id: str
    files: dict[str, int]
    """File names with sizes in bytes."""


def write_space(folder: Path, output: Path, *, title: str = TITLE, demo: bool = False) -> list[Path]:
    """Write a ready Space to `output`: the page, a Gradio app that shows it, and the Space's README.

    With `demo` the Space installs this package, and the app has another tab that scores a pasted conversation.
    """
    _check_complete(folder)
    texts = {name: read_text(folder / name) for name in FILES}
    texts["app.py"] = static_text(__package__, "space_app.py")
    # Spaces bring gradio themselves.
    texts["requirements.txt"] = f"dialeval-plugin>={__version__}\n" if demo else ""
    texts["README.md"] = _card("space_card.md", title, sdk_version=SDK_VERSION)
    return write_together(output, texts)


def push(
    folder: Path, repo_id: str, *, space: bool = True, private: bool = False, dry_run: bool = False, title: str = TITLE
) -> list[Upload]:
    """Upload a leaderboard to the Hub's data set `repo_id`, and its page to the Space of the same name.

    The token is the one saved by `hf auth login` or in HF_TOKEN; HF_ENDPOINT selects another Hub. Missing repositories are
    created, `private` ones on request; other files in them are kept.

    Raises:
        InputError: the name is invalid, `folder` has no leaderboard, or the Hub refused.
        MissingPrerequisite: there is no login, or the Hub cannot be reached.
    """
    check_repository(repo_id)
    board = _check_complete(folder)
    uploads = []
    with tempfile.TemporaryDirectory() as name:
        # Upload these files only, not others in `folder`.
        places: dict[Kind, Path] = {"dataset": Path(name, "dataset")}
        table = board.to_markdown() if board.cells else ""
        write_text(places["dataset"] / "README.md", _card("dataset_card.md", title, csv_file=CSV_FILE, table=table))
        for file in FILES:
            shutil.copyfile(folder / file, places["dataset"] / file)
        if space:
            places["space"] = Path(name, "space")
            write_space(folder, places["space"], title=title)
        for kind, place in places.items():
            uploads.append(Upload(kind, repo_id, {path.name: path.stat().st_size for path in sorted(place.iterdir())}))
            if not dry_run:
                upload(kind, repo_id, place, private=private, message="Update the leaderboard")
    return uploads


def _check_complete(folder: Path) -> Leaderboard:
    board = read(folder)
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise InputError(f"{folder}: {missing[0]} is not there. Build the leaderboard again.")
    return board


def _card(name: str, title: str, **fields: str) -> str:
    # JSON strings are valid YAML strings, so any title is safe.
    return static_text(__package__, name).format(title=title, quoted_title=json.dumps(title), **fields)
