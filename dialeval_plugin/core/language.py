"""Whether texts look English, by their words and letters, and the name of another language."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections import Counter
from itertools import islice
from pathlib import Path

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_END_OF_LATIN = "\u0250"
_MOST_WORDS = 200
_LEAST_FOREIGN = 0.2
"""Share of letters from which on their script names the language."""
_MARKS = ".,;:!?\"'()¿¡।؟،。"


def _lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()


_FUNCTION_WORDS = frozenset(" ".join(_lines("function_words.txt")).split())
"""Of English, without those that are as common in Dutch, German, Romance or Scandinavian languages."""
_ENGLISH_WORDS = {word: rank for rank, word in enumerate(_lines("english_words.txt"), start=1)}
"""Of openly licensed English chats, the most frequent first."""
_OTHER_LANGUAGES = {
    language: frozenset(words.split())
    for language, _, words in (line.partition(": ") for line in _lines("other_languages.txt"))
}
"""Frequent words by language."""
_OTHER_WORDS = frozenset[str]().union(*_OTHER_LANGUAGES.values())
_OWN_SCRIPTS = (
    *("Armenian", "Bengali", "Georgian", "Greek", "Gujarati", "Hebrew", "Kannada", "Khmer", "Lao", "Malayalam", "Oriya"),
    *("Tamil", "Telugu", "Thai"),
)
_SCRIPTS = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}
_SCRIPTS |= {script.upper(): script for script in _OWN_SCRIPTS}
"""Names of letters in Unicode begin with their script; these are of one language."""


def words_of(text: str, most: int | None = None) -> list[str]:
    """Return the words of a text, the first ones, in lower case."""
    return [found.group() for found in islice(_WORD.finditer(text.lower().replace("\u2019", "'")), most)]


def english_evidence(text: str) -> float:
    """Return how much the words of a text look English: below 0 where they do not, 0 where they could be of any language.

    It is the sum over the words, divided by the square root of their number: what few words say is close to 0.

    Example:
        >>> said = "Oh no.", "I am sorry. Was it bad?", "Das tut mir leid, war es schlimm?", "你好吗"
        >>> [round(english_evidence(text)) for text in said]
        [1, 2, -4, -6]
    """
    words = words_of(text, _MOST_WORDS)
    return sum(map(_evidence, words)) / math.sqrt(len(words) or 1)


@functools.lru_cache(1 << 15)
def _evidence(word: str) -> float:
    """What one word says: 1.5 where it is of English alone, below 0 where its language, or its letters, are others."""
    if (n_foreign := sum(letter >= _END_OF_LATIN for letter in word)) > 0:
        return -2.0 * n_foreign
    if word in _FUNCTION_WORDS:
        return 1.5
    rank = _ENGLISH_WORDS.get(word)
    if word in _OTHER_WORDS:
        return -1.5 if rank is None else 0.0
    if rank is not None:
        return min(1.0, 0.25 * math.log(1 + 2 * len(_ENGLISH_WORDS) / rank))
    return max(-2.0, min(0.0, _letters_evidence(word) + 2.2)) - 0.4


def _letters_evidence(word: str) -> float:
    """The mean log probability of the letters of a word, each after the two before it, among the words of English."""
    counts = _letter_counts()
    spelt = f"^^{word}$"
    places = range(2, len(spelt))
    found = ((counts[spelt[place - 2 : place + 1]], counts[spelt[place - 2 : place]]) for place in places)
    return sum(math.log((three + 0.1) / (two + 3)) for three, two in found) / len(places)


@functools.cache
def _letter_counts() -> Counter[str]:
    """How often three letters follow each other in words of English, and the first two of each three."""
    counts: Counter[str] = Counter()
    for word, rank in _ENGLISH_WORDS.items():
        spelt, n = f"^^{word}$", min(50, 15_000 // rank)
        for place in range(2, len(spelt)):
            counts[spelt[place - 2 : place + 1]] += n
            counts[spelt[place - 2 : place]] += n
    return counts


def language_name(text: str) -> str | None:
    """Return the language of a text that is not English, or its script where that is of several; None where neither is known.

    Example:
        >>> [language_name(text) for text in ("Das tut mir leid.", "你好吗", "Мне очень жаль", "Tere, kuidas läheb?")]
        ['German', 'Chinese', 'Russian', None]
    """
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter(unicodedata.name(letter, "UNKNOWN").partition(" ")[0] for letter in letters if letter >= _END_OF_LATIN)
    # Japanese has Chinese letters among its own, and so comes first.
    named = [_SCRIPTS[script] for script in _SCRIPTS if script in scripts]
    if named and scripts.total() > _LEAST_FOREIGN * len(letters):
        return named[0]
    words = Counter(word.strip(_MARKS) for word in text.lower().split())
    known = Counter({language: sum(words[word] for word in own) for language, own in _OTHER_LANGUAGES.items()})
    (language, most), (_, second) = known.most_common(2)
    if most > second or not scripts:
        return language if most > second else None
    script = scripts.most_common(1)[0][0]
    return _SCRIPTS.get(script, f"{script.capitalize()} letters")
