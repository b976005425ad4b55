"""A run of the host: its arguments, the data sets of our tasks, a cache that distinguishes models, and result folders.

The host's cache (`--use_cache`) knows the model object and not its name. A task's data set gets the user's `--metadata` and the
model's arguments in one dictionary, where they cannot be distinguished. `note_runs` keeps the arguments of the host's
`simple_evaluate`, which has them apart. `dialeval lm-eval`, `dialeval enable` and `register` call it before a run begins; if a
run began without it, its answers to our tasks are not cached.

The host's cache key is the request alone, so a second model would read the answers of the first. Here the key of a request of
our tasks also holds everything that the answer depends on. The model `dialogue-metric`, whose answers cost little, uses no
cache. Requests of other tasks are unchanged.

The host passes the function of a data set (`custom_dataset`) the task's metadata, its `dataset_kwargs`, `--metadata` and the
model's arguments as keywords; `task_data` chooses among them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from dialeval_plugin.core.errors import MissingPrerequisite, did_you_mean
from dialeval_plugin.core.redaction import without_secrets
from dialeval_plugin.core.registry import check_names
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.version import __version__

from . import versions
from .tasks.documents import DEFAULT_SCORER, ITEM_COLUMNS, SCORER_MODEL, data_sets, placeholder

logger = logging.getLogger(__name__)

_NAMED_BY = {SCORER_MODEL: "scorer", "replay-judge": "source"}
"""The most identifying argument of each of our models."""
_LONGEST_NAME = 100
_KINDS = ("loglikelihood", "loglikelihood_rolling", "generate_until")
_WARNED = "_warned_by_dialeval_plugin"

_MODULES = ("ratings", "fed", "preference", "opinions", "classification", "breakdown", "rubric", "small_models")
DESCRIPTION = "dialeval"
"""Key in a task's metadata for its method, data set, level, quality, kind and direction, and names of its data."""
_HOSTS = ("version", "config_source")

Ask: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
Build: TypeAlias = Callable[..., dict[str, Any]]
Set = TypeVar("Set")
_known: set[str] = set()
"""Options of the tasks that were imported."""


class Run(NamedTuple):
    """Arguments of a run of the host."""

    model: str | None
    """Kind of the model; None if it was given as an object."""
    arguments: Mapping[str, Any]
    metadata: Mapping[str, Any]
    """The user's `--metadata`."""
    has_chat_template: bool
    scorers: dict[str, dict[str, Any]]
    """Our scorer's information for the result, by task."""


_current: ContextVar[Run | None] = ContextVar("run", default=None)


def current_run() -> Run | None:
    """Return the host's current run; None outside of one, and in one that began before `note_runs`."""
    return _current.get()


@functools.cache
def note_runs() -> None:
    """Let `current_run` know every run of the host that begins after this call."""
    evaluator: Any = importlib.import_module("lm_eval.evaluator")
    from lm_eval.utils import sanitize_model_name, simple_parse_args_string

    original = evaluator.simple_evaluate
    signature = inspect.signature(original)

    @functools.wraps(original)
    def noted(*args: Any, **kwargs: Any) -> Any:
        keywords = signature.bind_partial(*args, **kwargs).arguments
        arguments = keywords.get("model_args") or {}
        if isinstance(arguments, str):
            arguments = simple_parse_args_string(arguments)
        # The host's command line merges the model's arguments into the metadata.
        metadata = {name: value for name, value in (keywords.get("metadata") or {}).items() if name not in arguments}
        name = keywords.get("model")
        name = name if isinstance(name, str) else None
        run = Run(name, dict(arguments), metadata, bool(keywords.get("apply_chat_template")), {})
        token = _current.set(run)
        try:
            results = original(*args, **kwargs)
        finally:
            _current.reset(token)
        if results and run.scorers:
            results["config"]["dialeval_scorers"] = run.scorers
        if name in _NAMED_BY and (tracker := keywords.get("evaluation_tracker")) is not None:
            names = tracker.general_config_tracker
            names.model_name = folder_name(name, arguments)
            names.model_name_sanitized = sanitize_model_name(names.model_name)
        return results

    evaluator.simple_evaluate = noted


def folder_name(model: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a run's folder: the model, its scorer, and the options; with a hash if they are shortened.

    The host reads an argument only as `model=...`, and otherwise uses random letters: two scorers would share one folder.

    Example:
        >>> folder_name("dialogue-metric", {}), folder_name("dialogue-metric", {"scorer": "slide", "variant": "slm"})
        ('dialogue-metric_general', 'dialogue-metric_slide_variant=slm')
    """
    options = without_secrets(arguments)
    first = str(options.pop(_NAMED_BY[model], DEFAULT_SCORER))
    whole = [model, first, *(f"{name}={value}" for name, value in sorted(options.items()))]
    # The last part of a path distinguishes folders best.
    short = "_".join([model, first, *(f"{name}={Path(str(value)).name}" for name, value in sorted(options.items()))])
    if short == "_".join(whole) and len(short) <= _LONGEST_NAME:
        return short
    return f"{short[:_LONGEST_NAME]}_{text_hash(*whole)[:8]}"


@functools.cache
def guard_cache() -> None:
    """Make the host's cache distinguish models in this process; this includes caches that are already open."""
    from lm_eval.api.model import CachingLM

    original = CachingLM.__getattr__

    @functools.wraps(original)
    def guarded(self: Any, name: str) -> Any:
        answer = original(self, name)
        return functools.partial(_answer, self, name, answer) if name in _KINDS else answer

    CachingLM.__getattr__ = guarded


def _answer(cache: Any, kind: str, through_cache: Ask, requests: Sequence[Any]) -> list[Any]:
    if getattr(cache.lm, "is_never_cached", False):
        _warn_once(cache, "--use_cache has no effect on dialogue-metric: a scorer's answers are cheap to have again.")
        return list(getattr(cache.lm, kind)(requests))
    ours = [place for place, request in enumerate(requests) if request.doc.keys() >= ITEM_COLUMNS]
    others = sorted({*range(len(requests))}.difference(ours))
    answers: dict[int, Any] = {}
    for places, ask in ((ours, functools.partial(_ask_ours, cache, kind, through_cache)), (others, through_cache)):
        if places:
            answers.update(zip(places, ask([requests[place] for place in places]), strict=True))
    return [answers[place] for place in range(len(requests))]


def _ask_ours(cache: Any, kind: str, through_cache: Ask, requests: Sequence[Any]) -> Sequence[Any]:
    from lm_eval.api import model as host

    from .backend import identity_of

    run = current_run()
    if run is None or run.model is None:
        why = "the model was handed over and has no name to know it by" if run else "the run began without dialeval's names"
        advice = "" if run else " Type `dialeval lm-eval` in place of `lm_eval`, or `dialeval enable` once."
        _warn_once(cache, f"--use_cache has no effect on dialogue tasks: {why}.{advice}")
        with replaced(cache.lm, "cache_hook", host.CacheHook(None)):
            return list(getattr(cache.lm, kind)(requests))
    # Everything that an answer depends on except the request.
    identity = f"{identity_of(run.model, run.arguments, cache.lm)}+dialeval_plugin-{__version__}"
    key_of_request = host.hash_args

    def key(*request: Any) -> str:
        return hashlib.sha256(f"{identity}\n{key_of_request(*request)}".encode()).hexdigest()

    # The host makes the keys of its file by this function, also where a model writes into it while it answers.
    with replaced(host, "hash_args", key):
        return through_cache(requests)


def _warn_once(cache: Any, message: str) -> None:
    if _WARNED not in vars(cache):
        setattr(cache, _WARNED, True)
        logger.warning(message)


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
    of_models: set[str] = set()
    if unsure and run is None:
        from lm_eval.api.model import LM

        classes = [LM]
        for one in classes:
            classes += one.__subclasses__()
            of_models.update(inspect.signature(one).parameters)
    meant = {name for name in unsure if name in _known or (did_you_mean(name, _known) and name not in of_models)}
    others = sorted((typed | meant) - takes)
    if not others:
        return
    # A value given by the task file is not an option for users either.
    for_users = sorted(takes.difference(keywords.keys() - typed if typed else ()))
    check_names(f"{task}: --metadata", [name for name in others if name not in _known], for_users)
    text = "%s: --metadata names %s, which this task does not take. It takes: %s."
    logger.warning(text, task, ", ".join(others), ", ".join(for_users) or "none")


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
