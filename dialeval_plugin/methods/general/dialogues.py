"""How a whole dialogue is judged: whose turns count, and which of their words are new."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Turn, is_blank
from dialeval_plugin.corpora.messages import assistant

from .signals import words

NEAR = 4
"""Turns before a turn in which its words are looked for."""


def judged_turns(turns: Sequence[Turn]) -> np.ndarray:
    """Return which of the n visible turns but the first are judged, of shape (n - 1,), booleans.

    They are those of the assistant, see `messages.assistant`; everybody's where nobody is known to be one, or where only the
    first turn is the assistant's.
    """
    speakers = [turn.speaker for turn in turns if not is_blank(turn.text)][1:]
    name = assistant(turns)
    chosen = np.array([name is not None and speaker == name for speaker in speakers], dtype=bool)
    return chosen if chosen.any() else np.ones(len(speakers), dtype=bool)


def novelty(texts: Sequence[str]) -> FloatArray:
    """Return which share of each turn but the first is new, of shape (n - 1,), in [0, 1].

    Counted are distinct pairs of neighbouring words, the beginning of a turn as one of them; new is a pair that none of the
    `NEAR` turns before has. The number of turns before the first of these moves nothing. A turn without words is new.

    Example:
        >>> novelty(["I like tea.", "I like tea.", "I like green tea."]).tolist()
        [0.0, 0.5]
    """
    pairs = [frozenset(pairwise(("", *words(text)))) for text in texts]
    return np.array(
        [
            len(own.difference(*pairs[max(0, place - NEAR) : place])) / len(own) if own else 1.0
            for place, own in enumerate(pairs[1:], start=1)
        ]
    )
