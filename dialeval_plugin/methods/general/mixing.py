"""Mixture of the qualities' log odds into one score, with weights from training or weights fitted on people's ratings.

A file of fitted weights records the rated responses: no set is scored with weights fitted on its ratings.
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
from dialeval_plugin.core.dialogue import Example, is_blank, mean_rating
from dialeval_plugin.core.errors import InputError, ModelLoadError
from dialeval_plugin.core.files import checked_model_file, read_json, to_json, write_text
from dialeval_plugin.core.signature import text_hash
from dialeval_plugin.corpora.readers import dstc10
from dialeval_plugin.corpora.registry import read_reported
from dialeval_plugin.version import __version__

from .signals import QUALITIES

OFFSET = "offset"
FORMAT_VERSION = 2
"""Version of files of weights fitted on ratings."""
RIDGE = 0.1
"""Weight of the squared norm in the ridge regression, whose loss is the mean squared error of standardised ratings. Set by
hand, not tuned."""
MIN_RATED = 10
LONGEST_STRETCH = 5
"""Largest number of turns in a segment of a dialogue."""


def weighted_sum(columns: Mapping[str, FloatArray], weights: Mapping[str, Any]) -> FloatArray:
    """Return the offset plus the weighted sum of the columns that have a weight, of shape (n,)."""
    total: FloatArray = np.full_like(next(iter(columns.values())), weights[OFFSET])
    for name, weight in weights.items():
        if name != OFFSET:
            total = total + weight * columns[name]
    return total


class HeadWeightsWithoutFacts(TypedDict):
    """Weights for responses without facts."""

    relevance: float
    fit: float
    fluency: float
    specificity: float
    offset: float


class HeadWeights(HeadWeightsWithoutFacts):
    """Weights for responses with facts."""

    knowledge: float


@dataclass(frozen=True, slots=True)
class Mixing:
    """Weights of the qualities' log odds and an offset, for responses with and without facts."""

    plain: HeadWeightsWithoutFacts
    with_facts: HeadWeights | None = None
    """None if no training corpus had facts."""

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
    """Weights of the statistics of turns' fit that distinguish original from corrupted dialogues."""

    mean: float
    lowest: float
    last: float
    offset: float

    def probability(self, fits: Sequence[FloatArray]) -> FloatArray:
        """Return each dialogue's probability of being original, in [0, 1], from the log odds of fit of turns 2, 3, ..."""
        probability: FloatArray = expit(weighted_sum(turn_statistics(fits), asdict(self)))
        return probability


def turn_statistics(fits: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Return mean, lowest and last value of each dialogue's turns, each of shape (n dialogues,).

    A dialogue is divided into segments of about equal length, at most `LONGEST_STRETCH` turns each; lowest and last are taken
    of the segments' means, because the minimum of many turns is lower than that of a few in an equally good dialogue.
    """
    cut = [np.array_split(values, -(-len(values) // LONGEST_STRETCH)) for values in fits]
    return {
        "mean": np.array([values.mean() for values in fits]),
        "lowest": np.array([np.mean([part.min() for part in parts]) for parts in cut]),
        "last": np.array([np.mean([part[-1] for part in parts]) for parts in cut]),
    }


class RatedSet(NamedTuple):
    """The rated responses of one set, with the heads' log odds."""

    name: str
    quality: str
    examples: Sequence[Example]
    ratings: FloatArray
    """Mean over the raters, of shape (n,)."""
    log_odds: Mapping[str, FloatArray]
    """Log odds by head; NaN in `knowledge` without facts."""


@dataclass(frozen=True, slots=True)
class RatedMixing:
    """Weights of the qualities' log odds, fitted on all sets, and once without each set.

    Attributes:
        model: hash of the model whose heads are weighted.
        qualities: rated quality by name of the set.
        without: weights by name of the set that was left out.
        responses: hashes of the rated responses by name of the set, see `response_hash`.
    """

    model: str
    qualities: dict[str, str]
    weights: HeadWeights
    without: dict[str, HeadWeights]
    responses: dict[str, frozenset[str]] = field(repr=False)

    def weights_without(self, name: str | None) -> HeadWeights:
        """Return the weights fitted without a set; those of all sets for None."""
        if name is None:
            return self.weights
        if name not in self.without:
            raise InputError(
                f"general: leave_out={name!r} is no set of the mixing. It was fitted on {', '.join(self.qualities)}."
            )
        return self.without[name]

    def seen(self, left_out: str | None) -> dict[str, str]:
        """Return the name of the set by hash of each response whose rating was used to fit the weights without a set.

        A response of that set is in no fit without it, although another set may have it too.
        """
        unused = self.responses.get(left_out or "", frozenset())
        return {response: name for name, hashes in self.responses.items() for response in hashes - unused}

    def save(self, path: Path) -> None:
        """Write a JSON file."""
        responses = {name: sorted(hashes) for name, hashes in self.responses.items()}
        about = {"format_version": FORMAT_VERSION, "ridge": RIDGE, "version": __version__}
        write_text(path, to_json({**about, **asdict(self), "responses": responses}, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> RatedMixing:
        """Read a file that `save` wrote; raise ModelLoadError for another format."""
        value: Any = read_json(path)
        if not isinstance(value, dict) or value.get("format_version") != FORMAT_VERSION:
            raise ModelLoadError(f"{path}: is no mixing that this release reads. Fit one with `dialeval train mixing`.")
        return checked_model_file(path, cls)


def response_hash(example: Example) -> str:
    """Return an identity of a rated response in its context; white space, case and punctuation do not count."""
    texts = (*(turn.text for turn in example.context), example.response.text)
    return text_hash(*("".join(filter(str.isalnum, text.casefold())) for text in texts))


def with_even_knowledge(log_odds: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the log odds with 0, even chances, for the knowledge of a response without facts."""
    return {name: np.nan_to_num(log_odds[name], nan=0.0) for name in QUALITIES}


def read_rated_set(source: str, log_odds: Callable[[Sequence[Example]], Mapping[str, FloatArray]]) -> RatedSet:
    """Read the rated responses of a file or named set and judge them; `:QUALITY` after the name selects a quality.

    The default is the overall quality.

    Raises:
        InputError: the name is ambiguous, or no response is rated in the quality.
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
    """Fit ridge regressions of standardised ratings on the heads' log odds: on all sets, and once without each set.

    All sets have the same weight, and the ratings of each have mean 0 and deviation 1. A response that also occurs in the set
    that is left out is not used.

    Raises:
        InputError: there are fewer than two sets, two have one name, one has fewer than `MIN_RATED` responses or equal ratings,
            or two have only the same responses.
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
    # The deviation of equal numbers may be more than 0, by rounding.
    return len(entry.ratings) > 1 and bool(np.ptp(entry.ratings) > 0)


def _ridge(sets: Sequence[RatedSet]) -> HeadWeights:
    usable = [entry for entry in sets if _is_usable(entry)]
    table = np.concatenate([np.column_stack(list(with_even_knowledge(entry.log_odds).values())) for entry in usable])
    target = np.concatenate([(entry.ratings - entry.ratings.mean()) / entry.ratings.std() for entry in usable])
    share = np.concatenate([np.full(len(entry.ratings), 1 / (len(usable) * len(entry.ratings))) for entry in usable])
    mean = share @ table
    deviation = np.sqrt(share @ (table - mean) ** 2)
    # A head that is constant over all responses, such as knowledge if no set has facts, gets no weight.
    scale = np.where(np.ptp(table, axis=0) > 0, deviation, np.inf)
    standard = (table - mean) / scale
    gram = standard.T @ (share[:, None] * standard) + RIDGE * np.eye(len(QUALITIES))
    weights = np.linalg.solve(gram, standard.T @ (share * target)) / scale
    fitted = {**dict(zip(QUALITIES, map(float, weights), strict=True)), OFFSET: float(-mean @ weights)}
    return cast("HeadWeights", fitted)


def rated_log_odds(weights: Mapping[str, Any], log_odds: Mapping[str, FloatArray]) -> FloatArray:
    """Return the predicted standardised rating of each response, of shape (n,)."""
    return weighted_sum(with_even_knowledge(log_odds), weights)
