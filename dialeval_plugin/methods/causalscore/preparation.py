"""Splits the data of a training run by dialogue and leaves out what leaks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Example, Item, Turn, context_turns
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.leaks import HeldOut

from .data import CausePairLike, dialogue_hash, pair_hash, split_by_dialogue
from .self_training import UnlabelledResponse, unlabelled_responses

logger = logging.getLogger(__name__)


class Sources(NamedTuple):
    """What a user hands in."""

    pairs: Sequence[CausePairLike]
    """Responses with causes, to train on."""
    validation: Sequence[CausePairLike] = ()
    """Those that choose the best epoch and round; without them a share of `pairs` does."""
    unlabelled: Sequence[Sequence[Turn]] = ()
    """Dialogues for self-training."""
    evaluation: Sequence[CausePairLike] = ()
    """Those that are measured on and decide nothing."""
    held_out: Sequence[Item] = ()
    """Further responses and dialogues that will be reported on."""


class Data(NamedTuple):
    """Everything that is trained and measured on; no dialogue is in two of them."""

    training: list[CausePairLike]
    validation: list[CausePairLike]
    evaluation: list[CausePairLike]
    unlabelled: list[UnlabelledResponse]
    counts: dict[str, int]
    """Sizes and leaks, for the record."""


def prepare(sources: Sources, *, validation_fraction: float = 0.1, max_unlabelled: int | None = None, seed: int = 13) -> Data:
    """Leave out of the training, validation and unlabelled data each dialogue that is measured on, and count it.

    Such a dialogue begins like one that is measured on, or is found by the rule of `leaks`.

    Args:
        sources: the data.
        validation_fraction: share of the dialogues that is set aside where there are no validation pairs.
        max_unlabelled: unlabelled responses at most; of more a seeded sample.
        seed: of the split and the sample.

    Raises:
        InputError: the pairs come from fewer than two dialogues, or none is left.
    """
    tested = {*map(pair_hash, sources.evaluation), *(dialogue_hash(context_turns(item)) for item in sources.held_out)}
    measured = [Example(str(number), pair.context, pair.response) for number, pair in enumerate(sources.evaluation)]
    held_out = HeldOut([*measured, *sources.held_out])

    def is_clean(turns: Sequence[Turn], others: set[str]) -> bool:
        return dialogue_hash(turns) not in others and not held_out.is_in(turn.text for turn in turns)

    def clean_pairs(pairs: Sequence[CausePairLike], others: set[str]) -> list[CausePairLike]:
        return [pair for pair in pairs if is_clean((*pair.context, pair.response), others)]

    if sources.validation:
        validation = clean_pairs(sources.validation, tested)
        apart = tested | set(map(pair_hash, validation))
        training = clean_pairs(sources.pairs, apart)
        n_left_out = len(sources.pairs) - len(training)
    else:
        remaining = clean_pairs(sources.pairs, tested)
        training, validation = split_by_dialogue(remaining, fraction=validation_fraction, seed=seed)
        apart = tested | set(map(pair_hash, validation))
        n_left_out = len(sources.pairs) - len(remaining)
    clean = [turns for turns in sources.unlabelled if is_clean(turns, apart)]
    leaks = {
        "training pairs": (n_left_out, len(sources.pairs)),
        "validation pairs": (max(0, len(sources.validation) - len(validation)), len(sources.validation)),
        "unlabelled dialogues": (len(sources.unlabelled) - len(clean), len(sources.unlabelled)),
    }
    for name, (n_leaking, n_all) in leaks.items():
        if n_leaking:
            logger.warning("%d of %d %s belong to dialogues that are measured on and are left out", n_leaking, n_all, name)
    for name, rows in (("training", training), ("validation", validation)):
        if not rows:
            raise InputError(f"{name} data: no pair is left, all belong to dialogues that are measured on. Add a file.")
    responses = unlabelled_responses(clean, most=max_unlabelled, seed=seed)
    counts = {
        "n_training_pairs": len(training),
        "n_validation_pairs": len(validation),
        "n_evaluation_pairs": len(sources.evaluation),
        "n_unlabelled_dialogues": len(clean),
        "n_unlabelled_responses": len(responses),
        **{f"n_leaking_{name.replace(' ', '_')}": n_leaking for name, (n_leaking, _) in leaks.items()},
    }
    return Data(training, validation, list(sources.evaluation), responses, counts)
