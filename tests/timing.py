"""How long reading takes, measured so that another process on the machine does not count."""

from __future__ import annotations

import time
from collections.abc import Callable


def grows_with_its_length(read: Callable[[str], object], piece: str, *, length: int) -> bool:
    """Whether four times a text of this piece takes about four times as long: sixteen times is far beyond the factor."""

    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        best = float("inf")
        for _ in range(5):
            started = time.process_time()
            read(text)
            best = min(best, time.process_time() - started)
        return best

    return seconds(4 * length) < 12 * seconds(length) + 0.05
