"""Whether a text looks like English, by its letters and its function words: what a model of English is not to score unsaid."""

from __future__ import annotations

import re
from functools import cache

from .dialogue import Dialogue, Item

_LEAST_WORDS, _LEAST_SHARE = 6, 0.1
WARNED_FROM = 0.02
"""Share of texts that do not look like English from which on a run says so; of English corpora it is below 0.006."""

_WORD = re.compile(r"[^\W\d_]+")
_END_OF_LATIN = "\u0250"
_SHARED = frozenset("am an as con de do he her in is me no of over per so un was we".split())  # noqa: SIM905 - a list of words
"""Words of English that are as common in Dutch, German, Romance or Scandinavian languages."""


@cache
def _function_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS) - _SHARED


def is_foreign(item: Item) -> bool:
    """Whether a response, with its context where it has fewer than six words, or a dialogue does not look like English.

    Most of its letters are not Latin, or fewer than a tenth of its words are English function words.

    Example:
        >>> from dialeval_plugin.core.dialogue import Example
        >>> [is_foreign(Example.from_texts([], text)) for text in ("Das tut mir leid, war es schlimm?", "Oh no.", "你好吗")]
        [True, False, True]
    """
    own, before = (item.turns, ()) if isinstance(item, Dialogue) else ((item.response,), item.context[::-1])
    words = [word for turn in own for word in _WORD.findall(turn.text.lower())]
    letters = "".join(words)
    if 2 * sum(letter >= _END_OF_LATIN for letter in letters) > len(letters) > 1:
        return True
    for turn in before:
        if len(words) < _LEAST_WORDS:
            words += _WORD.findall(turn.text.lower())
    return len(words) >= _LEAST_WORDS and sum(word in _function_words() for word in words) < _LEAST_SHARE * len(words)
