"""Keeping a second process away from what a first one is writing."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from .errors import InputError


@contextlib.contextmanager
def sole_process(path: Path) -> Iterator[None]:
    """Keep other processes from what is written at `path`; the system opens the lock of a process that ends, however it ends.

    Args:
        path: a file or a folder, which need not be there; the lock is a file beside it, and their folder is made.

    Raises:
        InputError: another process has it, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(path.name + ".lock"), timeout=0)
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


def not_written(path: Path, error: OSError) -> InputError:
    """The error of an unfinished run whose files the system does not take (a full disk, a folder without permission)."""
    advice = "Finished parts are kept; repeat the command when there is room."
    if error.errno == errno.ENAMETOOLONG:
        advice = "Choose a shorter name for the output, beside which this file stands."
    return InputError(f"{path}: cannot be written ({error.strerror}). {advice}")
