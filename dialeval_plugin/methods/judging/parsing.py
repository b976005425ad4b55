"""Reads one number on a known scale out of what a language model answered.

What cannot be read is `Unscored` with the reason; it is never 0, and never the middle of the scale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from dialeval_plugin.scoring import Reason, Unscored

_NUMBER = r"[-+]?\d+(?:[.,]\d+)?|[-+]?\.\d+"
# Neither inside a word or version ("GPT4", "v1.2.3") nor the end of a range ("3-4" is two numbers, not 3 and minus 4).
_PLAIN = re.compile(rf"(?<![\w.,])({_NUMBER})(?![\w]|[.,]\d)|(?<=\d[-–])(\d+(?:[.,]\d+)?)(?![\w]|[.,]\d)")
_FRACTION = re.compile(rf"(?<![\w.,/])({_NUMBER})\s*(?:/|out\s+of|of)\s*(\d+(?:\.\d+)?)(?!\w|/)", re.IGNORECASE)
_PERCENT = re.compile(rf"(?<![\w.,])({_NUMBER})\s*(?:%|percent\b)", re.IGNORECASE)
_SCALE = re.compile(
    r"\(?\b(?:on|from|using)?\s*(?:a|the)?\s*(?:continuous\s+)?scale\s*(?:of|from|is|:)?\s*\d+(?:\.\d+)?\s*(?:-|–|to)\s*"
    r"\d+(?:\.\d+)?\)?|\b(?:from|between)\s+\d+(?:\.\d+)?\s+(?:to|and)\s+\d+(?:\.\d+)?",
    re.IGNORECASE,
)
_ENUMERATOR = re.compile(r"^\s*(?:\(\d+\)|\d+[.)])\s*(?=[^\W\d])", re.MULTILINE)
_FENCE = re.compile(r"```(?:\w+)?")
_DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORDS = {word: value for value, word in enumerate(_DIGIT_NAMES)}
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i\s*(?:['’]m|am)\s+(?:sorry|unable|not\s+able)|i\s+(?:cannot|can\s*not|can['’]t|won['’]t|will\s+not|must\s+decline)"
    r"|i\s+apologi[sz]e|as\s+an\s+ai\b|unable\s+to\s+(?:rate|score|evaluate|assess|provide))",
    re.IGNORECASE,
)
_ECHO_LENGTH = 40
"""A line of the prompt that is shorter may be the answer: SLIDE's prompt shows "Engagingness: 1"."""


def parse_rating(
    answer: str, scale: tuple[float, float], *, label: str | None = None, prompt: str | None = None
) -> float | Unscored:
    """Return the one number of `answer`, or why there is none.

    A number behind `label` (or "score", "rating") goes before any other. "4/5" and "4 out of 5" count where the second
    number is the top of the scale, and are out of range where it is not: a model that answers on another scale has not
    understood the question. The same number twice is one; two different numbers are a parse failure.

    Args:
        answer: what the model said.
        scale: lowest and highest rating.
        label: what the prompt asks for, as "Engagingness".
        prompt: the prompt, which is cut out where the model repeats it, with the numbers in it.

    Example:
        >>> parse_rating("Engagingness: 0.8", (0, 1), label="Engagingness"), parse_rating("10 out of 10", (1, 5)).reason.value
        (0.8, 'out_of_range')
    """
    text = _without_echo(answer, prompt) if prompt else answer
    text = _FENCE.sub(" ", text).replace("*", "").replace("`", "").strip()
    if not text:
        return Unscored(Reason.PARSE_FAILURE, "the answer is empty")
    if (value := _from_json(text, label)) is not None:
        return _in_range(value, scale, answer)
    text = _SCALE.sub(" ", text)
    labelled = _labelled(text, label)
    if not labelled and _REFUSAL.search(text):
        return Unscored(Reason.REFUSAL, f"the model refused: {_short(answer)}")
    if label and re.search(rf"{re.escape(label)}\s*[:=]?\s*$", text, re.IGNORECASE) and not labelled:
        return Unscored(Reason.TRUNCATED, f"the answer ends before the number: {_short(answer)}")
    for candidates in (labelled, [_ENUMERATOR.sub("", text)], [text]):
        values = [value for part in candidates for value in _numbers(part, scale)]
        if values:
            break
    else:
        values = list(_number_words(text))
    if None in values:
        detail = f"the answer is on another scale than {scale[0]:g} to {scale[1]:g}: {_short(answer)}"
        return Unscored(Reason.OUT_OF_RANGE, detail)
    distinct = {value for value in values if value is not None}
    if len(distinct) != 1:
        problem = f"{len(distinct)} different numbers" if distinct else "no number"
        return Unscored(Reason.PARSE_FAILURE, f"the answer has {problem}: {_short(answer)}")
    return _in_range(distinct.pop(), scale, answer)


def _without_echo(answer: str, prompt: str) -> str:
    """Cut out the prompt, whole or its longer lines."""
    if (whole := prompt.strip()) and whole in answer:
        return answer.replace(whole, "")
    known = {line.strip() for line in prompt.splitlines() if len(line.strip()) >= _ECHO_LENGTH}
    return "\n".join(line for line in answer.splitlines() if line.strip() not in known)


def _from_json(text: str, label: str | None) -> float | None:
    """The number of a JSON object or bare JSON number, if that is what the answer is."""
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    try:
        value: Any = json.loads(text[start : end + 1])
    except json.JSONDecodeError:
        return None
    numbers = {key.casefold(): number for key, number in value.items() if _is_number(number)}
    for name in (label, "score", "rating"):
        if name is not None and name.casefold() in numbers:
            return float(numbers[name.casefold()])
    return float(next(iter(numbers.values()))) if len(numbers) == 1 else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _labelled(text: str, label: str | None) -> list[str]:
    """What follows the label, where that starts with a number; without one, what follows "score" or "rating"."""
    for name in filter(None, (re.escape(label) if label else None, "score|rating")):
        # Only the number itself, with its fraction or percent sign: what a model adds behind it is prose.
        number = rf"(?:{_NUMBER})(?:\s*(?:/|out\s+of|of)\s*\d+|\s*%|[-–]\d+)?"
        pattern = rf"\b(?:{name})\b\s*(?:\([^)\n]*\))?\s*(?:is|of|=|:|：|-)\s*({number})"
        if found := [match[1] for match in re.finditer(pattern, text, re.IGNORECASE)]:
            return found
    return []


def _numbers(text: str, scale: tuple[float, float]) -> Iterator[float | None]:
    """The numbers of a text; None for one on another scale."""
    rest = text
    for match in _FRACTION.finditer(text):
        yield _float(match[1]) if float(match[2]) == scale[1] else None
        rest = rest.replace(match[0], " ", 1)
    for match in list(_PERCENT.finditer(rest)):
        yield _float(match[1]) / 100 if scale == (0, 1) else None
        rest = rest.replace(match[0], " ", 1)
    for match in _PLAIN.finditer(rest):
        yield _float(match[1] or match[2])


def _number_words(text: str) -> Iterator[float]:
    words = [word.casefold() for word in _WORD.findall(text)]
    # "this one" is no rating, unless it is all that there is.
    if set(words) != {"one"} or len(text.split()) <= 3:
        yield from (float(_WORDS[word]) for word in words if word != "one" or set(words) == {"one"})


def _float(text: str) -> float:
    return float(text.replace(",", "."))


def _in_range(value: float, scale: tuple[float, float], answer: str) -> float | Unscored:
    if not scale[0] <= value <= scale[1]:
        return Unscored(Reason.OUT_OF_RANGE, f"{value:g} is not on the scale {scale[0]:g} to {scale[1]:g}: {_short(answer)}")
    return value


def _short(answer: str) -> str:
    return repr(answer if len(answer) <= 80 else answer[:77] + "...")
