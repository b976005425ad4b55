"""How much of a response has not just been said: who repeats the person, or himself, adds nothing to a chat."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from dialeval_plugin.core.arrays import FloatArray

from .signals import words

NOVELTY = "novelty"
"""The quality that is counted and not learnt."""
NOVELTY_WEIGHT = 1.0
"""Log odds of the main score that a response loses of which every word was said shortly before. Chosen on ratings of other
responses, where 0.5 to 1.5 make little difference (reproduction/general/results.md)."""
NEAR = 4
"""Turns before a response in which its words are looked for."""


def novelty(responses: Iterable[tuple[Sequence[str], str]]) -> FloatArray:
    """Return which share of each response after its context, n of them, is new, of shape (n,), in [0, 1].

    Counted are distinct pairs of neighbouring words, the beginning of a response as one of them; new is a pair that none of the
    `NEAR` turns before has. A response without words is new.

    Example:
        >>> novelty([(["I like tea."], "I like tea."), (["I like tea."], "I like green tea.")]).tolist()
        [0.0, 0.5]
    """

    # Pairs are written as one text each: Python's garbage collector would look through a hundred thousand tuples.
    @functools.cache
    def pairs_of(text: str) -> frozenset[str]:
        return frozenset(map(" ".join, pairwise(("", *words(text)))))

    @functools.cache
    def pairs_of_all(turns: tuple[str, ...]) -> frozenset[str]:
        return frozenset().union(*map(pairs_of, turns))

    shares = []
    for context, response in responses:
        own = pairs_of(response)
        shares.append(len(own - pairs_of_all(tuple(context[-NEAR:]))) / len(own) if own else 1.0)
    return np.array(shares, dtype=np.float64)
