"""Reads the two lists of responses out of what a language model wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.llm.parsing import shortened

Kind: TypeAlias = Literal["positive", "adversarial"]

KINDS: tuple[Kind, ...] = ("positive", "adversarial")

_MARKUP = re.compile(r"\*\*|__|`|^[ \t]*(?:>|#+)[ \t]*", re.MULTILINE)
_KIND = r"(?P<kind>positive|adversarial|negative)(?:\s+negative)?"
_WORD = r"(?:responses?|repl(?:y|ies)|answers?)"
_LEAD = r"(?:(?:here|are|is|now|and|the|my|your|a|some|list|set|of|five|5|diverse|possible|generated)[ \t]+)*"
# "Here are five diverse positive responses:" and "2. Adversarial Negative Responses (they share words):" are headings.
_HEADING = re.compile(
    rf"^\s*(?:\(?\d{{1,2}}[.):]\s*)?{_LEAD}{_KIND}\s+{_WORD}\s*(?:\([^()]*\))?\s*(?:[:：]|$)[ \t]*(?P<rest>.*)$", re.IGNORECASE
)
_SHORT_HEADING = re.compile(rf"^\s*{_KIND}\s*[:：][ \t]*(?P<rest>.*)$", re.IGNORECASE)
# "Positive response 3: ..." is an item that says which list it is of.
_TITLED_ITEM = re.compile(rf"^\s*{_KIND}\s*{_WORD}?\s*#?(?P<number>\d{{1,2}})\s*[.):：]\s*(?P<text>\S.*)$", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:\(?(?P<number>\d{1,2})(?:[.)\]](?!\d)|[:：](?=\s)|\s+[-–](?=\s))|[-*•‣–](?=\s))\s*(?P<text>\S.*)$")
_NEXT_EXAMPLE = re.compile(r"^\s*(?:context|conversation|example(?:\s+\d+)?)\s*[:：]?\s*$", re.IGNORECASE)
_SPEAKER = re.compile(r"^(?:FS|SS|First\s?Speaker|Second\s?Speaker|Response)\s*[:：]\s*", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»"}
_REFUSAL = re.compile(
    r"\bi(?: a|['’])m (?:very |so )?sorry|\bi apologi[sz]e\b|\bas an ai\b"
    r"|\b(?:i (?:can ?not|can['’]t|won['’]t|will not)|(?:unable|not able) to) (?:\w+ )?(?:help|assist|generate|provide|create"
    r"|write|comply|fulfil|continue|do)",
    re.IGNORECASE,
)


class ResponseLists(NamedTuple):
    """What a model wrote, without duplicates, in its order."""

    positive: tuple[str, ...]
    adversarial: tuple[str, ...]


@dataclass
class _Section:
    """Lines below one heading."""

    numbered: list[tuple[int | None, str]] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        if (item := _ITEM.match(line)) is not None:
            self.numbered.append((int(item["number"]) if item["number"] else None, item["text"]))
        elif line.strip() and not line.rstrip().endswith((":", "：")):
            self.plain.append(line)

    @property
    def texts(self) -> list[str]:
        # In a numbered list, a line without a number is a comment on it.
        return [text for _, text in self.numbered] or self.plain


def read_responses(
    answer: str, *, known: Iterable[str] = (), limit: int = 5, prompt: str | None = None
) -> ResponseLists | Unscored:
    r"""The positive and the adversarial responses of `answer`, at most `limit` of each, or why there are none.

    The lists stand below their headings, numbered, with dashes, or one response a line; an answer that goes on behind the
    prompt begins with the positive ones. Without a heading over the second, it begins where the numbers begin again, or
    behind the first `limit` of twice as many. Quotation marks, speaker tags and emphasis are taken off. A response that
    repeats another one or one of `known` is left out, and so is everything from the next "Context:" on, which a model that
    only continues text makes up. A list may be shorter than asked for, and even empty: nothing is filled in.

    Example:
        >>> read_responses("Positive responses:\n1. Sure.\n2. \"No.\"\n\nAdversarial:\n1) I sold it.", known=["no"])
        ResponseLists(positive=('Sure.',), adversarial=('I sold it.',))
    """
    text = answer.replace(prompt.strip(), "") if prompt else answer
    sections, has_second_heading = _sections(_MARKUP.sub("", text))
    if has_second_heading:
        found = {kind: section.texts for kind, section in sections.items()}
    else:
        found = _split(sections["positive"].numbered, limit)
    seen = {same_text(text) for text in known}
    lists = ResponseLists(*(tuple(_distinct(found[kind], seen)[:limit]) for kind in KINDS))
    if lists.positive or lists.adversarial:
        return lists
    if _REFUSAL.search(text) and not any(found.values()):
        return Unscored(Reason.REFUSAL, f"the model refused: {shortened(answer)}")
    return Unscored(Reason.PARSE_FAILURE, f"the answer has no new response: {shortened(answer)}")


def same_text(text: str) -> str:
    """What two responses have in common that differ in case, white space and punctuation only."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold())) or text.strip()


def _sections(text: str) -> tuple[dict[Kind, _Section], bool]:
    """The lines of each list, and whether the second has a heading."""
    sections: dict[Kind, _Section] = {kind: _Section() for kind in KINDS}
    current: Kind = "positive"
    has_second_heading = False
    for line in text.splitlines():
        if _NEXT_EXAMPLE.match(line) and any(section.numbered or section.plain for section in sections.values()):
            break
        if (titled := _TITLED_ITEM.match(line)) is not None:
            current = _kind(titled)
            sections[current].numbered.append((int(titled["number"]), titled["text"]))
        elif (heading := _HEADING.match(line) or _SHORT_HEADING.match(line)) is not None:
            current = _kind(heading)
            if current == "positive":
                # What stands before it introduces the list.
                sections[current].plain.clear()
            sections[current].add(heading["rest"])
        else:
            sections[current].add(line)
        has_second_heading |= current == "adversarial"
    return sections, has_second_heading


def _kind(match: re.Match[str]) -> Kind:
    return "positive" if match["kind"].casefold() == "positive" else "adversarial"


def _split(items: list[tuple[int | None, str]], limit: int) -> dict[Kind, list[str]]:
    """Divide one run of items: where the numbers begin again, else after `limit` of twice as many."""
    restarts = [place for place, (number, _) in enumerate(items) if place and number == 1]
    middle = restarts[0] if restarts else limit if len(items) == 2 * limit else len(items)
    texts = [text for _, text in items]
    return {"positive": texts[:middle], "adversarial": texts[middle : restarts[1] if len(restarts) > 1 else None]}


def _distinct(texts: Iterable[str], seen: set[str]) -> list[str]:
    """The cleaned texts that are not in `seen`, which they join."""
    kept = []
    for text in map(_clean, texts):
        if text and (key := same_text(text)) not in seen:
            seen.add(key)
            kept.append(text)
    return kept


def _clean(text: str) -> str:
    text = _SPEAKER.sub("", " ".join(text.split()))
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text
