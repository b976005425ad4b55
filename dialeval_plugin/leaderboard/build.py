"""Builds the leaderboard's folder from lm-eval's result files."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import read_json, to_json, write_together
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.registry import describe_set
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import BOUNDS, COUNTS
from dialeval_plugin.terminal import for_markdown

from .board import Cell, Column, DataSet, Figure, Leaderboard, Reference
from .evidence import EvaluatorRows, has_references, human_references, ranked
from .identities import identity_of, with_passports
from .page import TITLE, render
from .result_files import check_one_scorer, read_runs
from .task_runs import TaskRun

logger = logging.getLogger(__name__)

JSON_FILE, CSV_FILE, MARKDOWN_FILE, PAGE_FILE = "leaderboard.json", "leaderboard.csv", "leaderboard.md", "index.html"
FILES = (JSON_FILE, CSV_FILE, MARKDOWN_FILE, PAGE_FILE)

_BASELINE_NAMES = {
    "always_breakdown_": "every turn called a breakdown",
    "_floor": "coin flips",
    "_ceiling": "what most people said",
}
"""Prefixes and suffixes of the baseline metrics that a task prints with the evaluator's own, and the names of the baselines."""


class BuildResult(NamedTuple):
    """Leaderboard, and the rows behind it."""

    board: Leaderboard
    evidence: tuple[EvaluatorRows, ...]


def build(
    paths: Iterable[Path | str], *, rank_rounds: int = 1000, passports: Sequence[Path] = (), folder: Path = Path()
) -> BuildResult:
    """Read result files and folders of them; of several runs of one cell, the newest whole one counts.

    `rank_rounds` is the smallest number of permutations of each test behind the rank clusters; 0 for no ranks. `passports` are
    linked from the page in `folder`, see `with_passports`. Raises InputError if a file is damaged, or one evaluator's name
    stands for two scorers.
    """
    cells: dict[tuple[str, Column], Cell] = {}
    runs: dict[str, list[TaskRun]] = defaultdict(list)
    evidence: dict[tuple[str, Column], EvaluatorRows] = {}
    baselines: dict[tuple[str, Column, str], Reference] = {}
    n_older = 0
    for run in read_runs(paths):
        for reference in references_of(run):
            baselines.setdefault((reference.name, reference.column, reference.coefficient), reference)
        for cell in cells_of(run):
            place = (cell.evaluator, cell.column)
            if place in cells:
                n_older += 1
                continue
            cells[place] = cell
            runs[cell.evaluator].append(run)
            if run.rows:
                evidence[place] = EvaluatorRows(cell.evaluator, cell.column, run.rows)
    check_one_scorer(run for of_evaluator in runs.values() for run in of_evaluator)
    if n_older:
        logger.warning("leaderboard: %d older or partial results of the same evaluator and data are left out", n_older)
    versions: dict[tuple[Column, str], set[str]] = defaultdict(set)
    for cell in cells.values():
        versions[cell.column, cell.metadata["task"]].add(cell.metadata["task version"])
    for (column, task), found in versions.items():
        if len(found) > 1:
            logger.warning(
                "leaderboard: %s: versions %s of %s are not comparable. Run the older one again.",
                *(column, " and ".join(sorted(found)), task),
            )
    rows = tuple(evidence.values())
    signatures = {name: of_evaluator[0].scorer_signature for name, of_evaluator in runs.items()}
    identities = {name: identity_of(of_evaluator) for name, of_evaluator in runs.items()}
    names = dict.fromkeys(cell.column.dataset for cell in cells.values())
    board = Leaderboard(
        tuple(cells.values()),
        (*human_references(rows), *baselines.values()),
        identities=with_passports(identities, signatures, passports, folder),
        data_sets={name: DataSet(**describe_set(name)._asdict(), has_references=has_references(rows, name)) for name in names},
    )
    return BuildResult(ranked(board, rows, rounds=rank_rounds), rows)


def write(built: BuildResult, folder: Path, *, title: str = TITLE) -> list[Path]:
    """Write the table as JSON, CSV, Markdown and HTML; return the paths. InputError: the folder has another page."""
    if (folder / PAGE_FILE).exists() and not (folder / JSON_FILE).exists():
        raise InputError(f"{folder / PAGE_FILE}: is not of a leaderboard. Choose another folder.")
    board = built.board
    texts = {
        JSON_FILE: to_json(board.to_dict(), indent=1) + "\n",
        CSV_FILE: board.to_csv(),
        MARKDOWN_FILE: "\n".join(f"## {for_markdown(name)}\n\n{board.to_markdown(name)}" for name in board.coefficients),
        PAGE_FILE: render(board, built.evidence, title=title),
    }
    return write_together(folder, texts)


def read(folder: Path) -> Leaderboard:
    """Read the leaderboard that `write` wrote; raises InputError if the folder has none."""
    path = folder / JSON_FILE
    if not path.exists():
        raise InputError(f"{folder}: holds no {JSON_FILE}. Type `dialeval leaderboard build RESULTS --output {folder}`.")
    return Leaderboard.from_dict(read_json(path), where=str(path))


def cells_of(run: TaskRun) -> Iterator[Cell]:
    """Yield the cells of one run: one, or one per criterion for human preferences."""
    for column, names in _columns(run).items():
        yield Cell(
            evaluator=run.evaluator,
            column=column,
            figures={short: _figure(run, name) for short, name in names.items() if _is_coefficient(name)},
            n_scored=run.n_scored,
            n_total=run.n_total,
            signature=_without_folders(run.signature),
            is_partial=run.is_partial,
            unscored=run.unscored_by_reason,
            cost=run.cost,
            date=run.date.isoformat(timespec="seconds"),
            source=f"{run.path.parent.name}/{run.path.name}",
            metadata={"task": run.task, "task version": run.version},
        )


def references_of(run: TaskRun) -> Iterator[Reference]:
    """Yield the baselines that the task printed with the evaluator's figures."""
    for column, names in _columns(run).items():
        for short, name in names.items():
            value = run.metrics[name]
            for part, reference in _BASELINE_NAMES.items():
                if value is not None and (name.startswith(part) or name.endswith(part)):
                    coefficient = short.removeprefix(part).removesuffix(part)
                    yield Reference(name=reference, column=column, coefficient=coefficient, value=value)


def _columns(run: TaskRun) -> dict[Column, dict[str, str]]:
    about = run.about
    # Readers know a DSTC10 set by its published name, not its code.
    dataset = dstc10.SETS[about.dataset].name if about.dataset in dstc10.SETS else about.dataset
    if run.kind != "preference":
        return {Column(dataset, about.level, about.quality): {name: name for name in run.metrics}}
    criteria = dict.fromkeys(name.partition("_")[0] for name in run.metrics if _is_coefficient(name))
    return {
        Column(dataset, about.level, criterion): {
            name.removeprefix(f"{criterion}_"): name for name in run.metrics if name.startswith(f"{criterion}_")
        }
        for criterion in criteria
    }


def _is_coefficient(name: str) -> bool:
    is_beside = any(name.startswith(part) or name.endswith(part) for part in _BASELINE_NAMES)
    return not (is_beside or name in COUNTS or name.endswith((*BOUNDS, "_deviation")))


def _figure(run: TaskRun, name: str) -> Figure:
    low, high = (run.metrics.get(f"{name}{bound}") for bound in BOUNDS)
    undefined = run.undefined.get(name) or run.undefined.get(f"{name}_ci_low")
    reason = None if undefined is None else undefined.removeprefix("undefined (").removesuffix(")")
    return Figure(
        value=run.metrics[name],
        ci_low=low,
        ci_high=high,
        is_rough=low is not None and run.has_rough_intervals,
        higher_is_better=name not in run.about.lower_is_better,
        reason=reason,
    )


def _without_folders(signature: str) -> str:
    """Replace each path by its last part, so that no folder is published; hashes identify the weights."""
    return re.sub(r"(?<=:)(?:/|~/|\.{1,2}/)[^|\]]*?([^/|\]]+)/*(?=[|\]]|$)", r"\1", signature)
