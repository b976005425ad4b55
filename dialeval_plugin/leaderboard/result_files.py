"""Reads what lm-eval wrote: `results_*.json` and `samples_<task>_*.jsonl` of this package's tasks, without lm-eval.

`read_runs(paths)` returns one `TaskRun` for each evaluator on each task, newest first. A task that scores in several ways at
once (`slide`, `dre`, `convai_opinion`) gives one for each way, its `variant`. The rows of a run are there where the host was
told to `--log_samples`: one `RatedRow` a rated response or dialogue, with its score, the raters and its dialogue; the texts are
read from the file when they are asked for (`RatedRow.document`).

Layouts: `FOLDER/<model>/results_<date>.json` with the samples beside it; `NAME_<date>.json` with the samples beside it, where
`--output_path` ends in .json; and what `--hf_hub_log_args` put on the Hub, where results and samples may lie in folders of
different names. Results and samples belong together by their date, which the host writes to the microsecond. Files of every
release since 0.1.0 load (`tests/historic_results/`): where an older file does not say something, the field is empty.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast

from annotated_types import Ge, Interval
from typing_extensions import Required, TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, parse_json, read_text
from dialeval_plugin.core.scores import Reason
from dialeval_plugin.core.signature import Signature, Value, text_hash
from dialeval_plugin.judgement_tasks.corpus_metrics import COUNTS, Undefined
from dialeval_plugin.judgement_tasks.kinds import KINDS, MAIN, TaskKind
from dialeval_plugin.judgement_tasks.opinions import AGGREGATIONS, Opinion, dialogue_opinions
from dialeval_plugin.judgement_tasks.ratings import COEFFICIENTS
from dialeval_plugin.statistics.bootstrap import MIN_CLUSTERS, ROUGH_CLUSTERS

from .result_names import TaskDescription, describe_task, evaluator_name, model_arguments

logger = logging.getLogger(__name__)

Kind: TypeAlias = Literal["rating", "classification", "preference", "breakdown"]
Metrics: TypeAlias = Mapping[str, float | None]
Figures: TypeAlias = Mapping[str, float | Undefined]

Outcomes: TypeAlias = tuple[Any, ...]
"""The records of a run's documents, one an item; see `judgement_tasks.kinds`."""

UNKNOWN = "unknown"
"""Reason of an unscored row where the file does not say why."""

_DATE = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)$")
_SUFFIXES = ("", "_ci_low", "_ci_high", "_deviation")
# In files of 0.1.0, a metric of each kind of task that no other kind has.
_MARKS: Mapping[str, TaskKind] = {"relevance_cont2cat": "preference", "accuracy_overall": "classification", "f1_b": "breakdown"}
_RATING_METRICS = tuple(f"{name}{suffix}" for name in COEFFICIENTS for suffix in _SUFFIXES)
_ALL_OF_RATINGS = (*_RATING_METRICS, *COUNTS)
_OF_DOCUMENTS: tuple[TaskKind, ...] = ("rating", "rating_over_seeds", "classification", "breakdown")
"""Kinds of task whose items are single documents."""
_PLACES: Mapping[Kind, tuple[int, int]] = {"classification": (2, 1), "breakdown": (2, 0), "preference": (0, 2)}
"""Where cluster and score stand in the outcomes of each kind that has no rows."""
_SETTINGS = ("model_sha", "model_revision", "model_dtype", "gen_kwargs", "limit", "random_seed", "fewshot_seed")


_AGAIN = "Run the task again."
_NO_NUMBERS = {"NaN": None, "Infinity": None, "-Infinity": None}
"""The host writes them where a foreign task has no number."""

_Count: TypeAlias = Annotated[int, Ge(0)]


class _Config(TypedDict, total=False):
    model: str | None
    model_args: dict[str, Any] | str | None
    scorer: str | None
    scorer_signature: str | None
    scorer_unscored: dict[str, dict[str, _Count]]


class _Sizes(TypedDict, total=False):
    original: _Count
    effective: _Count


_OfTasks = TypedDict("_OfTasks", {"n-shot": dict[str, int | None], "n-samples": dict[str, _Sizes]}, total=False)


class _File(_OfTasks, total=False):
    """What is read of a result file."""

    results: Required[dict[str, dict[str, Any]]]
    configs: Required[dict[str, Any]]
    config: Required[_Config]
    date: Annotated[float, Interval(ge=0, le=253402300799)] | None
    versions: dict[str, str | float | None]
    task_hashes: dict[str, str]
    chat_template_sha: str | None
    system_instruction_sha: str | None


class _Turn(TypedDict, total=False):
    text: Required[str]
    speaker: str | None


class _Document(TypedDict, total=False):
    """What is read of a task's document, beside what `_row` demands."""

    id: Required[str]
    level: str
    context: list[_Turn] | None
    response: _Turn | None
    turns: list[_Turn] | None
    references: list[str] | None
    facts: list[str] | None
    system: str | None
    raters: list[float] | None
    cluster: str | None
    dialogue: str
    quality: str | None
    signature: str | None


class Place(NamedTuple):
    """Where a sample stands."""

    path: Path
    offset: int
    """Bytes before its line."""


@dataclass(frozen=True, slots=True)
class RatedRow:
    """One rated response or dialogue."""

    id: str
    cluster: str
    """Of its dialogue: rows that share it are resampled together."""
    item: str
    """Of its context: the same for all systems' responses to it."""
    system: str | None
    score: float | None
    unscored: str | None
    """Why it is: a value of `scores.Reason`, or `UNKNOWN`; None where it has a score."""
    rating: float
    ratings: tuple[float, ...]
    """Each rater's answer; () in files that do not tell."""
    response_words: int
    """Words of the response; of the whole dialogue where that was rated."""
    context_words: int
    seed: int | None
    """Of the few-shot examples, in a task that runs with several; the same id then occurs once for each."""
    place: Place = field(repr=False)

    def document(self) -> dict[str, Any]:
        """Read the task's document: context, response, references, facts or turns, as `judgement_tasks.documents` writes them.

        Raises:
            InputError: the file is gone or has changed since the run was read.
        """
        try:
            with self.place.path.open("rb") as file:
                file.seek(self.place.offset)
                document = parse_json(file.readline().decode("utf-8"), str(self.place.path))["doc"]
            return dict(checked(document, _Document, str(self.place.path), advice=_AGAIN))
        except (OSError, ValueError, KeyError, TypeError, InputError) as error:
            raise InputError(f"{self.place.path}: has changed since it was read. Read the run again.") from error


@dataclass(frozen=True)
class TaskRun:
    """What one evaluator did on one task, once."""

    evaluator: str
    """What ran, with everything that tells it from others: model or scorer, arguments, method, examples, template."""
    model: str
    """The language model or scorer with its arguments."""
    method: str
    """How its answers became scores: the task's group, or the scorer where that ran itself."""
    variant: str
    """Which of the task's scores this is, as "in_dre"; "" where the task has one."""
    task: str
    version: str
    dataset: str
    level: str
    quality: str
    kind: Kind
    date: datetime
    """When the run started, in UTC."""
    printed: Figures
    """The metrics that the run printed of this variant."""
    lower_is_better: tuple[str, ...]
    n_total: int
    n_scored: int
    n_unscored: int
    unscored_by_reason: Mapping[str, int]
    signature: str
    """Everything in the file that can move a number."""
    scorer_signature: str
    """The part of it that the scorer, or the task's own small model, wrote; "" where there is none."""
    is_partial: bool
    """Whether the host was told to run a part of the documents only."""
    seconds: float | None
    """The time of the whole run, shared out among its tasks by their requests."""
    n_requests: int | None
    n_prompt_characters: int | None
    settings: Mapping[str, Any]
    rows: tuple[RatedRow, ...] | None
    """In file order; None where the samples are not there, or where the task compares or classifies (see `outcomes`)."""
    outcomes: Outcomes | None
    """What the task's own aggregations take, one an item; None where the samples are not there."""
    path: Path
    recomputed: TaskKind | None
    """The kind of task whose metrics are computed of `outcomes`; None where the run printed all that there are, as in 0.1.0."""

    @cached_property
    def _figures(self) -> Figures:
        if self.recomputed is None or self.outcomes is None:
            return self.printed
        found = KINDS[self.recomputed].values(self.outcomes)
        if self.recomputed == "opinion":
            names = {f"{self.variant}_{name}".removeprefix("_"): name for name in _RATING_METRICS}
            found = {names.get(name, name): value for name, value in found.items() if name in names or name in COUNTS}
        return {**found, **self.printed}

    @property
    def metrics(self) -> Metrics:
        """Every metric of this variant, as the task's own aggregations compute it; None where undefined.

        Without samples those that the run printed.
        """
        return {name: None if isinstance(value, str) else value for name, value in self._figures.items()}

    @property
    def undefined(self) -> Mapping[str, str]:
        """Why a metric is None."""
        return {name: str(value) for name, value in self._figures.items() if isinstance(value, str)}

    @property
    def n_clusters(self) -> int | None:
        """Dialogues with a scored row, which the intervals resample; None where the samples are not there."""
        if self.rows is not None:
            return len({row.cluster for row in self.rows if row.score is not None})
        if self.outcomes is None:
            return None
        cluster, score = _PLACES[self.kind]
        return len({item[cluster] for item in self.outcomes if item[score] is not None})

    @property
    def has_rough_intervals(self) -> bool:
        """Whether its intervals rest on few dialogues; see `bootstrap.Estimate`."""
        return self.n_clusters is not None and MIN_CLUSTERS <= self.n_clusters < ROUGH_CLUSTERS

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """Evaluator, data, level and quality: what makes two runs repetitions of each other."""
        return self.evaluator, self.dataset, self.level, self.quality


def read_runs(paths: Iterable[Path | str]) -> list[TaskRun]:
    """Read all runs of this package's tasks from result files, samples files and folders, newest first.

    Several runs of one cell are all there. A run that was copied (to the Hub and back) counts once. Tasks of others in the
    same file are left out, as are sets that were absent when the run was made.

    Raises:
        InputError: a path is not there, a file is damaged, samples have no results, or there is no run at all.
    """
    given = [Path(path) for path in paths]
    results, samples = _find_files(given)
    runs: dict[tuple[Any, ...], TaskRun] = {}
    for path in results:
        for run in _read_results(path, samples):
            key = (run.date, run.model, run.task, run.variant)
            if key not in runs or (runs[key].outcomes is None and run.outcomes is not None):
                runs[key] = run
    if not runs:
        shown = ", ".join(map(str, given)) or "no path"
        raise InputError(
            f"{shown}: no result of this package's tasks is there. Give what `dialeval lm-eval --output_path FOLDER "
            "--log_samples` wrote."
        )
    # Sorting is stable: what one run printed stays in its order.
    return sorted(runs.values(), key=lambda run: run.date, reverse=True)


def check_one_scorer(runs: Iterable[TaskRun]) -> None:
    """Refuse runs of one evaluator that were made by different scorers: their figures are not to stand under one name."""
    found: dict[str, TaskRun] = {}
    for run in runs:
        first = found.setdefault(run.evaluator, run)
        if run.scorer_signature != first.scorer_signature:
            raise InputError(
                f"{run.path}: {run.evaluator!r} is another scorer than in {first.path}: its signature is "
                f"{run.scorer_signature!r}, and there it is {first.scorer_signature!r}. Leave one of the files out, or run its "
                "tasks again."
            )


def _find_files(given: Sequence[Path]) -> tuple[Iterable[Path], Mapping[tuple[str, str], Path]]:
    """Result files, and samples files by (task, date)."""
    results: dict[Path, None] = {}
    samples: dict[tuple[str, str], Path] = {}
    for path in given:
        for found in _expanded(path):
            date = _DATE.search(found.stem)
            if found.suffix == ".jsonl":
                if date and found.stem.startswith("samples_"):
                    samples.setdefault((found.stem[len("samples_") : date.start()], date[1]), found)
            elif date or found == path:
                results[found] = None
    dates = {date[1] for path in results if (date := _DATE.search(path.stem))}
    for (_, when), path in samples.items():
        if path in given and when not in dates:
            raise InputError(f"{path}: the result file of this run, ..._{when}.json, is not there. Give it as well.")
    return results, samples


def _expanded(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(found for found in path.rglob("*_*.json*") if found.suffix in {".json", ".jsonl"} and found.is_file())
    elif not path.exists():
        raise InputError(f"{path}: there is no such file or folder.")
    else:
        yield path
        # The other half of a run that is named by one of its files.
        if date := _DATE.search(path.stem):
            yield from sorted(found for found in path.parent.glob(f"*_{date[1]}.json*") if found != path)


def _read_results(path: Path, samples: Mapping[tuple[str, str], Path]) -> list[TaskRun]:
    file = parse_json(read_text(path), str(path), constants=_NO_NUMBERS)
    for name in ("results", "configs", "config"):
        if not isinstance(file, dict) or not isinstance(file.get(name), dict):
            raise InputError(f"{path}: is not a result file of lm-eval: it has no {name!r}. Leave it out.")
    checked(file, _File, str(path), advice="Copy the file again.")
    date = _DATE.search(path.stem)
    tables = {}
    for task in file["configs"]:
        found = samples.get((task, date[1])) if date else None
        tables[task] = _Samples.read(found) if found else None
    n_requests = {task: table.n_requests for task, table in tables.items() if table}
    seconds = _number(file.get("total_evaluation_time_seconds"), f"{path}: total_evaluation_time_seconds", lowest=0)
    runs = []
    for task, table in tables.items():
        share = n_requests[task] / sum(n_requests.values()) if table and len(n_requests) == len(tables) else None
        share = 1.0 if len(tables) == 1 else share
        time = None if seconds is None or share is None else seconds * share
        runs += _Task(path, file, task, table, time).runs()
    if skipped := [task for task in tables if task not in {run.task for run in runs}]:
        logger.info("%s: %d tasks are not of this package, or their data was absent: %s", path, len(skipped), skipped)
    return runs


@dataclass(frozen=True, slots=True)
class _Samples:
    path: Path
    values: tuple[dict[str, Any], ...]
    offsets: tuple[int, ...]
    n_requests: int
    n_characters: int

    @classmethod
    def read(cls, path: Path) -> _Samples:
        text = read_text(path)
        values, offsets, requests, characters, offset = [], [], 0, 0, 0
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                sample = parse_json(line, f"{path}:{number}", constants=_NO_NUMBERS)
                if not isinstance(sample, dict) or not isinstance(sample.get("doc"), dict):
                    raise InputError(f"{path}:{number}: is not a sample of lm-eval: it has no 'doc'. Leave the file out.")
                asked = sample.pop("arguments", {})
                if not isinstance(asked, (dict, list)):
                    raise InputError(f"{path}:{number}: arguments: input should be an object. {_AGAIN}")
                requests += len(asked)
                prompts = asked.values() if isinstance(asked, dict) else ()
                characters += sum(len(str(given.get("arg_0", ""))) for given in prompts if isinstance(given, dict))
                for name in ("resps", "filtered_resps", "metrics"):
                    sample.pop(name, None)
                values.append(sample)
                offsets.append(offset)
            offset += len(line.encode()) + 1
        return cls(path, tuple(values), tuple(offsets), requests, characters)


@dataclass(frozen=True, slots=True)
class _Task:
    path: Path
    file: Mapping[str, Any]
    task: str
    samples: _Samples | None
    seconds: float | None

    def runs(self) -> list[TaskRun]:
        values = {name.partition(",")[0]: value for name, value in self.file["results"].get(self.task, {}).items()}
        about = describe_task(self.task, (self.file["configs"].get(self.task) or {}).get("metadata"), str(self.path))
        if about.kind is None:
            return self._historic(about, values)
        if MAIN[about.kind] not in values:
            return []
        outcomes = self._outcomes(about.kind, MAIN[about.kind])
        if outcomes is None and about.kind not in _OF_DOCUMENTS:
            logger.warning(
                "%s: %s: left out: its items are known from its samples alone. Run with --log_samples.", self.path, self.task
            )
            return []
        names = [about.variant]
        if about.kind == "opinion":
            names = list(AGGREGATIONS)
        elif about.kind == "rating" and outcomes:
            names += [one.name for one in outcomes[0].variants]
        return [
            self._run(about, about.kind, name, values if name == about.variant else {}, outcomes, MAIN[about.kind])
            for name in names
        ]

    def _historic(self, about: TaskDescription, values: Mapping[str, Any]) -> list[TaskRun]:
        """The runs of a task of 0.1.0, which printed the metrics of all of its variants."""
        mark = next((mark for mark in _MARKS if mark in values), None)
        if mark is not None:
            kind = _MARKS[mark]
            return [self._run(about, kind, "", values, self._outcomes(kind, mark), mark)] if COUNTS[0] in values else []
        runs = []
        for prefix in [name.removesuffix("spearman") for name in values if name.endswith("spearman")]:
            mark, counts = f"{prefix}spearman", {name: values[name] for name in COUNTS if name in values}
            own = {f"{prefix}{name}": values[f"{prefix}{name}"] for name in _ALL_OF_RATINGS if f"{prefix}{name}" in values}
            if f"{prefix}n_scored" in own or counts:
                kind = self._kind_of_samples(mark)
                variant = prefix.rstrip("_")
                runs.append(self._run(about, kind, variant, counts | own, self._outcomes(kind, mark), mark, prefix))
        return runs

    def _run(
        self,
        about: TaskDescription,
        kind: TaskKind,
        variant: str,
        values: Mapping[str, Any],
        outcomes: Outcomes | None,
        mark: str,
        prefix: str = "",
    ) -> TaskRun:
        config, is_historic = self.file["config"], about.kind is None
        printed = {
            name.removeprefix(prefix): value for name, value in _printed(values, f"{self.path}: results.{self.task}").items()
        }
        if outcomes is not None and kind == "rating" and not is_historic:
            outcomes = tuple(one.by(variant) for one in outcomes)
        rows = self._rows(outcomes, mark, variant) if kind in {"rating", "rating_over_seeds", "opinion"} else None
        level, quality = self._of_documents(about)
        sizes = self.file.get("n-samples", {}).get(self.task, {})
        if is_historic:
            n_scored, n_unscored = (int(printed.get(count) or 0) for count in COUNTS)
        elif outcomes is not None:
            n_scored, n_unscored = KINDS[kind].counts(outcomes)
        else:
            n_scored = int(printed.get(COUNTS[0]) or 0)
            n_unscored = max(0, sizes.get("effective", n_scored) - n_scored)
        scorer_signature = self._scorer_signature()
        if config.get("model") == "dialogue-metric" and n_scored and not scorer_signature:
            raise InputError(
                f"{self.path}: {self.task}: has scores, but not the signature of the scorer that gave them: they may be "
                "another's, out of a cache of the host. Run the task again."
            )
        reasons = self._reasons(rows, n_unscored)
        evaluator, method = self._evaluator(about, variant)
        settings = self._settings(variant)
        return TaskRun(
            evaluator=evaluator,
            model=evaluator_name(config),
            method=method,
            variant=variant,
            task=self.task,
            version=str(self.file.get("versions", {}).get(self.task, "")),
            dataset=about.dataset,
            level=level,
            quality=quality,
            kind=cast("Kind", kind if kind in _PLACES else "rating"),
            date=datetime.fromtimestamp(self.file.get("date") or 0.0, tz=timezone.utc),
            printed=printed,
            lower_is_better=about.lower_is_better,
            n_total=n_scored + n_unscored,
            n_scored=n_scored,
            n_unscored=n_unscored,
            unscored_by_reason={reason: number for reason, number in sorted(reasons.items()) if number},
            signature=self._signature(quality, settings, scorer_signature),
            scorer_signature=scorer_signature,
            is_partial=sizes.get("effective") != sizes.get("original"),
            seconds=self.seconds,
            n_requests=self.samples.n_requests if self.samples else None,
            n_prompt_characters=self.samples.n_characters if self.samples else None,
            settings=settings,
            rows=rows,
            outcomes=outcomes,
            path=self.path,
            recomputed=None if is_historic else kind,
        )

    def _reasons(self, rows: Sequence[RatedRow] | None, n_unscored: int) -> Mapping[str, int]:
        recorded: Mapping[str, int] = self.file["config"].get("scorer_unscored", {}).get(self.task, {})
        if sum(recorded.values()) == n_unscored:
            return recorded
        return Counter(row.unscored for row in rows if row.unscored) if rows is not None else Counter({UNKNOWN: n_unscored})

    def _default_reason(self) -> str:
        """Why a row without a logged reason has no score."""
        if self.file["config"].get("model") != "dialogue-metric":
            # A prompt that was answered by choice: no choice had a probability.
            return Reason.NON_FINITE.value
        recorded = list(self.file["config"].get("scorer_unscored", {}).get(self.task, {}))
        return recorded[0] if len(recorded) == 1 else UNKNOWN

    def _evaluator(self, name: TaskDescription, variant: str) -> tuple[str, str]:
        """Evaluator and method. A scorer does not see the prompt, so its own name is all that tells it from others."""
        config = self.file["config"]
        model = evaluator_name(config)
        if config.get("model") == "dialogue-metric":
            return (f"{model}, {variant}" if variant else model), str(config.get("scorer") or model)
        shots = self.file.get("n-shot", {}).get(self.task) or 0
        parts = [
            model,
            name.method,
            variant if variant != name.method else "",
            f"{shots} examples" if shots else "",
            "chat template" if self.file.get("chat_template_sha") else "",
            "system instruction" if self.file.get("system_instruction_sha") else "",
        ]
        return ", ".join(filter(None, parts)), name.method

    def _settings(self, variant: str) -> dict[str, Any]:
        config = self.file["config"]
        return {
            "model": config.get("model"),
            **model_arguments(config),
            "variant": variant or None,
            "n_shot": self.file.get("n-shot", {}).get(self.task),
            **{name: config.get(name) for name in _SETTINGS},
            "chat_template_sha": self.file.get("chat_template_sha"),
            "system_instruction_sha": self.file.get("system_instruction_sha"),
            "fewshot_as_multiturn": self.file.get("fewshot_as_multiturn"),
            "task_hash": self.file.get("task_hashes", {}).get(self.task),
            "lm_eval_version": self.file.get("lm_eval_version"),
            "transformers_version": self.file.get("transformers_version"),
        }

    def _signature(self, quality: str, settings: Mapping[str, Any], inner: str) -> str:
        version = self.file.get("versions", {}).get(self.task)
        fields: dict[str, Value] = {"task": self.task, "version": version, "quality": quality or None}
        fields |= {name: value if value is None else str(value) for name, value in settings.items() if value != {}}
        return str(Signature(fields)) + (f"|[{inner}]" if inner else "")

    def _scorer_signature(self) -> str:
        of_scorer = self.file["config"].get("scorer_signature")
        documents = [sample["doc"] for sample in self.samples.values] if self.samples else []
        of_samples = sorted({str(document["signature"]) for document in documents if document.get("signature")})
        if len(of_samples) > 1:
            raise InputError(f"{self.path}: {self.task}: mixes samples of {of_samples[0]!r} and {of_samples[1]!r}. {_AGAIN}")
        return of_scorer or next(iter(of_samples), "")

    def _of_documents(self, name: TaskDescription) -> tuple[str, str]:
        """Level and quality, from the documents where they say so."""
        document = self.samples.values[0]["doc"] if self.samples and self.samples.values else {}
        level = name.level or document.get("level") or ""
        return level, name.quality if name.dataset == "fed" else document.get("quality") or name.quality

    def _marked(self, mark: str) -> list[tuple[dict[str, Any], Place]]:
        """The samples that have the metric, which a placeholder for an absent set has not."""
        table = self.samples
        places = zip(table.values, table.offsets, strict=True) if table else ()
        return [(sample, Place(table.path, offset)) for sample, offset in places if table and mark in sample]

    def _outcomes(self, kind: TaskKind, mark: str) -> Outcomes | None:
        if self.samples is None:
            return None
        found, path = [sample for sample, _ in self._marked(mark)], str(self.samples.path)
        checked([sample["doc"] for sample in found], list[_Document], f"{path}: documents", advice=_AGAIN)
        record = KINDS[kind].record
        outcomes = [sample[mark] for sample in found]
        checked(outcomes, cast("type[list[Any]]", list[record]), f"{path}: {mark}", advice=_AGAIN)  # type: ignore[valid-type]
        return tuple(KINDS[kind].record_of(outcome) for outcome in outcomes)

    def _kind_of_samples(self, mark: str) -> TaskKind:
        """Of a task of 0.1.0 over ratings."""
        sample = next((sample for sample, _ in self._marked(mark)), None)
        if sample is None:
            return "rating"
        if "n_words" in sample["doc"]:
            return "opinion"
        judged = sample[mark]
        return "rating_over_seeds" if isinstance(judged, list) and judged[2:3] and isinstance(judged[2], int) else "rating"

    def _rows(self, outcomes: Outcomes | None, mark: str, variant: str) -> tuple[RatedRow, ...] | None:
        if outcomes is None:
            return None
        found = self._marked(mark)
        if outcomes and isinstance(outcomes[0], Opinion):
            return _opinion_rows(found, outcomes, variant)
        return tuple(
            _row(sample, place, mark, outcome, _why(sample, variant) or self._default_reason())
            for (sample, place), outcome in zip(found, outcomes, strict=True)
        )


def _row(sample: Mapping[str, Any], place: Place, mark: str, outcome: Any, reason: str) -> RatedRow:
    document = sample["doc"]
    try:
        return RatedRow(
            id=document["id"],
            cluster=document["cluster"],
            item=text_hash(*(turn["text"] for turn in document["context"])) if document["context"] else document["id"],
            system=document.get("system"),
            score=outcome.score,
            unscored=(outcome.unscored or reason) if outcome.score is None else None,
            rating=float(outcome.rating),
            ratings=tuple(document.get("raters") or ()),
            response_words=_words([document["response"] or {}] if document["level"] == "turn" else document["turns"]),
            context_words=_words(document["context"]),
            seed=getattr(outcome, "seed", None),
            place=place,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{place.path}: sample {sample.get('doc_id')}: {mark} or its document is not as this package's tasks write them "
            f"({error!r}). Run the task again."
        ) from error


def _opinion_rows(found: Sequence[tuple[Mapping[str, Any], Place]], outcomes: Outcomes, variant: str) -> tuple[RatedRow, ...]:
    """One row a dialogue: its turns are joined as the task's own aggregation joins them."""
    last = {sample["doc"]["dialogue"]: (sample["doc"], place) for sample, place in found}
    rows = []
    for opinion in dialogue_opinions(outcomes):
        document, place = last[opinion.dialogue]
        scores = opinion.scores
        rows.append(
            RatedRow(
                id=opinion.dialogue,
                cluster=opinion.dialogue,
                item=opinion.dialogue,
                system=document.get("system"),
                score=None if scores is None else scores[AGGREGATIONS[variant]],
                unscored=Reason.NON_FINITE.value if scores is None else None,
                rating=opinion.rating,
                ratings=tuple(document.get("raters") or ()),
                response_words=_words([*document["context"], document["response"]]),
                context_words=0,
                seed=None,
                place=place,
            )
        )
    return tuple(rows)


def _why(sample: Mapping[str, Any], variant: str) -> str | None:
    """The logged reason: the variant's own, else the first that the sample has, else None."""
    names = [name for name in sample if name.endswith("_unscored") and not name.endswith("n_unscored")]
    for name in sorted(names, key=lambda name: name != f"{variant}_unscored"):
        if isinstance(sample[name], list) and sample[name]:
            return str(sample[name][0])
    return None


def _words(turns: Iterable[Mapping[str, Any]]) -> int:
    return sum(len(str(turn.get("text", "")).split()) for turn in turns)


def _printed(values: Mapping[str, Any], where: str) -> dict[str, float | Undefined]:
    """The host's values of metrics, without its own columns."""
    found: dict[str, float | Undefined] = {}
    for name, value in values.items():
        if name not in {"alias", "name", "sample_len", "sample_count"} and not name.endswith("_stderr"):
            number = _number(
                value, f"{where}.{name}", **({"lowest": 0} if name.endswith(COUNTS) else {"lowest": -1, "highest": 1})
            )
            found[name] = Undefined(value) if number is None else number
    return found


def _number(value: Any, where: str, *, lowest: float, highest: float = math.inf) -> float | None:
    """A finite number, which the host may have written as text; None for "N/A", "undefined (...)", an empty value and NaN."""
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
