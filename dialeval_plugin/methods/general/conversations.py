"""Training data of the evaluator: conversations, and the responses in them."""

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
    """A dialogue of a corpus with at least two turns, none of them blank (ensured by `conversation`)."""

    corpus: str
    turns: tuple[str, ...]
    facts: tuple[tuple[str, ...], ...] = ()
    """Facts that the speaker of each turn may use (persona, knowledge); empty for a corpus without facts."""
    misleading: tuple[str, ...] = ()
    """Responses that people wrote to look right as the last turn; few corpora have them."""
    key: str = field(init=False)
    """Key of the opening, by `identity.opening_key`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", opening_key(self.turns))


class Pair(NamedTuple):
    """A response in its conversation."""

    conversation: Conversation
    place: int
    """Index of the response among the turns, at least 1."""

    @property
    def context(self) -> tuple[str, ...]:
        """Turns before the response."""
        return self.conversation.turns[: self.place]

    @property
    def response(self) -> str:
        """Text of the response."""
        return self.conversation.turns[self.place]

    @property
    def facts(self) -> tuple[str, ...]:
        """Facts that the response's speaker may use."""
        return self.conversation.facts[self.place] if self.conversation.facts else ()


def conversation(
    corpus: str, turns: Sequence[str], facts: Sequence[Sequence[str]] = (), misleading: Sequence[str] = ()
) -> Conversation | None:
    """Return a conversation without blank turns, None if fewer than two remain; facts are given for each turn or not at all."""
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
    """Read corpora, each named NAME=FILE or FILE, without dialogues that are reported on; `left_out` counts these by corpus.

    Dialogues that name a chatbot are left out too: its turns are no examples of right ones. In DailyDialog++ each positive
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
    """Return the distinct pairs of each corpus in order; a response that several dialogues share occurs once."""
    corpora: dict[str, dict[tuple[str, ...], Pair]] = {}
    for item in conversations:
        pairs = corpora.setdefault(item.corpus, {})
        for place in range(1, len(item.turns)):
            turns = item.turns[: place + 1]
            if turns not in pairs or (item.misleading and place == len(item.turns) - 1):
                pairs[turns] = Pair(item, place)
    return {corpus: list(pairs.values()) for corpus, pairs in corpora.items()}


class GeneralSources(NamedTuple):
    """Dialogues by their use, without those that are reported on."""

    training: Sequence[Conversation]
    validation: Sequence[Conversation] = ()
    """Dialogues that fit the weights of calibration, mixing and coherence; if there are none, a share of each corpus."""


def split(sources: GeneralSources, *, fraction: float, seed: int) -> GeneralSources:
    """Remove validation dialogues from training; if there are none, set aside a share of each corpus (`split_by_dialogue`)."""
    parts = split_by_dialogue(
        sources.training,
        sources.validation or None,
        lambda item: item.key,
        fraction=fraction,
        seed=seed,
        corpus=lambda item: item.corpus,
    )
    return GeneralSources(*parts)
