"""What a model is trained on: dialogues without duplicates, without what is validated or evaluated on, as numbers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from dialeval_plugin.core.dialogue import Item, Turn, context_turns, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.leaks import HeldOut

from .batches import EncodedDialogue
from .recipes import ReconstructionRecipe
from .vocabulary import Vocabulary, words

logger = logging.getLogger(__name__)

OPENING = 3
"""Utterances by which a dialogue is recognised in another file, whose copy may be shorter or rated."""

Text: TypeAlias = tuple[str, ...]
"""A dialogue's utterances, each its words with a blank between them."""


class ReconstructionSources(NamedTuple):
    """Dialogues as turns, oldest first."""

    training: Sequence[Sequence[Turn]]
    validation: Sequence[Sequence[Turn]] = ()
    """Chooses the best epoch; without it a share of the training dialogues does."""
    evaluation: Sequence[Item] = ()
    """Will be reported on: nothing that begins like one of these, or has a part of one, is trained or validated on."""


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
    """Leave out what must not be trained on, learn the vocabulary from the rest, and encode.

    Raises:
        InputError: too few dialogues remain.
    """
    if not 0 < validation_fraction < 1:
        raise InputError(f"validation_fraction: expected a number between 0 and 1, got {validation_fraction}.")
    counts: dict[str, int] = {}
    evaluation = _Evaluation({opening(_text(context_turns(item))) for item in sources.evaluation}, HeldOut(sources.evaluation))
    training = _select("training", sources.training, evaluation, counts)
    if sources.validation:
        validation = _select("validation", sources.validation, evaluation, counts)
        known = {opening(text) for text in validation}
        kept = [text for text in training if opening(text) not in known]
        counts["n_training_in_validation"] = len(training) - len(kept)
        training = kept
    else:
        training, validation = _split(training, validation_fraction, seed)
    for name, texts in (("training", training), ("validation", validation)):
        if not texts:
            raise InputError(f"{name}: no dialogue of two utterances remains. Give more dialogues.")
        counts[f"n_{name}"] = len(texts)
    logger.info("dialogues: %s", counts)
    read = [[text.split() for text in dialogue[: recipe.max_utterances]] for dialogue in training]
    vocabulary = Vocabulary.learn(
        (utterance[: recipe.max_tokens - 1] for dialogue in read for utterance in dialogue),
        max_words=recipe.max_words,
        min_count=recipe.min_count,
    )

    def encode(dialogue: Text) -> EncodedDialogue:
        texts = dialogue[: recipe.max_utterances]
        return [vocabulary.encode(text, max_tokens=recipe.max_tokens).ids for text in texts]

    return ReconstructionCorpus([encode(text) for text in training], [encode(text) for text in validation], vocabulary, counts)


class _Evaluation(NamedTuple):
    """What will be reported on."""

    openings: set[str]
    held_out: HeldOut

    def is_in(self, text: Text, turns: Sequence[Turn]) -> bool:
        """Whether a dialogue, also as it was published, begins like one of it, or is found by the rule of `leaks`."""
        return opening(text) in self.openings or self.held_out.is_in(turn.text for turn in turns)


def opening(text: Text) -> str:
    """Identity of a dialogue for leak checks: its first three utterances, case, white space and quotes aside."""
    return text_hash(*text[:OPENING])


def _text(turns: Sequence[Turn]) -> Text:
    return tuple(" ".join(words(turn.text)) for turn in turns if not is_blank(turn.text))


def _select(name: str, dialogues: Sequence[Sequence[Turn]], evaluation: _Evaluation, counts: dict[str, int]) -> list[Text]:
    """Dialogues without duplicates and leaks, in their order; says how many were left out."""
    texts = [(text, turns) for turns in dialogues if len(text := _text(turns)) > 1]
    distinct = dict(texts)
    kept = [text for text, turns in distinct.items() if not evaluation.is_in(text, turns)]
    counts[f"n_{name}_short"] = len(dialogues) - len(texts)
    counts[f"n_{name}_duplicates"] = len(texts) - len(distinct)
    counts[f"n_{name}_in_evaluation"] = leaks = len(distinct) - len(kept)
    if leaks:
        logger.warning(
            "%d of %d %s dialogues are in the evaluation data too, or begin like it, and are left out",
            leaks,
            len(distinct),
            name,
        )
    return kept


def _split(texts: Sequence[Text], fraction: float, seed: int) -> tuple[list[Text], list[Text]]:
    """Set aside a fraction of the openings, so that dialogues that begin alike stay on one side."""
    openings = sorted({opening(text) for text in texts})
    if len(openings) < 2:
        raise InputError("training: fewer than two different dialogues. Give more, or a validation file.")
    n_validation = min(len(openings) - 1, max(1, round(fraction * len(openings))))
    chosen = {openings[place] for place in np.random.default_rng(seed).permutation(len(openings))[:n_validation]}
    return (
        [text for text in texts if opening(text) not in chosen],
        [text for text in texts if opening(text) in chosen],
    )
