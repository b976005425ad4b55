"""What one asks of any rated item, whichever corpus it comes from: how people rated it, and which dialogue it belongs to."""

from __future__ import annotations

import math

from dialeval_plugin.core.dialogue import Item, context_turns
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import text_hash

OPENING_TURNS = 3


def mean_rating(item: Item, quality: str) -> float | None:
    """Return the mean of the raters' values of `quality`; None where no rater answered.

    Only what is there is averaged: a rater who answered "not applicable" is not in the list.

    Example:
        >>> from dialeval_plugin.core.dialogue import Example
        >>> mean_rating(Example.from_texts([], "Fine."), "Overall")
        Traceback (most recent call last):
        dialeval_plugin.core.errors.InputError: '0': has no quality 'Overall'. It has: none.
    """
    if quality not in item.ratings:
        raise InputError(f"{item.id!r}: has no quality {quality!r}. It has: {', '.join(item.ratings) or 'none'}.")
    values = item.ratings[quality]
    return math.fsum(values) / len(values) if values else None


def context_key(item: Item) -> str:
    """Return a short hash that all items of one dialogue share: its first three turns, white space and speakers aside.

    It serves to resample whole dialogues, and to keep the dialogue under test out of the few-shot examples. An item's
    response is no part of the key (several systems answer one context), and neither is the rest of a long context,
    because several responses of one dialogue may be rated, each with the turns up to it as its context: in FED the 375
    contexts belong to 125 dialogues, in TopicalChat-USR the 60 contexts to 56. Three turns is the shortest context in
    FED, and enough to tell 124 of its 125 dialogues apart (two open with the same three turns and share a key). The
    same dialogue rated as a whole (FED-Dial) has the same key.

    A context of one or two turns is its own key, because the turns that followed are not known. An item without any
    context is alone: nothing tells which dialogue it comes from.
    """
    turns = context_turns(item)
    if not turns:
        return text_hash("no context", item.id)
    return text_hash(*(" ".join(turn.text.split()) for turn in turns[:OPENING_TURNS]))
