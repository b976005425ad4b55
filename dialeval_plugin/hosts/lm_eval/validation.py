"""`dialeval validate`: builds every task file and loads every metric folder.

The host's own `lm-eval validate` checks names only, and its index skips a broken file in silence.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.errors import MissingPrerequisite
from dialeval_plugin.core.resources import metrics_path, tasks_path
from dialeval_plugin.hosts.registration import importing

EntryKind: TypeAlias = Literal["task", "group", "metric"]
State: TypeAlias = Literal["ok", "absent", "error"]


class Validation(NamedTuple):
    """Result of validating one task, group or metric."""

    name: str
    kind: EntryKind
    state: State
    """`absent` if its data is not on this machine: it may be right, but nothing shows it."""
    detail: str = ""


def validate(tasks: Path | None = None, metrics: Path | None = None) -> list[Validation]:
    """Validate the task files below `tasks` and the metric folders in `metrics`; without a path, those of this package."""
    return [*validate_tasks(tasks or tasks_path()), *validate_metrics(metrics or metrics_path())]


def validate_tasks(folder: Path) -> Iterator[Validation]:
    """Build each task of the YAML files below `folder`: resolve its functions, build its data, one prompt and one request.

    A group's children are checked as separate tasks; for the group itself, only that each child exists.
    """
    with importing("lm_eval"):
        from lm_eval.tasks import TaskManager

    configurations = {path: _read(path) for path in sorted(folder.rglob("*.yaml"))}
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    names: dict[str, Path] = {}
    for path, configuration in configurations.items():
        if isinstance(configuration, MissingPrerequisite):
            yield Validation(path.stem, "task", "absent", str(configuration))
            continue
        if isinstance(configuration, Exception):
            yield Validation(path.stem, "task", "error", f"{path}: {_describe(configuration)}")
            continue
        kind: EntryKind = "group" if "group" in configuration else "task"
        name = str(configuration.get(kind))
        if name in names:
            yield Validation(name, kind, "error", f"{path}: {names[name]} has the same name. Rename one of them.")
            continue
        names[name] = path
        if kind == "group":
            children = [one if isinstance(one, str) else one.get("task", one.get("group")) for one in configuration["task"]]
            if unknown := sorted({str(child) for child in children}.difference(manager.all_tasks)):
                detail = f"{path}: there is no task {unknown[0]!r}. Correct the list `task`."
                yield Validation(name, "group", "error", detail)
            else:
                yield Validation(name, "group", "ok", f"{len(children)} tasks")
        else:
            yield _validate_task(name, manager, path)


def validate_metrics(folder: Path) -> Iterator[Validation]:
    """Load each metric folder as `evaluate` does, by its absolute path."""
    with importing("evaluate"):
        import evaluate

    for script in sorted(folder.glob("*/*.py")):
        if script.stem != script.parent.name:
            continue
        name = script.stem
        try:
            metric = evaluate.load(str(script.resolve()))
        except Exception as error:  # the user would see whatever a script raises
            yield Validation(name, "metric", "error", f"{script}: {_describe(error)}")
            continue
        # The host takes the first class that it finds, which may be an imported base class.
        if type(metric).__module__.rpartition(".")[2] != name:
            detail = f"{script}: the host loads {type(metric).__name__}, which this file imports. Import its module instead."
            yield Validation(name, "metric", "error", detail)
        else:
            yield Validation(name, "metric", "ok")


def _validate_task(name: str, manager: Any, path: Path) -> Validation:
    # The host's notices for each small build would bury the result.
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        task = manager.load([name])["tasks"][name]
        shots = task.config.num_fewshot or 0
        task.set_config("num_fewshot", shots)
        task.set_fewshot_seed(0)
        task.build_all_requests(limit=1)
    except MissingPrerequisite as error:
        return Validation(name, "task", "absent", str(error))
    except Exception as error:  # anything that would stop a run is a finding
        return Validation(name, "task", "error", f"{path}: {_describe(error)}")
    finally:
        logger.setLevel(level)
    return Validation(name, "task", "ok", f"{len(task.eval_docs)} documents, {shots} examples")


def _read(path: Path) -> dict[str, Any] | Exception:
    loader = importlib.import_module("lm_eval.tasks._yaml_loader")
    try:
        configuration: dict[str, Any] = loader.load_yaml(path, resolve_func=True)
    except Exception as error:  # the host's index swallows all of these
        return error
    if not isinstance(configuration.get("group", configuration.get("task")), str):
        return ValueError("names neither a task nor a group")
    return configuration


def _describe(error: Exception) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0] if first else ''}"
