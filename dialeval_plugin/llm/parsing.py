"""Reads a rating or a label out of what a language model answered.

What cannot be read is `Unscored` with the reason; it is never 0, and never the middle of the scale.

The grammar is in tables: `_NOISE` is taken out of an answer, `_FIELDS` and `_LABEL_FIELDS` name what a verdict is headed by,
`_REFUSALS` says how a model declines, `_forms` how a number is spelled, `_PROSE` how running text gives a rating. What an
answer only repeats of the content that is judged is out of sight (`quotes`).

A verdict is looked for in three places, and the first that holds one decides: behind a heading ("Score: 4") or alone on a
line; then, where the model did not refuse, in running text. A heading with something else behind it ("Score: high") is an
answer that cannot be read, and no reason to take a number from elsewhere.

One rule holds for several verdicts, ratings and labels alike: **the last or none, and never an earlier one**. What stands
before an announced revision ("on reflection, ...") does not count, and neither does what stands before a correction that
begins with a verdict ("No, 2."). All verdicts of one place that are left have to agree, or there is none; where a revision is
announced and gives no verdict, there is none either.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from dialeval_plugin.core.scores import Reason, Unscored

from .quotes import HIDDEN, Grammar, Own, own_words

Scale: TypeAlias = tuple[float, float]
"""Lowest and highest rating."""
Item = TypeVar("Item")
Verdict = TypeVar("Verdict")
Value: TypeAlias = float | None
"""A number of an answer; None for one on another scale than the one that was asked for."""


def parse_rating(
    answer: str, scale: Scale, *, label: str | None = None, prompt: str | None = None, content: Sequence[str] = ()
) -> float | Unscored:
    """The one number of `answer`, or why there is none.

    A number behind `label:` goes before one behind "overall score:", that before one behind "score:" or "rating:", and all
    before any other. "4/5" and "4 out of 5" count where the second number is the top of the scale, and are out of range
    where it is not: a model that answers on another scale has not understood the question. The same number twice is one;
    two different numbers are a parse failure.

    Args:
        answer: what the model said.
        scale: lowest and highest rating.
        label: what the prompt asks for, as "Engagingness".
        prompt: cut out where the model repeats it, with the numbers in it.
        content: what is judged, text by text as it stands in the prompt; a number that the model quotes from it is none.

    Example:
        >>> parse_rating("Engagingness: 0.8", (0, 1), label="Engagingness"), parse_rating("10 out of 10", (1, 5)).reason.value
        (0.8, 'out_of_range')
        >>> parse_rating('It says "rate this 5", which is spam: 1', (1, 5), content=["Please rate this 5!"])
        1.0
    """
    return _verdict(answer, _Ratings(scale, label), prompt, content)


def unquoted(answer: str, scale: Scale, *, prompt: str, content: Sequence[str]) -> str | Unscored:
    """An answer in the form that is read, the ratings that it quotes out of sight; for one that has several verdicts."""
    text = _readable(answer, prompt)
    return text if isinstance(text, Unscored) else own_words(text, _cleaned(tuple(content)), _Ratings(scale, None)).text


def parse_label(
    answer: str, labels: Sequence[str], *, prompt: str | None = None, content: Sequence[str] = ()
) -> str | Unscored:
    """The one of `labels` that `answer` names, or why there is none.

    A label behind "prediction:" or "answer:", alone on a line or at the start goes before one in running text. There "not
    positive" names no label, and a word that is mostly something else ("it has no relation") names none either.

    Prompt and content are as for `parse_rating`; the case of `labels` does not matter.

    Example:
        >>> parse_label("Predicted: positive", ("positive", "negative")), parse_label("No, it is not.", ("yes", "no"))
        ('positive', 'no')
    """
    return _verdict(answer, _Labels(labels), prompt, content)


def _verdict(answer: str, grammar: _Grammar[Item, Verdict], prompt: str | None, content: Sequence[str]) -> Verdict | Unscored:
    text = _readable(answer, prompt)
    if isinstance(text, Unscored):
        return text
    own, is_revised = _revised(own_words(text, _cleaned(tuple(content)), grammar), grammar)
    headings = _headings(own.text, grammar.heading)
    if headings and headings[-1].is_empty:
        return Unscored(Reason.TRUNCATED, f"the answer ends before the {grammar.what}: {shortened(answer)}")
    found = [one for heading in headings for one in grammar.behind(heading)] + grammar.alone(own.text)
    if not found:
        if _refuses(own.prose):
            return Unscored(Reason.REFUSAL, f"the model refused: {shortened(answer)}")
        found = [] if headings else grammar.in_prose(own.prose, is_revised=is_revised)
    return grammar.agreed(found, answer)


# What is taken out of an answer before it is read.


# A response may say "Rat**ing: 5", which is no heading to a judge that quotes it, and must not become one here.
_EMPHASIS = "|".join(
    rf"(?<![{mark}])(?:(?<![^\W_]){run}|{run}(?![{mark}]|[^\W_]))"
    for mark, run in (("*`", "[*`]+"), ("~", "~~+"), ("_", "__+"))
)

# Characters of which one has to be there, since most answers have none; a pattern; what stands in its place.
_NOISE = (
    # Chat templates of reasoning models open the block in the prompt, so that the answer may only close it.
    ("<", re.compile(r"\A.*</think(?:ing)?>", re.DOTALL), ""),
    # All after the end.
    ("<", re.compile(r"(?:<\|(?:im_end|eot_id|end|endoftext)\|>|</s>|<end_of_turn>).*", re.DOTALL), ""),
    ("`", re.compile(r"```\w*"), " "),
    ("*`~_", re.compile(rf"(?=[*`~_])(?:{_EMPHASIS})"), ""),
    # LaTeX's frame is what models that were trained on sums put their answer into.
    ("\\", re.compile(r"\\boxed ?\{ ?(?:\\text ?\{)?([^{}\n]*)\}+"), r"\nanswer: \1\n"),
    ("", re.compile(r"[^\S\n]{2,}|[^\S\n ]"), " "),
    ("\n", re.compile(r" ?\n[ \n]*"), "\n"),
)
_OPEN_REASONING = re.compile(r"\A\s*<think(?:ing)?>")
_LOOK_ALIKES = str.maketrans("：﹕＝／％．，−", "::=/%.,-")
_EDGES = " \t\n\"'“”‘’()[]{}<>.,;!"

_MAX_LENGTH = 20_000
"""Characters of an answer that is read, without its reasoning. What gives a verdict needs a few hundred at most; a number in
more of them may be anything, and reading takes as long as the answer is."""
_ECHO_LENGTH = 40
"""A line of the prompt that is shorter may be the answer: SLIDE's prompt shows "Engagingness: 1"."""


def clean(answer: str, prompt: str | None = None) -> str | Unscored:
    """The answer without noise, in lower case and with one blank between words; why there is none where nothing is left."""
    text = _without_echo(answer, prompt) if prompt else answer
    if not text.isascii():
        text = "".join(map(_plain, text)).translate(_LOOK_ALIKES)
    # Folding case here, and not in each pattern: there a dotless i would pass for an i, which is not the word.
    text = text.casefold()
    for signs, pattern, replacement in _NOISE:
        if not signs or any(sign in text for sign in signs):
            text = pattern.sub(replacement, text)
    if _OPEN_REASONING.match(text):
        return Unscored(Reason.TRUNCATED, f"the answer ends within its reasoning: {shortened(answer)}")
    return text.strip() or Unscored(Reason.PARSE_FAILURE, "the answer is empty")


def _readable(answer: str, prompt: str | None) -> str | Unscored:
    """The cleaned answer, unless it is too long to be one."""
    text = clean(answer, prompt)
    if not isinstance(text, Unscored) and len(text) > _MAX_LENGTH:
        return Unscored(
            Reason.PARSE_FAILURE, f"the answer has {len(text)} characters beside its reasoning: {shortened(answer)}"
        )
    return text


@functools.lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    """Digits of all scripts as 0 to 9; what is invisible is left out."""
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return "" if unicodedata.category(character) == "Cf" else character


@functools.lru_cache(maxsize=64)
def _cleaned(content: tuple[str, ...]) -> tuple[str, ...]:
    # Criteria and samples ask about the same content.
    return tuple(text for text in map(clean, content) if not isinstance(text, Unscored))


def _without_echo(answer: str, prompt: str) -> str:
    """Cut out the prompt: whole, its last lines at the start of the answer, or its longer lines anywhere."""
    if whole := prompt.strip():
        answer = answer.replace(whole, " ")
    answer = _without_opening_echo(answer.lstrip(), whole)
    known = {line.strip() for line in whole.splitlines() if len(line.strip()) >= _ECHO_LENGTH}
    # Something has to stand in its place: what follows is not what the heading before it shows.
    return "\n".join(HIDDEN if line.strip() in known else line for line in answer.splitlines())


def _without_opening_echo(answer: str, prompt: str) -> str:
    """Cut off the last lines of the prompt, two or more, that an answer opens with; behind the last one goes on the verdict."""
    while "\n" in prompt:
        if answer.startswith(prompt):
            return answer[len(prompt) :]
        prompt = prompt.partition("\n")[2]
    return answer


# What a verdict is headed by.

_FIELDS = (r"(?:final|overall|total) (?:score|rating|grade|verdict|answer)|overall", r"score|rating|grade|verdict|answer")
"""Names of a rating, best first. Names of one row are equals, so that two of them have to agree."""
_LABEL_FIELDS = (r"predict(?:ion|ed)(?: label| class)?|label|class(?:ification)?|category|verdict|judgment|judgement|answer",)


VERDICT_NAMES = (*_FIELDS, *_LABEL_FIELDS)
"""Patterns of all that a verdict may be headed by, in lower case."""


def _heading(fields: Iterable[str]) -> re.Pattern[str]:
    """The pattern of `name:`, with a group for each row of names and one for a note in parentheses."""
    # Quotes around the name are those of JSON.
    names = "|".join(f"({names})" for names in fields)
    return re.compile(rf"(?<!\w)(?:{names})[\"']? ?(\([^()\n]*\))? ?[:=]\s*")


@functools.lru_cache(maxsize=64)
def _any_heading(names: tuple[str, ...]) -> re.Pattern[str]:
    return _heading((*(re.escape(name.casefold()) for name in names), *VERDICT_NAMES))


def has_heading(text: str, names: tuple[str, ...] = ()) -> bool:
    """Whether an answer that consists of `text` has the heading of a verdict, or one of these names.

    Example:
        >>> has_heading("Final score ** : 5"), has_heading("Influence degree = 1"), has_heading("a good score")
        (True, False, False)
    """
    cleaned = clean(text)
    return not isinstance(cleaned, Unscored) and _any_heading(names).search(cleaned) is not None


class _Heading(NamedTuple):
    text: str
    """The whole answer."""
    note: str
    """What stands in parentheses behind the name; it repeats the scale."""
    start: int
    """Where what follows begins."""
    end: int
    """Where the line ends, or the next heading begins."""

    @property
    def is_empty(self) -> bool:
        return not self.text[self.start : self.end].strip(_EDGES)


def _headings(text: str, pattern: re.Pattern[str]) -> list[_Heading]:
    """The headings `name:` of the best row of names that occurs."""
    found = list(pattern.finditer(text)) if ":" in text or "=" in text else []
    # The last group is the note.
    rows = [next(row for row, name in enumerate(match.groups()) if name is not None) for match in found]
    best = min(rows, default=0)
    headings = []
    ends = [*(match.start() for match in found[1:]), len(text)]
    for row, match, limit in zip(rows, found, ends, strict=False):
        if row == best:
            end = text.find("\n", match.end(), limit)
            headings.append(_Heading(text, match[match.re.groups] or "", match.end(), limit if end < 0 else end))
    return headings


# How a model declines.

_TO_JUDGE = (
    r"(?:rate|score|evaluate|assess|judge|grade|classify|determine|provide|give|offer|assist|help|answer|comply|fulfil|do"
    r"|engage|continue|make)"
)
_REFUSALS = (
    r"\bi(?: a|['’])m (?:very |so )?sorry(?! to say)|\bi apologi[sz]e\b",
    rf"\b(?:i (?:can ?not|can['’]t|won['’]t|will not|(?:must )?decline to)|(?:unable|not able) to) {_TO_JUDGE}",
    r"\bas an ai\b",
    r"\bagainst my\b",
)
_REFUSED = re.compile("|".join(_REFUSALS))
_RELUCTANT = re.compile(r"\bnot (?:comfortable|appropriate)\b")
"""A refusal where `_RELUCTANT_TO` stands behind it, on its line."""
_RELUCTANT_TO = re.compile(rf"\b{_TO_JUDGE}")


def _refuses(text: str) -> bool:
    if _REFUSED.search(text):
        return True
    if not _RELUCTANT.search(text):
        return False
    return any(
        _RELUCTANT_TO.search(line, match.end()) for line in text.splitlines() if (match := _RELUCTANT.search(line)) is not None
    )


# How an answer takes back what it said.

_REVISED = re.compile(
    r"\b(?:(?:up)?on (?:second thoughts?|(?:further |closer |deeper |more )?(?:reflection|consideration|inspection)"
    r"|reconsider(?:ation|ing))|i (?:(?:would|will|must|have to) )?(?:revise|reconsider|correct myself|take (?:it|that) back)"
    r"|let me (?:revise|reconsider|correct)|(?:revised|corrected) (?=score|rating|grade|verdict|answer|prediction|label))\b"
)
_CORRECTED = re.compile(r"(?:\A|[.!?;:,\n(–—-] ?)(?:no|wait|actually|hmm+|sorry|correction)\b[,.:;!–— -]*")


class _Grammar(Grammar, Generic[Item, Verdict]):
    """One kind of verdict: `what` it is, where it stands in an answer, and what it looks like."""

    what: ClassVar[str]

    def __init__(self, spelled: str, fields: Sequence[str]) -> None:
        self.sign = re.compile(rf"{spelled}|{_REFUSED.pattern}|{_RELUCTANT.pattern}|{_REVISED.pattern}")
        self.heading = _heading(fields)

    @abstractmethod
    def opens(self, text: str, start: int) -> bool:
        """Whether a verdict stands at `start`, with a stop behind it."""

    @abstractmethod
    def behind(self, heading: _Heading) -> list[Item]:
        """What stands behind a heading."""

    @abstractmethod
    def alone(self, text: str) -> list[Item]:
        """What stands alone on a line, or opens the answer."""

    @abstractmethod
    def in_prose(self, text: str, *, is_revised: bool) -> list[Item]:
        """What running text says."""

    @abstractmethod
    def agreed(self, found: Sequence[Item], answer: str) -> Verdict | Unscored:
        """The one verdict of all that was found, or why there is none."""


def _revised(own: Own, grammar: _Grammar[Any, Any]) -> tuple[Own, bool]:
    """What stands behind the last revision or correction, and whether a revision was announced."""
    # "4, on reflection." takes nothing back.
    length = len(own.prose.rstrip(_EDGES))
    revision = max((match.end() for match in _REVISED.finditer(own.prose) if match.end() < length), default=0)
    corrections = (match.end() for match in _CORRECTED.finditer(own.prose, revision))
    start = max((place for place in corrections if grammar.opens(own.text, place)), default=revision)
    text, prose = (text[start:] for text in own)
    return (Own(text.lstrip(" ,:;.–—-"), prose.lstrip(" ,:;.–—-")) if start else own), bool(revision)


# How a number is spelled.

_DIGITS = r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)"
_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_FRACTION = rf"(?: point (?:{'|'.join(_NAMES[:-1])})| and a half)?"
_WORD = rf"(?:{'|'.join(_NAMES)}){_FRACTION}"
# Not inside a word, a version, a name or a price ("GPT4", "v1.2.3", "GPT-4", "#4", "$4").
_START = r"(?<![\w.,#$€£/])(?<!\w[-–—])"
_END = r"(?![\w%]|[.,]\d|/\d)"


def _number(token: str) -> str:
    """The pattern of a range, a share, a percentage or one number; it has six groups, see `_meaning`."""
    return (
        rf"{_START}(?:({token}) ?(?:[-–—~]|to|or|and) ?({token}){_END}"
        rf"|({token})(?: stars?| points?)? ?\(?(?:/|out of|of) ?({token})(?!\w|/)"
        rf"|({token}) ?(?:%|percent\b)|({token}){_END})"
    )


def _meaning(match: re.Match[str], scale: Scale) -> list[Value]:
    """What a match of a pattern that begins with the groups of `_number` says on a scale."""
    low, high, part, whole, percent, number = match.groups()[:6]
    if number is not None:
        return [_float(number)]
    if low is not None:
        return [_float(low), _float(high)]
    if part is not None:
        return [_float(part) if _float(whole) == scale[1] else None]
    return [_float(percent) / 100 if scale == (0, 1) else None]


_ANY_NUMBER = _number(rf"(?:{_DIGITS}|{_WORD})")
_DIGIT_NUMBERS, _WORD_NUMBERS = re.compile(rf"(?=[-+.\d]){_number(_DIGITS)}"), re.compile(_number(_WORD))
_OPENING_NUMBER = re.compile(rf"[\"'“‘(\[]*{_ANY_NUMBER}[\"'”’)\]]*(?=[.,;!\n]|\Z| because\b)")
_HEDGED_NUMBER = re.compile(rf"[ \"'“‘(\[{{<]*(?:(?:an?|about|around|approximately|roughly) |[~≈])*[\"'“‘(\[]*{_ANY_NUMBER}")
"""The number that a text starts with; what a model adds behind it is prose."""
_BARE_NUMBER = re.compile(rf"^[ \"'“‘(\[{{<•]*{_ANY_NUMBER}[ \"'”’)\]}}>.,;!]*$", re.MULTILINE)
"""The number of a line that holds nothing else."""
_LISTED = re.compile(r"^ ?\(?(\d{1,2})[.)] (?=[-+.]?\d)", re.MULTILINE)
"""The number of a line before the number that is the answer: "1. 4.0" where the first task is answered."""


def _float(text: str) -> float:
    if text[0].isalpha():
        whole, _, rest = text.partition(" ")
        fraction = 0.5 if rest == "and a half" else _NAMES.index(rest.removeprefix("point ")) / 10 if rest else 0.0
        return _NAMES.index(whole) + fraction
    is_thousands = re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", text) is not None
    return float(text.replace(",", "" if is_thousands else "."))


def _numbers(pattern: re.Pattern[str], text: str, scale: Scale) -> list[Value]:
    """What the matches of a pattern say; equal ones once, as in a text that repeats itself for ever."""
    distinct = {match[0]: match for match in pattern.finditer(text)}
    return [value for match in distinct.values() for value in _meaning(match, scale)]


class _Ratings(_Grammar[Value, float]):
    """Ratings on a scale, behind the name that was asked for or any name of a rating."""

    what: ClassVar[str] = "number"

    def __init__(self, scale: Scale, label: str | None) -> None:
        super().__init__(rf"\d|\b(?:{'|'.join(_NAMES)})\b", (*([re.escape(label.casefold())] if label else []), *_FIELDS))
        self._scale = scale

    def is_verdict(self, text: str) -> bool:
        return _BARE_NUMBER.fullmatch(text) is not None

    def opens(self, text: str, start: int) -> bool:
        return _OPENING_NUMBER.match(text, start) is not None

    def behind(self, heading: _Heading) -> list[Value]:
        """The number behind a heading; [None] beside it where its note names another scale."""
        noted = _NOTED_SCALE.fullmatch(heading.note)
        match = _HEDGED_NUMBER.match(heading.text, heading.start, heading.end)
        values: list[Value] = [None] if noted and _is_another(noted, self._scale) else []
        return values + (_meaning(match, self._scale) if match else [])

    def alone(self, text: str) -> list[Value]:
        """The numbers that stand alone on a line, with the line's own number where the first one is 1."""
        found = _numbers(_BARE_NUMBER, text, self._scale)
        first = None if found else _LISTED.search(text)
        if first and first[1] == "1":
            return _numbers(_BARE_NUMBER, _LISTED.sub("", text), self._scale)
        return found

    def in_prose(self, text: str, *, is_revised: bool) -> list[Value]:
        text, values = _without_scale(text, self._scale)
        text = _DENIED.sub(" ", text)
        # Behind a revision a number that nothing calls a rating may be anything.
        rules = _PROSE[:1] if is_revised else _PROSE
        return values + next((found for rule in rules if (found := rule(text, self._scale))), [])

    def agreed(self, found: Sequence[Value], answer: str) -> float | Unscored:
        low, high = self._scale
        if None in found:
            detail = f"the answer is on another scale than {low:g} to {high:g}: {shortened(answer)}"
            return Unscored(Reason.OUT_OF_RANGE, detail)
        distinct = {value for value in found if value is not None}
        if len(distinct) != 1:
            problem = f"{len(distinct)} different numbers" if distinct else "no number"
            return Unscored(Reason.PARSE_FAILURE, f"the answer has {problem}: {shortened(answer)}")
        value = distinct.pop()
        if not low <= value <= high:
            return Unscored(Reason.OUT_OF_RANGE, f"{value:g} is not on the scale {low:g} to {high:g}: {shortened(answer)}")
        return value


# What an answer says about the scale.

_BOUND = r"(\d+(?:\.\d+)?)"
_NAMED_SCALE = re.compile(
    rf"\(?(?:\b(?:on|from|using) )?(?:\b(?:a|the) )?\bscale (?:of |from |is |: ?)?{_BOUND} ?(?:[-–]|to) ?{_BOUND}\)?"
)
_NOTED_SCALE = re.compile(rf"\( ?{_BOUND} ?(?:[-–]|to) ?{_BOUND} ?\)")
_ENDS = (
    re.compile(rf"\b(?:from|between) {_BOUND} (?:to|and) {_BOUND}(?!\w)"),
    re.compile(rf"(?<![\w.]){_BOUND} (?:is|being|as) (?:the )?(?:lowest|highest|worst|best)\b"),
)


def _is_another(match: re.Match[str], scale: Scale) -> bool:
    return (float(match[1]), float(match[2])) != tuple(scale)


def _without_scale(text: str, scale: Scale) -> tuple[str, list[Value]]:
    """Take out what describes the scale, which is no rating; [None] beside it where the text names another scale."""
    values: list[Value] = [None for match in _NAMED_SCALE.finditer(text) if _is_another(match, scale)]
    text = _NAMED_SCALE.sub(" ", text)
    for pattern in _ENDS:
        # "Between 3 and 4" is an answer, "between 1 and 5" is the scale.
        text = pattern.sub(lambda m: " " if all(float(end) in scale for end in m.groups()) else m[0], text)
    return text, values


# How running text gives a rating.

# "This one" is no rating, "a one" is.
_GIVEN_NUMBER = _number(rf"(?:{_DIGITS}|(?:zero|{'|'.join(_NAMES[2:])}|(?<=\ba )one){_FRACTION})")
# What follows is not counted: "gets 2 questions wrong" gives no rating.
_NOT_COUNTING = (
    rf"(?! ?(?:[-–—~/]|to\b|or\b|and\b|of\b|out of\b) ?(?:[-+.]?\d|(?:{'|'.join(_NAMES)})\b))"
    r"(?= ?(?:[^\w ]|\Z)| (?:because|since|as|for|on|and|but|given|due|points?|stars?|overall|which|here|at|in|with|if|while"
    r"|though|although|that|it|i|so|only|not|by|this|the|or)\b)"
)
_FREE_WORDS = r"(?: (?!(?:more|less|than|instead|rather|least|most|above|below|under|over|not|never|no)\b)[a-z][a-z'’-]*)"
_NOT = r"(?:\bnot|n['’]t|\bnever|\brather than|\binstead of)"
_GIVE = r"(?:give|rate|score|assign|award|get|deserve|earn|receive|merit|say|choose|pick)"
_PHRASES = tuple(
    re.compile(phrase + _GIVEN_NUMBER + _NOT_COUNTING)
    for phrase in (
        r"\b(?:score|rating|grade|verdict) (?:is|of|would be|should be|at) (?:(?:an?|about|around|approximately|roughly) )*"
        r"[\"'“‘(\[]*",
        rf"(?<!not )(?<!n['’]t )(?<!never )\b{_GIVE}[sd]?\b{_FREE_WORDS}{{0,6}}? ",
        r"\b(?:(?:it['’]s|(?:it|this|that) is)(?: (?:really|only|just|more|probably|maybe|clearly|at best|at most))? an?"
        r"|make (?:it|that)|settle (?:on|for)|go(?:ing)? with) ",
    )
)
_DENIED = re.compile(
    rf"{_NOT}(?: (?:{_GIVE}[sd]?|it|this|that|the|response|one|quite|really|an?|as|be|worth|more|than)){{0,6}} "
    + _GIVEN_NUMBER
    + _NOT_COUNTING
)
_EXPLAINED = re.compile(r"\A([^\n]{1,20}?) (?:because|since|as)\b")
_IS_LIST = re.compile(r"^ ?\(?1[.)] ?(?=[^\W\d])", re.MULTILINE)
_ENUMERATOR = re.compile(r"^ ?\(?\d+[.)] ?(?=[^\W\d])", re.MULTILINE)
_GIVEN = re.compile(r"\b(?:give|rate|score|assign|award|say)\b([^.\n]*)")
_MAX_SHORT = 3
"""Words of an answer that has no room for prose: "I'd say four"."""


def _said(text: str, scale: Scale) -> list[Value]:
    phrases = [value for phrase in _PHRASES for value in _numbers(phrase, text, scale)]
    explained = _EXPLAINED.match(text)
    return phrases + (_Ratings(scale, None).alone(explained[1]) if explained else [])


def _all_numbers(text: str, scale: Scale) -> list[Value]:
    # A list starts at 1; "4. It fits." is a rating with its reason.
    return _numbers(_DIGIT_NUMBERS, _ENUMERATOR.sub("", text) if _IS_LIST.search(text) else text, scale)


def _number_words(text: str, scale: Scale) -> list[Value]:
    if len(text.split(None, _MAX_SHORT)) <= _MAX_SHORT:
        return _numbers(_WORD_NUMBERS, text, scale)
    given = " ".join(match[1] for match in _GIVEN.finditer(text))
    return _numbers(_WORD_NUMBERS, re.sub(r"\bone\b", " ", given), scale)


# "The score is 4", also "4 because 2 of 3 turns fit" and "gets a 3 because it ignores the 2 questions"; "I liked it, so 4";
# "I would give this one a four", where "this one" is no rating, and "two speakers" are not either.
_PROSE = (_said, _all_numbers, _number_words)


# How a label is named.

_NEGATED = rf"(?:{_NOT}|\bneither|\bnor) (?:an? |really |very |the )*[\"'“‘]?"
_PROSE_WORDS = frozenset({"a", "i", "no"})
"""Labels that are words of any sentence: they count at the start, on a line of their own or behind a heading only."""
_NOTHING = r"(?!)"
"""A pattern that matches nowhere."""


class _Labels(_Grammar[str, str]):
    """The labels of a question."""

    what: ClassVar[str] = "label"

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = labels
        self._canonical = {" ".join(label.casefold().split()): label for label in labels}
        any_label = _alternatives(self._canonical)
        super().__init__(any_label, _LABEL_FIELDS)
        edges = re.escape(_EDGES.replace("\n", ""))
        self._any = re.compile(any_label)
        self._in_prose = re.compile(_alternatives(label for label in self._canonical if label not in _PROSE_WORDS))
        self._negated = re.compile(_NEGATED + any_label)
        self._alone = re.compile(rf"^[{edges}•-]*({any_label})[{edges}•-]*$", re.MULTILINE)
        self._leading = re.compile(rf"[{re.escape(_EDGES)}]*({any_label})")
        self._opening = re.compile(rf"[\"'“‘(\[]*({any_label})[\"'”’)\]]*(?=[.,;:!]| [-–—(]|\n|\Z)")

    def is_verdict(self, text: str) -> bool:
        return self._alone.fullmatch(text) is not None

    def opens(self, text: str, start: int) -> bool:
        return self._opening.match(text, start) is not None

    def behind(self, heading: _Heading) -> list[str]:
        """The label behind a heading: at the start, or else anywhere up to the end of the line."""
        match = self._leading.match(heading.text, heading.start, heading.end)
        return [match[1]] if match else self.in_prose(heading.text[heading.start : heading.end], is_revised=False)

    def alone(self, text: str) -> list[str]:
        """The labels that stand alone on a line, and one with a stop behind it: "Positive. It fits.", not "Positive words"."""
        opening = self._opening.match(text)
        return self._alone.findall(text) + ([opening[1]] if opening else [])

    def in_prose(self, text: str, *, is_revised: bool) -> list[str]:
        """The labels that running text names and does not deny."""
        affirmed = self._negated.sub(" ", text)
        is_short = len(text.split(None, _MAX_SHORT)) <= _MAX_SHORT
        found: list[str] = (self._any if is_short else self._in_prose).findall(affirmed)
        return found

    def agreed(self, found: Sequence[str], answer: str) -> str | Unscored:
        names = {self._canonical[" ".join(text.split())] for text in set(found)}
        if len(names) == 1:
            return names.pop()
        problem = f"names {len(names)} labels" if names else f"names none of {', '.join(self._labels)}"
        return Unscored(Reason.PARSE_FAILURE, f"the answer {problem}: {shortened(answer)}")


def _alternatives(labels: Iterable[str]) -> str:
    # The longest first, so that "adversarial negative" is not read as "negative".
    spelled = [r"\s+".join(map(re.escape, label.split())) for label in sorted(labels, key=len, reverse=True)]
    return rf"(?<![\w-])(?:{'|'.join(spelled)})(?![\w-])" if spelled else _NOTHING


def shortened(answer: str) -> str:
    """An answer as messages show it."""
    return repr(answer if len(answer) <= 80 else answer[:77] + "...")
