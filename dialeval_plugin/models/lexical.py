"""Words that a response shares with its context, as features for a small classifier.

Vectors of two separately encoded texts reveal little about shared words, and adversarial responses are written to repeat rare
words of the context. Counting is exact where vectors are vague, and costs little compared with the encoder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np

FEATURES = (
    "response_tokens",
    "response_types",
    "mean_rarity",
    "largest_rarity",
    "rarity",
    "rare_tokens",
    "shared_rarity",
    "largest_shared_rarity",
    "share_of_rarity",
    "share_of_tokens",
    "shared_type_rarity",
    "rare_shared_tokens",
    "last_turn_rarity",
    "largest_last_turn_rarity",
    "last_turn_share_of_rarity",
    "last_turn_share_of_tokens",
    "context_tokens",
    "context_turns",
    "last_turn_tokens",
    "covered_context_rarity",
)
"""Columns of `lexical_features`. Rarity is the inverse document frequency of a token, summed unless stated otherwise."""
RARE = 4.0
"""Lowest rarity of a rare token: fewer than one in 55 responses have it."""


def token_rarity(responses: Iterable[Collection[int]], vocabulary_size: int) -> np.ndarray:
    """Return log((1 + n) / (1 + number of responses that have the token)) for every token, of shape (vocabulary_size,)."""
    frequency, n = np.zeros(vocabulary_size), 0
    for response in responses:
        frequency[list(set(response))] += 1
        n += 1
    return np.asarray(np.log((1 + n) / (1 + frequency)))


class _Tokens:
    """Tokens of many texts in one array, each with the index of its text."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        self.lengths = np.array([len(text) for text in texts], dtype=np.int64)
        self.tokens = np.fromiter(chain.from_iterable(texts), dtype=np.int64, count=self.lengths.sum())
        self.owners = np.repeat(np.arange(len(texts)), self.lengths)

    def distinct(self, size: int) -> np.ndarray:
        """Codes text * size + token of the distinct tokens of each text; ascending."""
        return np.unique(self.owners * size + self.tokens)


def lexical_features(
    contexts: Sequence[Sequence[int]],
    owners: Sequence[int] | np.ndarray,
    responses: Sequence[Sequence[int]],
    rarity: np.ndarray,
    special: Collection[int],
) -> np.ndarray:
    """Return the features of n responses in their contexts, all given as token ids, of shape (n, len(FEATURES)).

    Each turn of a context ends with one of the tokens `special`, which never occur in a text; `owners` has the index of each
    response's context.
    """
    n, size, of = len(responses), len(rarity), np.asarray(owners, dtype=np.int64)
    turns = [_split(context, special) for context in contexts]
    context = _Tokens([[token for turn in turn_list for token in turn] for turn_list in turns])
    last = _Tokens([turn_list[-1] for turn_list in turns])
    response = _Tokens([[token for token in ids if token not in special] for ids in responses])
    n_turns = np.array([len(turn_list) if any(turn_list) else 0 for turn_list in turns])
    context_types, last_types = context.distinct(size), last.distinct(size)
    context_rarity = np.bincount(context_types // size, weights=rarity[context_types % size], minlength=len(contexts))

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(response.owners, weights=values, minlength=n)

    def largest(values: np.ndarray) -> np.ndarray:
        highest = np.zeros(n)
        np.maximum.at(highest, response.owners, values)
        return highest

    weight, in_context = rarity[response.tokens], of[response.owners] * size + response.tokens
    shared, in_last = np.isin(in_context, context_types), np.isin(in_context, last_types)
    tokens, all_rarity = np.maximum(response.lengths, 1), total(weight)
    types = response.distinct(size)
    shared_types = types[np.isin(of[types // size] * size + types % size, context_types)]
    shared_type_rarity = np.bincount(shared_types // size, weights=rarity[shared_types % size], minlength=n)
    return np.stack(
        [
            response.lengths,
            np.bincount(types // size, minlength=n),
            all_rarity / tokens,
            largest(weight),
            all_rarity,
            total(weight > RARE),
            total(weight * shared),
            largest(weight * shared),
            total(weight * shared) / (all_rarity + 1),
            total(shared) / tokens,
            shared_type_rarity,
            total(shared & (weight > RARE)),
            total(weight * in_last),
            largest(weight * in_last),
            total(weight * in_last) / (all_rarity + 1),
            total(in_last) / tokens,
            context.lengths[of],
            n_turns[of],
            last.lengths[of],
            shared_type_rarity / (context_rarity[of] + 1),
        ],
        axis=1,
    )


def _split(context: Sequence[int], special: Collection[int]) -> list[list[int]]:
    """Turns of a context, at least one, which may be empty."""
    turns: list[list[int]] = [[]]
    for token in context:
        if token not in special:
            turns[-1].append(token)
        elif turns[-1]:
            turns.append([])
    return turns[:-1] if len(turns) > 1 and not turns[-1] else turns
