"""Training data of the small model: contexts with labelled responses, mined negatives and splits."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from dialeval_plugin.core.dialogue import Item, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.corpora.identity import dialogue_key, leave_out_leaks, set_aside
from dialeval_plugin.corpora.readers.dailydialog_pp import KINDS, ResponseSet

logger = logging.getLogger(__name__)

MISLEADS, FITS, UNRELATED = 0, 1, 2
"""Labels of a response: written to share words with the context without fitting it; fitting; from another context."""


@dataclass(frozen=True, slots=True)
class LabelledResponses:
    """A context with its responses and their labels.

    A `ranked` row has positive responses and one negative that was not written to mislead: its positive responses are
    distinguished from those of other contexts, and nothing is learnt from the wording of negatives.
    """

    context: tuple[str, ...]
    responses: tuple[str, ...]
    labels: tuple[int, ...]
    ranked: bool = False


def all_labelled(item: ResponseSet, unrelated: Sequence[str] = ()) -> LabelledResponses:
    """Label the positive and adversarial responses of a set, and those from other contexts."""
    kinds = {FITS: item.positive, MISLEADS: item.adversarial, UNRELATED: unrelated}
    labels = tuple(label for label, responses in kinds.items() for _ in responses)
    return LabelledResponses(item.context, (*item.positive, *item.adversarial, *unrelated), labels)


class Splits(NamedTuple):
    """Training and validation sets without common contexts."""

    training: list[ResponseSet]
    validation: list[ResponseSet]


def without_blanks(sets: Sequence[ResponseSet]) -> list[ResponseSet]:
    """Leave out blank responses, which no scorer scores, and report their number."""
    said = [[tuple(text for text in getattr(item, kind) if not is_blank(text)) for kind in KINDS] for item in sets]
    kept = [
        replace(item, positive=positive, random=unrelated, adversarial=adversarial)
        for item, (positive, unrelated, adversarial) in zip(sets, said, strict=True)
    ]
    if n_blank := sum(len(item.kinds) for item in sets) - sum(len(item.kinds) for item in kept):
        logger.warning("training data: %d blank responses are left out", n_blank)
    return kept


def split_by_context(sets: Sequence[ResponseSet], *, fraction: float, seed: int) -> Splits:
    """Set aside a fraction of the contexts that have adversarial responses; copies of a context stay together.

    Contexts from which nothing can be learnt are in neither part: those without positive and adversarial responses, and one
    with positive responses only if it is the only such one, because its negatives would be responses of others.
    """
    full = [item for item in sets if item.positive and item.adversarial]
    keys = {dialogue_key(item.context) for item in full}
    if len(keys) < 2:
        raise InputError(
            f"training data: {len(keys)} contexts have both positive and adversarial responses, at least 2 are needed. "
            "Add a file in DailyDialog++'s layout that has both."
        )
    aside = set_aside(keys, fraction=fraction, seed=seed)
    training = [item for item in sets if dialogue_key(item.context) not in aside]
    has_negatives = sum(bool(item.positive and not item.adversarial) for item in training) > 1
    return Splits(
        [item for item in training if item.adversarial or (item.positive and has_negatives)],
        [item for item in full if dialogue_key(item.context) in aside],
    )


def without_leaks(sets: Sequence[ResponseSet], evaluation: Sequence[Item]) -> list[ResponseSet]:
    """Leave out the sets whose context, alone or with a response, is in the evaluation data, and report their number."""
    return leave_out_leaks(
        sets,
        evaluation,
        lambda item: [item.context, *((*item.context, response) for response in item.positive)],
        "training contexts",
    )


def trained_on(training: Iterable[str], sets: Sequence[ResponseSet]) -> list[ResponseSet]:
    """Return the sets whose context is in the training contexts, which are given by their keys."""
    known = frozenset(training)
    return [item for item in sets if dialogue_key(item.context) in known]


class LexicalNegatives:
    """Finds negatives that no one has to write: responses to other contexts that share words with a context.

    They replace adversarial responses in corpora with positives only. Some of them fit, since they were not written to mislead;
    training gives them less weight. The `n_candidates` nearest are kept for each context.
    """

    def __init__(self, sets: Sequence[ResponseSet], n_candidates: int = 25) -> None:
        self._responses = [response for item in sets for response in item.positive]
        self._owners = np.repeat(np.arange(len(sets)), [len(item.positive) for item in sets])
        # Rarity is counted over the responses: shared rare words make a negative misleading.
        vectorizer = TfidfVectorizer(tokenizer=_words, token_pattern=None, lowercase=False, binary=True)
        responses = vectorizer.fit_transform(self._responses)
        contexts = vectorizer.transform(" ".join(item.context) for item in sets)
        self._candidates: list[list[int]] = []
        for start in range(0, len(sets), 256):
            similarity = (contexts[start : start + 256] @ responses.T).toarray()
            for offset, row in enumerate(similarity):
                row[self._owners == start + offset] = 0
                count = min(n_candidates, len(row) - 1)
                nearest = np.argpartition(-row, count)[:count] if count > 0 else np.array([], dtype=int)
                self._candidates.append(
                    sorted((int(place) for place in nearest if row[place] > 0.05), key=lambda place: -row[place])
                )

    def draw(self, index: int, generator: random.Random) -> str:
        """Return a response that shares words with the context `index`; if none does, a random one of another context."""
        candidates = self._candidates[index]
        if candidates:
            return self._responses[generator.choice(candidates)]
        while self._owners[drawn := generator.randrange(len(self._responses))] == index:
            pass
        return self._responses[drawn]


def _words(text: str) -> set[str]:
    return {word.strip(".,!?;:'\"()’") for word in text.lower().split()}


class MixedSets:
    """The rows of each epoch: every set with adversarial responses, and `ranked_per_set` times as many with positives only.

    The responses drawn depend only on seed, epoch and position, so that a resumed run draws the same ones.
    """

    N_UNRELATED = 2
    N_POSITIVE = 3
    """Responses per context in a ranked row: they cost less than the context, and are negatives of all other contexts."""

    def __init__(self, sets: Sequence[ResponseSet], *, ranked_per_set: int, seed: int) -> None:
        self._full = [item for item in sets if item.adversarial]
        self._weak = [item for item in sets if item.positive and not item.adversarial]
        self._negatives = LexicalNegatives(self._weak) if self._weak else None
        self._order = list(range(len(self._weak)))
        random.Random(seed).shuffle(self._order)
        self._n_ranked = min(ranked_per_set * len(self._full), len(self._weak)) if self._full else len(self._weak)
        self._seed = seed
        self.epoch = 0

    def __len__(self) -> int:
        """Number of rows per epoch."""
        return len(self._full) + self._n_ranked

    def __getitem__(self, position: int) -> LabelledResponses:
        generator = random.Random(f"{self._seed} {self.epoch} {position}")
        if position < len(self._full):
            item = self._full[position]
            return all_labelled(item, generator.sample(list(item.random), min(self.N_UNRELATED, len(item.random))))
        if self._negatives is None:
            raise IndexError(position)
        place = self.epoch * self._n_ranked + position - len(self._full)
        index = self._order[place % len(self._order)]
        item = self._weak[index]
        positive = generator.sample(item.positive, min(self.N_POSITIVE, len(item.positive)))
        labels = (*[FITS] * len(positive), UNRELATED)
        return LabelledResponses(item.context, (*positive, self._negatives.draw(index, generator)), labels, ranked=True)
