"""Builds the leaderboard's folder from lm-eval's result files.

The descriptions of evaluators come from result files, scorers and bundled models; unknown fields stay empty.
"""

from __future__ import annotations

import logging
import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from os.path import relpath
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import quote

from safetensors import safe_open
from typing_extensions import TypedDict

from dialeval_plugin.core.dialogue import Level
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, read_json, to_json, write_together
from dialeval_plugin.core.resources import DISTRIBUTIONS, metrics_path
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.registry import describe_set
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import BOUNDS, COUNTS
from dialeval_plugin.hosts.lm_eval.tasks.documents import SCORER_MODEL
from dialeval_plugin.models.compact import DELTA_FILE, SCALES
from dialeval_plugin.models.folders import (
    PACKAGED_ENCODER,
    PRETRAINED,
    Licence,
    licence_of,
    model_identity,
    pretrained_names,
    resolve,
)
from dialeval_plugin.reports.scorer_cards import ScorerCard, scorer_card
from dialeval_plugin.terminal import for_markdown

from .board import Cell, Column, DataSet, Figure, Identity, Leaderboard, Method, Reference
from .evidence import EvaluatorRows, has_references, human_references, ranked
from .page import TITLE, render
from .result_files import TECHNICAL, read_runs, shortened
from .task_runs import Setup, TaskRun, check_one_scorer

logger = logging.getLogger(__name__)

JSON_FILE, CSV_FILE, MARKDOWN_FILE, PAGE_FILE = "leaderboard.json", "leaderboard.csv", "leaderboard.md", "index.html"
FILES = (JSON_FILE, CSV_FILE, MARKDOWN_FILE, PAGE_FILE)

_BASELINE_NAMES = {
    "always_breakdown_": "every turn called a breakdown",
    "_floor": "coin flips",
    "_ceiling": "what most people said",
}
"""Prefixes and suffixes of the baseline metrics that a task prints with the evaluator's own, and the names of the baselines."""
_REPLAYED = {"replay-judge", "replay_judge"}
_LEVEL = re.compile(r"(?:^|\|)level:(turn|dialogue)(?=\||$)")
_FIELD = r"\b{}\s*=\s*[{{\"](.*?)[}}\"]\s*(?:,\s*\w+\s*=|,?\s*\}}?\s*$)"


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
            # Each path becomes its last part, so that no folder is published; hashes identify the weights.
            signature=re.sub(r"(?<=:)(?:/|~/|\.{1,2}/)[^|\]]*?([^/|\]]+)/*(?=[|\]]|$)", r"\1", run.signature),
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


def identity_of(runs: Sequence[TaskRun]) -> Identity:
    """Return the description of an evaluator, from the runs of its cells, at least one."""
    newest = max(runs, key=lambda run: run.date)
    setup, card = newest.setup, _card(newest.setup)
    method, level = _method(setup, card), _LEVEL.search(newest.scorer_signature)
    model = next((name for name in pretrained_names() if _packaged_model(name).identity in newest.scorer_signature), "")
    packaged = _packaged_model(model) if model else None
    has_encoder = card is not None and "encoder" in card.needs and not {"encoder", "vectors"} & setup.arguments.keys()
    weights = packaged.n_parameters if packaged else _n_parameters(resolve(PACKAGED_ENCODER)) if has_encoder else None
    named = str(setup.arguments.get("pretrained", ""))
    citation = card.citation if card else ""
    title, url = (re.search(_FIELD.format(name), citation, re.DOTALL | re.MULTILINE) for name in ("title", "url"))
    return Identity(
        method=method,
        reads_references=_reads_references(setup, card, method),
        level=cast("Level", level[1]) if level and setup.model == SCORER_MODEL else None,
        n_parameters=0 if method == "rule" else setup.n_parameters or weights,
        licence=packaged.licence.terms if packaged and packaged.licence else "",
        commercial_use=packaged.licence.is_open if packaged and packaged.licence else None,
        about=card.summary if card else "",
        card=card.name if card and (metrics_path() / card.name / "README.md").is_file() else "",
        model_card=model,
        model_url=f"https://huggingface.co/{named}" if setup.is_on_hub and re.fullmatch(r"[\w.-]+/[\w.-]+", named) else "",
        paper=" ".join(re.sub(r"[{}]", "", title[1]).split()) if title else "",
        paper_url=url[1] if url else "",
        command=command([run.task for run in runs], setup),
    )


class _Passport(TypedDict):
    evaluators: list[_PassportEvaluator]


class _PassportEvaluator(TypedDict):
    signature: str | None


def with_passports(
    identities: Mapping[str, Identity], signatures: Mapping[str, str], files: Sequence[Path], folder: Path
) -> dict[str, Identity]:
    """Return identities with the addresses, relative to `folder`, of available passports; `signatures` are by evaluator.

    `files` are JSON files of `dialeval certify` next to their pages; InputError if one is invalid or belongs to no evaluator.
    """
    linked = dict(identities)
    for file in files:
        advice = "Give what `dialeval certify --output NAME.html --output NAME.json` wrote."
        of = checked(read_json(file), _Passport, str(file), advice=advice)["evaluators"]
        if not (page := file.with_suffix(".html")).is_file():
            raise InputError(f"{page}: there is no such page. {advice}")
        own = {one["signature"] for one in of}
        if not (names := [name for name, signature in signatures.items() if signature and signature in own]):
            raise InputError(f"{file}: no evaluator of the leaderboard has its signature. Certify what the leaderboard shows.")
        linked |= {name: replace(linked[name], passport=quote(relpath(page, folder))) for name in names}
    return linked


def command(tasks: Sequence[str], setup: Setup) -> str:
    """Return the command that repeats a run, with the last part of folder names, and without arguments on device or speed.

    Example:
        >>> print(command(["dbdc_yi"], Setup(model="hf", arguments={"pretrained": "/my/gpt2", "device": "cpu"})))
        dialeval lm-eval run --model hf --model_args pretrained=gpt2 --tasks dbdc_yi --log_samples --output_path results
    """
    arguments = ",".join(f"{name}={shortened(value)}" for name, value in setup.arguments.items() if name not in TECHNICAL)
    words = ["dialeval", "lm-eval", "run", "--model", setup.model, *(["--model_args", arguments] if arguments else [])]
    words += ["--tasks", ",".join(sorted(set(tasks)))]
    words += ["--apply_chat_template"] if setup.has_chat_template else []
    words += [] if setup.limit is None else ["--limit", f"{setup.limit:g}"]
    return shlex.join([*words, "--log_samples", "--output_path", "results"])


def _card(setup: Setup) -> ScorerCard | None:
    try:
        return scorer_card(str(setup.arguments["scorer"]))
    except (KeyError, InputError):
        # A language model, or a scorer of a package that is not installed.
        return None


def _method(setup: Setup, card: ScorerCard | None) -> Method | None:
    if _REPLAYED.intersection([setup.model, *map(str, (setup.arguments.get("llm"), setup.arguments.get("scorer")))]):
        return "replayed"
    if setup.model != SCORER_MODEL or "llm" in setup.arguments:
        return "prompted"
    if card is None or not (card.needs or card.declared_by in DISTRIBUTIONS):
        return None
    if "llm" in card.needs:
        return "prompted"
    has_weights = any(word in need for need in card.needs for word in ("model", "regression", "encoder"))
    return "trained" if has_weights or card.packaged_model else "rule"


def _reads_references(setup: Setup, card: ScorerCard | None, method: Method | None) -> bool | None:
    if method == "replayed":
        return None  # The prompt of a published judge is in its paper.
    if card is None:
        return False if method == "prompted" else None  # Prompts of our tasks never show references.
    if "references" in card.needs or setup.arguments.get("direction", "context_to_response") != "context_to_response":
        return True
    return False if card.declared_by in DISTRIBUTIONS else None


class _PackagedModel(NamedTuple):
    identity: str
    """Name and hash, as in signatures."""
    n_parameters: int | None
    licence: Licence | None


@cache
def _packaged_model(name: str) -> _PackagedModel:
    folder = PRETRAINED / name
    return _PackagedModel(model_identity(folder), _n_parameters(folder), licence_of(folder))


def _n_parameters(folder: Path) -> int | None:
    """Return the number of weights in a folder; weights stored as changes of the packaged encoder count with the encoder's."""
    number = 0
    for path in folder.glob("*.safetensors"):
        if path.name == DELTA_FILE:
            number += _n_parameters(resolve(PACKAGED_ENCODER)) or 0
            continue
        with safe_open(str(path), framework="np") as file:
            names = [name for name in file.keys() if not name.endswith(SCALES)]  # noqa: SIM118 - not iterable
            number += sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    return number or None
