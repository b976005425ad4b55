"""Reader of lm-eval's `results_*.json` and `samples_<task>_*.jsonl` for tasks of this package; lm-eval is not needed.

`read_runs(paths)` returns one `TaskRun` for each evaluator on each task, whole ones before parts, newest first. A task with
several scores (`slide`, `dre`, `convai_opinion`) gives one for each, its `variant`. With `--log_samples`, a run has one
`RatedRow` per rated response or dialogue, with its score, raters and dialogue; `RatedRow.document` reads the texts from the
file on request.

Layouts: `FOLDER/<model>/results_<date>.json` with the samples in the same folder; `NAME_<date>.json` with the samples in the
same folder, if `--output_path` ends in .json; and files uploaded by `--hf_hub_log_args`, whose results and samples may be in
different folders. The date, which lm-eval writes to the microsecond, connects results and samples.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from annotated_types import Ge, Interval
from typing_extensions import Required, TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, parse_json, read_text
from dialeval_plugin.core.redaction import redacted
from dialeval_plugin.core.scores import Reason
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import AGAIN, COUNTS, Undefined
from dialeval_plugin.hosts.lm_eval.tasks.documents import SCORER_MODEL
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS, TaskKind, by_plain_names, is_predicted_only
from dialeval_plugin.hosts.lm_eval.tasks.opinions import AGGREGATIONS
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Estimate

from . import result_names, task_runs
from .board import Cost
from .result_names import tell_apart

logger = logging.getLogger(__name__)

_DATE = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)$")
_OF_DOCUMENTS: tuple[TaskKind, ...] = ("rating", "rating_over_seeds", "classification", "breakdown")
"""Kinds of task whose items are single documents."""
NO_NUMBERS = {"NaN": None, "Infinity": None, "-Infinity": None}
"""lm-eval writes them if a task of another package has no number."""

_Count: TypeAlias = Annotated[int, Ge(0)]


class _Config(TypedDict, total=False):
    model: str | None
    model_args: dict[str, Any] | str | None
    model_num_parameters: int | None
    model_sha: str | None
    limit: float | None
    scorer: str | None
    scorer_signature: str | None
    scorer_unscored: dict[str, dict[str, _Count]]


class _Sizes(TypedDict, total=False):
    original: _Count
    effective: _Count


_OfTasks = TypedDict("_OfTasks", {"n-shot": dict[str, int | None], "n-samples": dict[str, _Sizes]}, total=False)


class _File(_OfTasks, total=False):
    results: Required[dict[str, dict[str, Any]]]
    configs: Required[dict[str, dict[str, Any] | None]]
    config: Required[_Config]
    date: Annotated[float, Interval(ge=0, le=253402300799)] | None
    versions: dict[str, str | float | None]
    task_hashes: dict[str, str]
    chat_template_sha: str | None
    system_instruction_sha: str | None


def read_runs(paths: Iterable[Path | str]) -> list[task_runs.TaskRun]:
    """Read all runs of this package's tasks from result files, samples files and folders.

    Whole runs come before those of a part of the set, so that a trial with `--limit` does not take a result's place; among
    both, the newest is first.

    All runs of a cell are returned, but copies of one run (to the Hub and back) only once. Tasks of other packages are left
    out, as are sets that were absent during the run. Raises InputError if a path does not exist, a file is damaged, samples
    have no results, or there is no run.
    """
    sources = [Path(path) for path in paths]
    results, samples = _find_files(sources)
    runs: dict[tuple[Any, ...], task_runs.TaskRun] = {}
    for path in results:
        for run in _read_results(path, samples):
            key = (run.date, run.model, run.task, run.about.variant)
            if key not in runs or (runs[key].outcomes is None and run.outcomes is not None):
                runs[key] = run
    if not runs:
        names = ", ".join(map(str, sources)) or "no path"
        raise InputError(
            f"{names}: no result of this package's tasks is there. Give what `dialeval lm-eval --output_path FOLDER "
            "--log_samples` wrote."
        )
    # Sorting is stable: variants of one run keep their order.
    return tell_apart(sorted(runs.values(), key=lambda run: (not run.is_partial, run.date), reverse=True))


def check_one_scorer(runs: Iterable[task_runs.TaskRun]) -> None:
    """Raise InputError if different scorers ran under one evaluator name, because their figures must not share it."""
    first_runs: dict[str, task_runs.TaskRun] = {}
    for run in runs:
        first = first_runs.setdefault(run.evaluator, run)
        if run.scorer_signature != first.scorer_signature:
            raise InputError(
                f"{run.path}: {run.evaluator!r} is another scorer than in {first.path}: its signature is "
                f"{run.scorer_signature!r}, and there it is {first.scorer_signature!r}. Leave one of the files out, or run its "
                "tasks again."
            )


def _find_files(sources: Sequence[Path]) -> tuple[Iterable[Path], Mapping[tuple[str, str], Path]]:
    """Return result files, and samples files by (task, date)."""
    results: dict[Path, None] = {}
    samples: dict[tuple[str, str], Path] = {}
    for path in sources:
        for file in _expanded(path):
            date = _DATE.search(file.stem)
            if file.suffix == ".jsonl":
                if date and file.stem.startswith("samples_"):
                    task = file.stem[len("samples_") : date.start()].rpartition("::")[2]
                    samples.setdefault((task, date[1]), file)
            elif date or file == path:
                results[file] = None
    dates = {date[1] for path in results if (date := _DATE.search(path.stem))}
    for (_, when), path in samples.items():
        if path in sources and when not in dates:
            raise InputError(f"{path}: the result file of this run, ..._{when}.json, is not there. Give it as well.")
    return results, samples


def _expanded(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.rglob("*_*.json*") if file.suffix in {".json", ".jsonl"} and file.is_file())
    elif not path.exists():
        raise InputError(f"{path}: there is no such file or folder.")
    else:
        yield path
        # Results and samples of a run belong together, also if only one of them was given.
        if date := _DATE.search(path.stem):
            yield from sorted(file for file in path.parent.glob(f"*_{date[1]}.json*") if file != path)


def _read_results(path: Path, samples: Mapping[tuple[str, str], Path]) -> list[task_runs.TaskRun]:
    file = parse_json(read_text(path), str(path), constants=NO_NUMBERS)
    for name in ("results", "configs", "config"):
        if not isinstance(file, dict) or not isinstance(file.get(name), dict):
            raise InputError(f"{path}: is not a result file of lm-eval: it has no {name!r}. Leave it out.")
    checked(file, _File, str(path), advice="Copy the file again.")
    file = by_plain_names(file)
    date = _DATE.search(path.stem)
    tables = {}
    for task in file["configs"]:
        samples_path = samples.get((task, date[1])) if date else None
        tables[task] = _Samples.read(samples_path) if samples_path else None
    n_requests = {task: table.n_requests for task, table in tables.items() if table}
    seconds = _number(file.get("total_evaluation_time_seconds"), f"{path}: total_evaluation_time_seconds", lowest=0)
    runs = []
    for task, table in tables.items():
        share = n_requests[task] / max(1, sum(n_requests.values())) if table and len(n_requests) == len(tables) else None
        share = 1.0 if len(tables) == 1 else share
        time = None if seconds is None or share is None else seconds * share
        runs += _Task(path, file, task, table, time).runs()
    if skipped := [task for task in tables if task not in {run.task for run in runs}]:
        logger.info("%s: %d tasks are not of this package, or their data was absent: %s", path, len(skipped), skipped)
    return runs


@dataclass(frozen=True, slots=True)
class _Samples:
    path: Path
    values: list[tuple[dict[str, Any], task_runs.Place]]
    n_requests: int
    n_characters: int

    @classmethod
    def read(cls, path: Path) -> _Samples:
        text = read_text(path)
        values, requests, characters, offset = [], 0, 0, 0
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                sample = parse_json(line, f"{path}:{number}", constants=NO_NUMBERS)
                if not isinstance(sample, dict) or not isinstance(sample.get("doc"), dict):
                    raise InputError(f"{path}:{number}: is not a sample of lm-eval: it has no 'doc'. Leave the file out.")
                requested = sample.pop("arguments", {})
                if not isinstance(requested, (dict, list)):
                    raise InputError(f"{path}:{number}: arguments: input should be an object. {AGAIN}")
                requests += len(requested)
                prompts = requested.values() if isinstance(requested, dict) else ()
                characters += sum(len(str(one.get("arg_0", ""))) for one in prompts if isinstance(one, dict))
                for name in ("resps", "filtered_resps", "metrics"):
                    sample.pop(name, None)
                values.append((sample, task_runs.Place(path, offset)))
            offset += len(line.encode()) + 1
        return cls(path, values, requests, characters)


@dataclass(frozen=True, slots=True)
class _Task:
    path: Path
    file: Mapping[str, Any]
    task: str
    samples: _Samples | None
    seconds: float | None

    def runs(self) -> list[task_runs.TaskRun]:
        values = {name.partition(",")[0]: value for name, value in self.file["results"].get(self.task, {}).items()}
        about = result_names.describe_task(
            self.task, (self.file["configs"].get(self.task) or {}).get("metadata"), str(self.path)
        )
        if about is not None and is_predicted_only(self.file["configs"][self.task]):
            logger.warning(
                "%s: %s: left out: --predict_only kept its answers and scored none. Run it again without.", self.path, self.task
            )
        if about is None or (mark := KINDS[about.kind].main) not in values:
            return []
        kind = about.kind
        outcomes = self._outcomes(kind, mark)
        if outcomes is None and kind not in _OF_DOCUMENTS:
            logger.warning(
                "%s: %s: left out: its items are known from its samples alone. Run with --log_samples.", self.path, self.task
            )
            return []
        of_variants = {about.variant: outcomes}
        if kind == "opinion" and outcomes is not None:
            has_products = all(one.is_share for one in outcomes)
            of_variants = {name: outcomes for name in AGGREGATIONS if has_products or name != "product"}
        elif kind == "rating" and outcomes:
            names = (about.variant, *(one.name for one in outcomes[0].variants))
            of_variants = {name: tuple(one.by(name) for one in outcomes) for name in names}
        figures = self._figures(values)
        runs = [self._run(about, name, figures if name == about.variant else {}, own) for name, own in of_variants.items()]
        if outcomes is not None:
            self._check_samples(kind, mark, figures, outcomes)
        return runs

    def _run(
        self, about: task_runs.TaskDescription, variant: str, printed: task_runs.Figures, outcomes: task_runs.Outcomes | None
    ) -> task_runs.TaskRun:
        config, kind, mark = self.file["config"], about.kind, KINDS[about.kind].main
        rows = None
        if outcomes is not None and kind not in task_runs.CLUSTER_AND_SCORE:
            rows = task_runs.rated_rows(self._marked(mark), outcomes, mark, variant, self._default_reason())
        sizes = self.file.get("n-samples", {}).get(self.task, {})
        if outcomes is not None:
            n_scored, n_unscored = KINDS[kind].counts(outcomes)
        else:
            n_scored = int(printed.get(COUNTS[0]) or 0)
            n_unscored = max(0, sizes.get("effective", n_scored) - n_scored)
        scorer_signature = self._scorer_signature()
        if config.get("model") == SCORER_MODEL and n_scored and not scorer_signature:
            raise InputError(
                f"{self.path}: {self.task}: has scores, but not the signature of the scorer that gave them: they may be "
                "another's, out of a cache of the host. Run the task again."
            )
        reasons = self._reasons(rows, n_unscored)
        document = self.samples.values[0][0]["doc"] if self.samples and self.samples.values else {}
        quality = about.quality if about.dataset == "fed" else document.get("quality") or about.quality
        evaluator = result_names.evaluator_of_run(self.file, self.task, about, variant)
        about = about._replace(variant=variant, level=about.level or document.get("level") or "", quality=quality)
        cost = Cost(seconds=self.seconds)
        if self.samples:
            cost = replace(cost, n_requests=self.samples.n_requests, n_prompt_characters=self.samples.n_characters)
        return task_runs.TaskRun(
            evaluator=evaluator,
            model=result_names.evaluator_name(config),
            about=about,
            task=self.task,
            version=str(self.file.get("versions", {}).get(self.task, "")),
            date=datetime.fromtimestamp(self.file.get("date") or 0.0, tz=timezone.utc),
            printed=printed,
            n_total=n_scored + n_unscored,
            n_scored=n_scored,
            unscored_by_reason={reason: number for reason, number in sorted(reasons.items()) if number},
            signature=result_names.run_signature(self.file, self.task, variant, quality, scorer_signature),
            scorer_signature=scorer_signature,
            setup=self._setup(about.method),
            is_partial=sizes.get("effective") != sizes.get("original"),
            cost=cost,
            rows=rows,
            outcomes=outcomes,
            path=self.path,
        )

    def _setup(self, method: str) -> task_runs.Setup:
        config = self.file["config"]
        return task_runs.Setup(
            model=redacted(config.get("model") or ""),
            arguments=result_names.model_arguments(config),
            # lm-eval writes -1 if it cannot count them.
            n_parameters=max(config.get("model_num_parameters") or 0, 0) or None,
            is_on_hub=bool(config.get("model_sha")),
            limit=config.get("limit"),
            has_chat_template=bool(self.file.get("chat_template_sha")),
            others=result_names.other_settings(self.file, self.task, method),
        )

    def _reasons(self, rows: Sequence[task_runs.RatedRow] | None, n_unscored: int) -> Mapping[str, int]:
        recorded: Mapping[str, int] = self.file["config"].get("scorer_unscored", {}).get(self.task, {})
        if sum(recorded.values()) == n_unscored:
            return recorded
        return {task_runs.UNKNOWN: n_unscored} if rows is None else Counter(row.unscored for row in rows if row.unscored)

    def _default_reason(self) -> str:
        """Return the reason for rows without a score and without a logged reason."""
        if self.file["config"].get("model") != SCORER_MODEL:
            # In multiple-choice prompts, no choice had a probability.
            return Reason.NON_FINITE.value
        recorded = list(self.file["config"].get("scorer_unscored", {}).get(self.task, {}))
        return recorded[0] if len(recorded) == 1 else task_runs.UNKNOWN

    def _scorer_signature(self) -> str:
        of_scorer = self.file["config"].get("scorer_signature")
        documents = [sample["doc"] for sample, _ in self.samples.values] if self.samples else []
        of_samples = sorted({str(document["signature"]) for document in documents if document.get("signature")})
        if len(of_samples) > 1:
            raise InputError(f"{self.path}: {self.task}: mixes samples of {of_samples[0]!r} and {of_samples[1]!r}. {AGAIN}")
        return of_scorer or next(iter(of_samples), "")

    def _marked(self, mark: str) -> list[tuple[dict[str, Any], task_runs.Place]]:
        """Return the samples that have the metric; placeholders for an absent set do not."""
        return [(sample, place) for sample, place in self.samples.values if mark in sample] if self.samples else []

    def _outcomes(self, kind: TaskKind, mark: str) -> task_runs.Outcomes | None:
        if self.samples is None:
            return None
        logged, path = [sample for sample, _ in self._marked(mark)], str(self.samples.path)
        checked([sample["doc"] for sample in logged], list[task_runs.SampleDocument], f"{path}: documents", advice=AGAIN)
        record = KINDS[kind].record
        outcomes = [sample[mark] for sample in logged]
        return tuple(checked(outcomes, list[record], f"{path}: {mark}", advice=AGAIN))  # type: ignore[valid-type]

    def _check_samples(self, kind: TaskKind, mark: str, printed: task_runs.Figures, outcomes: task_runs.Outcomes) -> None:
        """Raise InputError if the samples do not give the printed figures: cut, doubled, or of another run."""
        again: dict[str, Any] = {COUNTS[0]: KINDS[kind].counts(outcomes)[0]}
        if again[COUNTS[0]] == printed.get(COUNTS[0], again[COUNTS[0]]):
            value = KINDS[kind].estimates(outcomes, NO_RESAMPLES)[mark]
            again[mark] = value.value if isinstance(value, Estimate) else value
        for name, value in again.items():
            known, is_number = printed.get(name), isinstance(value, (int, float))
            if isinstance(known, float) and not (is_number and math.isclose(value, known, abs_tol=1e-6)):
                raise InputError(
                    f"{self.samples and self.samples.path}: holds samples of another run than {self.path}, or a part of them: "
                    f"{name} is {value}, expected {known:g}. Copy both files again, or run the task again."
                )

    def _figures(self, values: Mapping[str, Any]) -> dict[str, float | Undefined]:
        figures: dict[str, float | Undefined] = {}
        for name, value in values.items():
            if name not in {"alias", "name", "sample_len", "sample_count"} and not name.endswith("_stderr"):
                lowest, highest = (0, math.inf) if name.endswith(COUNTS) else (-1, 1)
                number = _number(value, f"{self.path}: results.{self.task}.{name}", lowest=lowest, highest=highest)
                figures[name] = Undefined(value) if number is None else number
        return figures


def _number(value: Any, where: str, *, lowest: float, highest: float = math.inf) -> float | None:
    """Return a finite number, also from text; None for "N/A", "undefined (...)", an empty value and NaN."""
    if isinstance(value, bool):
        raise InputError(f"{where}: is {value!r}, which is no number. Copy the file again.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if not math.isfinite(number):
        return None
    if not lowest <= number <= highest:
        ends = f"from {lowest:g}" + (f" to {highest:g}" if math.isfinite(highest) else "")
        raise InputError(f"{where}: is {number:g}, expected a number {ends}. Copy the file again.")
    return number
