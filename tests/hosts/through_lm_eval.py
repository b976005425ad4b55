"""Runs of the real host in this process, and every metric of a task, of which the host prints the main one."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import lm_eval
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
from torch.utils import collect_env

from dialeval_plugin.core.dialogue import Example, Item
from dialeval_plugin.core.resources import tasks_path
from dialeval_plugin.core.scorer import Scorer
from dialeval_plugin.core.scores import Reason, Row, Unscored
from dialeval_plugin.hosts.lm_eval.run import note_runs
from dialeval_plugin.hosts.lm_eval.tasks.kinds import KINDS
from dialeval_plugin.hosts.lm_eval.versions import by_plain_names
from dialeval_plugin.hosts.registration import register_models
from dialeval_plugin.leaderboard.board import Leaderboard
from dialeval_plugin.leaderboard.build import build, read, write
from dialeval_plugin.leaderboard.exports import FORMATS, ExportOptions, export, slug, write_space
from dialeval_plugin.leaderboard.result_files import read_runs
from dialeval_plugin.leaderboard.task_runs import TaskRun, rescore
from dialeval_plugin.reports.correlation_report import AgreementResult, ReportOptions


class LikelihoodLM(LM):  # type: ignore[misc]  # the host is not typed
    """A model of a test that gives log probabilities of answers and nothing else."""

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        raise NotImplementedError


class Chance(LikelihoodLM):
    """Answers by a hash of what it is asked, and gives no probability to what speaks of rain."""

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        return [(self._log_probability(*request.args), False) for request in requests]

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return ["Positive" if self._share(request.args[0]) < 0.5 else "Negative" for request in requests]

    def _log_probability(self, context: str, continuation: str) -> float:
        return -math.inf if "rain number 2" in context[-200:] else math.log(0.05 + 0.2 * self._share(context + continuation))

    @staticmethod
    def _share(text: str) -> float:
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 16**8


class Length(Scorer):
    """Length of the response on [0, 40], and no score for a response that mentions trains."""

    name: ClassVar[str] = "length_for_tests"
    columns = ("length",)
    range: ClassVar[tuple[float, float]] = (0.0, 40.0)

    def __init__(self, device: str | None = None, batch_size: int = 1, skip: str = "trains") -> None:
        self.given = (device, batch_size)
        self.skip = skip
        self.calls: list[int] = []

    def score_batch(self, items: Sequence[Item]) -> list[Row]:
        self.calls.append(len(items))
        texts = [item.response.text for item in items if isinstance(item, Example)]
        return [Unscored(Reason.EMPTY_INPUT) if self.skip in text else {"length": float(len(text))} for text in texts]

    def signature_fields(self) -> dict[str, str | int | float | bool | None]:
        return {"method": self.name}


# The host describes the machine in each of its results, with programs that take half a second.
collect_env.get_pretty_env_info = functools.cache(collect_env.get_pretty_env_info)


def task_manager(metadata: Mapping[str, Any] | None = None) -> TaskManager:
    """The tasks of this package alone."""
    return copy.deepcopy(_read_tasks(json.dumps(metadata or {})))


@functools.cache
def _read_tasks(metadata: str) -> TaskManager:
    return TaskManager(include_path=str(tasks_path()), include_defaults=False, metadata=json.loads(metadata))


def evaluate(
    model: Any, *tasks: str, metadata: Mapping[str, Any] | None = None, output: Path | None = None, **options: Any
) -> dict[str, Any]:
    """Run tasks without the host's own resamples; with `output`, leave behind what the host's own writer leaves."""
    register_models()
    note_runs()
    tracker = EvaluationTracker(output_path=str(output)) if output else None
    settings = {"task_manager": task_manager(metadata), "metadata": metadata, "evaluation_tracker": tracker}
    found: dict[str, Any] = lm_eval.simple_evaluate(model, tasks=list(tasks), bootstrap_iters=0, **settings, **options)
    if tracker:
        samples = found["samples"]
        tracker.save_results_aggregated(
            results={name: value for name, value in found.items() if name != "samples"}, samples=samples
        )
        for task in found["configs"]:
            tracker.save_results_samples(task_name=task, samples=samples[task])
    return by_plain_names(found)


def metrics(found: Mapping[str, Any], task: str, variant: str = "") -> dict[str, Any]:
    """Every metric of a task, computed from its logged samples; those that the host printed are the same and no others."""
    described = found["configs"][task]["metadata"]["dialeval"]
    kind = described["kind"]
    records = KINDS[kind].records(sample[KINDS[kind].main] for sample in found["samples"][task])
    values = KINDS[kind].values(records)
    shown = {name.removesuffix(",none"): value for name, value in found["results"][task].items() if name.endswith(",none")}
    shown = {name: value for name, value in shown.items() if not name.endswith("_stderr")}
    assert shown == {name: values[name] for name in KINDS[kind].printed}
    assert len(shown) <= 4
    if kind == "rating" and variant not in {"", described.get("variant", "")}:
        return KINDS[kind].values([record.by(variant) for record in records])
    return values


def result_of(output: Path) -> Any:
    """Read the one result file of a run; NaN and infinity are errors."""
    (path,) = output.glob("*/results_*.json")

    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}, which is not JSON")

    return by_plain_names(json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse))


def samples_of(output: Path, task: str) -> list[dict[str, Any]]:
    """Read the one file of samples of a task."""
    names = re.compile(rf"samples_(\w+::)?{task}_\d")
    (path,) = (path for path in output.glob("*/samples_*.jsonl") if names.match(path.name))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Everywhere(NamedTuple):
    """Everything that is made of result files."""

    runs: list[TaskRun]
    findings: list[list[AgreementResult]]
    """Findings of each run."""
    board: Leaderboard
    page: str
    exported: dict[str, set[str]]
    """The evaluators that have files, by format."""


def everywhere(output: Path, folder: Path) -> Everywhere:
    """Make everything of the results in `output`: rescore them, build the leaderboard, and export it in every format."""
    runs = read_runs([output])
    findings = [rescore([run], ReportOptions(permutations=0)) for run in runs]
    page = write(build([output], rank_rounds=0), folder)[-1].read_text(encoding="utf-8")
    board, options = read(folder), ExportOptions(dataset_id="owner/name")
    exported = {}
    for format in FORMATS:
        made = export(board, format, folder / format, options)
        folders = {part for path in made.paths for part in path.relative_to(folder / format).parts}
        exported[format] = {evaluator for evaluator in board.evaluators if slug(evaluator) in folders}
    write_space(folder, folder / "space")
    return Everywhere(runs, findings, board, page, exported)
