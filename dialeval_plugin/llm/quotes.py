"""Finds in the answer of a judge what it only repeats: a number or a label in there is no verdict.

An answer is compared with the content that was judged word by word, so white space, case, punctuation and kinds of quotation
marks make no difference. It is cleaned already, with one blank between words and in lower case. Repeated is

- a run of four words and more that stand in the content in this order, or a whole sentence of it that stands as one in the
  answer or is said to be said ("it says 5"), unless it is a verdict by itself ("5 out of 5") or begins with the heading of one
  ("Score: 5"): a response that says "5", "Yes" or "Score 5" takes no verdict away;
- text in quotation marks that occurs in the content, or that the answer says is said (`it says "5/5"`). A verdict alone in
  quotation marks is quoted where a whole sentence of the content is the same, and not where it is all that stands on its line
  or behind a heading;
- what stands behind a tag or a heading that the prompts show content with ("Context:", "FS:"), to the end of the repeated
  content or, where none is known, of the line, but not beyond the heading of a verdict.

In running text all that stands in quotation marks is quoted as well, unless it is nothing but a verdict.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

HIDDEN = "\ufffd"
"""Stands for a character that is only repeated. It is no part of a word, a number or white space."""
RUN = 4
"""Words from which on a run counts as repeated, although it is no sentence: fewer are shared by chance ("it is a 4")."""

_WORD = re.compile(r"[^\W_]+|\n")
_SENTENCE_END = re.compile(r"[.!?…;:]+[\"'”’)\]]*(?:\s|$)|\n| - ")
_DOUBLE_QUOTES = re.compile(r"\"[^\"\n]*(?:\"|$)|“[^”\n]*(?:”|$)|„[^”“\n]*(?:[”“]|$)|«[^»\n]*(?:»|$)", re.MULTILINE)
_SINGLE_QUOTE = re.compile(r"(?<!\w)['‘](?=[^\s'’])|(?<=[^\s'‘])['’](?!\w)|\n")
_MARKS = "\"'“”„‘’«»"
_SAYING = re.compile(
    r"\b(?:says|said|saying|states|reads|writes|wrote|asks|asked|asking|claims|mentions|quotes?|quoted|repeats"
    r"|response|turn|context|fact|text)(?: that| is| was)?[^\w\n]*\Z"
)
_SAYING_LENGTH = 40
_SHOWN = re.compile(
    r"^[^\w\n]{0,4}(?:(?:example|conversation(?: history)?|dialog history|dialogue history|(?:dialogue )?response|context"
    r"|(?:corresponding )?facts?|background info(?:rmation)?|fs|ss|first speaker|second speaker|person [a-z]) ?:\s*)+",
    re.MULTILINE,
)
_OPENS = re.compile(r"(?:\A|[^\w\s][\"'“„‘«(\[ ]*|\n)\Z")
_CLOSES = re.compile(r"[\"'”’»)\] ]*(?:\Z|[^\w\s]|\n)")

TextSpan = tuple[int, int]


class Grammar(ABC):
    """What kind of verdict is looked for."""

    sign: re.Pattern[str]
    """What has to occur in a text for it to be read as a verdict or a refusal."""
    heading: re.Pattern[str]
    """The heading of a verdict."""

    @abstractmethod
    def is_verdict(self, text: str) -> bool:
        """Whether a text is a verdict and nothing else."""


class Own(NamedTuple):
    """An answer without what it repeats. Both texts are as long as the answer."""

    text: str
    """Without repeated content."""
    prose: str
    """Without quotations, too."""


def own_words(answer: str, content: Sequence[str], grammar: Grammar) -> Own:
    """Hide what an answer only repeats, by the rules of this module; answer and content are cleaned."""
    known = _Known.of(content)
    matched = list(_runs(answer, known))
    hidden = [span for span in matched if _is_told(answer, span, grammar)]
    quotations = [span for span in _quotations(answer) if grammar.sign.search(answer, *span)]
    repeated = {span for span in quotations if _is_repeated(answer, span, known, grammar)}
    hidden += repeated
    hidden += _shown(answer, sorted([*matched, *repeated]), known, grammar)
    text = _without(answer, hidden)
    quoted = [span for span in quotations if not grammar.is_verdict(answer[span[0] : span[1]].strip(_MARKS))]
    return Own(text, _without(text, quoted))


class _Known(NamedTuple):
    """The content as sequences of words: whole sentences, and all runs of at most `RUN`."""

    runs: frozenset[tuple[str, ...]]
    sentences: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, content: Iterable[str]) -> _Known:
        runs: set[tuple[str, ...]] = set()
        sentences: set[tuple[str, ...]] = set()
        for text in content:
            words = _words(text)
            for length in range(1, RUN + 1):
                runs.update(zip(*(words[start:] for start in range(length)), strict=False))
            sentences.update(tuple(_words(part)) for part in (text, *_SENTENCE_END.split(text)))
        return cls(frozenset(runs), frozenset(filter(None, sentences)))

    def has(self, words: Sequence[str]) -> bool:
        """Whether the words stand in the content, in this order."""
        size = min(RUN, len(words))
        return size > 0 and all(tuple(words[start : start + size]) in self.runs for start in range(len(words) - size + 1))


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word != "\n"]


def _runs(answer: str, known: _Known) -> Iterator[TextSpan]:
    """Where words of the answer repeat the content; a run ends with its line, as a turn does in a prompt."""
    if not known.runs:
        return
    words = _WORD.findall(answer)
    found: list[TextSpan] = []
    for size in range(1, RUN + 1):
        texts = known.runs if size == RUN else known.sentences
        if any(len(text) == size for text in texts):
            grams = zip(*(words[start:] for start in range(size)), strict=False)
            found += [(place, place + size) for place, gram in enumerate(grams) if gram in texts]
    if not found:
        return
    places = [match.span() for match in _WORD.finditer(answer)]
    merged: list[list[int]] = []
    for first, end in sorted(found):
        if end - first < RUN and not _is_sentence(answer, places[first:end]):
            continue
        if merged and first < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([first, end])
    for first, end in merged:
        yield places[first][0], places[end - 1][1]


def _is_sentence(answer: str, words: Sequence[TextSpan]) -> bool:
    """Whether a few words stand in the answer as they do in the content: by themselves, or as something that is said."""
    start, end = words[0][0], words[-1][1]
    if _is_said(answer, start):
        return True
    # One word by itself may be the verdict.
    return len(words) > 1 and bool(_OPENS.search(answer, max(0, start - 8), start)) and bool(_CLOSES.match(answer, end))


def _is_said(answer: str, start: int) -> bool:
    return _SAYING.search(answer, max(0, start - _SAYING_LENGTH), start) is not None


def _is_told(answer: str, span: TextSpan, grammar: Grammar) -> bool:
    """Whether a run hides a verdict that is not the judge's."""
    if not grammar.sign.search(answer, *span):
        return False
    if _is_said(answer, span[0]):
        return True
    return not grammar.heading.match(answer, *span) and not grammar.is_verdict(answer[span[0] : span[1]])


def _quotations(answer: str) -> Iterator[TextSpan]:
    """Texts in quotation marks, with the marks; one that is not closed goes to the end of its line."""
    for match in _DOUBLE_QUOTES.finditer(answer):
        yield match.span()
    if "'" not in answer and "‘" not in answer:
        return
    start: int | None = None
    for match in _SINGLE_QUOTE.finditer(answer):
        before = answer[match.start() - 1 : match.start()]
        if match[0] == "\n":
            start = None
        elif start is not None and not before.isspace():
            yield start, match.end()
            start = None
        elif not before.isalnum():
            start = match.start()


def _is_repeated(answer: str, span: TextSpan, known: _Known, grammar: Grammar) -> bool:
    start, end = span
    inner = answer[start:end].strip(_MARKS)
    # A mark before a stop closes a quotation that has marks in it, and opens none.
    if _is_said(answer, start) and inner[:1].isalnum():
        return True
    if not grammar.is_verdict(inner):
        return known.has(_words(inner))
    line = answer.rfind("\n", 0, start) + 1
    before, after = answer[line:start].strip(), answer[end : end + 1]
    is_alone = not before and after in {"", "\n"}
    return not is_alone and before[-1:] not in {":", "="} and tuple(_words(inner)) in known.sentences


def _shown(answer: str, repeated: Sequence[TextSpan], known: _Known, grammar: Grammar) -> Iterator[TextSpan]:
    """What stands behind the tags and headings of content."""
    places = iter(repeated)
    place = next(places, None)
    for match in _SHOWN.finditer(answer):
        start = match.end()
        end = answer.find("\n", start)
        end = len(answer) if end < 0 else end
        if verdict := grammar.heading.search(answer, start, end):
            end = verdict.start()
        last = start + _opening_sentence(answer[start : min(end, start + 200)], known)
        while place is not None and place[0] < end:
            last = max(last, place[1]) if place[0] >= start else last
            place = next(places, None)
        if last > start:
            yield start, last
        elif not grammar.is_verdict(answer[start:end].strip()):
            yield start, end


def _opening_sentence(text: str, known: _Known) -> int:
    """The length of the short sentence of the content that a text opens with; 0 where there is none."""
    found = list(_WORD.finditer(text))[: RUN - 1]
    for size in range(len(found), 0, -1):
        if tuple(match[0] for match in found[:size]) in known.sentences:
            return found[size - 1].end()
    return 0


def _without(text: str, spans: Iterable[TextSpan]) -> str:
    characters = list(text)
    for start, end in spans:
        characters[start:end] = HIDDEN * (end - start)
    return "".join(characters)
