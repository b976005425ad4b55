"""The journal of a long run, a header line with its identity, then one JSON line a part; and the locks that keep others out."""

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
    """Keep other processes from what is written at `path`; the system opens the lock of a process that ends, however it ends.

    The lock is a file beside `path`, a file or a folder, which need not be there; their folder is made. With `waits` another
    process is waited for, and is no error.
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
        # Gone before it is open: whoever opened the file already sees that it has no name any more, and tries the next.
        with contextlib.suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


def lock_file(path: Path) -> Path:
    """The file that `sole_process` locks."""
    return path.with_name(path.name + ".lock")


def not_written(path: Path, error: OSError) -> InputError:
    """The error of an unfinished run whose files the system does not take (a full disk, a folder without permission)."""
    advice = "Finished parts are kept; repeat the command when there is room."
    if error.errno == errno.ENAMETOOLONG:
        advice = "Choose a shorter name for the output, beside which this file stands."
    elif error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        advice = "Choose another place, or ask for permission to write there."
    return InputError(f"{path}: cannot be written ({error.strerror}). {advice}")


class Journal:
    """Keeps whole parts only, so that a run that was killed goes on with the first part that is not in the file.

    `run_id` is the identity of the run: of its inputs and of everything that can move a result. With `overwrite` the journal of
    another run is replaced.
    """

    def __init__(self, path: Path, run_id: str, *, overwrite: bool = False) -> None:
        self.path = path
        self.run_id = run_id
        self._overwrite = overwrite

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """Keep other processes out while the run goes on."""
        return sole_process(self.path)

    def read(self, decode: Callable[[Any], Part]) -> list[Part]:
        """Return the finished parts, oldest first, and cut off one that a kill left half written.

        `decode` makes a part of its JSON value; its ValueError, KeyError and TypeError mean that the line is damaged.
        """
        header = (to_json({"run": self.run_id}) + "\n").encode()
        with _clear_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            raw = self.path.read_bytes() if self.path.exists() else b""
            # Nothing, or as much of the header as a kill or a full disk let through.
            if header.startswith(raw) or (self._overwrite and not raw.startswith(header)):
                # What it holds is the user's alone until the output is written.
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
        """Add one part, given as a JSON value, and return when it is on the disk."""
        with _clear_errors(self.path), self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_json(part) + "\n")
            file.flush()
            os.fsync(file.fileno())


@contextlib.contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read or written (a full disk, a folder without permission)."""
    try:
        yield
    except OSError as error:
        raise not_written(path, error) from error


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


def one_at_a_time(method: Callable[P, T]) -> Callable[P, T]:
    """Let a method hold its owner's `lock`, so that several threads may call it."""

    @functools.wraps(method)
    def method_alone(*args: P.args, **values: P.kwargs) -> T:
        with cast("Any", args[0]).lock:
            return method(*args, **values)

    return method_alone


_ALL: weakref.WeakSet[CallLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in list(_ALL):
        # Another thread may have held it when the process was forked.
        lock._lock, lock._is_forked = threading.RLock(), True


os.register_at_fork(after_in_child=_after_fork)
