"""Long responses are judged in parts: which parts there are to judge, and what is said of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .context_texts import ResponseWindows


class ResponseParts(NamedTuple):
    """The parts of n responses, m in all."""

    ids: list[list[int]]
    """Token ids of the distinct parts."""
    owners: list[int]
    """For each of the m parts the response that it is of, by its number among the n."""
    places: list[int]
    """And its place in `ids`."""
    starts: np.ndarray
    """Where among the m the parts of each response begin, of shape (n,)."""

    @classmethod
    def of(cls, windows: Sequence[ResponseWindows], rows: Sequence[int]) -> ResponseParts:
        """Parts of the responses `windows[row]`, of which one may stand in several rows."""
        first = np.cumsum([0, *(len(found.parts) for found in windows)])
        places = [range(first[row], first[row + 1]) for row in rows]
        return cls(
            [part for found in windows for part in found.parts],
            [owner for owner, found in enumerate(places) for _ in found],
            [place for found in places for place in found],
            np.cumsum([0, *map(len, places)])[:-1],
        )

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Means of the parts' values (m, ...) over each response, (n, ...)."""
        sizes = np.diff([*self.starts, len(values)])
        means: np.ndarray = np.add.reduceat(values, self.starts) / sizes.reshape(-1, *[1] * (values.ndim - 1))
        return means

    def judged(self, values: np.ndarray) -> np.ndarray:
        """Half the mean and half the lowest of the parts' values (m,) of each response, (n,).

        One part spoils a response, whatever the others say.
        """
        judged: np.ndarray = (self.mean(values) + np.minimum.reduceat(values, self.starts)) / 2
        return judged
