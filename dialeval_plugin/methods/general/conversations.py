"""What the evaluator is trained on: conversations, and the next turns in them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dialeval_plugin.core.dialogue import is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, opening_key, split_by_dialogue
from dialeval_plugin.corpora.readers.convai import HUMAN
from dialeval_plugin.corpora.registry import read_grounded

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One dialogue of a corpus. It has two turns or more, and none is blank; `conversation` sees to that."""

    corpus: str
    turns: tuple[str, ...]
    facts: tuple[tuple[str, ...], ...] = ()
    """For each turn what its speaker may draw on (persona, knowledge); nothing for a corpus without facts."""
    misleading: tuple[str, ...] = ()
    """Responses that people wrote to look right in the last turn's place; few corpora have them."""
    key: str = field(init=False)
    """Of its opening, by `identity.opening_key`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", opening_key(self.turns))


class Pair(NamedTuple):
    """A response in its conversation."""

    conversation: Conversation
    place: int
    """Of the response among the turns, 1 or more."""

    @property
    def context(self) -> tuple[str, ...]:
        """The turns before it."""
        return self.conversation.turns[: self.place]

    @property
    def response(self) -> str:
        """The turn itself."""
        return self.conversation.turns[self.place]

    @property
    def facts(self) -> tuple[str, ...]:
        """What its speaker may draw on."""
        return self.conversation.facts[self.place] if self.conversation.facts else ()


def conversation(
    corpus: str, turns: Sequence[str], facts: Sequence[Sequence[str]] = (), misleading: Sequence[str] = ()
) -> Conversation | None:
    """Return a conversation without its blank turns, or None where fewer than two are left; facts are for each turn or none."""
    if facts and len(facts) != len(turns):
        raise InputError(
            f"{corpus}: a dialogue has {len(turns)} turns and {len(facts)} lists of facts. Give one for each turn."
        )
    visible = [place for place, turn in enumerate(turns) if not is_blank(turn)]
    if len(visible) < 2:
        return None
    return Conversation(
        corpus,
        tuple(" ".join(turns[place].split()) for place in visible),
        tuple(tuple(facts[place]) for place in visible) if facts else (),
        tuple(text for text in misleading if not is_blank(text)),
    )


def read_conversations(sources: Sequence[str], reported: LeakIndex, left_out: dict[str, int]) -> list[Conversation]:
    """Read corpora, each named NAME=FILE or FILE; dialogues that will be reported on are counted in `left_out`, by corpus.

    Dialogues that name a chatbot are left out too: its turns are no examples of right ones. Of DailyDialog++ each positive
    response ends a conversation.

    Raises:
        InputError: a file is malformed.
    """
    conversations = []
    for source in sources:
        name, equals, path = source.partition("=")
        if not equals or Path(source).exists():
            name, path = Path(source).name.partition(".")[0], source
        everyone = read_grounded(Path(path), every_response=True)
        people = [grounded for grounded in everyone if grounded.dialogue.system in (None, HUMAN)]
        if n_with_bot := len(everyone) - len(people):
            logger.warning("%s: %d of %d dialogues are with a chatbot and are left out", source, n_with_bot, len(everyone))
        usable = leave_out_leaks(
            people, reported, lambda grounded: [[turn.text for turn in grounded.turns]], f"{name} dialogues"
        )
        left_out[name] = left_out.get(name, 0) + len(people) - len(usable)
        for grounded in usable:
            facts = [grounded.facts.get(turn.speaker or "", ()) for turn in grounded.turns] if grounded.facts else ()
            one = conversation(name, [turn.text for turn in grounded.turns], facts, grounded.misleading)
            if one is not None:
                conversations.append(one)
    return conversations


def by_corpus(conversations: Iterable[Conversation]) -> dict[str, list[Pair]]:
    """Return the distinct pairs of each corpus, in their order: dialogues that share turns give each response once."""
    corpora: dict[str, dict[tuple[str, ...], Pair]] = {}
    for item in conversations:
        pairs = corpora.setdefault(item.corpus, {})
        for place in range(1, len(item.turns)):
            turns = item.turns[: place + 1]
            if turns not in pairs or (item.misleading and place == len(item.turns) - 1):
                pairs[turns] = Pair(item, place)
    return {corpus: list(pairs.values()) for corpus, pairs in corpora.items()}


class GeneralSources(NamedTuple):
    """Dialogues by their use; those that will be reported on are left out before."""

    training: Sequence[Conversation]
    validation: Sequence[Conversation] = ()
    """Fit the weights of calibration, mixing and coherence; without them a share of each corpus does."""


def split(sources: GeneralSources, *, fraction: float, seed: int) -> GeneralSources:
    """Keep validation dialogues out of training; without any set a share of each corpus aside, see `split_by_dialogue`."""
    parts = split_by_dialogue(
        sources.training,
        sources.validation or None,
        lambda item: item.key,
        fraction=fraction,
        seed=seed,
        corpus=lambda item: item.corpus,
    )
    return GeneralSources(*parts)
