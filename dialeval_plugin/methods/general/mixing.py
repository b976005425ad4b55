"""How the qualities' log odds become one score: by weights that training fixed, or weights fitted on people's ratings.

A file of the latter records whose ratings they are: no set is scored with weights that have seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import expit
from typing_extensions import TypedDict

from dialeval_plugin.core.arrays import FloatArray
from dialeval_plugin.core.dialogue import Example, is_blank
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, read_json, to_json, write_text
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.registry import read_reported
from dialeval_plugin.models.logistic import logistic_regression
from dialeval_plugin.version import __version__

from .signals import QUALITIES

OFFSET = "offset"
FORMAT_VERSION = 2
"""Of the files of weights that were fitted on ratings."""
RIDGE = 0.1
"""Penalty of a squared weight beside the mean squared error of standardised ratings. Set by hand, not searched for."""
MIN_RATED = 10
LONGEST_STRETCH = 5
"""Of the turns that are looked at together in a whole dialogue."""


def weighted_sum(columns: Mapping[str, FloatArray], weights: Mapping[str, Any]) -> FloatArray:
    """Return the offset plus the weighted sum of the columns that have a weight, of shape (n,)."""
    total: FloatArray = np.full_like(next(iter(columns.values())), weights[OFFSET])
    for name, weight in weights.items():
        if name != OFFSET:
            total = total + weight * columns[name]
    return total


def equal_mixture(kinds: np.ndarray, real: str) -> FloatArray:
    """Return a weight a row: all wrong kinds together count as much as the real rows, and each kind as much as the others."""
    is_real = kinds == real
    weights: FloatArray = np.ones(len(kinds))
    wrong, counts = np.unique(kinds[~is_real], return_counts=True)
    for kind, count in zip(wrong, counts, strict=True):
        weights[kinds == kind] = is_real.sum() / (len(wrong) * count)
    return weights


def fit_weights(
    columns: Mapping[str, FloatArray], kinds: np.ndarray, real: str, start: Mapping[str, float]
) -> dict[str, float]:
    """Fit a logistic regression of real rows against an equal mixture of the wrong ones; its weights by column, and offset."""
    table = np.column_stack([*(columns[name] for name in start), np.ones(len(kinds))])
    begin, labels = np.array([*start.values(), 0.0]), (kinds == real).astype(np.float64)
    weights = logistic_regression(table, labels, start=begin, row_weights=equal_mixture(kinds, real))
    return dict(zip((*start, OFFSET), map(float, weights), strict=True))


class HeadWeightsWithoutFacts(TypedDict):
    """Weights of responses without facts."""

    relevance: float
    fit: float
    fluency: float
    specificity: float
    offset: float


class HeadWeights(HeadWeightsWithoutFacts):
    """Weights of responses with facts."""

    knowledge: float


@dataclass(frozen=True, slots=True)
class Mixing:
    """Weights of the qualities' log odds and an offset, for responses without facts and with."""

    plain: HeadWeightsWithoutFacts
    with_facts: HeadWeights | None = None
    """None where no training corpus had facts."""

    def log_odds(self, heads: Mapping[str, FloatArray]) -> FloatArray:
        """Return the main score's log odds, of shape (n,); rows whose `knowledge` is NaN have no facts."""
        mixed = weighted_sum(heads, self.plain)
        if self.with_facts is None:
            return mixed
        has_facts = ~np.isnan(heads["knowledge"])
        if has_facts.any():
            mixed[has_facts] = weighted_sum({name: values[has_facts] for name, values in heads.items()}, self.with_facts)
        return mixed


@dataclass(frozen=True, slots=True)
class CoherenceWeights:
    """Weights of what the turns' fit says of a dialogue, which is original or has been spoiled."""

    mean: float
    lowest: float
    last: float
    offset: float

    def probability(self, fits: Sequence[FloatArray]) -> FloatArray:
        """How likely each dialogue is in its original order, in [0, 1], from the log odds of fit of its turns but the first."""
        probability: FloatArray = expit(weighted_sum(turn_statistics(fits), asdict(self)))
        return probability


def turn_statistics(fits: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Return mean, lowest and last value of each dialogue's turns, each of shape (n dialogues,).

    A dialogue is cut into stretches of about equal length, `LONGEST_STRETCH` turns at most, and lowest and last are means over
    these: the lowest of many turns is lower than that of a few, however good a dialogue is.
    """
    cut = [np.array_split(values, -(-len(values) // LONGEST_STRETCH)) for values in fits]
    return {
        "mean": np.array([values.mean() for values in fits]),
        "lowest": np.array([np.mean([part.min() for part in parts]) for parts in cut]),
        "last": np.array([np.mean([part[-1] for part in parts]) for parts in cut]),
    }


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
    """Weights of the qualities' log odds: fitted on all sets, and on all but one for each of them.

    Attributes:
        model: hash of the model whose heads are weighed.
        qualities: by name of each set, what its people rated.
        without: weights by name of the set that was left out.
        responses: by name of each set, the hashes of what was rated, see `response_hash`.
    """

    model: str
    qualities: dict[str, str]
    weights: HeadWeights
    without: dict[str, HeadWeights]
    responses: dict[str, frozenset[str]] = field(repr=False)

    def weights_without(self, name: str | None) -> HeadWeights:
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
        return {response: name for name, hashes in self.responses.items() if name != left_out for response in hashes}

    def save(self, path: Path) -> None:
        """Write the file, JSON."""
        responses = {name: sorted(hashes) for name, hashes in self.responses.items()}
        about = {"format_version": FORMAT_VERSION, "ridge": RIDGE, "version": __version__}
        write_text(path, to_json({**about, **asdict(self), "responses": responses}, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> RatedMixing:
        """Read what `save` wrote; a file of another format is a ModelLoadError."""
        value: Any = read_json(path)
        if not isinstance(value, dict) or value.get("format_version") != FORMAT_VERSION:
            raise ModelLoadError(f"{path}: is no mixing that this release reads. Fit one with `dialeval train mixing`.")
        return checked_model_file(path, cls)


def response_hash(example: Example) -> str:
    """Identity of a rated response in its context; white space, case and punctuation do not count."""
    texts = (*(turn.text for turn in example.context), example.response.text)
    return text_hash(*("".join(filter(str.isalnum, text.casefold())) for text in texts))


def with_even_knowledge(log_odds: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the log odds with 0, even chances, for the knowledge of a response without facts."""
    return {name: np.nan_to_num(log_odds[name], nan=0.0) for name in QUALITIES}


def read_rated_set(source: str, log_odds: Callable[[Sequence[Example]], Mapping[str, FloatArray]]) -> RatedSet:
    """Read the rated responses of a file or a set's name, `:QUALITY` after it or else its overall quality, and judge them.

    Raises:
        InputError: the name stands for several sets, or nothing is rated in the quality.
    """
    place, _, quality = source.partition(":")
    sets = read_reported([place]).sets
    if len(sets) > 1:
        raise InputError(f"--data {place}: stands for {len(sets)} sets. Name each, so that it can be left out.")
    ((name, items),) = sets.items()
    quality = quality or dstc10.overall_quality(items, dstc10.SETS.get(name))
    rated = [
        (item, rating)
        for item in items
        if isinstance(item, Example) and quality in item.ratings and not is_blank(item.response.text)
        if (rating := mean_rating(item, quality)) is not None
    ]
    if not rated:
        raise InputError(f"--data {place}: has no response that is rated in {quality!r}. Name another quality or set.")
    examples = [example for example, _ in rated]
    return RatedSet(name, quality, examples, np.array([rating for _, rating in rated]), log_odds(examples))


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
    places = [place for place, example in enumerate(entry.examples) if response_hash(example) not in hashes]
    return entry._replace(
        examples=[entry.examples[place] for place in places],
        ratings=entry.ratings[places],
        log_odds={head: values[places] for head, values in entry.log_odds.items()},
    )


def _is_usable(entry: RatedSet) -> bool:
    return len(entry.ratings) > 1 and bool(entry.ratings.std() > 0)


def _ridge(sets: Sequence[RatedSet]) -> HeadWeights:
    usable = [entry for entry in sets if _is_usable(entry)]
    table = np.concatenate([np.column_stack(list(with_even_knowledge(entry.log_odds).values())) for entry in usable])
    target = np.concatenate([(entry.ratings - entry.ratings.mean()) / entry.ratings.std() for entry in usable])
    share = np.concatenate([np.full(len(entry.ratings), 1 / (len(usable) * len(entry.ratings))) for entry in usable])
    mean = share @ table
    deviation = np.sqrt(share @ (table - mean) ** 2)
    # A head that says the same of all responses, such as knowledge where no set has facts, gets no weight.
    scale = np.where(deviation > 0, deviation, np.inf)
    standard = (table - mean) / scale
    gram = standard.T @ (share[:, None] * standard) + RIDGE * np.eye(len(QUALITIES))
    weights = np.linalg.solve(gram, standard.T @ (share * target)) / scale
    fitted = {**dict(zip(QUALITIES, map(float, weights), strict=True)), OFFSET: float(-mean @ weights)}
    return cast("HeadWeights", fitted)


def rated_log_odds(weights: Mapping[str, Any], log_odds: Mapping[str, FloatArray]) -> FloatArray:
    """Return the predicted standardised rating of each response, of shape (n,)."""
    return weighted_sum(with_even_knowledge(log_odds), weights)
