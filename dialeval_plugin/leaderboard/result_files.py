"""Reader of lm-eval's `results_*.json` and `samples_<task>_*.jsonl` for tasks of this package; lm-eval is not needed.

`read_runs(paths)` returns one `TaskRun` for each evaluator on each task, whole ones before parts, newest first. A task with
several scores (`slide`, `dre`, `convai_opinion`) gives one for each, its `variant`. With `--log_samples`, a run has one
`RatedRow` per rated response or dialogue, with its score, raters and dialogue; `RatedRow.document` reads the texts from the
file on request.

Layouts: `FOLDER/<model>/results_<date>.json` with the samples in the same folder; `NAME_<date>.json` with the samples in the
same folder, if `--output_path` ends in .json; and files uploaded by `--hf_hub_log_args`, whose results and samples may be in
different folders. The date, which lm-eval writes to the microsecond, connects results and samples.

If different evaluators share a short name, both names get longer: more of the path of folders, and other settings in brackets.
The signature identifies a scorer, so its name does not depend on the folder of its model.
"""

from __future__ import annotations

import logging
import math
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from annotated_types import Ge, Interval
from typing_extensions import Required, TypedDict

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.files import checked, parse_json, read_text
from dialeval_plugin.core.redaction import redacted, without_secrets
from dialeval_plugin.core.scores import Reason
from dialeval_plugin.core.signature import Signature, SignatureValue, text_hash
from dialeval_plugin.hosts.lm_eval.tasks.corpus_metrics import AGAIN, COUNTS, Undefined
from dialeval_plugin.hosts.lm_eval.tasks.documents import DEFAULT_SCORER, SCORER_MODEL
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS, TaskKind
from dialeval_plugin.hosts.lm_eval.tasks.opinions import AGGREGATIONS
from dialeval_plugin.hosts.lm_eval.versions import by_plain_names, is_predicted_only
from dialeval_plugin.statistics.bootstrap import NO_RESAMPLES, Estimate

from .board import Cost
from .task_runs import (
    CLUSTER_AND_SCORE,
    UNKNOWN,
    Figures,
    Outcomes,
    Place,
    RatedRow,
    SampleDocument,
    Setup,
    TaskDescription,
    TaskRun,
    rated_rows,
)

MODEL_NAMES = ("peft", "delta", "pretrained", "model", "path", "engine")

TECHNICAL = {
    *("answers", "base_url", "batch_size", "device", "device_map", "gpu_memory_utilization", "max_batch_size", "max_retries"),
    *("num_concurrent", "parallelize", "tensor_parallel_size", "timeout", "tokenized_requests", "trust_remote_code"),
    "verify_certificate",
}
"""Arguments that affect where and how fast a model runs, but not its output."""
_SETTINGS = ("model_sha", "model_revision", "model_dtype", "gen_kwargs", "limit", "random_seed", "fewshot_seed")
_OF_TASKS = ("version", "config_source", "dialeval", "rated_quality")
"""Fields of a task's metadata that do not describe the evaluator."""
_OF_SMALL_MODELS = ("slm", "fusion", "slm_scale", "clip", "round3", "normalise", "eq26", "clamp")
"""Options of tasks that have a small model; they have no effect on others."""
_LONGEST_SETTING = 60
_NUMBER = re.compile(r"[-+]?[\d.]+(?:e[-+]?\d+)?")
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


def read_runs(paths: Iterable[Path | str]) -> list[TaskRun]:
    """Read all runs of this package's tasks from result files, samples files and folders.

    Whole runs come before those of a part of the set, so that a trial with `--limit` does not take a result's place; among
    both, the newest is first.

    All runs of a cell are returned, but copies of one run (to the Hub and back) only once. Tasks of other packages are left
    out, as are sets that were absent during the run. Raises InputError if a path does not exist, a file is damaged, samples
    have no results, or there is no run.
    """
    sources = [Path(path) for path in paths]
    results, samples = _find_files(sources)
    runs: dict[tuple[Any, ...], TaskRun] = {}
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


def _read_results(path: Path, samples: Mapping[tuple[str, str], Path]) -> list[TaskRun]:
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
    values: list[tuple[dict[str, Any], Place]]
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
                values.append((sample, Place(path, offset)))
            offset += len(line.encode()) + 1
        return cls(path, values, requests, characters)


@dataclass(frozen=True, slots=True)
class _Task:
    path: Path
    file: Mapping[str, Any]
    task: str
    samples: _Samples | None
    seconds: float | None

    @property
    def config(self) -> Mapping[str, Any]:
        return dict(self.file["config"])

    @property
    def metadata(self) -> Mapping[str, Any]:
        return (self.file["configs"].get(self.task) or {}).get("metadata") or {}

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [sample["doc"] for sample, _ in self.samples.values] if self.samples else []

    def of_task(self, entry: str, otherwise: Any = None) -> Any:
        """Return the task's value of an entry of the file with one for each task."""
        return self.file.get(entry, {}).get(self.task, otherwise)

    def runs(self) -> list[TaskRun]:
        values = {name.partition(",")[0]: value for name, value in self.of_task("results", {}).items()}
        about = describe_task(self.task, self.metadata, str(self.path))
        if about is None:
            return []
        if is_predicted_only(self.file["configs"][self.task]):
            logger.warning(
                "%s: %s: left out: --predict_only kept its answers and scored none. Run it again without.", self.path, self.task
            )
        kind, mark = about.kind, KINDS[about.kind].main
        if mark not in values:
            return []
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

    def _run(self, about: TaskDescription, variant: str, printed: Figures, outcomes: Outcomes | None) -> TaskRun:
        rows, sizes = None, self.of_task("n-samples", {})
        if outcomes is None:
            n_scored = int(printed.get(COUNTS[0]) or 0)
            n_unscored = max(0, sizes.get("effective", n_scored) - n_scored)
        else:
            n_scored, n_unscored = KINDS[about.kind].counts(outcomes)
            if about.kind not in CLUSTER_AND_SCORE:
                mark = KINDS[about.kind].main
                rows = rated_rows(self._marked(mark), outcomes, mark, variant, self._default_reason())
        scorer_signature = self._scorer_signature()
        if self.config.get("model") == SCORER_MODEL and n_scored and not scorer_signature:
            raise InputError(
                f"{self.path}: {self.task}: has scores, but not the signature of the scorer that gave them: they may be "
                "another's, out of a cache of the host. Run the task again."
            )
        first = next(iter(self.documents), {})
        quality = about.quality if about.dataset == "fed" else first.get("quality") or about.quality
        n_requests, n_characters = (self.samples.n_requests, self.samples.n_characters) if self.samples else (None, None)
        return TaskRun(
            evaluator=self._evaluator(about.method, variant),
            model=evaluator_name(self.config),
            about=about._replace(variant=variant, level=about.level or first.get("level") or "", quality=quality),
            task=self.task,
            version=str(self.of_task("versions", "")),
            date=datetime.fromtimestamp(self.file.get("date") or 0.0, tz=timezone.utc),
            printed=printed,
            n_total=n_scored + n_unscored,
            n_scored=n_scored,
            unscored_by_reason={reason: n for reason, n in sorted(self._reasons(rows, n_unscored).items()) if n},
            signature=self._signature(variant, quality, scorer_signature),
            scorer_signature=scorer_signature,
            setup=self._setup(about.method),
            is_partial=sizes.get("effective") != sizes.get("original"),
            cost=Cost(seconds=self.seconds, n_requests=n_requests, n_prompt_characters=n_characters),
            rows=rows,
            outcomes=outcomes,
            path=self.path,
        )

    def _evaluator(self, method: str, variant: str) -> str:
        """Return the name of the task's evaluator with all that distinguishes it; a scorer's has no prompt settings."""
        shots = self.of_task("n-shot") or 0
        of_prompt = [
            method,
            variant if variant != method else "",
            f"{shots} examples" if shots else "",
            "chat template" if self.file.get("chat_template_sha") else "",
            "system instruction" if self.file.get("system_instruction_sha") else "",
        ]
        own = [variant] if self.config.get("model") == SCORER_MODEL else of_prompt
        return ", ".join(filter(None, [evaluator_name(self.config), *own]))

    def _signature(self, variant: str, quality: str, inner: str) -> str:
        """Return everything in the file that can change a number of the task, and the scorer's own signature, `inner`."""
        settings = {
            "model": self.config.get("model"),
            **model_arguments(self.config),
            "variant": variant or None,
            "n_shot": self.of_task("n-shot"),
            **{name: self.config.get(name) for name in _SETTINGS},
            **{name: self.file.get(name) for name in ("chat_template_sha", "system_instruction_sha", "fewshot_as_multiturn")},
            "task_hash": self.of_task("task_hashes"),
            **{name: self.file.get(name) for name in ("lm_eval_version", "transformers_version")},
        }
        fields: dict[str, SignatureValue] = {
            "task": self.task,
            "version": self.of_task("versions"),
            "quality": quality or None,
        }
        fields |= {name: value if value is None else str(value) for name, value in settings.items() if value != {}}
        return str(Signature(fields)) + (f"|[{inner}]" if inner else "")

    def _setup(self, method: str) -> Setup:
        return Setup(
            model=redacted(self.config.get("model") or ""),
            arguments=model_arguments(self.config),
            # lm-eval writes -1 if it cannot count them.
            n_parameters=max(self.config.get("model_num_parameters") or 0, 0) or None,
            is_on_hub=bool(self.config.get("model_sha")),
            limit=self.config.get("limit"),
            has_chat_template=bool(self.file.get("chat_template_sha")),
            others=self._other_settings(method),
        )

    def _other_settings(self, method: str) -> dict[str, Any]:
        """Return the settings, other than model arguments, that can change an answer."""
        generation = self.config.get("gen_kwargs") or {}
        no_effect = {*_OF_TASKS, *model_arguments(self.config), *(() if method in {"slide", "dre"} else _OF_SMALL_MODELS)}
        return without_secrets(
            {
                **(generation if isinstance(generation, Mapping) else {"gen_kwargs": generation}),
                **{name: value for name, value in self.metadata.items() if name not in no_effect},
                "revision": self.config.get("model_sha"),
                **{name: self.file.get(f"{name}_sha") for name in ("chat_template", "system_instruction")},
            }
        )

    @property
    def _recorded_reasons(self) -> Mapping[str, int]:
        """Numbers of rows without a score that the scorer counted, by reason."""
        return dict(self.config.get("scorer_unscored", {}).get(self.task, {}))

    def _reasons(self, rows: Sequence[RatedRow] | None, n_unscored: int) -> Mapping[str, int]:
        if sum(self._recorded_reasons.values()) == n_unscored:
            return self._recorded_reasons
        return {UNKNOWN: n_unscored} if rows is None else Counter(row.unscored for row in rows if row.unscored)

    def _default_reason(self) -> str:
        """Return the reason for rows without a score and without a logged reason."""
        if self.config.get("model") != SCORER_MODEL:
            # In multiple-choice prompts, no choice had a probability.
            return Reason.NON_FINITE.value
        return next(iter(self._recorded_reasons)) if len(self._recorded_reasons) == 1 else UNKNOWN

    def _scorer_signature(self) -> str:
        of_samples = sorted({str(document["signature"]) for document in self.documents if document.get("signature")})
        if len(of_samples) > 1:
            raise InputError(f"{self.path}: {self.task}: mixes samples of {of_samples[0]!r} and {of_samples[1]!r}. {AGAIN}")
        return self.config.get("scorer_signature") or next(iter(of_samples), "")

    def _marked(self, mark: str) -> list[tuple[dict[str, Any], Place]]:
        """Return the samples that have the metric; placeholders for an absent set do not."""
        return [(sample, place) for sample, place in self.samples.values if mark in sample] if self.samples else []

    def _outcomes(self, kind: TaskKind, mark: str) -> Outcomes | None:
        if self.samples is None:
            return None
        logged, path = [sample for sample, _ in self._marked(mark)], str(self.samples.path)
        checked([sample["doc"] for sample in logged], list[SampleDocument], f"{path}: documents", advice=AGAIN)
        record = KINDS[kind].record
        outcomes = [sample[mark] for sample in logged]
        return tuple(checked(outcomes, list[record], f"{path}: {mark}", advice=AGAIN))  # type: ignore[valid-type]

    def _check_samples(self, kind: TaskKind, mark: str, printed: Figures, outcomes: Outcomes) -> None:
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


def describe_task(task: str, metadata: Any, where: str) -> TaskDescription | None:
    """Return the description in a task's metadata; None for a task of another package."""
    if not isinstance(metadata, Mapping) or "dialeval" not in metadata:
        return None
    description = metadata["dialeval"]
    if isinstance(description, Mapping):
        description = {
            name: value for name, value in description.items() if name in TaskDescription._fields and value is not None
        }
    return checked(description, TaskDescription, f"{where}: configs.{task}.metadata.dialeval", advice="Copy the file again.")


def model_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's arguments in a result file, which older hosts wrote as one string, without secrets.

    For a scorer they include `scorer`.

    Example:
        >>> model_arguments({"model_args": "pretrained=gpt2,dtype=float32,api_key=x"})
        {'pretrained': 'gpt2', 'dtype': 'float32'}
    """
    model_args = config.get("model_args") or {}
    if isinstance(model_args, str):
        model_args = dict(pair.partition("=")[::2] for pair in model_args.split(",") if pair)
    arguments = without_secrets(model_args)
    if config.get("model") == SCORER_MODEL:
        arguments.setdefault("scorer", DEFAULT_SCORER)
    if llm_args := arguments.get("llm_args"):
        # The language model prompted by a scorer may have its own API key.
        public = model_arguments({"model_args": llm_args})
        arguments["llm_args"] = ",".join(f"{name}={value}" for name, value in public.items())
    return arguments


def evaluator_name(config: Mapping[str, Any], shorten: Callable[[Any], str] | None = None) -> str:
    """Return the name of a scorer or language model, with the arguments that can change a score.

    `shorten` turns an argument into text; by default a folder becomes its last part. A scorer's text arguments appear without
    their name, and repeated text once.

    Example:
        >>> evaluator_name({"model": "dialogue-metric", "model_args": {"scorer": "slide", "slm": "/models/code"}})
        'slide (code)'
        >>> evaluator_name({"model_args": {"scorer": "g_eval", "llm": "hf", "llm_args": "pretrained=/models/gpt2,device=cpu"}})
        'g_eval (gpt2)'
    """
    arguments, shorten = model_arguments(config), shorten or shortened
    if "llm" in arguments:
        arguments["llm"] = evaluator_name({"model": arguments["llm"], "model_args": arguments.pop("llm_args", "")}, shorten)
    named = next((name for name in ("scorer", *MODEL_NAMES) if name in arguments), None)
    name = shorten(arguments.pop(named)) if named else redacted(str(config.get("model") or "unknown"))
    texts = {key: shorten(value) for key, value in sorted(arguments.items()) if key not in TECHNICAL}
    if named != "scorer":
        return _with_options(name, [f"{key}={value}" for key, value in texts.items()])
    if order := texts.pop("n", None):
        name = f"{name}-{order}"
    return _with_options(name, [_option(key, value) for key, value in texts.items() if value != name])


def shortened(value: Any) -> str:
    """Return an argument as text, a folder as its last part."""
    text = str(value)
    return text.rstrip("/").rpartition("/")[2] if is_folder(text) else text


def is_folder(value: Any) -> bool:
    """Return whether an argument looks like a path."""
    return str(value).startswith(("/", "./", "../", "~"))


def _with_options(name: str, options: Iterable[str]) -> str:
    text = ", ".join(dict.fromkeys(options))
    return f"{name} ({text})" if text else name


def _option(key: str, value: str) -> str:
    if value.lower() in {"true", "false"}:
        return f"{'with' if value.lower() == 'true' else 'without'} {key}"
    return f"{key}={value}" if _NUMBER.fullmatch(value) else value


def tell_apart(runs: Sequence[TaskRun]) -> list[TaskRun]:
    """Return the runs, with longer names if different evaluators would share one."""
    renamed = list(runs)
    for field, names_of in (("model", _by_folders), ("evaluator", _by_settings)):
        groups: dict[str, list[int]] = defaultdict(list)
        for place, run in enumerate(renamed):
            groups[getattr(run, field)].append(place)
        for places in groups.values():
            own = [renamed[place] for place in places]
            # The signature of a task's small model does not identify a language model.
            if len({(run.setup.model == SCORER_MODEL and run.scorer_signature) or place for place, run in enumerate(own)}) > 1:
                for place, run, name in zip(places, own, names_of(own), strict=True):
                    renamed[place] = replace(run, model=name, evaluator=name + run.evaluator.removeprefix(run.model))
    return renamed


def _by_folders(runs: Sequence[TaskRun]) -> Iterator[str]:
    tails = _tails({str(value) for run in runs for value in _arguments(run).values() if is_folder(value)})
    for run in runs:
        config = {"model": run.setup.model, "model_args": run.setup.arguments}
        yield evaluator_name(config, lambda value: tails.get(str(value)) or shortened(value))


def _by_settings(runs: Sequence[TaskRun]) -> Iterator[str]:
    every = ({"host": run.setup.model, "base_url": _arguments(run).get("base_url"), **run.setup.others} for run in runs)
    settings = [{name: str(value) for name, value in own.items() if value not in (None, "")} for own in every]
    differing = sorted({name for own in settings for name in own if len({other.get(name) for other in settings}) > 1})
    tails = _tails({own[name] for own in settings for name in differing if is_folder(own.get(name))})
    for run, own in zip(runs, settings, strict=True):
        texts = {name: tails.get(own[name]) or own[name].partition("://")[2] or own[name] for name in differing if name in own}
        text_of_settings = ", ".join(
            f"{name}={text if len(text) <= _LONGEST_SETTING else text_hash(text)[:8]}" for name, text in texts.items()
        )
        name, bracket = (run.model[:-1] + ", ", ")") if run.model.endswith(")") else (f"{run.model} (", ")")
        yield name + text_of_settings + bracket if text_of_settings else run.model


def _arguments(run: TaskRun) -> dict[str, Any]:
    return {**model_arguments({"model_args": run.setup.arguments.get("llm_args")}), **run.setup.arguments}


def _tails(folders: set[str]) -> dict[str, str]:
    """Return the shortest path end of each folder that is unique."""
    parts = {folder: posixpath.normpath(folder).split("/") for folder in folders}
    tails = {}
    for folder, own in parts.items():
        rivals = [other for other in parts.values() if other != own]
        n = next((n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in rivals)), len(own))
        tails[folder] = "/".join(own[-n:])
    return tails


logger = logging.getLogger(__name__)
