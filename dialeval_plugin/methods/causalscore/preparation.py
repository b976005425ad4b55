"""Splits the data of a training run by dialogue and leaves out what leaks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dialeval_plugin.core.dialogue import Dialogue, Item, Turn
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, leave_out_openings, split_by_dialogue, turns_key

from .data import CausePairLike, pair_hash
from .self_training import UnlabelledResponse, unlabelled_responses


class Sources(NamedTuple):
    """What a user hands in."""

    pairs: Sequence[CausePairLike]
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


def prepare(sources: Sources, *, validation_fraction: float = 0.1, max_unlabelled: int | None = None, seed: int = 13) -> Data:
    """Leave out of the training, validation and unlabelled data each dialogue that is measured on, and count it."""
    measured = [Dialogue(str(number), (*pair.context, pair.response)) for number, pair in enumerate(sources.evaluation)]
    index = LeakIndex({"measured": measured, "reported": sources.held_out})

    def clean(pairs: Sequence[CausePairLike], name: str) -> list[CausePairLike]:
        return leave_out_leaks(
            pairs, index, lambda pair: [[turn.text for turn in (*pair.context, pair.response)]], f"{name} pairs"
        )

    pairs, held_out = clean(sources.pairs, "training"), clean(sources.validation, "validation")
    training, validation = split_by_dialogue(
        pairs, held_out if sources.validation else None, pair_hash, fraction=validation_fraction, seed=seed
    )
    dialogues = leave_out_leaks(
        sources.unlabelled, index, lambda turns: [[turn.text for turn in turns]], "unlabelled dialogues"
    )
    unlabelled = leave_out_openings(dialogues, frozenset(map(pair_hash, validation)), turns_key, "unlabelled dialogues")
    responses = unlabelled_responses(unlabelled, most=max_unlabelled, seed=seed)
    counts = {
        "n_training_pairs": len(training),
        "n_validation_pairs": len(validation),
        "n_evaluation_pairs": len(sources.evaluation),
        "n_unlabelled_dialogues": len(unlabelled),
        "n_unlabelled_responses": len(responses),
        # With validation pairs of one's own, training pairs of their dialogues are left out too.
        "n_leaking_training_pairs": len(sources.pairs) - len(training if sources.validation else pairs),
        "n_leaking_validation_pairs": len(sources.validation) - len(held_out),
        "n_leaking_unlabelled_dialogues": len(sources.unlabelled) - len(unlabelled),
    }
    return Data(training, validation, list(sources.evaluation), responses, counts)
