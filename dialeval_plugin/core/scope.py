"""What a trained model knows: how far a text may be from those that it learnt from, and in words why one is beyond.

The limits lie in a file beside the model. They move no score, so neither the model's hash nor a signature knows of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from .dialogue import Dialogue, Item, visible_texts
from .errors import ModelLoadError
from .files import checked_model_file, to_json
from .language import english_evidence, language_name, words_of
from .scores import kind_of
from .signature import SCOPE_FILE, text_hash

WARNED_FROM = 0.02
"""Share of rows that are out of scope from which on a run warns; of English chats it is lower."""
FORMAT_VERSION = 1
_REMEDY = "Update dialeval-plugin, or copy the model folder again."

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
"""In a line of a program, of its output, or of data: JSON, CSV, logs, HTTP."""
_MARKUP = re.compile(
    r"^\s*(?:[-*+•]\s|\d{1,3}[.)]\s|#{1,6}\s|\|.*\||>\s|```|~~~)|\*\*\w|</?\w[^<>]{0,200}>|\\[(\[]|\]\(http", re.MULTILINE
)
"""Items of lists, headings, rows of tables, quotations, bold words, tags, formulas and links."""
_ENOUGH_WORDS = 6
"""To know a language whatever they are."""
_LONGEST_LINE = 400
"""What of a line is looked at."""


def _code_share(text: str) -> float:
    """Share of the characters that stand in lines of code or data, in [0, 1]."""
    lines = [line for line in map(str.strip, _URL.sub("", text).splitlines()) if line]
    n_code = sum(len(line) for line in lines if _CODE.search(line[:_LONGEST_LINE]))
    return n_code / (sum(map(len, lines)) or 1)


def _share_of_signs(text: str) -> float:
    """Share of the visible characters that are neither letters nor digits nor end a sentence, in [0, 1]."""
    visible = [sign for sign in text if not sign.isspace()]
    return sum(not sign.isalnum() and sign not in ".,!?" for sign in visible) / (len(visible) or 1)


def _english_evidence(text: str, before: Sequence[str]) -> float:
    """Evidence for English of the text, or of it and its context; what is too little to say anything is 0."""
    read = _with_context(text, before)
    evidence = english_evidence(read)
    return evidence if _is_clear(read, evidence) else 0.0


def _with_context(text: str, before: Sequence[str]) -> str:
    """The text, with those before it as long as too little is said to know its language."""
    text = _URL.sub("", text)
    for other in before:
        if _is_clear(text, english_evidence(text)):
            break
        text += "\n" + _URL.sub("", other)
    return text


def _is_clear(text: str, evidence: float) -> bool:
    """Whether this evidence is enough, from a text of so many words: two names are no other language, but other letters are."""
    n_words = len(words_of(text, _ENOUGH_WORDS))
    return evidence > 0.5 or n_words == _ENOUGH_WORDS or evidence < (-3.5 if n_words < 3 else -2.0)


class _Statistic(NamedTuple):
    """What is measured of a text.

    Attributes:
        words: what a text beyond the limit is.
        measure: of the text and those before it, the newest first.
        is_least: whether the limit is the lowest value, and not the highest.
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
"""By name; the first whose limit a text is beyond is named."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits of what a model was trained and measured on.

    Attributes:
        responses: limit by the name of a statistic; one without a limit is not looked at.
        last_turns: the same of the turn that is answered.
        n: texts that the limits were fitted on.
        sources: files that they are from, by name, with their SHA-256.
    """

    responses: Mapping[str, float]
    last_turns: Mapping[str, float]
    n: int
    sources: Mapping[str, str]
    format_version: int = FORMAT_VERSION

    @classmethod
    def read(cls, folder: Path) -> Scope | None:
        """Return that of the model in a folder; None where the folder has none.

        Raises:
            ModelLoadError: the file is damaged, or of a later release.
        """
        path = folder / SCOPE_FILE
        if not path.exists():
            return None
        found = checked_model_file(path, cls)
        if found.format_version != FORMAT_VERSION:
            raise ModelLoadError(
                f"{path}: format_version is {found.format_version}, this release reads {FORMAT_VERSION}. {_REMEDY}"
            )
        for name, limits in (("responses", found.responses), ("last_turns", found.last_turns)):
            if unknown := sorted(limits.keys() - STATISTICS.keys()):
                raise ModelLoadError(f"{path}: {name}: there is no statistic {unknown[0]!r}. {_REMEDY}")
        return found

    @property
    def digest(self) -> str:
        """A short hash of the limits."""
        return text_hash(to_json(asdict(self)))

    def beyond(self, item: Item) -> str | None:
        """Say why an item is beyond the limits; None where it is not.

        A dialogue is where more than half of its turns are that follow another; the most frequent reason is given.
        """
        if not isinstance(item, Dialogue):
            return self._beyond(visible_texts(item.context), item.response.text)
        turns = visible_texts(item.turns)
        reasons = [self._beyond(turns[:place], turns[place]) for place in range(1, len(turns))]
        found = Counter(kind_of(reason) for reason in reasons if reason is not None)
        if 2 * found.total() <= len(reasons):
            return None
        kind, n = found.most_common(1)[0]
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
    """Return a sentence on the rows out of scope, of which there are so many of each kind; "" where there are none.

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
