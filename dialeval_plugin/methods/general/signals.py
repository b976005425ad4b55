"""Training signals from unrated dialogues: real next turns against texts that are wrong in a known way.

Every function takes a `random.Random` and returns a text with other words than the original, or None if the original is too
short. Words are replaced in place, so that spacing and punctuation do not reveal the change. No language model is used.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from .conversations import Conversation, Pair

HEADS = ("fit", "fluency", "specificity", "knowledge")
"""Heads with a loss: is a response the next turn, is it well formed, is it specific, does it use the facts."""

QUALITIES = ("relevance", *HEADS)
"""Judged qualities of a response: whether it is on the context's topic, and those of the heads."""

STYLE_HEADS = ("fluency", "specificity")
"""Heads that depend on the response alone."""

NEGATIVES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fit": ("random", "in_dialogue", "keyword", "splice", "written", "insulting"),
        "fluency": ("shuffled", "dropped", "repeated", "swapped"),
        "specificity": ("generic", "unspecific"),
        "knowledge": ("other_facts",),
    }
)
"""Kinds of wrong texts by the head that learns to recognise them."""

DIALOGUE_NEGATIVES = ("shuffled_turns", "replaced_turn")
"""Kinds of corrupted dialogues."""

_REPLIES = json.loads(Path(__file__).with_name("replies.json").read_text(encoding="utf-8"))
GENERIC_REPLIES: tuple[str, ...] = tuple(_REPLIES["generic"])
"""Replies added to a corpus' own frequent utterances, of which a small corpus has too few."""

INSULTS: tuple[str, ...] = tuple(_REPLIES["insulting"])
"""Insults to the last speaker; templates have a place for a rare word of the last turn."""

RARE = 4.0
"""Lowest inverse document frequency of a rare word: fewer than one in 55 utterances have it, as in `texts.RARE`."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_N_GENERIC = 200
_N_KEYWORDS = 8
_LONGEST_POSTING = 200
_N_NEAREST = 5
_N_DRAWS = 50
"""Number of draws from other dialogues before none is assumed to fit."""


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without punctuation.

    Example:
        >>> words("Don't go , Ann!")
        ("don't", 'go', 'ann')
    """
    return tuple(map(str.lower, _WORD.findall(text)))


def replaced(text: str, by_place: Mapping[int, str]) -> str:
    """Return the text with some of its words, numbered from 0, replaced; an empty replacement removes the word.

    Example:
        >>> replaced("Don't go , Ann!", {1: "stay", 2: ""})
        "Don't stay , !"
    """
    parts, end = [], 0
    for place, match in enumerate(_WORD.finditer(text)):
        parts += [text[end : match.start()], by_place.get(place, match.group())]
        end = match.end()
    return " ".join("".join([*parts, text[end:]]).split())


def _if_changed(new: str, old: str) -> str | None:
    return new if words(new) and words(new) != words(old) else None


def shuffled(text: str, generator: random.Random, window: int = 5) -> str | None:
    """Shuffle the words of some windows: one window, and one more per dozen words."""
    words_of_text = _WORD.findall(text)
    if len(words_of_text) < 3:
        return None
    by_place = {}
    for _ in range(1 + len(words_of_text) // 12):
        start = generator.randrange(max(1, len(words_of_text) - window + 1))
        places = list(range(start, min(start + window, len(words_of_text))))
        order = generator.sample(places, len(places))
        by_place.update({place: words_of_text[other] for place, other in zip(places, order, strict=True)})
    return _if_changed(replaced(text, by_place), text)


def dropped(text: str, generator: random.Random) -> str | None:
    """Remove between a fifth and two fifths of the words."""
    return _if_changed(replaced(text, dict.fromkeys(_some_places(text, 0.2, 0.4, generator), "")), text)


def repeated(text: str, generator: random.Random) -> str | None:
    """Repeat one to four words once or twice."""
    words_of_text = _WORD.findall(text)
    if len(words_of_text) < 2:
        return None
    length = generator.randint(1, min(4, len(words_of_text)))
    last = generator.randrange(length - 1, len(words_of_text))
    phrase = " ".join(words_of_text[last - length + 1 : last + 1])
    return _if_changed(replaced(text, {last: " ".join([words_of_text[last], *[phrase] * generator.randint(1, 2)])}), text)


def swapped(text: str, generator: random.Random, others: Sequence[str]) -> str | None:
    """Replace a tenth to a third of the words by words from `others`."""
    if not others:
        return None
    by_place = {place: generator.choice(others) for place in _some_places(text, 0.1, 0.34, generator)}
    return _if_changed(replaced(text, by_place), text)


def _some_places(text: str, lowest: float, highest: float, generator: random.Random) -> list[int]:
    """Places of a random share of the words; empty if the text has fewer than three words."""
    n = len(_WORD.findall(text))
    return generator.sample(range(n), max(1, round(generator.uniform(lowest, highest) * n))) if n > 2 else []


def without_rare_words(text: str, is_rare: Callable[[str], bool]) -> str | None:
    """Remove the rare words of a text; None if it has no rare or no other words."""
    places = [place for place, word in enumerate(words(text)) if is_rare(word)]
    return _if_changed(replaced(text, dict.fromkeys(places, "")), text)


def spliced(text: str, other: str, is_rare: Callable[[str], bool]) -> str | None:
    """Replace a text's rare words by those of another text: the style stays, the topic changes."""
    places = [place for place, word in enumerate(words(text)) if is_rare(word)]
    donor = itertools.cycle(word for word in _WORD.findall(other) if is_rare(word.lower()))
    return _if_changed(replaced(text, dict(zip(places, donor, strict=False))), text)


def other_turn(pair: Pair, generator: random.Random) -> str | None:
    """Return another turn of the dialogue as the response: an earlier one, or the one two turns later."""
    turns = pair.conversation.turns
    later = turns[pair.place + 2 : pair.place + 3]
    fitting = [text for text in (*pair.context, *later) if words(text) and words(text) != words(pair.response)]
    return generator.choice(fitting) if fitting else None


def shuffled_turns(turns: Sequence[str], generator: random.Random) -> tuple[str, ...] | None:
    """Shuffle the turns of a dialogue."""
    if len(turns) < 3:
        return None
    mixed = tuple(generator.sample(list(turns), len(turns)))
    return mixed if list(map(words, mixed)) != list(map(words, turns)) else None


def replaced_turn(turns: Sequence[str], generator: random.Random, other: str) -> tuple[str, ...] | None:
    """Replace a turn after the first by a turn of another dialogue."""
    place = generator.randrange(1, len(turns))
    return None if words(other) == words(turns[place]) else (*turns[:place], other, *turns[place + 1 :])


class CorpusSignals:
    """Draws wrong texts for the pairs of a corpus from the same corpus, so that its style is no clue.

    Each draw depends only on the pair and the generator.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs
        # A corpus has few distinct words, each of them often.
        self._words = [tuple(map(sys.intern, words(pair.response))) for pair in pairs]
        frequency = Counter(word for response_words in self._words for word in set(response_words))
        self._rarity = {word: math.log((1 + len(pairs)) / (1 + count)) for word, count in frequency.items()}
        self._unseen = math.log(1 + len(pairs))
        self._rare_from = min(RARE, math.log((1 + len(pairs)) / 2))
        self._postings = {word: array("I") for word, count in frequency.items() if count <= _LONGEST_POSTING}
        for number, response_words in enumerate(self._words):
            for word in dict.fromkeys(response_words):
                if word in self._postings:
                    self._postings[word].append(number)
        self.generic = self._frequent_utterances()
        self._drawn: Mapping[str, Callable[[Pair, random.Random], str | None]] = {
            "random": lambda pair, generator: self.other_response(pair.conversation, generator),
            "in_dialogue": other_turn,
            "keyword": self._keyword,
            "splice": self._splice,
            "written": self._written,
            "insulting": self._insulting,
            "shuffled": lambda pair, generator: shuffled(pair.response, generator),
            "dropped": lambda pair, generator: dropped(pair.response, generator),
            "repeated": lambda pair, generator: repeated(pair.response, generator),
            "swapped": lambda pair, generator: swapped(pair.response, generator, generator.choice(self._words)),
            "generic": self._generic,
            "unspecific": lambda pair, generator: without_rare_words(pair.response, self.is_rare),
        }

    def is_rare(self, word: str) -> bool:
        """Whether log((1 + n) / (1 + number of the n responses that have the word)) is at least `RARE`.

        In a corpus too small for that, a word in a single response is rare. The word is in lower case.
        """
        return self._rarity.get(word, self._unseen) >= self._rare_from

    def draw(self, kind: str, pair: Pair, generator: random.Random) -> str | None:
        """Return a wrong text of a kind, any of `NEGATIVES` but "other_facts", for a pair; None if there is none."""
        text = self._drawn[kind](pair, generator)
        return None if text is None or words(text) == words(pair.response) else text

    def drawn(self, kinds: Sequence[str], pair: Pair, generator: random.Random) -> Iterator[tuple[str, str]]:
        """Draw a wrong text of each kind, and yield those that exist with their kinds."""
        texts = ((kind, self.draw(kind, pair, generator)) for kind in kinds)
        return ((kind, text) for kind, text in texts if text is not None)

    def other_facts(self, pair: Pair, generator: random.Random) -> tuple[str, ...] | None:
        """Return the facts of another dialogue; None if the pair has no facts, or no draw has other ones."""
        drawn = (other.facts for other in self._drawn_of_others(pair.conversation, generator)) if pair.facts else ()
        return next((facts for facts in drawn if facts and facts != pair.facts), None)

    def other_response(self, conversation: Conversation, generator: random.Random) -> str | None:
        """Return a response of another dialogue; None if no draw gives one."""
        return next((other.response for other in self._drawn_of_others(conversation, generator)), None)

    def _drawn_of_others(self, conversation: Conversation, generator: random.Random) -> Iterator[Pair]:
        drawn = (generator.choice(self._pairs) for _ in range(_N_DRAWS))
        return (other for other in drawn if other.conversation.key != conversation.key)

    def _splice(self, pair: Pair, generator: random.Random) -> str | None:
        for _ in range(_N_DRAWS):
            other = self.other_response(pair.conversation, generator)
            if other is not None and (text := spliced(pair.response, other, self.is_rare)) is not None:
                return text
        return None

    def _keyword(self, pair: Pair, generator: random.Random) -> str | None:
        """A random one of the other dialogues' responses that share most rare words with the context (by Okapi's idf)."""
        known = {word for text in pair.context[-3:] for word in words(text) if word in self._postings}
        rarest = sorted(known, key=lambda word: (-self._rarity[word], word))[:_N_KEYWORDS]
        shared: defaultdict[int, float] = defaultdict(float)
        for word in rarest:
            for number in self._postings[word]:
                shared[number] += self._rarity[word]
        fitting = [
            number
            for number in sorted(shared, key=lambda number: (-shared[number], number))[: 10 * _N_NEAREST]
            if self._pairs[number].conversation.key != pair.conversation.key and self._words[number] != words(pair.response)
        ]
        return self._pairs[generator.choice(fitting[:_N_NEAREST])].response if fitting else None

    def _written(self, pair: Pair, generator: random.Random) -> str | None:
        is_last = pair.place == len(pair.conversation.turns) - 1
        return generator.choice(pair.conversation.misleading) if is_last and pair.conversation.misleading else None

    def _insulting(self, pair: Pair, generator: random.Random) -> str:
        """An insult instead of the response, before it or after it."""
        subjects = [word for word in words(pair.context[-1]) if self.is_rare(word)] or ["that"]
        insult = generator.choice(INSULTS).format(word=generator.choice(subjects))
        insult = insult[0].upper() + insult[1:]
        return generator.choice([insult, f"{insult} {pair.response}", f"{pair.response} {insult}"])

    def _generic(self, pair: Pair, generator: random.Random) -> str | None:
        # A generic response is no example of a specific one.
        return None if words(pair.response) in self._generic_words else generator.choice(self.generic)

    def _frequent_utterances(self) -> tuple[str, ...]:
        text_of = {utterance: pair.response for pair, utterance in reversed(list(zip(self._pairs, self._words, strict=True)))}
        distinct = {(utterance, pair.conversation.key) for pair, utterance in zip(self._pairs, self._words, strict=True)}
        counts = Counter(utterance for utterance, _ in distinct)
        own = sorted(((count, utterance) for utterance, count in counts.items() if count > 2), reverse=True)[:_N_GENERIC]
        generic = {words(text): text for text in GENERIC_REPLIES} | {utterance: text_of[utterance] for _, utterance in own}
        self._generic_words = frozenset(generic)
        return tuple(generic.values())
