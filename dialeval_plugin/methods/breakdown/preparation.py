"""Which dialogues are trained on, validated on and kept out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import Dialogue, Item, context_turns, is_blank
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, opening_key, split_by_dialogue

Spacing: TypeAlias = Literal["natural", "published"]

_BLANK_BEFORE_SIGN = re.compile(r"\s+(?=[.,!?;:)\]](?:\s|$))")
_SPLIT_APOSTROPHE = re.compile(r"(?<=\w)\s*'\s*(?=(?:s|t|m|d|re|ve|ll)\b)", re.IGNORECASE)


class Sources(NamedTuple):
    """Dialogues by their use."""

    training: Sequence[Dialogue]
    validation: Sequence[Dialogue] = ()
    """Choose the best epoch and calibrate the breakdown scores; without them a share of the training dialogues does."""
    evaluation: Sequence[Item] = ()


class Data(NamedTuple):
    """Texts of the turns of each dialogue."""

    training: list[list[str]]
    validation: list[list[str]]
    n_left_out: int
    """Training dialogues that open like validation dialogues or are in the evaluation data."""


def prepare(sources: Sources, *, validation_fraction: float, seed: int, spacing: Spacing) -> Data:
    """Drop blank turns and shorter dialogues than two turns, set validation dialogues aside, and leave leaks out.

    What has a part of a dialogue that will be reported on is left out, of validation too. Spacing "published" leaves the texts
    as they are.
    """
    index = LeakIndex({"evaluation": sources.evaluation})
    training, validation = (
        [turns for dialogue in dialogues if len(turns := visible_turns(dialogue)) > 1]
        for dialogues in (sources.training, sources.validation)
    )
    clean = leave_out_leaks(training, index, lambda turns: [turns], "training dialogues")
    held_out = leave_out_leaks(validation, index, lambda turns: [turns], "validation dialogues")
    kept, validation = split_by_dialogue(
        clean, held_out if sources.validation else None, opening_key, fraction=validation_fraction, seed=seed
    )
    n_left_out = len(training) - len(kept if sources.validation else clean)
    if spacing == "natural":
        kept, validation = ([[natural_spacing(text) for text in turns] for turns in part] for part in (kept, validation))
    return Data(kept, validation, n_left_out)


def natural_spacing(text: str) -> str:
    """Undo what tokenised corpora did to a text: blanks before punctuation and around apostrophes, curly apostrophes.

    Example:
        >>> natural_spacing("It ’ s late , isn't it ? I 'll go .")
        "It's late, isn't it? I'll go."
    """
    joined = _SPLIT_APOSTROPHE.sub("'", " ".join(text.split()).replace("’", "'"))
    return _BLANK_BEFORE_SIGN.sub("", joined)


def visible_turns(item: Item) -> list[str]:
    """Texts of a dialogue's turns, or of a context's, that have a visible character."""
    return [turn.text for turn in context_turns(item) if not is_blank(turn.text)]
