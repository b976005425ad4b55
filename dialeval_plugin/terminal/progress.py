"""Progress on stderr: a bar in a terminal, elsewhere a plain line now and then."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import Any, TextIO

import tqdm

SECONDS_BETWEEN_LINES = 10.0
"""Least time between two lines; lines of a long run are further apart."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether `stream` is a terminal that can move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress(tqdm.tqdm):  # type: ignore[misc]  # tqdm is not typed
    """A bar of tqdm that leaves nothing behind; where stderr is no terminal, lines in its place.

    The first line comes after ten seconds. A run that took longer than that ends with a line on how long it took.
    """

    monitor_interval = 0  # no thread that watches the bars

    def __init__(self, iterable: Any = None, desc: str | None = None, total: float | None = None, **options: Any) -> None:
        self._is_drawn = is_terminal(sys.stderr)
        if not self._is_drawn:
            options |= {"mininterval": SECONDS_BETWEEN_LINES, "delay": SECONDS_BETWEEN_LINES}
        super().__init__(iterable, desc, total, leave=False, miniters=1, **options)
        if not self._is_drawn:
            self._instances.discard(self)  # `say` need not clear it

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        """Draw the bar, or write a line."""
        if self._is_drawn:
            return super().display(msg, pos)
        if self.n == self.total:
            return True  # `close` says so
        elapsed = self.format_dict["elapsed"]
        self.mininterval = max(SECONDS_BETWEEN_LINES, elapsed / 10)
        text = f"{self._text()}, {self.format_interval(elapsed)}"
        if self.total and self.n > self.initial:
            left = elapsed * (self.total - self.n) / (self.n - self.initial)
            text += f", about {self.format_interval(left)} left"
        say(text)
        return True

    def close(self) -> None:
        """Remove the bar."""
        if getattr(self, "disable", True):
            return
        elapsed = self.format_dict["elapsed"]
        if self._is_drawn:
            super().close()
        self.disable = True
        if elapsed >= SECONDS_BETWEEN_LINES:
            say(f"{self._text()}, {self.format_interval(elapsed)}")

    def _text(self) -> str:
        of, share = (f" of {self.total:,}", f" ({100 * self.n / self.total:.0f} %)") if self.total else ("", "")
        unit = "" if self.unit == "it" else f" {self.unit}s"
        return f"{self.desc.removesuffix(': ') or 'working'}: {self.n:,}{of}{unit}{share}"


# A thread may have been drawing a bar when the process was forked; the child would wait for tqdm's lock for ever.
os.register_at_fork(after_in_child=lambda: Progress.set_lock(threading.RLock()))


def say(line: str) -> None:
    """Write a line to stderr, above a bar that is drawn there."""
    Progress.write(line, file=sys.stderr)


class LogHandler(logging.StreamHandler):  # type: ignore[type-arg]  # no generic class before Python 3.11
    """Write records to stderr, above a bar that is drawn there."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        with Progress.external_write_mode(file=self.stream):
            super().emit(record)
