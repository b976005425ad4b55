"""Which dialogues are trained on, validated on and kept out."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from dialeval_plugin.core.dialogue import Dialogue, Item, context_turns, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.leaks import HeldOut

logger = logging.getLogger(__name__)

Spacing: TypeAlias = Literal["natural", "published"]

_BLANK_BEFORE_SIGN = re.compile(r"\s+(?=[.,!?;:)\]](?:\s|$))")
_SPLIT_APOSTROPHE = re.compile(r"(?<=\w)\s*'\s*(?=(?:s|t|m|d|re|ve|ll)\b)", re.IGNORECASE)


class Sources(NamedTuple):
    """Dialogues by their use."""

    training: Sequence[Dialogue]
    validation: Sequence[Dialogue] = ()
    """Choose the best epoch and calibrate the breakdown scores; without them a share of the training dialogues does."""
    evaluation: Sequence[Item] = ()
    """Will be reported on."""


class Data(NamedTuple):
    """Texts of the turns of each dialogue."""

    training: list[list[str]]
    validation: list[list[str]]
    n_left_out: int
    """Training dialogues that are validation or evaluation dialogues too."""

    @property
    def digest(self) -> str:
        """Identity of the data."""
        digest = hashlib.sha256()
        for part in (self.training, self.validation):
            for turns in part:
                digest.update(repr(turns).encode())
            digest.update(b"|")
        return digest.hexdigest()


def prepare(sources: Sources, *, validation_fraction: float, seed: int, spacing: Spacing) -> Data:
    """Drop blank turns and shorter dialogues than two turns, set validation dialogues aside, and leave leaks out.

    Two dialogues are the same where their letters and digits are, whatever the spacing, case and punctuation. What has a part
    of a dialogue that will be reported on is left out by the rule of `leaks`, of validation too.

    Args:
        sources: the dialogues.
        validation_fraction: share of the training dialogues that is set aside where no validation dialogues are given.
        seed: of that choice.
        spacing: "natural" for `natural_spacing`, "published" for the texts as they are.

    Raises:
        InputError: too few dialogues are left.
    """
    training = [turns for dialogue in sources.training if len(turns := visible_turns(dialogue)) > 1]
    validation = [turns for dialogue in sources.validation if len(turns := visible_turns(dialogue)) > 1]
    evaluated = {_key(visible_turns(item)) for item in sources.evaluation}
    held_out = HeldOut(sources.evaluation)

    def is_clean(turns: Sequence[str]) -> bool:
        return _key(turns) not in evaluated and not held_out.is_in(turns)

    if n_reported := len(validation) - len(validation := list(filter(is_clean, validation))):
        logger.warning("%d validation dialogues are evaluation dialogues too and are left out", n_reported)
    validated = set(map(_key, validation))
    kept = [turns for turns in training if _key(turns) not in validated and is_clean(turns)]
    if n_left_out := len(training) - len(kept):
        logger.warning(
            "%d of %d training dialogues are validation or evaluation dialogues too and are left out", n_left_out, len(training)
        )
    if not sources.validation:
        kept, validation = _split(kept, validation_fraction, seed)
    if not kept or not validation:
        raise InputError(
            f"training: {len(kept)} training and {len(validation)} validation dialogues of two turns and more are left. "
            "Give more dialogues."
        )
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


def _split(dialogues: list[list[str]], fraction: float, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Set a share of the distinct dialogues aside, at least one; copies of a dialogue stay together."""
    if not 0 < fraction < 1:
        raise InputError(f"validation_fraction: expected a number between 0 and 1, got {fraction!r}.")
    keys = list(map(_key, dialogues))
    distinct = list(dict.fromkeys(keys))
    chosen = np.random.default_rng(seed).permutation(len(distinct))[: max(1, round(fraction * len(distinct)))]
    aside = {distinct[place] for place in chosen}
    return (
        [turns for turns, key in zip(dialogues, keys, strict=True) if key not in aside],
        [turns for turns, key in zip(dialogues, keys, strict=True) if key in aside],
    )


def _key(turns: Sequence[str]) -> str:
    return text_hash(*("".join(filter(str.isalnum, turn.casefold())) for turn in turns))
