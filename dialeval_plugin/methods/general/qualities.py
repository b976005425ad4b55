"""Qualities without a trained head: novelty, counted; acceptance, learnt from logs; and similarity with references."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.errors import ModelLoadError
from dialeval_plugin.core.files import checked_model_file, to_json, write_text
from dialeval_plugin.models.folders import read_versioned
from dialeval_plugin.models.runtimes.runtime import VectorArray, unit

from .signals import words

NOVELTY = "novelty"
"""Column of the counted quality."""
NOVELTY_WEIGHT = 1.0
"""Log odds that a response with no new words loses in the main score. Chosen on ratings of other responses, where 0.5 to 1.5
make little difference (reproduction/general/results.md)."""
NEAR = 4
"""Number of turns before a response that are searched for its words."""


def novelty(responses: Iterable[tuple[Sequence[str], str]]) -> FloatArray:
    """Return the share of each of n responses that is new given its context, of shape (n,), in [0, 1].

    The units are distinct pairs of neighbouring words, with the beginning of the response as a word. A pair is new if none of
    the `NEAR` turns before has it. A response without words is new.

    Example:
        >>> novelty([(["I like tea."], "I like tea."), (["I like tea."], "I like green tea.")]).tolist()
        [0.0, 0.5]
    """

    # Pairs are single strings, since Python's garbage collector would traverse a hundred thousand tuples.
    @functools.cache
    def pairs_of(text: str) -> frozenset[str]:
        return frozenset(map(" ".join, pairwise(("", *words(text)))))

    @functools.cache
    def pairs_of_all(turns: tuple[str, ...]) -> frozenset[str]:
        return frozenset().union(*map(pairs_of, turns))

    shares = []
    for context, response in responses:
        own = pairs_of(response)
        shares.append(len(own - pairs_of_all(tuple(context[-NEAR:]))) / len(own) if own else 1.0)
    return np.array(shares, dtype=np.float64)


REFERENCE_SIMILARITY = "reference_similarity"
"""Column of the cosine with the nearest reference."""
REFERENCE_WEIGHT = 6.0
"""Log odds that the main score gains per unit of cosine. Chosen on DailyDialog++'s development contexts, without ratings: the
smallest weight whose area under the ROC curve is within 0.002 of the highest (reproduction/general/results.md)."""
USUAL_SIMILARITY = 0.48
"""Cosine that leaves the score unchanged: midway between that of fitting and that of misleading or random responses on the
same contexts, with one reference."""


def nearest_similarity(responses: VectorArray, references: VectorArray, owners: Sequence[int]) -> FloatArray:
    """Return the cosine of each response's vector with that of its nearest reference, (n,), in [-1, 1]; NaN without one.

    Args:
        responses: vectors, of shape (n, width).
        references: vectors of all references, of shape (m, width).
        owners: index of the response of each of the m references.
    """
    nearest: FloatArray = np.full(len(responses), np.nan)
    cosines = (unit(responses)[list(owners)] * unit(references)).sum(1).astype(np.float64)
    np.fmax.at(nearest, list(owners), cosines)
    return nearest


def reference_log_odds(similarity: FloatArray) -> FloatArray:
    """Return the term that similarities (n,) add to the main score's log odds; 0 for NaN."""
    added: FloatArray = REFERENCE_WEIGHT * (np.nan_to_num(similarity, nan=USUAL_SIMILARITY) - USUAL_SIMILARITY)
    return added


ACCEPTANCE = "acceptance"
"""Column of the quality learnt from logs of chats instead of training."""
ACCEPTANCE_FILE = "acceptance.json"
"""File in a model's folder."""
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A linear function of a response's vector.

    Attributes:
        weights: for the vector at unit length, of shape (width,).
        offset: added to the sum.
        training: record: turns by log, seed, and the area under the ROC curve on held-out conversations.
    """

    weights: tuple[float, ...] = field(repr=False)
    offset: float
    training: Mapping[str, Any] = field(repr=False)

    def log_odds(self, vectors: VectorArray) -> FloatArray:
        """Return log odds (n,) that responses are accepted, from the encoder's vectors (n, width); even chances on average.

        Raises:
            ModelLoadError: the weights were learnt from vectors of another width.
        """
        if vectors.shape[1] != len(self.weights):
            raise ModelLoadError(
                f"{ACCEPTANCE_FILE}: has {len(self.weights)} weights for vectors of {vectors.shape[1]} numbers, so it is of "
                "another model. Copy the model folder again, or run `dialeval train acceptance`."
            )
        log_odds: FloatArray = unit(vectors).astype(np.float64) @ np.array(self.weights) + self.offset
        return log_odds

    def save(self, folder: Path) -> None:
        """Write a JSON file into a model's folder."""
        write_text(folder / ACCEPTANCE_FILE, to_json({"format_version": FORMAT_VERSION, **asdict(self)}, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Acceptance | None:
        """Read a file that `save` wrote; None if there is none."""
        path = folder / ACCEPTANCE_FILE
        if not path.exists():
            return None
        read_versioned(path, FORMAT_VERSION, kind="a model with acceptance", command="dialeval train acceptance")
        return checked_model_file(path, cls)
