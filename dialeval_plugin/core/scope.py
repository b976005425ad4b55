"""Scope of a trained model: limits of the texts that it was trained on, and reasons why a text is beyond them.

The limits are in a file of the model's folder. They change no score.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from .dialogue import Dialogue, Item, visible_texts
from .errors import ModelLoadError
from .files import checked_model_file, to_json
from .scores import kind_of
from .signature import SCOPE_FILE, text_hash

WARNED_FROM = 0.02
"""Share of rows out of scope from which on a run warns; English chats are below it."""
FORMAT_VERSION = 1
_REMEDY = "Update dialeval-plugin, or copy the model folder again."

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_END_OF_LATIN = "\u0250"
_MOST_WORDS = 200
_LEAST_FOREIGN = 0.2
"""Share of foreign letters from which on their script names the language."""
_MARKS = ".,;:!?\"'()¿¡।؟،。"


def _lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()


_FUNCTION_WORDS = frozenset(" ".join(_lines("function_words.txt")).split())
"""English function words that are rare in Dutch, German, Romance and Scandinavian languages."""
_ENGLISH_WORDS = {word: rank for rank, word in enumerate(_lines("english_words.txt"), start=1)}
"""Words of openly licensed English chats by rank of frequency."""
_OTHER_LANGUAGES = {
    language: frozenset(words.split())
    for language, _, words in (line.partition(": ") for line in _lines("other_languages.txt"))
}
_OTHER_WORDS = frozenset[str]().union(*_OTHER_LANGUAGES.values())
_OWN_SCRIPTS = (
    *("Armenian", "Bengali", "Georgian", "Greek", "Gujarati", "Hebrew", "Kannada", "Khmer", "Lao", "Malayalam", "Oriya"),
    *("Tamil", "Telugu", "Thai"),
)
_SCRIPTS = {"HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "CJK": "Chinese"}
_SCRIPTS |= {script.upper(): script for script in _OWN_SCRIPTS}
"""Language of each script, by the word with which the Unicode names of its letters begin."""

_URL = re.compile(r"\bhttps?://\S+|\bwww\.\S+")
_CODE = re.compile(
    r"""^(?:(?:else|try|finally):$ | (?:if|elif|for|while|with|except|class|async|def|match|case)\b.*:$ | at\s[\w.$]+\(
    | return(?:\s\S+)?;?$ | from\s\S+\simport\b | import\s[\w.]+(?:\sas\s\w+)?;?$ | raise\s\w+(?:\(|$)
    | @\w+(?:\(|$) | \#!?\s?\w+[:<(] | /[/*] | \*/ | \$\s[a-z] | >>> | Traceback | \[?\d{4}-\d\d-\d\d | \[?\d\d:\d\d:\d\d
    | \[?(?:DEBUG|INFO|WARN|ERROR|FATAL)\b | [\])}\[({]+[,;]?$ | HTTP/\d
    | (?:GET|POST|PUT|DELETE|PATCH)\s/ | (?:SELECT|INSERT|UPDATE|CREATE|DROP)\s | [^,.!?]+(?:,[^\s,!?][^,!?]*){2,}$)
    | [{}] | \\\w | =(?!\)) | (?<!:)[({\[]$ | [\])}"'];$ | -> | \w::\w | && | \|\| | \w\((?!s\)) | \w\[ | \w_\w | "\w+"\s*:
    | \t.*\t | [a-z]\.[a-z_]{2,}\.[a-z]""",
    re.VERBOSE,
)
"""Signs of code, its output, or data (JSON, CSV, logs, HTTP) in a line."""
_MARKUP = re.compile(
    r"^\s*(?:[-*+•]\s|\d{1,3}[.)]\s|#{1,6}\s|\|.*\||>\s|```|~~~)|\*\*\w|</?\w[^<>]{0,200}>|\\[(\[]|\]\(http", re.MULTILINE
)
"""List items, headings, table rows, quotations, bold words, tags, formulas and links."""
_SOME_WORDS, _ENOUGH_WORDS = 3, 6
"""Minimum number of words for recognising a language: from all turns together, and from one text."""
_LONGEST_LINE = 400
"""Number of characters examined per line."""


def words_of(text: str, most: int | None = None) -> list[str]:
    """Return the first `most` words of a text, in lower case."""
    return [match.group() for match in islice(_WORD.finditer(text.lower().replace("\u2019", "'")), most)]


def english_evidence(text: str) -> float:
    """Return how English the words of a text look: above 0 English, below 0 not, 0 unknown.

    It is the sum over the words, divided by the square root of their number.

    Example:
        >>> texts = "Oh no.", "I am sorry. Was it bad?", "Das tut mir leid, war es schlimm?", "你好吗"
        >>> [round(english_evidence(text)) for text in texts]
        [1, 2, -4, -6]
    """
    words = words_of(text, _MOST_WORDS)
    return sum(map(_evidence, words)) / math.sqrt(len(words) or 1)


@functools.lru_cache(1 << 15)
def _evidence(word: str) -> float:
    """Return the evidence of one word: 1.5 for words found only in English, below 0 for those of other languages or letters."""
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
    """Return the mean log probability of the letters of a word, each given the two before it, in English."""
    counts, spelt = _letter_counts(), f"^^{word}$"
    ends = range(2, len(spelt))
    return sum(math.log((counts[spelt[end - 2 : end + 1]] + 0.1) / (counts[spelt[end - 2 : end]] + 3)) for end in ends) / len(
        ends
    )


@functools.cache
def _letter_counts() -> Counter[str]:
    """Count the trigrams of letters in English words, and their first two letters."""
    counts: Counter[str] = Counter()
    for word, rank in _ENGLISH_WORDS.items():
        spelt, n = f"^^{word}$", min(50, 15_000 // rank)
        for place in range(2, len(spelt)):
            counts[spelt[place - 2 : place + 1]] += n
            counts[spelt[place - 2 : place]] += n
    return counts


def language_name(text: str) -> str | None:
    """Return the language of a text that is not English, or else its script; None if neither is known.

    Example:
        >>> [language_name(text) for text in ("Das tut mir leid.", "你好吗", "Мне очень жаль", "Tere, kuidas läheb?")]
        ['German', 'Chinese', 'Russian', None]
    """
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter(unicodedata.name(letter, "UNKNOWN").partition(" ")[0] for letter in letters if letter >= _END_OF_LATIN)
    # Japanese comes first, because it has Chinese characters too.
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


def _code_share(text: str) -> float:
    """Return the share of the characters in lines of code or data, in [0, 1]."""
    lines = [line for line in map(str.strip, _URL.sub("", text).splitlines()) if line]
    needed = 1 if len(lines) > 1 else 2  # a single line may have one sign of code by chance, unless it begins with it

    def is_code(line: str) -> bool:
        return _CODE.match(line) is not None or sum(1 for _ in _CODE.finditer(line)) >= needed

    return sum(len(line) for line in lines if is_code(line[:_LONGEST_LINE])) / (sum(map(len, lines)) or 1)


def _share_of_signs(text: str) -> float:
    """Return the share of visible characters that are not letters, digits or ends of sentences, in [0, 1]."""
    visible = {sign: n for sign, n in Counter(text).items() if not sign.isspace()}
    return sum(n for sign, n in visible.items() if not sign.isalnum() and sign not in ".,!?") / (sum(visible.values()) or 1)


def _english_evidence(text: str, before: Sequence[str]) -> float:
    """Return the evidence for English of a text, with its context if needed; 0 if there is too little."""
    text = _with_context(text, before)
    evidence = english_evidence(text)
    return evidence if _is_clear(text, evidence) or len(words_of(text, _SOME_WORDS)) == _SOME_WORDS else 0.0


def _with_context(text: str, before: Sequence[str]) -> str:
    """Return a text with as many of the previous ones as its language needs."""
    text = _URL.sub("", text)
    for other in before:
        if _is_clear(text, english_evidence(text)):
            break
        text += "\n" + _URL.sub("", other)
    return text


def _is_clear(text: str, evidence: float) -> bool:
    """Whether this evidence is enough for a text of its length: two names are not enough, foreign letters are."""
    n_words = len(words_of(text, _ENOUGH_WORDS))
    return evidence > 0.5 or n_words == _ENOUGH_WORDS or evidence < (-3.0 if n_words < _SOME_WORDS else -1.0)


class _Statistic(NamedTuple):
    """A measure of a text.

    Attributes:
        words: description of a text beyond the limit.
        measure: function of a text and those before it, the newest first.
        is_least: whether the limit is a lower one.
    """

    words: str
    measure: Callable[[str, Sequence[str]], float]
    is_least: bool = False


STATISTICS: Mapping[str, _Statistic] = {
    "code": _Statistic("code or data", lambda text, before: _code_share(text)),
    "english": _Statistic("not English", _english_evidence, is_least=True),
    "markup": _Statistic("lists or markup", lambda text, before: len(_MARKUP.findall(text))),
    "signs": _Statistic("mostly signs", lambda text, before: _share_of_signs(text)),
    "lines": _Statistic("many lines", lambda text, before: sum(not line.isspace() for line in text.splitlines() if line)),
    "words": _Statistic("very long", lambda text, before: len(words_of(text))),
}
"""Measures by name; the first whose limit is exceeded is reported."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits of the texts that a model was trained on.

    Attributes:
        responses: statistic to its limit for responses.
        last_turns: statistic to its limit for the turn before.
        n: number of texts that the limits were fitted on.
        sources: names of their files, with their SHA-256.
    """

    responses: Mapping[str, float]
    last_turns: Mapping[str, float]
    n: int
    sources: Mapping[str, str]
    format_version: int = FORMAT_VERSION

    @classmethod
    def read(cls, folder: Path) -> Scope | None:
        """Return the scope in a model folder; None if there is none.

        Raises:
            ModelLoadError: the file is damaged, or of a later release.
        """
        path = folder / SCOPE_FILE
        if not path.exists():
            return None
        scope = checked_model_file(path, cls)
        if scope.format_version != FORMAT_VERSION:
            raise ModelLoadError(
                f"{path}: format_version is {scope.format_version}, this release reads {FORMAT_VERSION}. {_REMEDY}"
            )
        for name, limits in (("responses", scope.responses), ("last_turns", scope.last_turns)):
            if unknown := sorted(limits.keys() - STATISTICS.keys()):
                raise ModelLoadError(f"{path}: {name}: there is no statistic {unknown[0]!r}. {_REMEDY}")
        return scope

    @property
    def digest(self) -> str:
        """Short hash of the limits."""
        return text_hash(to_json(asdict(self)))

    def beyond(self, item: Item) -> str | None:
        """Return why an item is beyond the limits; None if it is within.

        A dialogue is beyond them if more than half of its turns after the first are; the most frequent reason is returned.
        """
        if not isinstance(item, Dialogue):
            return self._beyond(visible_texts(item.context), item.response.text)
        turns = visible_texts(item.turns)
        reasons = [self._beyond(turns[:place], turns[place]) for place in range(1, len(turns))]
        kinds = Counter(kind_of(reason) for reason in reasons if reason is not None)
        if 2 * kinds.total() <= len(reasons):
            return None
        kind, n = kinds.most_common(1)[0]
        return f"{kind} ({n} of {len(reasons)} turns)"

    def _beyond(self, context: Sequence[str], response: str) -> str | None:
        before = context[::-1]
        if (reason := _reason(self.responses, response, before)) is not None:
            return reason
        reason = _reason(self.last_turns, before[0], before[1:]) if before else None
        return None if reason is None else f"after {reason}"


def _reason(limits: Mapping[str, float], text: str, before: Sequence[str]) -> str | None:
    for name, statistic in STATISTICS.items():
        if (limit := limits.get(name)) is None:
            continue
        value = statistic.measure(text, before)
        if value < limit if statistic.is_least else value > limit:
            known = f"{value:.0f} words, the longest that it knows have {limit:.0f}"
            detail = {"english": language_name(_with_context(text, before)), "words": known}.get(name)
            return f"{statistic.words} ({detail})" if detail else statistic.words
    return None


def out_of_scope_text(kinds: Mapping[str, int], n_scored: int) -> str:
    """Return a sentence on the rows out of scope, counted by kind; "" if there are none.

    Example:
        >>> out_of_scope_text({"not English": 30, "code or data": 11}, 100)
        '41 % of these responses are unlike anything this model was measured on: 30 % not English, 11 % code or data'
    """
    if not (n := sum(kinds.values())):
        return ""
    named = ", ".join(f"{_percent(count, n_scored)} {kind}" for kind, count in Counter(kinds).most_common())
    return f"{_percent(n, n_scored)} of these responses are unlike anything this model was measured on: {named}"


def _percent(n: int, n_all: int) -> str:
    return f"{100 * n / n_all:.0f} %" if 200 * n >= n_all else "under 1 %"
