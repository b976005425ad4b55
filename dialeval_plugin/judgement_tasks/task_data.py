"""What the data sets of all our tasks share: they know the user's options among the host's keywords, and guard its cache.

The host calls `custom_dataset` with the task's metadata, its `dataset_kwargs`, the user's `--metadata` and the model's
arguments, all as keywords.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from dialeval_plugin.core.options import check_names
from dialeval_plugin.hosts.lm_eval import run as lm_eval_run
from dialeval_plugin.hosts.lm_eval.cache import guard_cache

logger = logging.getLogger(__name__)

Build: TypeAlias = Callable[..., dict[str, Any]]

_MODULES = (
    "judgement_tasks.responses",
    "judgement_tasks.rating",
    "judgement_tasks.preference",
    "judgement_tasks.opinion",
    "judgement_tasks.classification",
    "judgement_tasks.breakdown",
    "hosts.lm_eval.slm_tasks",
)
_HOSTS = ("version", "config_source")
_OF_GROUPS = ("when_absent", "group_sets")
"""Not for a user to type, also where a task file gives them not."""
_known: set[str] = set()
"""What any of our tasks takes."""


def task_data(*others: Callable[..., Any]) -> Callable[[Build], Build]:
    """Make a function what a task file may name as `custom_dataset`: of the host's keywords it gets those that it takes.

    `--metadata` is for all tasks of a run. A name that no task of this package takes is an error; one that others take has no
    effect, which is said.

    Args:
        others: functions that the function hands its keywords on to.

    Raises:
        InputError: when called, for an option that there is not.
    """

    def decorate(build: Build) -> Build:
        takes = {name for function in (build, *others) for name in _keywords(function)}
        _known.update(takes)

        @functools.wraps(build)
        def from_host(**given: Any) -> dict[str, Any]:
            guard_cache()
            typed = lm_eval_run.metadata()
            _check(given, {*given}.difference(_HOSTS) if typed is None else {*typed}, takes)
            return build(**{name: value for name, value in given.items() if name in takes})

        return from_host

    return decorate


def _keywords(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]


def _check(given: Mapping[str, Any], typed: set[str], takes: set[str]) -> None:
    others = sorted(typed - takes)
    if not others:
        return
    for module in _MODULES:
        importlib.import_module(f"dialeval_plugin.{module}")
    # Nor is what the task file gives.
    for_users = sorted(takes.difference(given.keys() - typed, _OF_GROUPS))
    task = Path(str(given.get("config_source", "task"))).stem
    check_names(f"{task}: --metadata", [name for name in others if name not in _known], for_users)
    shown = ", ".join(for_users) or "none"
    logger.warning("%s: --metadata names %s, which this task does not take. It takes: %s.", task, ", ".join(others), shown)
