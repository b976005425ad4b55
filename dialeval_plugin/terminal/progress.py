"""How far something is, on stderr: in a terminal one bar at a time, elsewhere a plain line now and then."""

from __future__ import annotations

import logging
import os
import sys
import threading
import weakref
from time import monotonic
from typing import Any, ClassVar, TextIO

import tqdm
from tqdm import asyncio, auto, std

SECONDS_BETWEEN_LINES = 10.0
"""At least; a long run is also a tenth further, or a minute older."""

_MINUTE = 6
"""Times `SECONDS_BETWEEN_LINES`."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody sees a stream who can be drawn for: no file, no pipe, no terminal that cannot move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


class Progress(asyncio.tqdm_asyncio):  # type: ignore[misc]  # the bars' package is not typed
    """A bar, made and used as those of tqdm; hosts get it in place of theirs by `draw_one_bar_at_a_time`.

    Of bars inside one another the innermost is shown, and none stays. Where stderr is no terminal lines come in their place,
    the first after ten seconds. What took longer than that says at its end how long.
    """

    monitor_interval = 0  # no thread that looks after the bars
    _begun: ClassVar[list[weakref.ref[Progress]]] = []
    _said_at: ClassVar[float] = 0.0

    def __init__(self, iterable: Any = None, desc: str | None = None, total: float | None = None, **options: Any) -> None:
        self._is_drawn = is_terminal(options.get("file") or sys.stderr)
        self._begun_at, self._said_n = monotonic(), options.get("initial", 0)
        own = {
            "leave": False,
            "position": 0,
            "miniters": 1,
            **({} if self._is_drawn else {"mininterval": SECONDS_BETWEEN_LINES}),
        }
        super().__init__(iterable, desc, total, **{**options, **own})
        if not self.disable:
            self._begun.append(weakref.ref(self))
            self.refresh()

    def display(self, msg: str | None = None, pos: int | None = None) -> Any:
        """Draw the bar if it is the innermost one, or say a line if it is time for one."""
        if not self._is_drawn:
            self._say_if_due()
            return True
        return super().display(msg, pos) if self._innermost() is self else True

    def clear(self, nolock: bool = False) -> None:
        """Take the bar from the screen."""
        if self._is_drawn:
            super().clear(nolock)

    def close(self) -> None:
        """End the bar, and show the one around it again."""
        if getattr(self, "disable", True):
            return
        took = monotonic() - self._begun_at
        text = self._text()
        if self._is_drawn:
            super().close()
        else:
            self.disable = True
            self._instances.discard(self)
        self._begun[:] = [one for one in self._begun if (bar := one()) is not None and bar is not self]
        if took >= SECONDS_BETWEEN_LINES:
            say(f"{text}, {self.format_interval(took)}")
        if (outer := self._innermost()) is not None:
            outer.refresh()

    @classmethod
    def _innermost(cls) -> Progress | None:
        return next((bar for one in reversed(cls._begun) if (bar := one()) is not None), None)

    def _say_if_due(self) -> None:
        now = monotonic()
        waited = now - max(self._begun_at, Progress._said_at)
        is_further = not self.total or self.n - self._said_n >= self.total / 10 or waited >= _MINUTE * SECONDS_BETWEEN_LINES
        if waited < SECONDS_BETWEEN_LINES or not is_further or self.n in {self._said_n, self.total}:
            return
        Progress._said_at, self._said_n = now, self.n
        took = now - self._begun_at
        text = f"{self._text()}, {self.format_interval(took)}"
        if self.total and self.n > self.initial:
            left = took * (self.total - self.n) / (self.n - self.initial)
            text += f", about {self.format_interval(left)} left"
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def _text(self) -> str:
        of, share = (f" of {self.total:,}", f" ({100 * self.n / self.total:.0f} %)") if self.total else ("", "")
        unit = "" if self.unit == "it" else f" {self.unit}s"
        return f"{self.desc.removesuffix(': ') or 'working'}: {self.n:,}{of}{unit}{share}"


# Another thread may have drawn a bar when the process was forked, and the other process would wait for tqdm's lock for ever.
os.register_at_fork(after_in_child=lambda: Progress.set_lock(threading.RLock()))


def say(line: str) -> None:
    """Write a line to stderr, above a bar that is drawn there."""
    Progress.write(line, file=sys.stderr)


class BetweenBars(logging.StreamHandler):  # type: ignore[type-arg]  # no generic class before Python 3.11
    """Writes records to stderr, above a bar that is drawn there."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one."""
        with Progress.external_write_mode(file=self.stream):
            super().emit(record)


def draw_one_bar_at_a_time() -> None:
    """Let hosts that this process imports from now on take `Progress` for tqdm's bars."""
    tqdm.tqdm = std.tqdm = auto.tqdm = asyncio.tqdm_asyncio = Progress
