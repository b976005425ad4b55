"""Keys of items of any corpus: of their dialogues and of their texts."""

from __future__ import annotations

from dialeval_plugin.core.dialogue import Example, Item, context_turns
from dialeval_plugin.core.signature import text_hash

OPENING_TURNS = 3


def context_key(item: Item) -> str:
    """Return a short hash shared by all items of one dialogue: of its first three turns, ignoring white space and speakers.

    It serves to resample whole dialogues, and to keep the dialogue under test out of few-shot examples. The rest of a long
    context is ignored, because several responses of one dialogue may be rated, each after the turns up to it: FED's 375
    contexts belong to 125 dialogues, of which two have the same opening. A shorter context is its own key, as the turns after
    it are unknown, and an item without any context has its own key.
    """
    turns = context_turns(item)
    if not turns:
        return text_hash("no context", item.id)
    return text_hash(*(" ".join(turn.text.split()) for turn in turns[:OPENING_TURNS]))


def text_key(item: Item) -> str:
    """Return a short hash of an item's text for raters and judges, ignoring white space, speakers and facts."""
    turns = (*item.context, item.response) if isinstance(item, Example) else item.turns
    return text_hash(*(" ".join(turn.text.split()) for turn in turns))
