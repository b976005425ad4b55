"""Common parts of our tasks' data sets: the user's options, the guard of the host's cache, and absent sets.

The host passes `custom_dataset` the task's metadata, its `dataset_kwargs`, `--metadata` and the model's arguments as keywords.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from dialeval_plugin.core.errors import MissingPrerequisite, did_you_mean
from dialeval_plugin.core.options import check_names
from dialeval_plugin.hosts.lm_eval import versions
from dialeval_plugin.hosts.lm_eval.run import current_run, guard_cache, note_runs

from .documents import data_sets, placeholder

logger = logging.getLogger(__name__)

Build: TypeAlias = Callable[..., dict[str, Any]]
Set = TypeVar("Set")

_MODULES = ("ratings", "fed", "preference", "opinions", "classification", "breakdown", "rubric", "small_models")
DESCRIPTION = "dialeval"
"""Key in a task's metadata for its method, data set, level, quality, kind and direction, and names of its data."""
_HOSTS = ("version", "config_source")
_known: set[str] = set()


def task_data(*others: Callable[..., Any]) -> Callable[[Build], Build]:
    """Make a function usable as `custom_dataset` in a task file: it gets those of the host's keywords that it takes.

    `--metadata` applies to all tasks of a run. A name that no task of this package takes is an error; one that only other tasks
    take has no effect and is reported. Other keywords may come from the task file or, in a run that `current_run` does not
    know, from the model's arguments: such a name is an error only if it resembles an option and no imported model takes it.
    A model's argument that the task takes has an effect, as the host does not tell them apart, and is reported.
    `others` are functions to which the function passes its keywords.

    The files of groups give their tasks `when_absent="skip"` and `group_sets`: then a set that is not on this machine has one
    placeholder, no score and no part in the group's mean, if at least one of the group's sets is there.
    """

    def decorate(build: Build) -> Build:
        parameters = [one for function in (build, *others) for one in inspect.signature(function).parameters.values()]
        takes = {parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
        _known.update(takes)

        @functools.wraps(build)
        def from_host(*, when_absent: str = "fail", group_sets: Sequence[str] = (), **keywords: Any) -> dict[str, Any]:
            guard_cache()
            note_runs()
            versions.watch_requests()
            versions.leave_out_standard_errors()
            versions.score_nothing_when_predicting()
            # The task file's own description is kept apart from options or model arguments of the same name.
            of_task: dict[str, Any] = keywords.pop(DESCRIPTION, {})
            _check(keywords, takes.difference(of_task))
            try:
                return build(**{name: value for name, value in {**keywords, **of_task}.items() if name in takes})
            except AbsentSet as absent:
                if when_absent != "skip":
                    raise
                return _left_out(absent, group_sets)

        return from_host

    return decorate


def _check(keywords: Mapping[str, Any], takes: set[str]) -> None:
    run = current_run()
    typed = {*run.metadata} if run else set()
    task = Path(str(keywords.get("config_source", "task"))).stem
    for name, value in sorted(run.arguments.items()) if run else ():
        if name in takes and keywords.get(name) == value:
            text = "%s: is computed with %s=%s, an argument of the model that lm-eval passes on. --metadata overrides it."
            logger.warning(text, task, name, value)
    unsure = {*keywords}.difference(takes, typed, _HOSTS, run.arguments if run else ())
    if not unsure and typed <= takes:
        return
    for module in _MODULES:
        importlib.import_module(f"dialeval_plugin.hosts.lm_eval.tasks.{module}")
    of_models = _arguments_of_models() if unsure and run is None else set()
    meant = {name for name in unsure if name in _known or (did_you_mean(name, _known) and name not in of_models)}
    others = sorted((typed | meant) - takes)
    if not others:
        return
    # A value given by the task file is not an option for users either.
    for_users = sorted(takes.difference(keywords.keys() - typed if typed else ()))
    check_names(f"{task}: --metadata", [name for name in others if name not in _known], for_users)
    text = "%s: --metadata names %s, which this task does not take. It takes: %s."
    logger.warning(text, task, ", ".join(others), ", ".join(for_users) or "none")


def _arguments_of_models() -> set[str]:
    """Return names of the arguments of every imported model class, including the run's."""
    from lm_eval.api.model import LM

    classes = [LM]
    for one in classes:
        classes += one.__subclasses__()
    return {name for one in classes for name in inspect.signature(one).parameters}


class AbsentSet(MissingPrerequisite):
    """A set that is not on this machine, which its group may leave out."""

    def __init__(self, problem: str, is_there: Callable[[str], bool], dataset: str, group: str, advice: str) -> None:
        super().__init__(problem)
        self.is_there, self.dataset, self.group, self.advice = is_there, dataset, group, advice


def read_set(read: Callable[[str], Set], dataset: str, *, group: str, advice: str) -> Set:
    """Read a set, which its group may leave out if it is not on this machine; `advice` says how to get it."""

    def is_there(name: str) -> bool:
        with contextlib.suppress(MissingPrerequisite):
            read(name)
            return True
        return False

    try:
        return read(dataset)
    except MissingPrerequisite as error:
        raise AbsentSet(str(error), is_there, dataset, group, advice) from error


def _left_out(absent: AbsentSet, group_sets: Sequence[str]) -> dict[str, Any]:
    """Return the data set of a set that its group leaves out; `MissingPrerequisite` if none of the group's sets is there."""
    if not any(map(absent.is_there, group_sets)):
        raise MissingPrerequisite(
            f"{absent.group}: none of the group's sets ({', '.join(group_sets)}) is on this machine. {absent.advice} "
            f"The first that was looked for: {absent}"
        ) from absent
    logger.warning("%s_%s: left out of the group and of its mean: %s", absent.group, absent.dataset, absent)
    # One for each process: the host fails if a process gets no document.
    return data_sets(test=[placeholder(absent.dataset)] * max(1, int(os.environ.get("WORLD_SIZE", "1"))))
