"""Dialogues with what their speakers were given to talk about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Turn


class GroundedDialogue(NamedTuple):
    """A dialogue, and persona lines or the situation of each speaker who has any."""

    dialogue: Dialogue
    facts: Mapping[str, tuple[str, ...]] = {}
    """By the speaker whom they describe, as the dialogue's turns name him or her; empty where the layout has none."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Turns of the dialogue, oldest first."""
        return self.dialogue.turns
