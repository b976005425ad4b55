"""What a model is trained on: dialogues without duplicates, without what is validated or evaluated on, as numbers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from dialeval_plugin.core.dialogue import Item, Turn, is_blank
from dialeval_plugin.corpora.identity import LeakIndex, leave_out_leaks, opening_key, split_by_dialogue

from .recipes import ReconstructionRecipe
from .vocabulary import EncodedDialogue, Vocabulary, words

logger = logging.getLogger(__name__)

Text: TypeAlias = tuple[str, ...]
"""A dialogue's utterances, each its words with a blank between them."""


class ReconstructionSources(NamedTuple):
    """Dialogues as turns, oldest first."""

    training: Sequence[Sequence[Turn]]
    validation: Sequence[Sequence[Turn]] = ()
    """Chooses the best epoch; without it a share of the training dialogues does."""
    evaluation: Sequence[Item] = ()


class ReconstructionCorpus(NamedTuple):
    """What training reads."""

    training: list[EncodedDialogue]
    validation: list[EncodedDialogue]
    vocabulary: Vocabulary
    counts: dict[str, int]
    """How many dialogues there are, and how many were left out, by reason."""


def prepare(
    sources: ReconstructionSources, recipe: ReconstructionRecipe, *, validation_fraction: float, seed: int
) -> ReconstructionCorpus:
    """Leave out what must not be trained on, learn the vocabulary from the rest, and encode."""
    counts: dict[str, int] = {}
    index = LeakIndex({"evaluation": sources.evaluation})
    candidates = _select("training", sources.training, index, counts)
    held_out = _select("validation", sources.validation, index, counts) if sources.validation else None
    training, validation = split_by_dialogue(candidates, held_out, opening_key, fraction=validation_fraction, seed=seed)
    if held_out is not None:
        counts["n_training_in_validation"] = len(candidates) - len(training)
    counts |= {"n_training": len(training), "n_validation": len(validation)}
    logger.info("dialogues: %s", counts)
    vocabulary = Vocabulary.learn(
        (text.split()[: recipe.max_tokens - 1] for dialogue in training for text in dialogue[: recipe.max_utterances]),
        max_words=recipe.max_words,
        min_count=recipe.min_count,
    )

    def encode(dialogue: Text) -> EncodedDialogue:
        texts = dialogue[: recipe.max_utterances]
        return [vocabulary.encode(text, max_tokens=recipe.max_tokens).ids for text in texts]

    return ReconstructionCorpus([encode(text) for text in training], [encode(text) for text in validation], vocabulary, counts)


def _select(name: str, dialogues: Sequence[Sequence[Turn]], index: LeakIndex, counts: dict[str, int]) -> list[Text]:
    """Dialogues without duplicates and leaks, in their order, as they were published and in words; counts the others."""
    visible = [tuple(turn.text for turn in turns if not is_blank(turn.text)) for turns in dialogues]
    texts = [(tuple(" ".join(words(text)) for text in turns), turns) for turns in visible if len(turns) > 1]
    distinct = dict(texts)
    # As they were published: the leak rule reads lines and speakers, which the words have lost.
    kept = leave_out_leaks(list(distinct.items()), index, lambda item: [item[1]], f"{name} dialogues")
    counts[f"n_{name}_short"] = len(dialogues) - len(texts)
    counts[f"n_{name}_duplicates"] = len(texts) - len(distinct)
    counts[f"n_{name}_in_evaluation"] = len(distinct) - len(kept)
    return [text for text, _ in kept]
