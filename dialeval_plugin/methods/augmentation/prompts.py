"""SLIDE's prompt for writing responses (Zhao et al. 2024, appendix A.2), with its example, and the parsing of its answers.

The prompt is as printed, with its errors ("a conversation context, , which", "five examples" before a single one, seven
adversarial responses instead of five), but for three changes. The example's responses are numbered, because the published
notebook reads answers by line; "SSI enjoy having" is corrected to "SS: I enjoy having"; and the end of the prompt, which the
paper does not print, has the form of the example. The notebook's presence and frequency penalties of 0.5 are not sent: lm-eval
has no argument for them that every backend accepts.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import Turn
from dialeval_plugin.core.scores import Reason, Unscored
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.llm.parsing import shortened
from dialeval_plugin.llm.reasoning import split_reasoning
from dialeval_plugin.methods.judging.classification import RESPONSE_KINDS, SCHOOL, context_lines

TEMPERATURE = 0.7
MAX_TOKENS = 512
"""Ten responses take about 200; lm-eval cuts the prompt if prompt and answer together exceed a model's window."""
STOP = ("\nContext:",)

ResponseKind: TypeAlias = Literal["positive", "adversarial"]
KINDS: tuple[ResponseKind, ...] = ("positive", "adversarial")


class ResponseLists(NamedTuple):
    """Responses to one context; those of a model are without duplicates, in its order."""

    positive: tuple[str, ...]
    adversarial: tuple[str, ...]


SHOWN = ResponseLists(*map(tuple, json.loads(Path(__file__).with_name("shown_responses.json").read_text("utf-8")).values()))
"""The responses of the printed example."""

_POSITIVE_HEADING = "Positive response:"


def generation_prompt(context: Sequence[str]) -> str:
    """Return the prompt for five positive and five adversarial responses to `context`."""
    return "\n\n".join(
        [
            "You are a conversational dialogue generator. Given a conversation context, , which includes 2 speakers"
            "[annotated as FS(FirstSpeaker) and SS(SecondSpeaker)], and a response.",
            "Your task is to generate five diverse positive response and five adversarial negative response respectively.",
            RESPONSE_KINDS,
            "The following are five examples of a conversation context and response, and the corresponding prediction.",
            "Example",
            _context_block(SCHOOL),
            _numbered(_POSITIVE_HEADING, SHOWN.positive),
            _numbered("Adversarial Negative Responses:", SHOWN.adversarial),
            _context_block(context),
            _POSITIVE_HEADING,
        ]
    )


def prompt_id() -> str:
    """Return name, version and hash of the text, for a signature."""
    return f"slide_generation-v1-{text_hash(generation_prompt(['one', 'two']), str(TEMPERATURE))}"


def _context_block(context: Sequence[str]) -> str:
    return "\n".join(["Context:", *context_lines([Turn(text) for text in context])])


def _numbered(heading: str, responses: Sequence[str]) -> str:
    return "\n".join([heading, *(f"{number}. {response}" for number, response in enumerate(responses, start=1))])


# Parsing of the two lists in an answer.

_MARKUP = re.compile(r"\*\*|__|`|^[ \t]*(?:>|#+)[ \t]*", re.MULTILINE)
_KIND = r"(?P<kind>positive|adversarial|negative)(?:\s+negative)?"
_WORD = r"(?:responses?|repl(?:y|ies)|answers?)"
_LEAD = r"(?:(?:here|are|is|now|and|the|my|your|a|some|list|set|of|five|5|diverse|possible|generated)[ \t]+)*"
# "Here are five diverse positive responses:" and "2. Adversarial Negative Responses (they share words):" are headings.
_HEADING = re.compile(
    rf"^\s*(?:\(?\d{{1,2}}[.):]\s*)?{_LEAD}{_KIND}\s+{_WORD}\s*(?:\([^()]*\))?\s*(?:[:：]|$)[ \t]*(?P<rest>.*)$", re.IGNORECASE
)
_SHORT_HEADING = re.compile(rf"^\s*{_KIND}\s*[:：][ \t]*(?P<rest>.*)$", re.IGNORECASE)
# "Positive response 3: ..." is an item that names its list.
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


@dataclass
class _Section:
    numbered: list[tuple[int | None, str]] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        if (item := _ITEM.match(line)) is not None:
            self.numbered.append((int(item["number"]) if item["number"] else None, item["text"]))
        elif line.strip() and not line.rstrip().endswith((":", "：")):
            self.plain.append(line)

    @property
    def texts(self) -> list[str]:
        # In a numbered list, lines without a number are comments.
        return [text for _, text in self.numbered] or self.plain


def read_responses(
    answer: str, *, known: Iterable[str] = (), limit: int = 5, prompt: str | None = None, is_cut: bool = False
) -> ResponseLists | Unscored:
    r"""Return the positive and the adversarial responses in `answer`, at most `limit` of each, or why there are none.

    Lists follow their headings, numbered, with dashes, or with one response per line; text before a heading belongs to the
    positive ones. Without its heading the second list begins where the numbers restart, or after the first `limit` of twice as
    many. Quotation marks, speaker tags and emphasis are removed. Repetitions of another response or one of `known` are left
    out, and so are the model's reasoning, everything from the next "Context:", an example made up by the model, and the last
    line of an answer that was truncated (`is_cut`). A list may be short or empty.

    Example:
        >>> read_responses("Positive responses:\n1. Sure.\n2. \"No.\"\n\nAdversarial:\n1) I sold it.", known=["no"])
        ResponseLists(positive=('Sure.',), adversarial=('I sold it.',))
    """
    reply = split_reasoning(answer.replace(prompt.strip(), "") if prompt else answer)
    text = reply.text.rpartition("\n")[0] if is_cut else reply.text
    sections = _sections(_MARKUP.sub("", text))
    if "adversarial" in sections:
        texts = {kind: sections[kind].texts for kind in KINDS}
    else:
        texts = _split(sections["positive"].numbered, limit)
    seen = {same_text(text) for text in known}
    lists = ResponseLists(*(tuple(_distinct(texts[kind], seen)[:limit]) for kind in KINDS))
    if lists.positive or lists.adversarial:
        return lists
    if _REFUSAL.search(text) and not any(texts.values()):
        return Unscored(Reason.REFUSAL, f"the model refused: {shortened(answer)}")
    if is_cut or reply.is_open:
        return Unscored(Reason.TRUNCATED, f"the answer was cut off before its first response: {shortened(answer)}")
    return Unscored(Reason.PARSE_FAILURE, f"the answer has no new response: {shortened(answer)}")


def same_text(text: str) -> str:
    """Return a key that ignores case, white space and punctuation."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold())) or text.strip()


def _sections(text: str) -> defaultdict[ResponseKind, _Section]:
    """Return the lines of each list; without a heading of the second, all are in the first."""
    sections: defaultdict[ResponseKind, _Section] = defaultdict(_Section)
    current: ResponseKind = "positive"
    for line in text.splitlines():
        if _NEXT_EXAMPLE.match(line) and any(section.numbered or section.plain for section in sections.values()):
            break
        if (titled := _TITLED_ITEM.match(line)) is not None:
            current = _kind(titled)
            sections[current].numbered.append((int(titled["number"]), titled["text"]))
        elif (heading := _HEADING.match(line) or _SHORT_HEADING.match(line)) is not None:
            current = _kind(heading)
            if current == "positive":
                # Text before it introduces the list.
                sections[current].plain.clear()
            sections[current].add(heading["rest"])
        else:
            sections[current].add(line)
    return sections


def _kind(match: re.Match[str]) -> ResponseKind:
    return "positive" if match["kind"].casefold() == "positive" else "adversarial"


def _split(items: list[tuple[int | None, str]], limit: int) -> dict[ResponseKind, list[str]]:
    """Return both lists of one run of items, split where the numbers restart, else after `limit` of twice as many."""
    restarts = [place for place, (number, _) in enumerate(items) if place and number == 1]
    middle = restarts[0] if restarts else limit if len(items) == 2 * limit else len(items)
    texts = [text for _, text in items]
    return {"positive": texts[:middle], "adversarial": texts[middle : restarts[1] if len(restarts) > 1 else None]}


def _distinct(texts: Iterable[str], seen: set[str]) -> list[str]:
    """Return the cleaned texts that are not in `seen`, and add them to it."""
    distinct = []
    for text in map(_clean, texts):
        if text and (key := same_text(text)) not in seen:
            seen.add(key)
            distinct.append(text)
    return distinct


def _clean(text: str) -> str:
    text = _SPEAKER.sub("", " ".join(text.split()))
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and text[0] not in text[1:-1]:
        text = text[1:-1].strip()
    return text
