"""Whether a conversation is social, or one with an assistant that answers questions and does tasks, by how its opening reads.

The opening is what all messages of a conversation share, as context or response: all have one register, and it does not depend
on other conversations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from typing_extensions import TypedDict

from dialeval_plugin.conversations.roles import assistant
from dialeval_plugin.core.dialogue import Example, Item, context_turns, is_blank
from dialeval_plugin.core.files import checked_model_file
from dialeval_plugin.core.signature import text_hash

Register: TypeAlias = Literal["social", "assistant"]

SETTINGS_FILE = Path(__file__).with_name("register.json")
"""Patterns, and the weights that `python -m reproduction.auto.write --weights FILE` fits."""
_LONGEST = 1000
"""Characters of a text that are read."""
_LONG_ANSWER = 100
"""Words; longer answers count the same."""


class Opening(NamedTuple):
    """How a conversation begins."""

    question: str
    """Empty where the answer comes first."""
    answer: str


def opening_of(item: Item) -> Opening:
    """Return the first turn where it is a known assistant's, or else the first two, of those that are not blank."""
    response = (item.response,) if isinstance(item, Example) else ()
    turns = [turn for turn in (*context_turns(item), *response) if not is_blank(turn.text)][:2]
    if turns and assistant(turns[:1]) is not None:
        turns = turns[:1]
    *before, answer = [turn.text for turn in turns] or [""]
    return Opening("".join(before), answer)


def opening_features(opening: Opening) -> dict[str, float]:
    """Return by name 1 or 0 for each pattern in question and answer, and the logarithm of the number of words answered."""
    return {
        **{
            f"{part}_{name}": float(pattern.search(text[:_LONGEST]) is not None)
            for part, text in opening._asdict().items()
            for name, pattern in _PATTERNS.items()
        },
        "answer_length": math.log1p(min(len(opening.answer.split()), _LONG_ANSWER)),
    }


def register_of(item: Item) -> Register:
    """Return the register of the conversation that an item belongs to, or is."""
    features, weights = opening_features(opening_of(item)), _SETTINGS["weights"]
    log_odds = _SETTINGS["offset"] + math.fsum(weights[name] * value for name, value in features.items())
    return "assistant" if log_odds > 0 else "social"


class _Settings(TypedDict):
    """The file."""

    learnt_from: Mapping[str, str]
    patterns: Mapping[str, str]
    offset: float
    weights: Mapping[str, float]


_SETTINGS = checked_model_file(SETTINGS_FILE, _Settings)
_PATTERNS = {name: re.compile(text, re.IGNORECASE | re.MULTILINE) for name, text in _SETTINGS["patterns"].items()}
REGISTER_HASH = text_hash(repr(_SETTINGS))
"""Of patterns and weights, for a signature."""
