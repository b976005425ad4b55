"""Arguments of a run of the host, a cache that distinguishes models, and names of result folders.

The host's cache (`--use_cache`) knows the model object and not its name. A task's data set gets the user's `--metadata` and the
model's arguments in one dictionary, where they cannot be distinguished. `note_runs` keeps the arguments of the host's
`simple_evaluate`, which has them apart. `dialeval lm-eval`, `dialeval enable` and `register` call it before a run begins; if a
run began without it, its answers to our tasks are not cached.

The host's cache key is the request alone, so a second model would read the answers of the first. Here the key of a request of
our tasks also holds everything that the answer depends on. The model `dialogue-metric`, whose answers cost little, uses no
cache. Requests of other tasks are unchanged.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from dialeval_plugin.core.redaction import without_secrets
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.version import __version__

from .tasks.documents import DEFAULT_SCORER, ITEM_COLUMNS, SCORER_MODEL

logger = logging.getLogger(__name__)

_NAMED_BY = {SCORER_MODEL: "scorer", "replay-judge": "source"}
"""The most identifying argument of each of our models."""
_LONGEST_NAME = 100
_KINDS = ("loglikelihood", "loglikelihood_rolling", "generate_until")
_WARNED = "_warned_by_dialeval_plugin"

Ask = Callable[[Sequence[Any]], Sequence[Any]]


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
