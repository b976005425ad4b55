"""Answers that have a defect, made from real ones: what the heads of defects are trained and calibrated on.

No language model takes part. Sentences of other languages and set phrases are the package's own.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .rules import LANGUAGES, language_of, split_sentences, topic_words

_PHRASES: Mapping[str, list[str]] = json.loads(Path(__file__).with_name("phrases.json").read_text(encoding="utf-8"))
_LABELS = (
    ("User", "Assistant"),
    ("Human", "Assistant"),
    ("Human", "AI"),
    ("Q", "A"),
    ("Customer", "Agent"),
    ("You", "Me"),
    ("user", "assistant"),
)
_NAMES = re.compile(
    r"\btranslat|\blanguages?\b|" + "|".join(rf"\b{name}" for one in LANGUAGES.values() for name in one["names"])
)
_AUXILIARY = re.compile(r"\b(is|are|was|were|can|could|will|would|should|must|has|have|does|do|did)\b(?! not\b|n['’]t)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\d)")
_GAPS = (" ", "\n", "\n\n")


class _Case(NamedTuple):
    context: Sequence[str]
    response: str
    others: Sequence[str]
    rng: np.random.Generator

    def pick(self, options: Sequence[str]) -> str:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def number(self, lowest: int, highest: int) -> int:
        """From lowest to highest, both included."""
        return int(self.rng.integers(lowest, highest + 1))

    def phrase(self, kind: str) -> str:
        return self.filled(self.pick(_PHRASES[kind]))

    def filled(self, phrase: str) -> str:
        """Put the topic of the question and numbers into a phrase."""
        question = self.context[-1] if self.context else ""
        topic = topic_words(question, self.number(1, 4)) or "that"
        request = " ".join(question.split()[: self.number(6, 14)]) or "that"
        return phrase.format(
            topic=topic,
            Topic=topic[:1].upper() + topic[1:],
            request=request.rstrip(".?!"),
            code=self.pick(["400", "401", "404", "429", "500", "502", "503", "504"]),
            number=self.number(12, 4999),
            small=self.number(1, 60),
            id="".join(self.pick(string.hexdigits) for _ in range(12)),
        )

    def phrases(self, kind: str, lowest: int, highest: int) -> str:
        """Different phrases of a kind, in a drawn order."""
        places = self.rng.permutation(len(_PHRASES[kind]))[: self.number(lowest, highest)]
        return " ".join(self.filled(_PHRASES[kind][place]) for place in places)


def _cut_off(case: _Case) -> str | None:
    words = [found.end() for found in re.finditer(r"\S+", case.response)]
    if len(words) < 8:
        return None
    end = words[case.number(max(3, len(words) // 4), len(words) - 2)]
    text = case.response[:end].rstrip(" .!?…:;\"”')*`")
    if case.chance(0.3) and text[-3:].isalpha():
        text = text[: -case.number(1, 2)]
    return text + ("..." if case.chance(0.05) else "")


def _looping(case: _Case) -> str | None:
    sentences, words = split_sentences(case.response), case.response.split()
    if not sentences or len(words) < 3:
        return None
    kind, times = case.number(0, 5), case.number(3, 15)
    if kind == 0:
        return f"{case.response}{case.pick(_GAPS)}" + " ".join([sentences[-1]] * times)
    if kind == 1:
        place = case.number(0, len(sentences) - 1)
        return " ".join([*sentences[: place + 1], *[sentences[place]] * times])
    if kind == 2:
        length = case.number(1, min(8, len(words)))
        end = case.number(max(length, len(words) // 2), len(words))
        return " ".join([*words[:end], *words[end - length : end] * case.number(4, 40)])
    if kind == 3:
        return "\n\n".join([case.response] * case.number(2, 4))
    if kind == 4:
        last = case.response.rsplit("\n", 1)[-1].strip("-*0123456789. ") or words[-1]
        return case.response + "".join(f"\n{number}. {last}" for number in range(1, times + 1))
    return case.response + case.pick([case.pick("!.aeo?0") * case.number(30, 200), f" {words[-1]}" * case.number(8, 80)])


def _leaked(case: _Case) -> str:
    kind = case.number(0, 3)
    if kind == 0:
        text = case.response + case.pick(["", "\n", " "]) + case.pick(_PHRASES["leaked_end"])
        return text + case.pick(["", f"\n{case.phrase('user_turns')}"])
    if kind == 1:
        return case.pick(_PHRASES["leaked_start"]) + case.response
    thought = case.phrase("reasoning")
    if kind == 2:
        tag = case.pick(["think", "thinking", "reasoning", "thought"])
        return (
            f"<{tag}>\n{thought}\n</{tag}>\n\n{case.response}" if case.chance(0.7) else f"{thought}\n</{tag}>\n{case.response}"
        )
    return f"{thought}\n\n{case.response}"


def _second_voice(case: _Case) -> str:
    turn = case.phrase("user_turns")
    user, assistant = _LABELS[case.number(0, len(_LABELS) - 1)]
    answer = case.pick(case.others) if case.others else case.phrase("boilerplate")
    answer = " ".join(answer.split()[: case.number(5, 60)])
    gap = case.pick(["\n", "\n\n"])
    kind = case.number(0, 3)
    if kind == 0:
        return f"{case.response}{gap}{user}: {turn}"
    if kind == 1:
        return f"{case.response}{gap}{turn}{gap}{answer}"
    if kind == 2:
        return f"{case.response}{gap}**{user}:** {turn}{gap}**{assistant}:** {answer}"
    return f"{case.response}{gap}{user}: {turn}{gap}{assistant}: {answer}"


def _refusal(case: _Case) -> str:
    return " ".join([case.phrase("refusal"), *[case.phrase("refusal_end")] * case.chance(0.5)])


def _boilerplate(case: _Case) -> str:
    return case.phrases("boilerplate", 2, 6)


def _wrong_language(case: _Case) -> str | None:
    asked = " ".join(case.context).lower()
    if _NAMES.search(asked):
        return None
    own = language_of(case.response)
    code = case.pick([code for code in LANGUAGES if code != own])
    sentences = list(LANGUAGES[code]["sentences"])
    drawn = [sentences[place] for place in case.rng.permutation(len(sentences))[: case.number(1, len(sentences))]]
    own_part = split_sentences(case.response)[: case.number(1, 2)] if case.chance(0.2) else []
    return " ".join([*own_part, *drawn])


def _error_message(case: _Case) -> str:
    message = case.phrase("error_message")
    words = case.response.split(" ")
    return " ".join([*words[: len(words) // case.number(2, 5)], f"\n\n{message}"]) if case.chance(0.15) else message


def _off_topic(case: _Case) -> str | None:
    return case.pick(case.others) if case.others else None


def _stale(case: _Case) -> str | None:
    earlier = [turn for turn in case.context[-2::-2] if len(turn.split()) > 3 and turn != case.response]
    return case.pick(earlier) if earlier else None


def _echo(case: _Case) -> str | None:
    question = case.context[-1].strip() if case.context else ""
    if len(question.split()) < 3 or question == case.response.strip():
        return None
    first = " ".join(split_sentences(question)[:2])
    turned = re.sub(
        r"\b(?:I|me|my|you|your)\b",
        lambda found: {"I": "you", "me": "you", "my": "your", "you": "I", "your": "my"}[found[0]],
        first,
    )
    return case.pick(
        [
            question,
            question,
            question,
            f"You asked: {question}",
            f'"{first}"',
            f"{first} {first}",
            f"So {turned[:1].lower()}{turned[1:]}",
            f"Your question is: {first}",
            f"{question}\n\n{question}",
        ]
    )


def _contradiction(case: _Case) -> str | None:
    """Deny a sentence or change its number, beside it or at the end, or take everything back."""
    fitting = [one for one in split_sentences(case.response) if 4 < len(one.split()) < 60 and not one.endswith(("?", ":"))]
    deniable = [one for one in fitting if _AUXILIARY.search(one)]
    counted = [one for one in fitting if _NUMBER.search(one)]
    if not fitting:
        return None
    if counted and case.chance(0.3):
        sentence = case.pick(counted)
        changed = _NUMBER.sub(lambda found: str(int(found[0][:9]) * case.number(2, 9) + case.number(1, 9)), sentence, count=1)
    elif deniable and case.chance(0.8):
        sentence = case.pick(deniable)
        changed = _AUXILIARY.sub(lambda found: f"{found[0]} {case.pick(['not', 'not', 'never'])}", sentence, count=1)
    else:
        return f"{case.response} {case.phrase('takes_back')}"
    opening = case.pick(_PHRASES["contradicting_openings"])
    if opening and not changed.startswith(("I ", "I'")):
        changed = opening + changed[:1].lower() + changed[1:]
    if case.chance(0.4):
        return case.response.replace(sentence, f"{sentence} {changed}", 1)
    return f"{case.response}{case.pick(_GAPS)}{changed}"


def _gibberish(case: _Case) -> str | None:
    words = case.response.split(" ")
    if len(words) < 4:
        return None
    kind = case.number(0, 5)
    rng = case.rng
    if kind == 0:
        mixed = [words[place] for place in rng.permutation(len(words))]
    elif kind == 1:
        window = case.number(4, 8)
        mixed = [
            words[start + place]
            for start in range(0, len(words), window)
            for place in rng.permutation(min(window, len(words) - start))
        ]
    elif kind == 2:
        mixed = ["".join(case.pick(string.ascii_lowercase) for _ in word) if case.chance(0.6) else word for word in words]
    elif kind == 3:
        pool = " ".join(case.others).split() or words[::-1]
        mixed = [case.pick(pool) if case.chance(0.6) else word for word in words]
    elif kind == 4:
        mixed = ["".join(word[place] for place in rng.permutation(len(word))) for word in words]
    else:
        tokens = [sentence.split()[0] for one in LANGUAGES.values() for sentence in one["sentences"]] + [
            "()",
            "});",
            "<br",
            "0x7f",
            "##",
            "_id",
            "://",
            "]]",
        ]
        mixed = [case.pick(tokens) if case.chance(0.7) else word for word in words]
    text = " ".join(mixed)
    return text if case.chance(0.7) else " ".join([*words[: len(words) // 2], *mixed[len(words) // 2 :]])


def _insult(case: _Case) -> str:
    insult = case.phrases("insults", 1, 2)
    kind = case.number(0, 4)
    if kind == 0:
        return insult
    if kind == 1:
        return f"{insult} {case.response}"
    if kind == 2:
        sentences = split_sentences(case.response)
        place = case.number(0, len(sentences))
        return " ".join([*sentences[:place], insult, *sentences[place:]])
    return f"{case.response}{case.pick(_GAPS)}{insult}"


_SPOILERS: Mapping[str, Callable[[_Case], str | None]] = MappingProxyType(
    {
        "cut_off": _cut_off,
        "looping": _looping,
        "leaked": _leaked,
        "second_voice": _second_voice,
        "refusal": _refusal,
        "boilerplate": _boilerplate,
        "wrong_language": _wrong_language,
        "error_message": _error_message,
        "off_topic": _off_topic,
        "stale": _stale,
        "echo": _echo,
        "contradiction": _contradiction,
        "gibberish": _gibberish,
        "insult": _insult,
    }
)


def spoiled(context: Sequence[str], response: str, others: Sequence[str], rng: np.random.Generator) -> dict[str, str]:
    """Spoil an answer in each way that it can be spoiled in, by a variant that is drawn.

    Args:
        context: texts of the turns before it, oldest first; the last one is the user's, and user and assistant alternate.
        response: an answer without defects.
        others: answers of other conversations: what is off topic.
        rng: draws the variants; the same state gives the same texts.

    Returns:
        A spoiled answer by the name of its defect; a defect is left out where the answer is too short for it or the context
        has no room for it.
    """
    case = _Case(context, response, others, rng)
    drawn = {name: spoil(case) for name, spoil in _SPOILERS.items()}
    return {name: text for name, text in drawn.items() if text is not None and text.strip() != response.strip()}
