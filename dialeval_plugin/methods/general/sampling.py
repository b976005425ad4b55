"""Which responses each step of training reads, and with which wrong texts: by seed, epoch and place alone."""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tqdm.auto import tqdm

from .conversations import Pair
from .recipes import GeneralRecipe
from .signals import NEGATIVES, CorpusSignals


class SampledResponse(NamedTuple):
    """A response with wrong texts in its place."""

    pair: Pair
    negatives: tuple[tuple[str, str], ...]
    """Kind and text of each; none is of a kind that the batch gives (random, other_facts)."""


SAYING = ("fluency", "specificity")
"""Heads that read a response alone; a row has a wrong text for one of them."""
_DRAWN_FIT = tuple(kind for kind in NEGATIVES["fit"] if kind != "random")


def quotas(sizes: Mapping[str, int], *, max_pairs: int, exponent: float) -> dict[str, int]:
    """Return how many responses an epoch takes of each corpus: shares in proportion to size ** exponent, never more than all.

    What a small corpus cannot give, the others do.

    Example:
        >>> quotas({"large": 10_000, "small": 100}, max_pairs=1100, exponent=0.5)
        {'large': 1000, 'small': 100}
    """
    left, room = dict(sizes), min(max_pairs, sum(sizes.values()))
    found: dict[str, int] = {}
    while left:
        total = sum(size**exponent for size in left.values())
        share = {name: room * size**exponent / total for name, size in left.items()}
        full = [name for name, size in left.items() if share[name] >= size]
        if not full:
            found |= {name: int(value) for name, value in share.items()}
            break
        for name in full:
            found[name] = left.pop(name)
            room -= found[name]
    return {name: found[name] for name in sizes}


class SamplingPlan:
    """The steps of a training run over the distinct pairs of some corpora."""

    def __init__(
        self, corpora: Mapping[str, Sequence[Pair]], recipe: GeneralRecipe, seed: int, *, progress: bool = False
    ) -> None:
        self._corpora = corpora
        self._recipe = recipe
        self._seed = seed
        counted = tqdm(corpora.items(), desc="words of the corpora", disable=None if progress else True, leave=False)
        self.signals = {name: CorpusSignals(pairs) for name, pairs in counted}
        sizes = {name: len(pairs) for name, pairs in corpora.items()}
        self.quotas = quotas(sizes, max_pairs=recipe.max_pairs, exponent=recipe.corpus_exponent)
        self._order = {name: self._shuffled(name, len(pairs)) for name, pairs in corpora.items()}
        self._epoch, self._batches = 0, self._batches_of(0)
        self.steps_per_epoch = len(self._batches)

    @property
    def n_steps(self) -> int:
        """Of the whole run."""
        return self.steps_per_epoch * self._recipe.n_epochs

    def rows(self, step: int) -> list[SampledResponse]:
        """Return the rows of a step, counted from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._batches_of(epoch)
        corpus, numbers = self._batches[place]
        return [self._row(corpus, number, epoch) for number in numbers]

    def _shuffled(self, name: str, size: int) -> array[int]:
        order = array("I", range(size))
        random.Random(f"{self._seed} {name}").shuffle(order)
        return order

    def _batches_of(self, epoch: int) -> list[tuple[str, list[int]]]:
        """An epoch's batches in their order; each takes up a corpus where the epoch before left it."""
        size, batches = self._recipe.batch_size, []
        for name, quota in self.quotas.items():
            order = self._order[name]
            chosen = [order[(epoch * quota + place) % len(order)] for place in range(quota)]
            random.Random(f"{self._seed} {epoch} {name}").shuffle(chosen)
            # Batches of nearly the same size: none is too small to have negatives.
            n_batches = max(1, round(len(chosen) / size))
            batches += [(name, chosen[start::n_batches]) for start in range(n_batches) if len(chosen[start::n_batches]) > 1]
        random.Random(f"{self._seed} {epoch}").shuffle(batches)
        return batches

    def _row(self, corpus: str, number: int, epoch: int) -> SampledResponse:
        pair, signals = self._corpora[corpus][number], self.signals[corpus]
        generator = random.Random(f"{self._seed} {epoch} {corpus} {number}")
        drawn = _first(signals, pair, _DRAWN_FIT, self._recipe.n_fit_negatives, generator)
        drawn += _first(signals, pair, NEGATIVES[generator.choice(SAYING)], 1, generator)
        return SampledResponse(pair, tuple(drawn))


def _first(
    signals: CorpusSignals, pair: Pair, kinds: Sequence[str], number: int, generator: random.Random
) -> list[tuple[str, str]]:
    """The first kinds, in an order drawn for this pair, that it has a wrong text of."""
    found: list[tuple[str, str]] = []
    for kind in generator.sample(list(kinds), len(kinds)):
        if len(found) == number:
            break
        if (text := signals.draw(kind, pair, generator)) is not None:
            found.append((kind, text))
    return found
