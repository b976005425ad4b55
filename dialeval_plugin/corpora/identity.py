"""Identity of dialogues: keeps copies on one side of a split, and evaluation dialogues out of training.

Published copies of a dialogue differ in white space and case, so the *key* of a dialogue ignores both; and it uses only the
opening, the first three turns, so that parts of a dialogue share one key. (Rows that are resampled together have a stricter
key, `items.context_key`: two pairs of FED's dialogues have openings that differ only in case.)

*A training dialogue leaks a reported one if both share a run of consecutive utterances: at least two utterances, with at least
`MIN_WORDS` different words among them; or if both have the same opening, however short they are.* The run may be anywhere in
either, so a context is recognised in the dialogue that it comes from. Only the letters and digits of an utterance count, in
lower case: white space, punctuation, case, invisible characters, different encodings of accents, the name of the speaker before
it and persona lines do not. A line is an utterance, because DSTC10 writes a context as lines. Greetings and thanks, which many
dialogues share by chance ("Hi!", "Hello, how are you doing today?"), have fewer words. A response and each reference count as
the utterance after their context.
"""

from __future__ import annotations

import logging
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise
from typing import NamedTuple, TypeVar

from dialeval_plugin.core.dialogue import Dialogue, Item, Turn, context_turns, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.terminal import Progress

from .items import OPENING_TURNS
from .rows import split_speaker

T = TypeVar("T")

logger = logging.getLogger(__name__)

LEAK_RULE = 1
"""Version of this module's rules; every trained model records it."""
MIN_WORDS = 8
"""Minimum number of different words in a run. Between corpora that are no copies of each other, 13 shared runs have 8 words or
more and 1,093 have fewer: greetings and thanks (`docs/corpora.md`).
"""

_WORD = re.compile(r"\w+")
_NO_WORD = re.compile(r"[\W_]+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def dialogue_key(texts: Iterable[str]) -> str:
    """Return a short hash shared by copies of a dialogue or context: of all turns, ignoring white space and case."""
    return text_hash(*("".join(text.split()).lower() for text in texts))


def opening_key(texts: Iterable[str]) -> str:
    """Return the key of the first three turns that are not blank, shared by copies and beginnings of a dialogue.

    Example:
        >>> opening_key(["Hi !", "Hello.", "Tea?", "No."]) == opening_key(["hi!", "hello.", "tea?"])
        True
    """
    return dialogue_key(islice((text for text in texts if not is_blank(text)), OPENING_TURNS))


def turns_key(turns: Iterable[Turn]) -> str:
    """Return the opening's key of turns with speakers, which are ignored."""
    return opening_key(turn.text for turn in turns)


def set_aside(keys: Iterable[str], *, fraction: float, seed: int | str) -> frozenset[str]:
    """Choose the validation dialogues: a fraction of the keys, at least one, but never all."""
    if not 0 < fraction < 1:
        raise InputError(f"validation_fraction: expected a number between 0 and 1, got {fraction!r}.")
    distinct = sorted(set(keys))
    random.Random(seed).shuffle(distinct)
    return frozenset(distinct[: min(len(distinct) - 1, max(1, round(fraction * len(distinct))))])


def leave_out_openings(items: Sequence[T], validated: frozenset[str], key: Callable[[T], str], name: str) -> list[T]:
    """Return the items whose opening differs from every validation dialogue's, by their keys; warn of the number of others."""
    kept = [item for item in items if key(item) not in validated]
    if n_left_out := len(items) - len(kept):
        logger.warning("%d of %d %s open like a validation dialogue and are left out", n_left_out, len(items), name)
    return kept


def split_by_dialogue(
    training: Sequence[T],
    validation: Sequence[T] | None,
    key: Callable[[T], str],
    *,
    fraction: float,
    seed: int,
    corpus: Callable[[T], str] | None = None,
) -> tuple[list[T], list[T]]:
    """Return training and validation items; no dialogue, by its `key`, is in both.

    Without `validation` a share of the dialogues is set aside, separately for each `corpus`. Items with the opening of a given
    validation dialogue are left out of training and counted in a warning.
    """
    if validation is not None:
        measured = list(validation)
        kept = leave_out_openings(training, frozenset(map(key, validation)), key, "training dialogues")
    else:
        by_corpus: dict[int | str, list[str]] = defaultdict(list)
        for item in training:
            by_corpus[seed if corpus is None else f"{seed} {corpus(item)}"].append(key(item))
        shares = (set_aside(keys, fraction=fraction, seed=own_seed) for own_seed, keys in by_corpus.items())
        aside = frozenset[str]().union(*shares)
        kept = [item for item in training if key(item) not in aside]
        measured = [item for item in training if key(item) in aside]
    if not kept or not measured:
        raise InputError(
            f"training data: {len(kept)} dialogues to train on and {len(measured)} to validate on are left, at least 1 of each "
            "is needed. Give more dialogues."
        )
    return kept, measured


class _Utterance(NamedTuple):
    key: str
    """Its letters and digits."""
    words: frozenset[str]
    text: str


class ReportedDialogue(NamedTuple):
    """A context or a dialogue of a reported set, with all rated responses to it, and the id of its first item."""

    set_name: str
    id: str


class Leak(NamedTuple):
    """A reported dialogue that a training dialogue contains."""

    reported: ReportedDialogue
    utterances: tuple[str, ...]
    """The longest shared run, or the opening, as in the training dialogue."""


class LeakCount(NamedTuple):
    """Number of training dialogues that leak a reported set, and of its leaked dialogues."""

    n_dialogues: int
    n_reported: int


class LeakIndex:
    """Index of the dialogues of evaluation sets, by their openings and pairs of consecutive utterances.

    Items with the same context are one reported dialogue.

    Example:
        >>> from dialeval_plugin.core.dialogue import Example
        >>> rated = Example.from_texts(["did your meal meet with your approval ?"], "our meal was absolutely perfect !")
        >>> index = LeakIndex({"dz": [rated]})
        >>> index.find(["Hi!", "Did your meal meet with your approval?", "Our meal was absolutely perfect!"])[0].reported
        ReportedDialogue(set_name='dz', id='0')
    """

    def __init__(self, sets: Mapping[str, Sequence[Item]]) -> None:
        self.sizes: dict[str, int] = {}
        """Number of reported dialogues per set."""
        self.too_short: dict[str, int] = {}
        """Number of them with neither the context nor the context with a reference long enough for a run, so that only a rated
        human response can show a leak.
        """
        self._owners: list[ReportedDialogue] = []
        self._places: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        self._openings: dict[tuple[str, ...], dict[ReportedDialogue, None]] = defaultdict(dict)
        for name, items in sets.items():
            self._add(name, items)

    def _add(self, name: str, items: Sequence[Item]) -> None:
        owners: dict[tuple[str, ...], ReportedDialogue] = {}
        sequences: set[tuple[str, ...]] = set()
        findable: set[ReportedDialogue] = set()
        for item in items:
            published, responses = _sequences(item)
            owner = owners.setdefault(_keys(published[0]), ReportedDialogue(name, item.id))
            if opening := _keys(published[0][:OPENING_TURNS]):
                self._openings[opening][owner] = None
            if any(_is_distinctive(utterances) for utterances in published):
                findable.add(owner)
            for keys in map(_keys, (*published, *responses)):
                if keys not in sequences:
                    sequences.add(keys)
                    for place, pair in enumerate(pairwise(keys)):
                        self._places[pair].append((len(self._owners), place))
                    self._owners.append(owner)
        self.sizes[name] = len(owners)
        self.too_short[name] = len(owners) - len(findable)

    def find(self, texts: Sequence[str]) -> list[Leak]:
        """Return the reported dialogues, each once, that a training dialogue contains; its turns are given oldest first."""
        utterances = _utterances(texts)
        # A shared run is on one diagonal: the same sequence, shifted by the same number of utterances.
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
        found = {owner: tuple(utterance.text for utterance in run) for owner, run in longest.items()}
        for owner in self._openings.get(_keys(opening := utterances[:OPENING_TURNS]), ()):
            found.setdefault(owner, tuple(utterance.text for utterance in opening))
        return [Leak(owner, run) for owner, run in found.items()]

    def count(self, found: Iterable[Sequence[Leak]]) -> dict[str, LeakCount]:
        """Count the results of `find` for all training dialogues, by reported set; sets without a leak are included."""
        n_dialogues = dict.fromkeys(self.sizes, 0)
        owners: dict[str, set[ReportedDialogue]] = {name: set() for name in self.sizes}
        for leaks in found:
            for name in {leak.reported.set_name for leak in leaks}:
                n_dialogues[name] += 1
            for leak in leaks:
                owners[leak.reported.set_name].add(leak.reported)
        return {name: LeakCount(n_dialogues[name], len(owners[name])) for name in self.sizes}


def leave_out_leaks(
    items: Sequence[T], evaluation: LeakIndex | Iterable[Item], texts: Callable[[T], Sequence[Sequence[str]]], name: str
) -> list[T]:
    """Return the items, each with sequences of turns, that leak nothing; warn of the number of others.

    `texts` returns the sequences to check for an item: its dialogue, or its context and its context with each response.
    """
    index = evaluation if isinstance(evaluation, LeakIndex) else LeakIndex({"evaluation": list(evaluation)})
    if not index.sizes:
        return list(items)
    # The index takes a minute, so the user is told.
    bar = Progress(items, desc=f"leaks of {name}")
    leaking = {place for place, item in enumerate(bar) if any(map(index.find, texts(item)))}
    if leaking:
        logger.warning(
            "%d of %d %s are in the evaluation data too, or have a part of it, and are left out, for example %r",
            len(leaking),
            len(items),
            name,
            " / ".join(texts(items[min(leaking)])[0])[:80],
        )
    return [item for place, item in enumerate(items) if place not in leaking]


def _sequences(item: Item) -> tuple[list[list[_Utterance]], list[list[_Utterance]]]:
    """Return the context, or the whole dialogue, and the context with each reference; and the context with the rated response.

    The source of the data contains the latter too if a person gave the response.
    """
    context = _utterances(turn.text for turn in context_turns(item))
    if isinstance(item, Dialogue):
        return [context], []
    references = [[*context, *_utterances([reference])] for reference in item.references]
    return [context, *references], [[*context, *_utterances([item.response.text])]]


def _utterances(texts: Iterable[str]) -> list[_Utterance]:
    """Return the utterances with a letter or digit, without persona lines."""
    utterances = []
    for text in texts:
        # Copies differ in line ends: DSTC10 writes a context as lines, so a message of two lines became two turns.
        for line in text.splitlines():
            speaker, spoken = split_speaker(line)
            # One encoding of each letter, no invisible characters, lower case.
            plain = (spoken if spoken.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", spoken))).casefold()
            if not (speaker or "").casefold().endswith("persona") and (key := _NO_WORD.sub("", plain)):
                utterances.append(_Utterance(key, frozenset(_WORD.findall(plain)), line.strip()))
    return utterances


def _keys(utterances: Iterable[_Utterance]) -> tuple[str, ...]:
    return tuple(utterance.key for utterance in utterances)


def _is_distinctive(run: Sequence[_Utterance]) -> bool:
    words = frozenset[str]().union(*(utterance.words for utterance in run))
    return len(run) > 1 and len(words) >= MIN_WORDS


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of consecutive numbers: [0, 1, 2, 5] gives (0, 2) and (5, 5)."""
    for _, run in groupby(enumerate(places), key=lambda indexed: indexed[1] - indexed[0]):
        numbers = [place for _, place in run]
        yield numbers[0], numbers[-1]
