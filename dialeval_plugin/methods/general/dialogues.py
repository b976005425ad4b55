"""How a whole dialogue is judged: whose turns count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dialeval_plugin.core.dialogue import Turn, is_blank
from dialeval_plugin.corpora.messages import assistant


def judged_turns(turns: Sequence[Turn]) -> np.ndarray:
    """Return which of the n visible turns but the first are judged, of shape (n - 1,), booleans.

    They are those of the assistant, see `messages.assistant`; everybody's where nobody is known to be one, or where only the
    first turn is the assistant's.
    """
    speakers = [turn.speaker for turn in turns if not is_blank(turn.text)][1:]
    name = assistant(turns)
    chosen = np.array([name is not None and speaker == name for speaker in speakers], dtype=bool)
    return chosen if chosen.any() else np.ones(len(speakers), dtype=bool)
