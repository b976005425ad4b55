"""Whether a text looks like English, by its letters and its function words: what a model of English is not to score unsaid."""

from __future__ import annotations

import re
from pathlib import Path

from .dialogue import Dialogue, Item

_LEAST_WORDS, _LEAST_SHARE = 6, 0.1
WARNED_FROM = 0.02
"""Share of texts that do not look like English from which on a run says so; of English corpora it is below 0.006."""

_WORD = re.compile(r"[^\W\d_]+")
_END_OF_LATIN = "\u0250"
_FUNCTION_WORDS = frozenset(Path(__file__).with_name("function_words.txt").read_text(encoding="utf-8").split())
"""Of English, without those that are as common in Dutch, German, Romance or Scandinavian languages."""


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
    return len(words) >= _LEAST_WORDS and sum(word in _FUNCTION_WORDS for word in words) < _LEAST_SHARE * len(words)
