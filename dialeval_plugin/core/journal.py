"""Journals of long runs, and locks against other processes and threads."""

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
from .files import parse_json, to_json

Part = TypeVar("Part")
P = ParamSpec("P")
T = TypeVar("T")


@contextlib.contextmanager
def sole_process(path: Path, *, waits: bool = False) -> Iterator[None]:
    """Keep other processes from the file or folder `path`, which need not exist, until the block or the process ends.

    Another process at work is an InputError; with `waits` it is waited for.
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
        # Removed before it is released: a process that has opened it notices, and tries again.
        with contextlib.suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


def lock_file(path: Path) -> Path:
    """Return the file that `sole_process` locks."""
    return path.with_name(path.name + ".lock")


def not_written(path: Path, error: OSError) -> InputError:
    """Return the error of an unfinished run that cannot write (a full disk, a folder without permission)."""
    advice = "Finished parts are kept; repeat the command when there is room."
    if error.errno == errno.ENAMETOOLONG:
        advice = "Choose a shorter name for the output, beside which this file stands."
    elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        advice = "Choose another place, or ask for permission to write there."
    return InputError(f"{path}: cannot be written ({error.strerror}). {advice}")


class Journal:
    """File of the finished parts of a run, from which a killed run resumes: a header line, then one JSON line a part.

    `run_id` identifies the inputs and everything that can move a result.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id

    def read(self, decode: Callable[[Any], Part]) -> list[Part]:
        """Return the finished parts, oldest first, and remove a half-written one.

        `decode` makes a part of its JSON value; its ValueError, KeyError and TypeError mean that the line is damaged.
        """
        header = (to_json({"run": self.run_id}) + "\n").encode()
        with _clear_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            raw = self.path.read_bytes() if self.path.exists() else b""
            # A killed process may have written a part of the header.
            if header.startswith(raw):
                self.path.touch(mode=0o600)
                self.path.write_bytes(header)
                return []
        if not raw.startswith(header):
            raise InputError(
                f"{self.path}: this unfinished run has other inputs or settings than the present one. "
                "Delete the file to start again, or repeat the first command to finish it."
            )
        *lines, half_written = raw[len(header) :].split(b"\n")
        parts = []
        for number, line in enumerate(lines, start=2):
            where = f"{self.path}:{number}"
            try:
                parts.append(decode(parse_json(line.decode(), where)))
            except InputError as error:
                raise InputError(f"{error} Delete the file to start again.") from None
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{where}: is damaged ({error}). Delete the file to start again.") from error
        with _clear_errors(self.path), self.path.open("rb+") as file:
            file.truncate(len(raw) - len(half_written))
        return parts

    def append(self, part: Any) -> None:
        """Add one part, a JSON value, and return when it is on the disk."""
        with _clear_errors(self.path), self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_json(part) + "\n")
            file.flush()
            os.fsync(file.fileno())


@contextlib.contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Turn an OSError into an InputError that names the file."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from error


class CallLock:
    """A lock that a thread may take again; a pickled or forked copy of its owner has a new, free one."""

    def __init__(self) -> None:
        self._lock, self._is_forked = threading.RLock(), False
        _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._is_forked:
            self._is_forked = False
            # OpenMP's threads do not survive a fork, and torch would wait for them for ever.
            if (torch := sys.modules.get("torch")) is not None:
                torch.set_num_threads(1)

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


def _after_fork() -> None:
    for lock in list(_ALL):
        # Another thread may have held it.
        lock._lock, lock._is_forked = threading.RLock(), True


os.register_at_fork(after_in_child=_after_fork)
