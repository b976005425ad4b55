r"""Parsing of ratings and labels in the answers of language models.

A verdict is one of these:

- after its name: "Score: 4", `{"score": 4}`, "<score>4</score>", "[RESULT] 4", "\boxed{4}"; the last of several. Without any of
  these, a sentence that states it: "The score is 4", "I would rate it a 4", "My answer is no".
- without a name: the whole answer, its first or last line, or its beginning ("4. It fits.", "Yes, because ...").

Anything else is `Unscored` with the reason, never 0 or the middle of the scale: numbers in prose, negations and conditions
("to get a 5", "not positive"), a last name without a verdict ("Score: N/A"), two verdicts that disagree, another scale than the
prompt's, and a verdict that the answer takes back. Reasoning, quotations and repeated lines of the prompt are ignored.
"""

from __future__ import annotations

import bisect
import functools
import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dialeval_plugin.core.scores import Reason, Unscored

from .reasoning import split_reasoning

logger = logging.getLogger(__name__)
"""Logs each answer without a verdict, in full, at level DEBUG: `dialeval score --show-unparsed`."""

Scale: TypeAlias = tuple[float, float]
"""Lowest and highest rating."""


def parse_rating(
    answer: str,
    scale: Scale,
    *,
    label: str | None = None,
    label_only: bool = False,
    prompt: str | None = None,
    content: Sequence[str] = (),
    is_cut: bool = False,
) -> float | Unscored:
    """Return the rating in `answer`, or the reason why there is none.

    A number after `label` takes precedence over one after "overall score", that over one after "score" or "rating". "4/5" and
    "4 out of 5" count if the second number is the top of the scale. A percentage counts on a scale from 0 to 1.

    Args:
        answer: the model's answer.
        scale: lowest and highest rating.
        label: name of the rating in the prompt, such as "Engagingness".
        label_only: whether no other name counts, for prompts that show several scores.
        prompt: removed where the model repeats it.
        content: the judged texts as they are in the prompt. A sentence that the model repeats from them does not count.
        is_cut: whether the answer was truncated by a limit on tokens. Then only a verdict with text after it counts.

    Example:
        >>> parse_rating("Engagingness: 0.8", (0, 1), label="Engagingness"), parse_rating("10 out of 10", (1, 5)).reason.value
        (0.8, 'out_of_range')
        >>> parse_rating("To get a 5, it should ask a question.", (1, 5)).reason.value
        'parse_failure'
    """
    rows = ((rf"{re.escape(label.casefold())}(?: score| rating)?",) if label else ()) + (() if label_only else _RATING_NAMES)
    statement = rf"(?:{'|'.join(rows)}) (?:is|of):?|{_I_RATE}(?P<object>[^.!?\n]{{0,80}}?)" if rows else ""
    verdict = _verdict(answer, _form("number", rows, _NUMBER, statement), prompt, content, is_cut=is_cut)
    if isinstance(verdict, Unscored):
        return verdict
    low, high = scale
    other = f"the answer is on another scale than {low:g} to {high:g}"
    if any(_float(last) != high or _float(first or f"{low:g}") != low for first, last in verdict.scales):
        return unread(Reason.OUT_OF_RANGE, other, answer)
    place = verdict.match.start("number")
    if low < 0 and "- " in verdict.match.string[max(verdict.match.start(), place - _FEW_SIGNS) : place]:
        return unread(Reason.PARSE_FAILURE, "the answer has a dash before its number, which may be its sign", answer)
    value = _float(verdict.match["number"])
    if verdict.match["percent"]:
        if tuple(scale) != (0, 1):
            return unread(Reason.OUT_OF_RANGE, other, answer)
        value /= 100
    if verdict.match["top"] and _float(verdict.match["top"]) != high:
        return unread(Reason.OUT_OF_RANGE, other, answer)
    if not low <= value <= high:
        return unread(Reason.OUT_OF_RANGE, f"{value:g} is not on the scale {low:g} to {high:g}", answer)
    return value


def parse_label(
    answer: str, labels: Sequence[str], *, prompt: str | None = None, content: Sequence[str] = (), is_cut: bool = False
) -> str | Unscored:
    """Return the one of `labels` in `answer`, in any case, or the reason why there is none; see `parse_rating`.

    Example:
        >>> parse_label("Predicted: positive", ("positive", "negative")), parse_label("No, it is not.", ("yes", "no"))
        ('positive', 'no')
        >>> parse_label("It is not positive.", ("positive", "negative")).reason.value
        'parse_failure'
    """
    spelled = {_clean(label): label for label in labels}
    longest_first = sorted(spelled, key=len, reverse=True)
    one = "|".join(" ".join(map(re.escape, label.split())) for label in longest_first)
    label = rf"(?P<label>{one or '(?!)'})(?![\w-]){_NO_KEY}(?!{_TURN}(?:{one})(?![\w-]| \w))"
    form = _form("label", _LABEL_NAMES, label, _LABEL_STATEMENT)
    verdict = _verdict(answer, form, prompt, content, is_cut=is_cut)
    return verdict if isinstance(verdict, Unscored) else spelled[verdict.match["label"]]


@dataclass(frozen=True)
class _Form:
    what: str
    """Number or label: the name in messages, and of the group in `value`."""
    names: tuple[str, ...]
    """Patterns of the names in its headings, best first."""
    value: str
    """Pattern of the verdict itself."""
    statement: str
    """Pattern of the words before a verdict in a sentence that states it; empty if no sentence counts."""

    @functools.cached_property
    def verdict(self) -> re.Pattern[str]:
        return re.compile(rf"{_OPENING}{self.value}{_FOLLOWING}")

    def meaning(self, match: re.Match[str]) -> float | str:
        # "4" and "4.0" are the same verdict.
        return _float(match["number"]) if self.what == "number" else match["label"]

    @functools.cached_property
    def heading(self) -> re.Pattern[str]:
        return _heading(self.names)


_form = functools.lru_cache(maxsize=64)(_Form)


class _Heading(NamedTuple):
    row: int
    """Row of names that it belongs to; 0 is the best."""
    before: str
    """Word before the name, such as "naturalness" in "naturalness score"."""
    note: str
    """Text in brackets after the name, with them."""
    start: int
    end: int


class _Verdict(NamedTuple):
    match: re.Match[str]
    scales: list[tuple[str | None, str]]
    """Ends of the scales in the answer; the lower end may be missing."""


def _verdict(answer: str, form: _Form, prompt: str | None, content: Sequence[str], *, is_cut: bool) -> _Verdict | Unscored:
    text = readable(answer, prompt, is_cut=is_cut)
    if isinstance(text, Unscored):
        return text
    known = _cleaned(tuple(content))
    text = _hide_quotations(text, form, known)
    headings = list(_headings(text, form))
    if headings and not text[headings[-1].end :].strip(_EDGES):
        return unread(Reason.TRUNCATED, f"the answer ends before the {form.what}", answer)
    best = _best(text, form, headings)
    unnamed = list(_unnamed(text, form, known, is_cut=is_cut))
    deciding: Sequence[re.Match[str] | None] = _deciding(text, form, best)
    if is_cut and deciding and deciding[-1] and _UNFINISHED.match(text, deciding[-1].end()):
        deciding = [None]
    if not (headings or unnamed or is_cut):
        deciding = list(_statements(text, form, known))[-1:]
    matches = [match for match in (*deciding, *unnamed) if match]
    meanings = {form.meaning(match) for match in matches}
    is_unreadable = None in deciding
    if len(meanings) == 1 and not is_unreadable and not _RETRACTION.search(text, max(match.end() for match in matches)):
        return _Verdict(matches[-1], list(_scales(text, matches, best)))
    if _REFUSAL.search(_QUOTATION.sub(" ", text)):
        return unread(Reason.REFUSAL, "the model refused", answer)
    if is_cut:
        return unread(Reason.TRUNCATED, f"the answer was cut off before the {form.what}", answer)
    problem = f"no {form.what} where one was asked for"
    if meanings and not is_unreadable:
        problem = f"{len(meanings)} different {form.what}s" if len(meanings) > 1 else f"a {form.what} that it takes back"
    return unread(Reason.PARSE_FAILURE, f"the answer has {problem}", answer)


def _hide_quotations(text: str, form: _Form, known: frozenset[str]) -> str:
    """Hide quotations of verdicts, and texts of the content that are quoted whole."""
    text = _QUOTATION.sub(lambda match: HIDDEN * len(match[0]) if _is_quoted_verdict(match[0], form) else match[0], text)
    for quotation in known:
        if len(quotation.split()) > _FEW_WORDS and quotation in text and not form.verdict.fullmatch(quotation):
            text = text.replace(quotation, HIDDEN * len(quotation))
    return text


# Places of a verdict.


def _heading(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of a name and the sign after it; group i is the name of row i, the last group a note in brackets."""
    rows = "|".join(f"({row})" for row in names)
    # JSON puts quotation marks around a name, and may put an object behind it; "<score>" and "[result]" are headings too.
    inner = r"(?:\{\s*[\"'](?:score|rating|value)[\"']\s*:\s*)?"
    return re.compile(rf"(?<![\w/])(?:{rows})(?:[\"']? ?(\([^()\n]*\)|\[[^\[\]\n]*\])? ?[:=]\s*{inner}|>\s*|\]:?\s*)")


def _names(text: str, heading: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield matches of a `_heading` pattern; a name before a closing bracket needs the opening bracket."""
    for match in heading.finditer(text):
        opening = {">": "<", "]": "["}.get(match[0].rstrip(" \n:")[-1])
        if opening is None or match[match.re.groups] or text[match.start() - 1 : match.start()] == opening:
            yield match


def _headings(text: str, form: _Form) -> Iterator[_Heading]:
    for match in _names(text, form.heading):
        *names, note = match.groups()
        before = _WORD_BEFORE.search(text, max(0, match.start() - 40), match.start())
        row = next(place for place, name in enumerate(names) if name is not None)
        yield _Heading(row, before[1] if before else "", note or "", *match.span())


def _best(text: str, form: _Form, headings: Sequence[_Heading]) -> list[_Heading]:
    """Return the headings of the best row of names that occurs, without titles."""
    pairs = zip(headings, [*headings, None][1:], strict=True)
    verdicts = [heading for heading, after in pairs if not _is_title(text, form, heading, after)]
    row = min((heading.row for heading in verdicts), default=0)
    return [heading for heading in verdicts if heading.row == row]


def _deciding(text: str, form: _Form, headings: Sequence[_Heading]) -> list[re.Match[str] | None]:
    """Return the verdict after the last of equal headings, or after each of different ones; None if there is none."""
    named = [form.verdict.match(text, heading.end) for heading in headings]
    ends_of_parts = [match.start() for match in _END_OF_PART.finditer(text)]
    # "Naturalness score: 3. Coherence score: 5" and "Score (naturalness): 3. Score (coherence): 5" answer two questions each.
    # Another object of a JSON list is about something else, and after a line of the prompt begins another exchange.
    questions = {
        (heading.before, "" if re.search(r"\d", heading.note) else heading.note, bisect.bisect(ends_of_parts, heading.start))
        for heading, match in zip(headings, named, strict=True)
        if match
    }
    return named if len(questions) > 1 else named[-1:]


def _scales(text: str, matches: Sequence[re.Match[str]], headings: Sequence[_Heading]) -> Iterator[tuple[str | None, str]]:
    """Yield the ends of the scales in an answer: in brackets next to its verdict, or as text anywhere."""
    for note in (heading.note.strip("()[] ") for heading in headings):
        if scale := _RANGE.fullmatch(note):
            yield scale["low"], scale["high"]
        elif _ABOUT_SCALE.search(note) and (numbers := re.findall(r"\d+(?:\.\d+)?", note)):
            yield None, max(numbers, key=float)
    for scale in filter(None, (_RANGE_BEHIND.match(text, match.end()) for match in matches)):
        yield scale["low"], scale["high"]
    for top in filter(None, (_TOP_BEHIND.match(text, match.end()) for match in matches)):
        yield None, top[1]
    for scale in _SCALE.finditer(text):
        yield scale[1] or scale[3], scale[2] or next(filter(None, scale.groups()[3:]))


def _is_title(text: str, form: _Form, heading: _Heading, after: _Heading | None) -> bool:
    """Whether prose or another heading follows a heading, as in "Coherence: It fits the context. Rating: 4"."""
    if after is None or form.verdict.match(text, heading.end):
        return False
    return heading.end == after.start or len(text[heading.end : after.start].partition("\n")[0].split()) > _FEW_WORDS


def _unnamed(text: str, form: _Form, known: frozenset[str], *, is_cut: bool) -> Iterator[re.Match[str]]:
    """Yield the verdicts that are the whole answer, begin it, or are alone on its last line."""
    for start in sorted({0, text.rfind("\n") + 1}):
        end = text.find("\n", start) if "\n" in text[start:] else len(text)
        is_all = end - start == len(text)
        prefix = (is_all and _ANY_NAME.match(text)) or _FIRST_OF_LIST.match(text, start)
        match = form.verdict.match(text, prefix.end() if prefix else start)
        if match is None:
            continue
        is_alone = not text[match.end() : end].strip(_EDGES)
        # In "2. Engagingness: 1" the first number counts the lines.
        if (
            form.what == "number"
            and form.heading.match(text, match.end() + 2)
            and text[match.end() : match.end() + 2] in (". ", ") ")
        ):
            continue
        if _NUMBER_IN_LIST.match(text[match.end() : end]) or (is_cut and not (is_alone and end < len(text))):
            continue
        # A repeated line of the content is no verdict, "1. It ..." begins a list, and "[[A]] is worse. [[B]]" has two.
        behind = prefix.end() if prefix else start
        is_other = not known.isdisjoint(text[at:end].strip(_EDGES) for at in (start, behind)) or (
            not prefix and _LIST.match(text, start)
        )
        is_first = start == 0 and text[0] not in "\"'" and text.count("[[") < 2
        if (is_all and is_alone and not prefix) or ((is_alone or is_first) and not is_other):
            yield match


def _statements(text: str, form: _Form, known: frozenset[str]) -> Iterator[re.Match[str]]:
    """Yield the verdicts in sentences such as "The score is 4", "I would rate it a 4" and "My verdict is: pass"."""
    if not form.statement:
        return
    statement = re.compile(rf"(?<!\w)(?:{form.statement}) {form.verdict.pattern}")
    for sentence in _SENTENCE.finditer(text):
        for match in statement.finditer(text, *sentence.span()):
            clause = _CLAUSE_END.split(text[max(sentence.start(), match.start() - _NEAR) : match.start()])[-1]
            rest = text[match.end() : min(sentence.end(), match.end() + _NEAR)]
            around = f"{clause} {match.groupdict().get('object') or ''} {_CLAUSE_END.split(rest)[0]}"
            is_quoted = text.count('"', text.rfind("\n", 0, match.start()) + 1, match.start()) % 2
            is_own = not is_quoted and not any(match[0] in quotation for quotation in known)
            if is_own and not _CONDITION.search(around) and not _SECOND_NUMBER.search(_SCALE.sub("", rest)):
                yield match


def _is_quoted_verdict(quotation: str, form: _Form) -> bool:
    return any(pattern.search(quotation) for pattern in (form.heading, _STATEMENT, _SCALE))


_RATING_NAMES = (
    r"(?:final|overall|total) (?:score|rating|grade|verdict|judgment|judgement|answer)|overall",
    r"score(?: (?:for|of) th(?:e|is) (?:response|reply))?|rating|grade|verdict|judgment|judgement"
    r"|(?<!correct )(?<!right )(?<!expected )answer|result",
)
"""Names of a rating, best first."""
_LABEL_NAMES = (
    r"predict(?:ion|ed)(?: label| class)?|label|class(?:ification)?|category|verdict|judgment|judgement|answer|result"
    "|rating|grade|decision",
)
_LABEL_STATEMENT = r"(?:(?:my|final) (?:final )?answer|verdict|label|classification|judgment|judgement) is:?"
"""Words that state a label; "the answer is" may be said of the judged text."""
VERDICT_NAMES = (*_RATING_NAMES, *_LABEL_NAMES)
"""Patterns of all names in headings of a verdict, in lower case."""

_I_RATE = r"\bi(?:'d|'ll| would| will)? (?:rate|give|score|assign|award|say|choose)\b"
_STATEMENT = re.compile(rf"{_I_RATE}|\b(?:score|rating|grade|verdict|answer) (?:is|of) ")
_FEW_SIGNS = 10
"""Characters before a number that may have its sign."""
_CLAUSE_END = re.compile(r"[,;:]|\b(?:because|since|as|given|due)\b")
_NEAR = 200
"""Characters around a statement that are searched for a condition."""
_SECOND_NUMBER = re.compile(r"\b(?:an?|or|be|but|to) \d")
_ANY_NAME = re.compile(r"[\s{\"'(-]*(?:response|output|evaluation|assessment|status|yes/no) ?[\"']? ?:\s*")
"""Heading of an answer that is only the verdict: some models write "Response: 4" or "Status: FAIL"."""
_FEW_WORDS = 3
"""Maximum words of a text that replaces a verdict ("not applicable") or is shared by chance; more are a sentence."""
_WORD_BEFORE = re.compile(r"(\w+) \Z")
_SENTENCE = re.compile(r"(?:[^.!?\n]|\.(?=\d))+[.!?]*")
_LIST = re.compile(r"[\s*>-]*\(?1[.)] ?(?!because)(?=\w)")
_FIRST_OF_LIST = re.compile(r"\(?1[.)] (?=[-+.]?\d)(?!.*\n\(?2[.)])", re.DOTALL)
"""Number of a task before the answer to it: "1. 4.0"."""
_QUOTATION = re.compile(r"\"[^\"\n]*\"|(?<!\w)'[^\n]{1,200}?'(?!\w)")
_EDGES = " \t\n\"'()[]{}<>.,;!*"
HIDDEN = "\ufffd"
"""Replaces text that does not come from the judge."""
_END_OF_PART = re.compile(rf"^{HIDDEN}$|\}}\s*,\s*\{{", re.MULTILINE)
"""A repeated line of the prompt, or the end of an object in a JSON list."""

# Patterns of a verdict and the text around it.

_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMERAL = rf"(?:[-+]?(?:[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)|\b(?:{'|'.join(_NAMES)})\b)"
_NUMBER = (
    rf"(?P<number>{_NUMERAL})(?P<percent> ?%| percent\b)?(?: (?:stars?|points?)\b)?"
    rf"(?: ?[(\[]?(?:/|out of|of)(?: an?)?(?: possible| maximum| total)?(?: of)? ?(?P<top>{_NUMERAL})(?: stars?| points?)?)?"
)
_OPENING = (
    r"(?:[\s\"'(\[{#•]|<(?=[^<>\n]*>)){0,8}(?:- )?(?:(?:an?|about|around|approximately|roughly) |[~≈]){0,2}[\"'(\[{]{0,3}"
)
_FOLLOWING = (
    r"(?=\s*\Z|\n|\.(?!\d| \d+\s*(?:\n|\Z))|[,;](?! ?\d)|[!:)\]}\"'<|]| [-–—](?! ?[\d.>])|[-–—] (?!\d)| //| [(\[]| </"
    r"| \|(?! ?\d)| on an? (?:[\w-]+ )?scale\b"
    r"| (?:because|since|as|for|given|due|with|on|overall|here|the|this|it)\b)"
)
"""Text allowed after a verdict. Not allowed: another number, a noun that it counts, a question mark, a condition."""
_RANGE = re.compile(r"(?P<low>\d+(?:\.\d+)?) ?(?:-|–|to) ?(?P<high>\d+(?:\.\d+)?)")
_RANGE_BEHIND = re.compile(rf" ?\( ?{_RANGE.pattern}\b[^()\n]*\)")
_ABOUT_SCALE = re.compile(
    r"\b(?:out of|max(?:imum)?|up to|to|and|through|scale|best|worst|highest|lowest)\b|\d ?[–-] ?\d|\d-point|/ ?\d"
)
"""Signs that the numbers in the parentheses of a heading are a scale's: "(out of 10)", "(1 = worst, 10 = best)"."""
_TOP_BEHIND = re.compile(r" ?[(\[](?:max(?:imum)?\.?(?: of)?|up to|scale of):? ?(\d+(?:\.\d+)?)[)\]]")
_SCALE = re.compile(
    rf"\bscale\W{{1,4}}(?:(?:of|from|is) )?({_NUMERAL}) ?(?:-|–|to) ?({_NUMERAL})"
    rf"|(?<![\d.])({_NUMERAL}) ?(?:-|–|to) ?({_NUMERAL}) scale\b"
    rf"|(?<![\d.])({_NUMERAL})[- ]point scale\b|\bscale of ({_NUMERAL})(?=[.;!)\]]|,(?! ?\d)|\s*(?:\Z|\n))"
    r"|\"(?:out_?of|max\w*)\": ?\"?(\d+)|\bmax(?:imum)?[ _](?:score|rating|points)[:=] ?(\d+)"
)
"""Scales as text: "on a scale of 1 to 10", "a 1-10 scale", "a 10-point scale", `"max": 10`."""
_CONDITION = re.compile(
    r"\b(?:not|no|never|neither|cannot|if|unless|but|however|would|could|should|might|may|need(?:s|ed)?|instead|rather|than"
    r"|more|less|user|human|says?|said|to (?:get|deserve|earn|reach|receive|merit|achieve))\b|n't\b|\?"
)
_TURN = r"[,.;:!…–—-]{1,3} (?:(?:but|well|wait|or|actually|arguably|maybe|perhaps|rather|sorry|hmm+)[,.…]* ){0,3}"
"""Signs and words between a label and another that replaces it: "Yes... well, no"."""
_NO_KEY = r"(?![\"']? ?[:–—-] ?[\"']?(?:[01]?[.,]\d|\d+ ?%|(?:yes|no|true|false|[01])\b(?! \w)))"
"""No label is what has a value of its own: "positive: false"."""
_NUMBER_IN_LIST = re.compile(rf"[.):] ?{_NUMERAL}[^\w\n]*\Z")
"""Text after a number that counts the lines of a list: "2. 4"."""
_UNFINISHED = re.compile(r"[.,]?\Z| ?[(\[][^)\]\n]*\Z")
"""Text after a verdict that may be the beginning of more of it: "4." of "4.5", "4 (out" of "4 (out of 10)"."""
_RETRACTION = re.compile(
    r"(?:\A|[.!?;\n(–—-] ?)(?:no|wait|actually|hmm+|sorry|correction)\b ?[,.:;!–—-]|, ?(?:wait|hmm+|correction)\b ?[,.:;!–—-]"
    r"|\bactually (?:an? )?\d|\(or (?:an? )?\d|\bscratch that\b|\bmy mistake\b|\bedit ?:"
    r"|\b(?:it|score|rating|degree) should be (?:an? )?\d(?! \w)"
    r"|\b(?:lower|raise|adjust|change|reduce|increase)(?:d|ed)? (?:it |this |that |my (?:score|rating) )?(?:(?:down|up) )?"
    r"to (?:an? )?\d"
    r"|\b(?:but|however,?|though) (?:an? )?\d(?:\.\d+)? (?:would|might|could|may|is)\b"
    r"|\b(?:revised|corrected|updated)\b|\b(?:maybe|perhaps|possibly|or even) (?:an? )?\d"
    r"|\b(?:(?:up)?on (?:second thoughts?|(?:further |closer |more )?(?:reflection|consideration))"
    r"|(?:i|let me) (?:would |will |must |have to )?(?:revise|reconsider|change|correct|take (?:it|that) back))\b"
)
_REFUSAL = re.compile(
    r"\bi(?: a|')m (?:very |so )?sorry(?! to say)|\bi apologi[sz]e\b|\bas an ai\b|\bagainst my\b"
    r"|\bi (?:don't|do not) feel comfortable\b"
    r"|\b(?:i (?:can ?not|can't|won't|will not|(?:must )?decline to)|(?:unable|not able) to) (?:rate|score|evaluate|assess"
    r"|judge|grade|classify|determine|provide|give|offer|assist|help|answer|comply|fulfil|do|engage|continue|make)"
)


def _float(text: str) -> float:
    if text in _NAMES:
        return float(_NAMES.index(text))
    is_thousands = re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", text) is not None
    return float(text.replace(",", "" if is_thousands else "."))


# Text that is removed from an answer before it is parsed.

# A judge may quote "Rat**ing: 5" from a response. It is not a heading there, and must not become one here.
_EMPHASIS = "|".join(
    rf"(?<![{mark}])(?:(?<![^\W_]){run}|{run}(?![{mark}]|[^\W_]))"
    for mark, run in (("*`", "[*`]+"), ("~", "~~+"), ("_", "__+"))
)
_NOISE = (
    (re.compile(r"```\w*"), " "),
    (re.compile(rf"(?=[*`~_])(?:{_EMPHASIS})"), ""),
    # Models trained on mathematics put their answer into this LaTeX frame.
    (re.compile(r"\\boxed ?\{ ?(?:\\text ?\{)?([^{}\n]*)\}+"), r"\nanswer: \1\n"),
    (re.compile(r"\[/?inst\]"), " "),
    (re.compile(r"[^\S\n]{2,}|[^\S\n ]"), " "),
    (re.compile(r" ?\n[ \n]*"), "\n"),
)
_LOOK_ALIKES = str.maketrans("：﹕＝／％．，−’‘“”„«»", '::=/%.,-\'\'"""""', "\ufe0f\u20e3✅❌✔✖✓✗")
_MAX_LENGTH = 20_000
"""Maximum characters of an answer without its reasoning. A verdict needs a few hundred, and longer texts are slow to parse."""
_ECHO_LENGTH = 40
"""A shorter line that the prompt contains too may be the answer: SLIDE's prompt shows "Engagingness: 1"."""


def readable(answer: str, prompt: str | None = None, *, is_cut: bool = False) -> str | Unscored:
    """Return the answer without reasoning, repeated prompt and markup, in lower case, with one space between words."""
    reply = split_reasoning(_without_echo(answer, prompt) if prompt else answer)
    text = _clean(reply.text)
    if not text and (reply.is_open or is_cut):
        where = "within its reasoning" if reply.has_reasoning else "before it says anything"
        return unread(Reason.TRUNCATED, f"the answer ends {where}", answer)
    if not text:
        return Unscored(Reason.PARSE_FAILURE, "the answer is empty")
    if len(text) > _MAX_LENGTH:
        return unread(Reason.PARSE_FAILURE, f"the answer has {len(text)} characters without its reasoning", answer)
    return text[1:-1].strip() if _QUOTATION.fullmatch(text) else text


def _clean(text: str) -> str:
    if not text.isascii():
        text = "".join(map(_plain, text)).translate(_LOOK_ALIKES)
    # Case is folded here, not by the patterns, which would match a dotless i with an i.
    text = text.casefold()
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return text.strip()


@functools.lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return "" if unicodedata.category(character) == "Cf" else character


@functools.lru_cache(maxsize=64)
def _cleaned(content: tuple[str, ...]) -> frozenset[str]:
    # Cached, because the requests of all criteria and samples have the same content.
    return frozenset(_clean(text).strip(_EDGES) for text in content) - {""}


def _without_echo(answer: str, prompt: str) -> str:
    """Remove the prompt: all of it, its last lines at the start of the answer, or its longer lines anywhere."""
    whole = prompt.strip()
    answer = (answer.replace(whole, " ") if whole else answer).lstrip()
    rest = whole
    while "\n" in rest and not answer.startswith(rest):
        rest = rest.partition("\n")[2]
    if "\n" in rest:
        answer = answer[len(rest) :]
    *lines, last = [line.strip() for line in whole.splitlines() or [""]]
    # The last line may be the heading of the answer.
    headings = {line for line in lines if line.endswith(":") and line != last and not has_heading(line)}
    known = headings | {line for line in (*lines, last) if len(line) >= _ECHO_LENGTH}
    # HIDDEN keeps the text after a removed line apart from a heading before it.
    return "\n".join(HIDDEN if line.strip() in known else line for line in answer.splitlines())


@functools.lru_cache(maxsize=64)
def _any_heading(names: tuple[str, ...]) -> re.Pattern[str]:
    return _heading((*(re.escape(name.casefold()) for name in names), *VERDICT_NAMES))


def has_heading(text: str, names: tuple[str, ...] = ()) -> bool:
    """Whether `text`, as an answer, contains the heading of a verdict or one of these names.

    Example:
        >>> has_heading("Final score ** : 5"), has_heading("Influence degree = 1"), has_heading("a good score")
        (True, False, False)
    """
    return any(_names(_clean(text), _any_heading(names)))


def unread(reason: Reason, problem: str, answer: str) -> Unscored:
    """Return why an answer has no verdict, with its beginning; the log gets all of it."""
    logger.debug("unread answer (%s): %r", reason.value, answer)
    return Unscored(reason, f"{problem}: {shortened(answer)}")


def shortened(answer: str) -> str:
    """Return an answer as messages show it."""
    return repr(answer if len(answer) <= 80 else answer[:77] + "...")
