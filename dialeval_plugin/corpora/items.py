"""The mean rating of an item of any corpus, and keys of its dialogue and its text."""

from __future__ import annotations

import math

from dialeval_plugin.core.dialogue import Example, Item, context_turns
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import text_hash

OPENING_TURNS = 3


def mean_rating(item: Item, quality: str) -> float | None:
    """Return the mean of the raters' values of `quality`; None where no rater answered.

    Only what is there is averaged: a rater who answered "not applicable" is not in the list.
    """
    if quality not in item.ratings:
        raise InputError(f"{item.id!r}: has no quality {quality!r}. It has: {', '.join(item.ratings) or 'none'}.")
    values = item.ratings[quality]
    return math.fsum(values) / len(values) if values else None


def context_key(item: Item) -> str:
    """Return a short hash that all items of one dialogue share: its first three turns, white space and speakers aside.

    It serves to resample whole dialogues, and to keep the dialogue under test out of few-shot examples. The rest of a long
    context does not count, because several responses of one dialogue may be rated, each after the turns up to it: FED's 375
    contexts belong to 125 dialogues, of which two open alike. A shorter context is its own key, as the turns that followed
    are not known, and an item without any context is alone.
    """
    turns = context_turns(item)
    if not turns:
        return text_hash("no context", item.id)
    return text_hash(*(" ".join(turn.text.split()) for turn in turns[:OPENING_TURNS]))


def text_key(item: Item) -> str:
    """Return a short hash of what raters and judges of an item read, white space, speakers and facts aside."""
    turns = (*item.context, item.response) if isinstance(item, Example) else item.turns
    return text_hash(*(" ".join(turn.text.split()) for turn in turns))
