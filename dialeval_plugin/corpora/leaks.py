"""Finds reported dialogues in training dialogues: the contexts of rated sets were taken from public corpora.

Two dialogues are compared by their utterances, and of an utterance only the letters and digits count, in lower case: white
space, punctuation, case, invisible characters and the way in which an accent is written do not, and neither do the name of
the speaker before it and persona lines. A line is an
utterance, because DSTC10 writes a context as lines.

*A training dialogue leaks a reported one where both have a run of consecutive utterances in common: at least two utterances,
with at least `MIN_WORDS` different words among them.* The run may lie anywhere in either, so that a context is found in the
dialogue that it was cut from. Greetings and thanks, which many dialogues share by chance ("Hi!", "Hello, how are you doing
today?"), have fewer words. A response and each reference is taken as the utterance that follows its context.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeVar

from dialeval_plugin.core.dialogue import Dialogue, Example, Item, Turn

from .rows import split_speaker

MIN_WORDS = 8
"""Fewest different words of a run. Between corpora that are no copies of each other, 13 runs in common have 8 words or more,
and 1,093 have fewer: greetings and thanks (`docs/corpora.md`)."""

_WORD = re.compile(r"\w+")
_NO_WORD = re.compile(r"[\W_]+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


class _Utterance(NamedTuple):
    key: str
    """Its letters and digits."""
    words: frozenset[str]
    text: str


class ReportedDialogue(NamedTuple):
    """A context or a dialogue of a reported set, however many responses to it were rated."""

    set_name: str
    id: str
    """Of its first item."""


class Leak(NamedTuple):
    """A reported dialogue that a training dialogue has."""

    reported: ReportedDialogue
    utterances: tuple[str, ...]
    """The longest run in common, as the training dialogue has it."""


class LeakCount(NamedTuple):
    """How much of one reported set is in training dialogues."""

    n_dialogues: int
    """Training dialogues with a leak."""
    n_reported: int
    """Reported dialogues that were found."""


class HasTurns(Protocol):
    """A `Dialogue`, or one with facts."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Turns, oldest first."""


Spoken = TypeVar("Spoken", bound=HasTurns)


@dataclass(frozen=True)
class WithoutLeaks(Generic[Spoken]):
    """What `without_leaks` returns."""

    kept: list[Spoken]
    counts: dict[str, LeakCount]
    """By name of the reported set; sets without a leak are there too."""


class ReportedDialogues:
    """Index of the dialogues of reported sets by their pairs of consecutive utterances.

    Args:
        sets: name of a set to its items. Items with the same context are one reported dialogue.
    """

    def __init__(self, sets: Mapping[str, Sequence[Item]]) -> None:
        self.sizes: dict[str, int] = {}
        """Reported dialogues of each set."""
        self.too_short: dict[str, int] = {}
        """Those among them of which neither the context nor the context with a reference is such a run, so that only a rated
        response that a person gave may tell."""
        self._owners: list[ReportedDialogue] = []
        self._places: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for name, items in sets.items():
            self._add(name, items)

    def _add(self, name: str, items: Sequence[Item]) -> None:
        owners: dict[tuple[str, ...], ReportedDialogue] = {}
        sequences: set[tuple[str, ...]] = set()
        findable: set[ReportedDialogue] = set()
        for item in items:
            published, responses = _sequences(item)
            owner = owners.setdefault(_keys(published[0]), ReportedDialogue(name, item.id))
            if any(_is_distinctive(utterances) for utterances in published):
                findable.add(owner)
            for keys in map(_keys, (*published, *responses)):
                if keys not in sequences:
                    sequences.add(keys)
                    self._add_sequence(owner, keys)
        self.sizes[name] = len(owners)
        self.too_short[name] = len(owners) - len(findable)

    def _add_sequence(self, owner: ReportedDialogue, keys: Sequence[str]) -> None:
        number = len(self._owners)
        self._owners.append(owner)
        for place, pair in enumerate(pairwise(keys)):
            self._places[pair].append((number, place))

    def find(self, dialogue: HasTurns) -> list[Leak]:
        """Return the reported dialogues that a training dialogue has, each once, in the order of the sets."""
        utterances = _utterances(dialogue.turns)
        # A run in common lies on one diagonal: the same sequence, shifted by the same number of utterances.
        diagonals: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, pair in enumerate(pairwise(_keys(utterances))):
            for number, other in self._places.get(pair, ()):
                diagonals[number, other - place].append(place)
        longest: dict[ReportedDialogue, list[_Utterance]] = {}
        for (number, _), places in sorted(diagonals.items()):
            for first, last in _runs(places):
                run, owner = utterances[first : last + 2], self._owners[number]
                if _is_distinctive(run) and len(run) > len(longest.get(owner, ())):
                    longest[owner] = run
        return [Leak(owner, tuple(utterance.text for utterance in run)) for owner, run in longest.items()]


def find_leaks(dialogues: Iterable[HasTurns], reported: ReportedDialogues) -> list[list[Leak]]:
    """Return the leaks of each training dialogue, in their order; most have none."""
    return [reported.find(dialogue) for dialogue in dialogues]


def count_leaks(found: Iterable[Sequence[Leak]], reported: ReportedDialogues) -> dict[str, LeakCount]:
    """Count the leaks of training dialogues, by name of the reported set.

    Args:
        found: the leaks of each training dialogue, from `find_leaks`.
        reported: where they were looked for.
    """
    n_dialogues = dict.fromkeys(reported.sizes, 0)
    owners: dict[str, set[ReportedDialogue]] = {name: set() for name in reported.sizes}
    for leaks in found:
        for name in {leak.reported.set_name for leak in leaks}:
            n_dialogues[name] += 1
        for leak in leaks:
            owners[leak.reported.set_name].add(leak.reported)
    return {name: LeakCount(n_dialogues[name], len(owners[name])) for name in reported.sizes}


def without_leaks(dialogues: Sequence[Spoken], reported: ReportedDialogues) -> WithoutLeaks[Spoken]:
    """Return the training dialogues that leak no reported one, in their order, and what was left out by reported set.

    Example:
        >>> from dialeval_plugin.core.dialogue import Dialogue, Turn
        >>> turns = ["Hi!", "Did your meal meet with your approval?", "Our meal was absolutely perfect!"]
        >>> dialogue = Dialogue("train_0", tuple(map(Turn, turns)))
        >>> rated = Example.from_texts(["did your meal meet with your approval ?"], "our meal was absolutely perfect !")
        >>> without_leaks([dialogue], ReportedDialogues({"dz": [rated]}))
        WithoutLeaks(kept=[], counts={'dz': LeakCount(n_dialogues=1, n_reported=1)})
    """
    found = find_leaks(dialogues, reported)
    kept = [dialogue for dialogue, leaks in zip(dialogues, found, strict=True) if not leaks]
    return WithoutLeaks(kept, count_leaks(found, reported))


class HeldOut:
    """What will be reported on, for trainers, which all leave out what has any of it.

    Args:
        items: of all sets.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._reported = ReportedDialogues({"evaluation": list(items)})

    def is_in(self, texts: Iterable[str]) -> bool:
        """Whether a training dialogue, its turns given oldest first, leaks a reported one.

        Example:
            >>> rated = Example.from_texts(["did your meal meet with your approval ?"], "our meal was absolutely perfect !")
            >>> HeldOut([rated]).is_in(["Hi!", "Did your meal meet with your approval?", "Our meal was absolutely perfect!"])
            True
        """
        return bool(self._reported.find(Dialogue("training", tuple(map(Turn, texts)))))


class _Sequences(NamedTuple):
    """What may be found of an item."""

    published: list[list[_Utterance]]
    """The context, or the whole dialogue; then the context with each reference after it."""
    responses: list[list[_Utterance]]
    """The context with the rated response after it, which the source has too where a person gave it."""


def _sequences(item: Item) -> _Sequences:
    if not isinstance(item, Example):
        return _Sequences([_utterances(item.turns)], [])
    context = _utterances(item.context)
    references = [[*context, *_utterances([Turn(reference)])] for reference in item.references]
    return _Sequences([context, *references], [[*context, *_utterances([item.response])]])


def _utterances(turns: Iterable[Turn]) -> list[_Utterance]:
    """The utterances that have a letter or digit, without persona lines."""
    utterances = []
    for turn in turns:
        # Copies differ in line ends: DSTC10 writes a context as lines, so that a message of two lines became two turns.
        for line in turn.text.splitlines():
            speaker, spoken = split_speaker(line)
            plain = _plain(spoken)
            if not (speaker or "").casefold().endswith("persona") and (key := _NO_WORD.sub("", plain)):
                utterances.append(_Utterance(key, frozenset(_WORD.findall(plain)), line.strip()))
    return utterances


def _plain(text: str) -> str:
    """A text in lower case, with one way to write each letter and nothing between letters that cannot be seen."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return text.casefold()


def _keys(utterances: Iterable[_Utterance]) -> tuple[str, ...]:
    return tuple(utterance.key for utterance in utterances)


def _is_distinctive(run: Sequence[_Utterance]) -> bool:
    words = frozenset[str]().union(*(utterance.words for utterance in run))
    return len(run) > 1 and len(words) >= MIN_WORDS


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive numbers.

    Example:
        >>> list(_runs([0, 1, 2, 5]))
        [(0, 2), (5, 5)]
    """
    first = last = places[0]
    for place in places[1:]:
        if place != last + 1:
            yield first, last
            first = place
        last = place
    yield first, last
