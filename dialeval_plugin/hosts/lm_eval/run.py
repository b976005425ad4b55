"""What the host was started with, which it tells neither to its cache nor to a task; and a cache that tells models apart.

The host's cache (`--use_cache`) knows the model object and not its name. A task's data set gets the user's `--metadata` and
the model's arguments in one dictionary, in which nobody can tell them apart. Both stand apart in the host's own calls, and are
read there: that holds however it was started, by a command line with or without our names, or from Python.

The key of the cache is the request alone: whoever uses a file second reads what the first was answered. Here the key of a
request of our tasks holds, besides, everything that the answer depends on, and the model `dialogue-metric`, whose answers cost
little, uses no cache. Requests of other tasks stay what they are.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, MappingProxyType
from typing import Any

from dialeval_plugin.hosts.registration import replaced
from dialeval_plugin.judgement_tasks.documents import ITEM_COLUMNS
from dialeval_plugin.version import __version__

logger = logging.getLogger(__name__)

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_KINDS = ("loglikelihood", "loglikelihood_rolling", "generate_until")
_WARNED = "_warned_by_dialeval_plugin"

Ask = Callable[[Sequence[Any]], Sequence[Any]]


def model() -> tuple[str, Mapping[str, Any]] | None:
    """Name and arguments of the run's model; None where it was handed over as an object, and outside of a run."""
    for frame in _calls("lm_eval.evaluator", "simple_evaluate"):
        name = frame.f_locals.get("model")
        return (name, _arguments(frame)) if isinstance(name, str) else None
    return None


def metadata() -> Mapping[str, Any] | None:
    """What the user gave with `--metadata` to the run that builds a task; None where the host builds none."""
    for frame in _calls("lm_eval.tasks._factory", "_build_task", "_build_group_members"):
        given: Mapping[str, Any] = getattr(frame.f_locals["self"], "_meta", None) or _NOTHING
        of_model = {name for run in _calls("lm_eval.evaluator", "simple_evaluate") for name in _arguments(run)}
        return {name: value for name, value in given.items() if name not in of_model}
    return None


def _arguments(run: FrameType) -> Mapping[str, Any]:
    from lm_eval.utils import simple_parse_args_string

    given = run.f_locals.get("model_args")
    if isinstance(given, str):
        return dict(simple_parse_args_string(given))
    return given if isinstance(given, Mapping) else _NOTHING


def _calls(module: str, *functions: str) -> Iterator[FrameType]:
    """The calls of a module's functions that this one was made in, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in functions and frame.f_globals.get("__name__") == module:
            yield frame
        frame = frame.f_back


@functools.cache
def guard_cache() -> None:
    """Make the host's cache, in this process, tell models apart; one that was opened before is guarded as well."""
    from lm_eval.api.model import CachingLM

    original = CachingLM.__getattr__

    @functools.wraps(original)
    def guarded(self: Any, name: str) -> Any:
        found = original(self, name)
        return functools.partial(_answer, self, name, found) if name in _KINDS else found

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
    from .backend import identity_of

    started = model()
    if started is None:
        message = "--use_cache has no effect on dialogue tasks: the model was handed over and has no name to know it by."
        _warn_once(cache, message)
        with _rows(cache, None):
            return list(getattr(cache.lm, kind)(requests))
    # Everything that an answer depends on but the request.
    identity = f"{identity_of(*started, cache.lm)}+dialeval_plugin-{__version__}"
    with _rows(cache, _RowsOfOneModel(cache.dbdict, identity)):
        return through_cache(requests)


@dataclass(frozen=True)
class _RowsOfOneModel:
    """The rows of the host's file that are one model's, as the host reads and writes them."""

    rows: Any
    identity: str

    def __contains__(self, key: str) -> bool:
        return self._key(key) in self.rows

    def __getitem__(self, key: str) -> Any:
        return self.rows[self._key(key)]

    def __setitem__(self, key: str, value: Any) -> None:
        self.rows[self._key(key)] = value

    def commit(self) -> None:
        self.rows.commit()

    def _key(self, key: str) -> str:
        return hashlib.sha256(f"{self.identity}\n{key}".encode()).hexdigest()


@contextmanager
def _rows(cache: Any, rows: _RowsOfOneModel | None) -> Iterator[None]:
    """Let the cache, and the model that writes into it while it answers, see these rows alone; None for none."""
    from lm_eval.api.model import CacheHook

    with replaced(cache, "dbdict", rows), replaced(cache.lm, "cache_hook", cache.lm.cache_hook):
        cache.lm.set_cache_hook(CacheHook(None if rows is None else cache))
        yield


def _warn_once(cache: Any, message: str) -> None:
    if _WARNED not in vars(cache):
        setattr(cache, _WARNED, True)
        logger.warning(message)
