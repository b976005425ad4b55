"""Trainings in processes of their own that are killed, or whose disk is full, at a place that is chosen beforehand.

Run as a program it imports what trainings need once, and forks for each line that it reads: a process that starts from nothing
takes longer to import the hosts than to train.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]


def files_of(folder: Path) -> dict[str, bytes]:
    """All files of a folder by their names below it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Ended(NamedTuple):
    """How a training's process ended."""

    status: int
    """0 well, 2 with an error for people, 1 with another one, -9 killed."""
    said: str
    """The error's message, or all of its traceback."""
    n_events: int
    """Changes of the file system under the model's folder, where none of them was the last."""


class TrainingProcesses:
    """Starts trainings."""

    def __init__(self, encoder: Path) -> None:
        self._encoder = encoder
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.training_processes"],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, name: str, output: Path, **conditions: Any) -> Ended:
        """Train and wait for the end; the conditions are those of `_train`."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        request = {"name": name, "encoder": str(self._encoder), "output": str(output), **conditions}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return Ended(*json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        """End the process that forks."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()


class FileEvents:
    """Counts what a process changes under a folder, and kills it at the event that is asked for.

    Python's audit events show what Python opens to write, renames and removes. What PyTorch and safetensors write by themselves
    is seen when they are done. With `tear` the last file that was written is cut at a random place first, as by a kill in the
    middle of its write; one that was renamed into its place never is, because nothing but whole files ever is.
    """

    def __init__(self, folder: Path, kill_at: int | None, seed: int) -> None:
        self._folder = f"{folder}{os.sep}"
        self._kill_at = kill_at
        self._random = random.Random(seed)
        self._last: str | None = None
        self.number = 0

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take one of Python's events."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str) and (flags & (os.O_WRONLY | os.O_RDWR)):
                self._happens(path)
                self._wrote(path)
        elif event == "os.rename":
            self._happens(os.fspath(arguments[1]))
            if self._last == os.fspath(arguments[0]):
                self._last = None
        elif event in ("os.remove", "os.rmdir", "os.mkdir"):
            path, descriptor = os.fspath(arguments[0]), arguments[-1]
            # Inside shutil.rmtree paths are relative to an open folder.
            self._happens(path if descriptor == -1 else self._folder)

    def wrote(self, path: Any) -> None:
        """Take a file that was written by what is not Python."""
        self._wrote(str(path))
        self._happens(str(path))

    def _wrote(self, path: str) -> None:
        if path.startswith(self._folder):
            self._last = path

    def _happens(self, path: str) -> None:
        if not path.startswith(self._folder):
            return
        if self.number == self._kill_at:
            if self._last is not None and Path(self._last).exists() and self._random.random() < 0.7:
                os.truncate(self._last, self._random.randint(0, max(0, Path(self._last).stat().st_size - 1)))
            os.kill(os.getpid(), signal.SIGKILL)
        self.number += 1


_EVENTS: list[FileEvents] = []


def _watch_writers() -> None:
    """Let PyTorch's and safetensors' writers report; before transformers takes their names."""
    import safetensors.torch
    import torch

    def watched(save: Callable[..., None]) -> Callable[..., None]:
        def save_watched(value: Any, place: Any, *arguments: Any, **named: Any) -> None:
            save(value, place, *arguments, **named)
            for events in _EVENTS:
                events.wrote(place)

        return save_watched

    safetensors.torch.save_file, torch.save = watched(safetensors.torch.save_file), watched(torch.save)


def _train(
    name: str,
    encoder: str,
    output: str,
    *,
    kill_at: int | None = None,
    seed: int = 0,
    largest_file: int | None = None,
    pace: float = 1.0,
    changes: dict[str, Any] | None = None,
) -> int:
    """Train in this process and return the number of events.

    Args:
        kill_at: number of the event at which the process is killed.
        seed: of whether and where the last file is torn.
        largest_file: bytes that a file may have.
        pace: of the clock.
        changes: other options.
    """
    import time

    from tests.tiny.trainings import TRAININGS

    monotonic = time.monotonic
    time.monotonic = lambda: pace * monotonic()
    events = FileEvents(Path(output), kill_at, seed)
    _EVENTS.append(events)
    sys.addaudithook(events.audit)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, resource.RLIM_INFINITY))
    try:
        TRAININGS[name](Path(encoder), Path(output), **(changes or {}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return events.number


def _serve() -> None:
    from dialeval_plugin.core.errors import DialevalError

    _watch_writers()
    import tests.tiny.trainings  # noqa: F401 - what the forked processes need

    # The host's trainer collects garbage after each stage: half a second for what is imported, were it not frozen.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            status, said, number = 0, "", 0
            try:
                number = _train(**json.loads(line))
            except DialevalError as error:
                status, said = 2, str(error)
            except BaseException:
                status, said = 1, traceback.format_exc()
            os.write(writer, json.dumps([status, said, number]).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as answer:
            said_by_child = answer.read()
        _, ended = os.waitpid(child, 0)
        sys.stdout.write((said_by_child.decode() or json.dumps([-os.WTERMSIG(ended), "", 0])) + "\n")
        sys.stdout.flush()


@contextmanager
def training_processes(encoder: Path) -> Iterator[TrainingProcesses]:
    """Yield what starts trainings, and end it."""
    processes = TrainingProcesses(encoder)
    try:
        yield processes
    finally:
        processes.close()


if __name__ == "__main__":
    _serve()
