"""Locks against other processes and threads."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from .errors import InputError

P = ParamSpec("P")
T = TypeVar("T")


@contextlib.contextmanager
def sole_process(path: Path, *, waits: bool = False) -> Iterator[None]:
    """Keep other processes from the file or folder `path`, which need not exist, until the block or the process ends.

    If another process holds it, raise an InputError or, with `waits`, wait for it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(lock_file(path), timeout=-1 if waits else 0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise InputError(
            f"{path}: another process is at work on this run. Wait until it ends, or choose another output."
        ) from None
    except OSError as error:
        raise not_written(path, error) from error
    try:
        yield
    finally:
        # It is removed before it is released: a process that has opened it notices, and tries again.
        with contextlib.suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


def lock_file(path: Path) -> Path:
    """Return the file that `sole_process` locks."""
    return path.with_name(path.name + ".lock")


def not_written(path: Path, error: OSError) -> InputError:
    """Return the error for an unfinished run that cannot write (a full disk, a folder without permission)."""
    advice = "Finished parts are kept; repeat the command when there is room."
    if error.errno == errno.ENAMETOOLONG:
        advice = "Choose a shorter name for the output, next to which this file is written."
    elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        advice = "Choose another place, or ask for permission to write there."
    elif error.errno in {errno.EEXIST, errno.ENOENT, errno.ENOTDIR}:
        advice = "Choose another place."
    return InputError(f"{path}: cannot be written ({error.strerror}). {advice}")


class CallLock:
    """A lock that a thread may take again; a pickled or forked copy of its owner has a new, free one."""

    def __init__(self) -> None:
        _use_one_thread_if_forked()  # before its owner loads a model, for one that is made in a forked process
        self._lock = threading.RLock()
        _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        _use_one_thread_if_forked()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[CallLock], tuple[()]]:
        return CallLock, ()


def one_at_a_time(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method to hold its owner's `lock`, so that several threads may call it."""

    @functools.wraps(method)
    def method_alone(*args: P.args, **values: P.kwargs) -> T:
        with cast("Any", args[0]).lock:
            return method(*args, **values)

    return method_alone


_ALL: weakref.WeakSet[CallLock] = weakref.WeakSet()
_is_forked = threading.Event()
"""Set in a forked process until a model is used in it."""


def _after_fork() -> None:
    _is_forked.set()
    for lock in list(_ALL):
        # Another thread may have held it.
        lock._lock = threading.RLock()


def _use_one_thread_if_forked() -> None:
    """Let torch compute in one thread: OpenMP's threads do not survive a fork, and torch would wait for them for ever."""
    if _is_forked.is_set() and (torch := sys.modules.get("torch")) is not None:
        _is_forked.clear()
        torch.set_num_threads(1)


os.register_at_fork(after_in_child=_after_fork)
