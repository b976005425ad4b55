"""Mixing weights fitted on people's ratings, and the record of whose: no set is scored with weights that have seen it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from typing_extensions import TypedDict

from dialeval_plugin.core.dialogue import Example
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import read_json, to_json, write_text
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.models.folders import checked_model_file
from dialeval_plugin.version import __version__

from .mixing import OFFSET, FloatArray, HeadWeights, weighted_sum
from .signals import HEADS

FORMAT_VERSION = 1
RIDGE = 0.1
"""Penalty of a squared weight beside the mean squared error of standardised ratings. Set by hand, not searched for."""
MIN_RATED = 10


class RatedSet(NamedTuple):
    """The rated responses of one set, with what the heads say of them."""

    name: str
    quality: str
    examples: Sequence[Example]
    ratings: FloatArray
    """Mean over the raters, of shape (n,)."""
    log_odds: Mapping[str, FloatArray]
    """By head; NaN in `knowledge` where there are no facts."""


@dataclass(frozen=True, slots=True)
class RatedMixing:
    """Weights of the heads' log odds: fitted on all sets, and on all but one for each of them.

    Attributes:
        model: hash of the model whose heads are weighed.
        qualities: by name of each set, what its people rated.
        without: weights by name of the set that was left out.
        responses: by name of each set, the hashes of what was rated, see `response_hash`.
    """

    model: str
    qualities: Mapping[str, str]
    weights: Mapping[str, float]
    without: Mapping[str, Mapping[str, float]]
    responses: Mapping[str, frozenset[str]] = field(repr=False)

    def weights_without(self, name: str | None) -> Mapping[str, float]:
        """Return the weights that have not seen a set; those of all sets for None."""
        if name is None:
            return self.weights
        if name not in self.without:
            raise InputError(
                f"general: leave_out={name!r} is no set of the mixing. It was fitted on {', '.join(self.qualities)}."
            )
        return self.without[name]

    def seen(self, left_out: str | None) -> dict[str, str]:
        """Return the hashes of the responses that the weights have seen, with the name of their set."""
        return {found: name for name, hashes in self.responses.items() if name != left_out for found in hashes}

    def save(self, path: Path) -> None:
        """Write the file, JSON."""
        responses = {name: sorted(hashes) for name, hashes in self.responses.items()}
        stated = {"format_version": FORMAT_VERSION, "ridge": RIDGE, "version": __version__}
        value = {**stated, **asdict(self), "responses": responses}
        write_text(path, to_json(value, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> RatedMixing:
        """Read what `save` wrote.

        Raises:
            InputError: there is no such file, or it is not JSON.
            ModelLoadError: it is of another format.
        """
        value: Any = read_json(path)
        if not isinstance(value, dict) or value.get("format_version") != FORMAT_VERSION:
            raise ModelLoadError(f"{path}: is no mixing that this release reads. Fit one with `dialeval train mixing`.")
        return cls(**cast("dict[str, Any]", checked_model_file(path, _File)))


class _File(TypedDict):
    """The fields of the file, see `RatedMixing`."""

    model: str
    qualities: dict[str, str]
    weights: HeadWeights
    without: dict[str, HeadWeights]
    responses: dict[str, frozenset[str]]


def response_hash(example: Example) -> str:
    """Identity of a rated response in its context; white space, case and punctuation do not count."""
    texts = (*(turn.text for turn in example.context), example.response.text)
    return text_hash(*("".join(filter(str.isalnum, text.casefold())) for text in texts))


def with_even_knowledge(log_odds: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the heads' log odds with 0, even chances, for the knowledge of a response without facts."""
    return {head: np.nan_to_num(log_odds[head], nan=0.0) for head in HEADS}


def fit_on_ratings(sets: Sequence[RatedSet], model: str) -> RatedMixing:
    """Fit ridge regressions of standardised ratings on the heads' log odds: on all sets, and on all but one.

    Each set counts the same, however many responses it has, and its ratings have mean 0 and deviation 1. A response that
    occurs in a set that is left out is left out of the others too.

    Raises:
        InputError: fewer than two sets, two of one name, a set with fewer than `MIN_RATED` responses or with equal ratings, or
            two sets of the same responses only.
    """
    names = [entry.name for entry in sets]
    if len(sets) < 2 or len(set(names)) < len(names):
        raise InputError(
            f"mixing: given are the sets {', '.join(names) or 'none'}. Give two or more of different names, so that each can "
            "be scored with weights of the others."
        )
    for entry in sets:
        if len(entry.ratings) < MIN_RATED or not _is_usable(entry):
            raise InputError(
                f"mixing: {entry.name} has {len(entry.ratings)} rated responses, or all ratings are equal. "
                f"Give sets of at least {MIN_RATED} with different ratings."
            )
    responses = {entry.name: frozenset(map(response_hash, entry.examples)) for entry in sets}
    without = {}
    for entry in sets:
        others = [_without(other, responses[entry.name]) for other in sets if other.name != entry.name]
        if not any(_is_usable(other) for other in others):
            raise InputError(
                f"mixing: all responses of the other sets are in {entry.name} too, so that none is left to fit weights on. "
                "Give sets of different responses."
            )
        without[entry.name] = _ridge(others)
    return RatedMixing(model, {entry.name: entry.quality for entry in sets}, _ridge(sets), without, responses)


def _without(entry: RatedSet, hashes: frozenset[str]) -> RatedSet:
    kept = [place for place, example in enumerate(entry.examples) if response_hash(example) not in hashes]
    return entry._replace(
        examples=[entry.examples[place] for place in kept],
        ratings=entry.ratings[kept],
        log_odds={head: values[kept] for head, values in entry.log_odds.items()},
    )


def _is_usable(entry: RatedSet) -> bool:
    return len(entry.ratings) > 1 and bool(entry.ratings.std() > 0)


def _ridge(sets: Sequence[RatedSet]) -> dict[str, float]:
    usable = [entry for entry in sets if _is_usable(entry)]
    table = np.concatenate([np.column_stack([with_even_knowledge(entry.log_odds)[head] for head in HEADS]) for entry in usable])
    target = np.concatenate([(entry.ratings - entry.ratings.mean()) / entry.ratings.std() for entry in usable])
    share = np.concatenate([np.full(len(entry.ratings), 1 / (len(usable) * len(entry.ratings))) for entry in usable])
    mean = share @ table
    deviation = np.sqrt(share @ (table - mean) ** 2)
    # A head that says the same of all responses, such as knowledge where no set has facts, gets no weight.
    scale = np.where(deviation > 0, deviation, np.inf)
    standard = (table - mean) / scale
    gram = standard.T @ (share[:, None] * standard) + RIDGE * np.eye(len(HEADS))
    weights = np.linalg.solve(gram, standard.T @ (share * target)) / scale
    return {**dict(zip(HEADS, map(float, weights), strict=True)), OFFSET: float(-mean @ weights)}


def rated_log_odds(weights: Mapping[str, float], log_odds: Mapping[str, FloatArray]) -> FloatArray:
    """Return the predicted standardised rating of each response, of shape (n,)."""
    return weighted_sum(with_even_knowledge(log_odds), weights)
