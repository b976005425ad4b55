"""One call at a time on what is not made for several: a lock that follows its owner into other processes."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class CallLock:
    """A lock that a thread may take again; a pickled or forked copy of its owner has one of its own, which nobody holds."""

    def __init__(self) -> None:
        self._lock, self._is_forked = threading.RLock(), False
        _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._is_forked:
            self._is_forked = False
            # The threads that OpenMP keeps for torch are not in a forked process, which would wait for them for ever.
            if (torch := sys.modules.get("torch")) is not None:
                torch.set_num_threads(1)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[CallLock], tuple[()]]:
        return CallLock, ()


class HasLock(Protocol):
    """What has a lock of its own."""

    lock: CallLock


Owner = TypeVar("Owner", bound=HasLock)


def one_at_a_time(method: Callable[Concatenate[Owner, P], T]) -> Callable[Concatenate[Owner, P], T]:
    """Let a method hold its owner's lock, so that several threads may call it."""

    @functools.wraps(method)
    def method_alone(self: Owner, /, *args: P.args, **values: P.kwargs) -> T:
        with self.lock:
            return method(self, *args, **values)

    return method_alone


_ALL: weakref.WeakSet[CallLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_ALL):
        # Another thread may have held it when the process was forked.
        lock._lock, lock._is_forked = threading.RLock(), True


os.register_at_fork(after_in_child=_after_fork)
