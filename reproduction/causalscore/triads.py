"""Circular triads: whether preferences between pairs come from an order of the things compared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import combinations
from typing import TypeVar

Thing = TypeVar("Thing", bound=Hashable)


def circular_triads(preferred: Mapping[tuple[Thing, Thing], Thing | None]) -> list[bool]:
    """Return for each three things of which every two are decided, whether they go in a circle: a over b over c over a.

    Kendall and Babington Smith 1940. Where every two are decided by an order there is none; where each is decided by a coin
    a quarter of the triads is circular in expectation, whatever the things are: preferences that reach a quarter tell
    nothing of what they are said to compare, and no metric can agree with them.
    A triad with a tie (None) or without a comparison is left out. Pairs are in either order, each with the preferred one.

    Example:
        >>> circular_triads({("a", "b"): "a", ("b", "c"): "b", ("c", "a"): "c"})
        [True]
        >>> circular_triads({("a", "b"): "a", ("b", "c"): "b", ("a", "c"): "a", ("a", "d"): None})
        [False]
    """
    winner = {frozenset(pair): best for pair, best in preferred.items() if best is not None}
    things = list(dict.fromkeys(thing for pair in preferred for thing in pair))
    triads = [[winner.get(frozenset(pair)) for pair in combinations(three, 2)] for three in combinations(things, 3)]
    # In a circle each of the three is preferred once.
    return [len(set(winners)) == len(winners) for winners in triads if None not in winners]
