"""Keeps the host's cache of answers (`--use_cache`) from serving one model's answers to another, on the tasks of this package.

The host's key is the request alone: whoever uses a file second reads what the first was answered. Here the key of a request of
our tasks holds, besides, everything that the answer depends on, and the model `dialogue-metric`, whose answers cost little,
uses no cache. Requests of other tasks stay what they are.
"""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dialeval_plugin.judgement_tasks.documents import ITEM_COLUMNS
from dialeval_plugin.version import __version__

from . import run as lm_eval_run

logger = logging.getLogger(__name__)

_KINDS = ("loglikelihood", "loglikelihood_rolling", "generate_until")
_MARK = "_knows_dialeval_plugin"
_WARNED = "_warned_by_dialeval_plugin"

Ask = Callable[[Sequence[Any]], Sequence[Any]]


def guard_cache() -> None:
    """Make the host's cache, in this process, tell models apart; one that was opened before is guarded as well."""
    from lm_eval.api.model import CachingLM

    if getattr(CachingLM, _MARK, False):
        return
    original = CachingLM.__getattr__

    @functools.wraps(original)
    def guarded(self: Any, name: str) -> Any:
        found = original(self, name)
        return functools.partial(_answer, self, name, found) if name in _KINDS else found

    CachingLM.__getattr__ = guarded
    setattr(CachingLM, _MARK, True)


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
    identity = _identity_of(cache.lm)
    if identity is None:
        _warn_once(
            cache, "--use_cache has no effect on dialogue tasks: the model was handed over and has no name to know it by."
        )
        with _rows(cache, None):
            return list(getattr(cache.lm, kind)(requests))
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

    before = cache.dbdict
    cache.dbdict = rows
    cache.lm.set_cache_hook(CacheHook(None if rows is None else cache))
    try:
        yield
    finally:
        cache.dbdict = before
        cache.lm.set_cache_hook(CacheHook(cache))


def _identity_of(lm: Any) -> str | None:
    """Everything that an answer depends on but the request; None where it is not known."""
    from .backend import identity_of

    started = lm_eval_run.model()
    return None if started is None else f"{identity_of(*started, lm)}+dialeval_plugin-{__version__}"


def _warn_once(cache: Any, message: str) -> None:
    if _WARNED not in vars(cache):
        setattr(cache, _WARNED, True)
        logger.warning(message)
