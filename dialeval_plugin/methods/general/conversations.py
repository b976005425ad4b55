"""What the evaluator is trained on: conversations, the next turns in them, and which of them are set aside."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dialeval_plugin.core.dialogue import is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import text_hash

logger = logging.getLogger(__name__)

OPENING_TURNS = 3
"""Turns by which a dialogue is recognised, as in `corpora.items.context_key`."""


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
    """What all copies of the dialogue, and parts that begin with its beginning, share: its first turns, letters and digits."""

    def __post_init__(self) -> None:
        opening = ("".join(filter(str.isalnum, turn.casefold())) for turn in self.turns[:OPENING_TURNS])
        object.__setattr__(self, "key", text_hash(*opening))


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
    corpus: str,
    turns: Sequence[str],
    facts: Sequence[Sequence[str]] = (),
    misleading: Sequence[str] = (),
) -> Conversation | None:
    """Return a conversation without its blank turns, and with facts for each turn or none; None where fewer than two are left.

    Raises:
        InputError: there are facts, but not for each turn.
    """
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


def by_corpus(conversations: Iterable[Conversation]) -> dict[str, list[Pair]]:
    """Return the distinct pairs of each corpus, in their order: dialogues that share turns give each response once."""
    found: dict[str, dict[tuple[str, ...], Pair]] = {}
    for item in conversations:
        pairs = found.setdefault(item.corpus, {})
        for place in range(1, len(item.turns)):
            said = item.turns[: place + 1]
            if said not in pairs or (item.misleading and place == len(item.turns) - 1):
                pairs[said] = Pair(item, place)
    return {corpus: list(pairs.values()) for corpus, pairs in found.items()}


class Splits(NamedTuple):
    """Conversations by their use; no dialogue is in both."""

    training: list[Conversation]
    validation: list[Conversation]


def split(training: Sequence[Conversation], validation: Sequence[Conversation], *, fraction: float, seed: int) -> Splits:
    """Keep validation dialogues out of training; without validation dialogues set a share of each corpus aside.

    Raises:
        InputError: `fraction` is out of its range, or no dialogue is left for one of the uses.
    """
    if not 0 < fraction < 1:
        raise InputError(f"validation_fraction: expected a number between 0 and 1, got {fraction!r}.")
    aside = {item.key for item in validation} or _share_of_each_corpus(training, fraction, seed)
    kept = [item for item in training if item.key not in aside]
    held_out = list(validation) or [item for item in training if item.key in aside]
    if validation and (n_shared := len(training) - len(kept)):
        logger.warning("%d of %d training dialogues begin like a validation dialogue and are left out", n_shared, len(training))
    if not kept or not held_out:
        raise InputError(
            f"training: {len(kept)} training and {len(held_out)} validation dialogues of two turns and more are left. "
            "Give more dialogues."
        )
    return Splits(kept, held_out)


def _share_of_each_corpus(conversations: Sequence[Conversation], fraction: float, seed: int) -> set[str]:
    aside: set[str] = set()
    for corpus in dict.fromkeys(item.corpus for item in conversations):
        keys = sorted({item.key for item in conversations if item.corpus == corpus})
        random.Random(f"{seed} {corpus}").shuffle(keys)
        aside.update(keys[: round(fraction * len(keys))])
    return aside
