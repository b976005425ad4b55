"""Answers with a known defect, made from real ones, for training and calibration of the defect heads.

phrases.json has templates of corrupted answers by defect, and phrases for them. A name in braces is replaced by a phrase of
that name, or by a text made here from the answer and its context. No language model is used.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from .judging import DEFECTS
from .rules import LANGUAGES, NAMED_LANGUAGE, language_of, split_sentences, topic_words

LEFT_OPEN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # The rest of an answer may be only its opening phrases or a repetition of the question.
        "cut_off": ("boilerplate", "echo"),
        # It ends abruptly; repeated signs belong to no language; a repeated farewell is a stock phrase.
        "looping": ("cut_off", "gibberish", "boilerplate"),
        # A section title has no text after it.
        "leaked": ("cut_off",),
        # The other answer belongs to its own question, in its own language, and is truncated.
        "second_voice": ("cut_off", "off_topic", "wrong_language"),
        # Farewells are stock phrases, and the request may be quoted.
        "refusal": ("boilerplate", "echo"),
        # A text that fits any question is off topic for each.
        "boilerplate": ("off_topic",),
        # Its sentences have nothing to do with the question; the answer before them is truncated.
        "wrong_language": ("off_topic", "boilerplate", "cut_off"),
        # Filters decline, services apologise, tool calls have tags; none is about the question; the answer is truncated.
        "error_message": ("refusal", "boilerplate", "leaked", "off_topic", "cut_off"),
        # Another question may be in another language.
        "off_topic": ("wrong_language",),
        # It is unknown what else is wrong with an answer in another context.
        "stale": ("off_topic", "cut_off", "refusal", "boilerplate", "contradiction", "wrong_language"),
        # Users' texts may be unfinished, code, a pasted error or instructions, and may be repeated.
        "echo": ("second_voice", "looping", "cut_off", "gibberish", "error_message", "leaked"),
        "contradiction": (),
        # Pieces of tokens, of other answers and of other languages; shuffled words may end or deny anywhere.
        "gibberish": ("wrong_language", "error_message", "leaked", "off_topic", "cut_off", "contradiction"),
        # "Figure it out yourself" declines, and fits any question; an answer may restart after an insult.
        "insult": ("refusal", "boilerplate", "off_topic", "looping"),
    }
)
"""Other defects, by the defect of a corrupted answer, that the answer may have too; it has none of the rest."""

_FILE = json.loads(Path(__file__).with_name("phrases.json").read_text(encoding="utf-8"))
_FORMS: Mapping[str, list[str]] = _FILE["forms"]
_PHRASES: Mapping[str, list[str]] = _FILE["phrases"]

_NAME = re.compile(r"\{(\w+)\}")
_AUXILIARY = re.compile(r"\b(?:is|are|was|were|can|could|will|would|should|must|has|have|does|do|did)\b")
_NEGATED = re.compile(r" not\b|\bnever |n['’]t\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\d)")
_TURNED = {"I": "you", "me": "you", "my": "your", "you": "I", "your": "my"}
_MARKUP = re.compile(r"\*\*|__|`|^#+ +", re.MULTILINE)
_CODES = ("400", "401", "404", "429", "500", "502", "503", "504")
_PIECES = ("()", "});", "<br", "0x7f", "##", "_id", "://", "]]", "ﬁ", "Ã©", "▁the", "\\n")


class _Spoiling:
    """Makes texts from one answer and its context; "" if one cannot be made."""

    def __init__(self, context: Sequence[str], response: str, others: Sequence[str], rng: np.random.Generator) -> None:
        self._context, self._others, self._rng = context, others, rng
        self._response = response.strip()
        self._question = context[-1].strip() if context else ""
        self._words = self._response.split(" ")
        self._sentences = split_sentences(response)
        self._used: set[str] = set()

    def made(self, defect: str) -> str:
        return self._filled(self._pick(_FORMS[defect]))

    def _filled(self, form: str) -> str:
        """Replace the names in a template by phrases and values; "" if one of them is missing."""
        parts = _NAME.split(form)
        for place in range(1, len(parts), 2):
            name = parts[place]
            if name in _PHRASES:
                phrase = self._pick([one for one in _PHRASES[name] if one not in self._used] or _PHRASES[name])
                self._used.add(phrase)
                parts[place] = self._filled(phrase)
            else:
                parts[place] = _VALUES[name](self) if name in _VALUES else f"{{{name}}}"
            if not parts[place]:
                return ""
        return "".join(parts)

    def _pick(self, options: Sequence[str]) -> str:
        return options[int(self._rng.integers(len(options)))] if options else ""

    def _number(self, lowest: int, highest: int) -> int:
        """Random integer between `lowest` and `highest`, both included."""
        return int(self._rng.integers(lowest, max(lowest, highest) + 1))

    def _permuted(self, texts: Sequence[str]) -> list[str]:
        return [texts[place] for place in self._rng.permutation(len(texts))]

    def _replaced(self, share: float, word: Callable[[str], str]) -> str:
        """The answer with a random share of its words replaced."""
        return " ".join(word(one) if self._rng.random() < share else one for one in self._words)

    # Values from the question.

    def topic(self) -> str:
        return topic_words(self._question, self._number(1, 4)) or "that"

    def request(self) -> str:
        return " ".join(self._question.split()[: self._number(6, 14)]).rstrip(".?!") or "that"

    def question(self) -> str:
        return self._question if len(self._question.split()) > 2 else ""

    def first(self) -> str:
        return " ".join(split_sentences(self.question())[:2])

    def turned(self) -> str:
        first = re.sub(r"\b(?:I|me|my|you|your)\b", lambda match: _TURNED[match[0]], self.first())
        return first[:1].lower() + first[1:]

    def earlier(self) -> str:
        return self._pick([turn for turn in self._context[-2::-2] if len(turn.split()) > 3])

    # Values from other answers and languages.

    def other(self) -> str:
        return self._pick(self._others)

    def other_opening(self) -> str:
        return " ".join(self.other().split()[: self._number(5, 60)])

    def foreign(self) -> str:
        if NAMED_LANGUAGE.search(" ".join(self._context).lower()):
            return ""
        own = language_of(self._response)
        sentences = LANGUAGES[self._pick([code for code in LANGUAGES if code != own])]["sentences"]
        return " ".join(self._permuted(sentences)[: self._number(1, len(sentences))])

    # Values from the answer.

    def opening(self) -> str:
        """First third or half of the answer."""
        return " ".join(self._words[: max(1, len(self._words) // self._number(2, 3))])

    def cut(self) -> str:
        ends = [match.end() for match in re.finditer(r"[^\s.!?:|`]+(?= +\S)", self._response)]
        ends = ends[len(ends) // 4 :] if len(ends) > 7 else []
        text = self._response[: ends[self._number(0, len(ends) - 1)]].rstrip(",;\"”')*") if ends else ""
        is_word = re.search(r"[^\W\d_]{4}\Z", text) is not None
        return text[: -self._number(1, 2)] if is_word and self._rng.random() < 0.3 else text

    def repeated_sentence(self) -> str:
        return " ".join([self._pick(self._sentences[-2:])] * self._number(3, 15))

    def repeated_words(self) -> str:
        start = self._number(0, len(self._words) - 2)
        return " ".join(self._words[start : start + self._number(1, 8)] * self._number(4, 40))

    def repeated_items(self) -> str:
        item = self._sentences[-1].lstrip("-*0123456789. ") if self._sentences else ""
        return "\n".join(f"{number}. {item}" for number in range(1, self._number(4, 15))) if item else ""

    def repeated_sign(self) -> str:
        return self._pick(["!", ".", "?", "a", "e", "o", "0", "ha", " ok", "\n-"]) * self._number(30, 200)

    def _changed(self, pattern: re.Pattern[str], change: Callable[[str], str]) -> tuple[str, str]:
        """A random sentence that matches a pattern, and the sentence with its first match changed."""
        fitting = [one for one in self._sentences if 4 < len(one.split()) < 60 and one[-1] not in "?:"]
        sentence = self._pick([one for one in fitting if pattern.search(one)])
        return sentence, pattern.sub(lambda match: change(match[0]), sentence, count=1)

    def _denied(self) -> tuple[str, str]:
        sentence, positive = self._changed(_NEGATED, lambda _: " ")
        if sentence and self._rng.random() < 0.5:
            return sentence, " ".join(positive.split())
        sentence, denied = self._changed(_AUXILIARY, lambda verb: f"{verb} {self._pick(['not', 'not', 'never'])}")
        return ("", "") if _NEGATED.search(sentence) else (sentence, denied)

    def _recounted(self) -> tuple[str, str]:
        return self._changed(_NUMBER, lambda number: str(int(number[:9]) * self._number(2, 9) + self._number(1, 9)))

    def denied(self) -> str:
        return self._denied()[1]

    def recounted(self) -> str:
        return self._recounted()[1] or self._denied()[1]

    def beside(self) -> str:
        """The answer with a sentence followed by its negation, or by itself with another number."""
        sentence, changed = self._denied() if self._rng.random() < 0.7 else self._recounted()
        return self._response.replace(sentence, f"{sentence} {self._pick(_PHRASES['contrast'])}{changed}", 1) if changed else ""

    def shuffled(self) -> str:
        return " ".join(self._permuted(self._words)) if len(self._words) > 3 else ""

    def shuffled_windows(self) -> str:
        width = self._number(4, 9)
        windows = (self._words[start : start + width] for start in range(0, len(self._words), width))
        return " ".join(word for window in windows for word in self._permuted(window)) if len(self._words) > 3 else ""

    def random_letters(self) -> str:
        return self._replaced(0.6, lambda word: "".join(self._pick(string.ascii_lowercase) for _ in word))

    def mixed_letters(self) -> str:
        return self._replaced(0.9, lambda word: "".join(self._permuted(word)))

    def other_words(self) -> str:
        pool = " ".join(self._others).split() or self._words[::-1]
        return self._replaced(0.6, lambda _: self._pick(pool))

    def tokens(self) -> str:
        pool = [*_PIECES, *(sentence.split()[0] for one in LANGUAGES.values() for sentence in one["sentences"])]
        return self._replaced(0.7, lambda _: self._pick(pool))

    def pieces(self) -> str:
        """Parts of words, like a tokenizer's, as many as the answer has words."""
        pool = " ".join(self._others).split() or self._words
        drawn = [self._pick(pool) for _ in self._words]
        return " ".join(
            word[start : start + self._number(1, 4)] for word in drawn for start in [self._number(0, len(word) - 1)]
        )


_VALUES: Mapping[str, Callable[[_Spoiling], str]] = MappingProxyType(
    {
        **{name: value for name, value in vars(_Spoiling).items() if name[0] != "_" and name != "made"},
        "response": lambda spoiling: spoiling._response,
        "Topic": lambda spoiling: spoiling.topic().capitalize(),
        "code": lambda spoiling: spoiling._pick(_CODES),
        "number": lambda spoiling: str(spoiling._number(12, 4999)),
        "small": lambda spoiling: str(spoiling._number(1, 60)),
        "id": lambda spoiling: "".join(spoiling._pick(string.hexdigits) for _ in range(12)),
    }
)


def spoiled(context: Sequence[str], response: str, others: Sequence[str], rng: np.random.Generator) -> dict[str, str]:
    """Corrupt an answer in every possible way, each by a randomly drawn variant.

    Args:
        context: texts of the turns before it, oldest first; the last one is the user's, and user and assistant alternate.
        response: an answer without defects.
        others: answers of other conversations, for off-topic variants.
        rng: draws the variants; the same state gives the same texts.

    Returns:
        Corrupted answers by defect. A defect is left out if its variant cannot be made: for example, if the answer has too few
        words to be truncated, or there is no earlier answer to repeat.
    """
    spoiling = _Spoiling(context, response, others, rng)
    texts = {defect.name: spoiling.made(defect.name) for defect in DEFECTS}
    return {name: text for name, text in texts.items() if text and text.split() != response.split()}


def restyled(response: str, rng: np.random.Generator) -> str:
    """Return an answer with a harmless change: without its last full stop, with bold words, or without markup.

    It is unchanged if the drawn change does not apply.
    """
    lines = response.rstrip().split("\n")
    change = rng.integers(3)
    if change == 0:
        return re.sub(r"(?<=\w)\.\Z", "", response.rstrip())
    if change == 1:
        return _MARKUP.sub("", response)
    words = lines[place := int(rng.integers(len(lines)))].split(" ")
    start = int(rng.integers(len(words)))
    bold = [*words[:start], f"**{' '.join(words[start : start + 3])}**", *words[start + 3 :]]
    return "\n".join([*lines[:place], " ".join(bold), *lines[place + 1 :]])
