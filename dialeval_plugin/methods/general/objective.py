"""A training step: the responses that it reads, wrong texts in their place, and its loss.

The texts of a step depend only on seed, epoch and place. The loss has a ranking term, a classification term per head, and a
term that separates robust and non-robust parts.
"""

from __future__ import annotations

import itertools
import random
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dialeval_plugin.core.errors import InputError
from dialeval_plugin.models.encoders import embed
from dialeval_plugin.terminal import Progress

from .conversations import Pair
from .model import GeneralModel, GeneralRecipe
from .signals import HEADS, NEGATIVES, STYLE_HEADS, CorpusSignals, words

MARGIN = 0.5
"""Cosine distance between robust and non-robust part beyond which the loss is 0, as in SLIDE's equation 2."""

_DRAWN_FIT = tuple(kind for kind in NEGATIVES["fit"] if kind not in ("random", "insulting"))
_DRAWN_STYLE = {NEGATIVES["fluency"]: 3, NEGATIVES["specificity"]: 2, ("insulting",): 1}
"""Kinds of each response's second wrong text, which has another content or a bad style, with frequencies in sixths."""
_TABLE_RESPONSES, _TABLE_STEPS = 100_000, 20
"""Number of responses for the counts of token rarity, and of steps for the scale of the features."""
_WINDOW = 1000
"""Number of responses tokenised at once: the tokenizer holds a kilobyte for each."""
KEPT_TOKENS = 8192
"""Number of a step's tokens for which the encoder keeps activations, nearly 200 kB each for the packaged one in float32. A step
has 6,000 to 13,000 tokens."""


class SampledResponse(NamedTuple):
    """A response with wrong texts in its place."""

    pair: Pair
    negatives: tuple[tuple[str, str], ...]
    """Kind and text of each; kinds that the batch provides (random, other_facts) are left out."""


def quotas(sizes: Mapping[str, int], *, max_pairs: int, exponent: float) -> dict[str, int]:
    """Return the number of responses per epoch by corpus, proportional to size ** exponent and at most the corpus' size.

    Larger corpora make up for what small ones lack.

    Example:
        >>> quotas({"large": 10_000, "small": 100}, max_pairs=1100, exponent=0.5)
        {'large': 1000, 'small': 100}
    """
    left, room = dict(sizes), min(max_pairs, sum(sizes.values()))
    numbers: dict[str, int] = {}
    while left:
        total = sum(size**exponent for size in left.values())
        share = {name: room * size**exponent / total for name, size in left.items()}
        full = [name for name, size in left.items() if share[name] >= size]
        if not full:
            numbers |= {name: int(value) for name, value in share.items()}
            break
        for name in full:
            numbers[name] = left.pop(name)
            room -= numbers[name]
    return {name: numbers[name] for name in sizes}


class SamplingPlan:
    """Steps of a training run over the distinct pairs of corpora."""

    def __init__(
        self, corpora: Mapping[str, Sequence[Pair]], recipe: GeneralRecipe, seed: int, *, progress: bool = False
    ) -> None:
        self._corpora = corpora
        self._recipe = recipe
        self._seed = seed
        counted = Progress(corpora.items(), desc="words of the corpora", disable=not progress)
        self.signals = {name: CorpusSignals(pairs) for name, pairs in counted}
        sizes = {name: len(pairs) for name, pairs in corpora.items()}
        self.quotas = quotas(sizes, max_pairs=recipe.max_pairs, exponent=recipe.corpus_exponent)
        self._order = {name: array("I", range(size)) for name, size in sizes.items()}
        for name, order in self._order.items():
            random.Random(f"{seed} {name}").shuffle(order)
        self._epoch, self._batches = 0, self._batches_of(0)
        self.steps_per_epoch = len(self._batches)
        if not self._batches:
            raise InputError(
                "training data: no corpus has two responses in an epoch, each wrong in place of the other. "
                "Give more dialogues, or a larger max_pairs."
            )

    @property
    def n_steps(self) -> int:
        """Number of steps in the whole run."""
        return self.steps_per_epoch * self._recipe.n_epochs

    def rows(self, step: int) -> list[SampledResponse]:
        """Return the rows of a step, counted from 0."""
        epoch, place = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._batches_of(epoch)
        corpus, numbers = self._batches[place]
        return [self._row(corpus, number, epoch) for number in numbers]

    def _batches_of(self, epoch: int) -> list[tuple[str, list[int]]]:
        """An epoch's batches in order; each corpus continues where the epoch before ended."""
        size, batches = self._recipe.batch_size, []
        for name, quota in self.quotas.items():
            order = self._order[name]
            chosen = [order[(epoch * quota + place) % len(order)] for place in range(quota)]
            random.Random(f"{self._seed} {epoch} {name}").shuffle(chosen)
            # Batches have nearly the same size, so that none is too small to have negatives.
            n_batches = max(1, round(len(chosen) / size))
            batches += [(name, chosen[start::n_batches]) for start in range(n_batches) if len(chosen[start::n_batches]) > 1]
        random.Random(f"{self._seed} {epoch}").shuffle(batches)
        return batches

    def _row(self, corpus: str, number: int, epoch: int) -> SampledResponse:
        pair, signals = self._corpora[corpus][number], self.signals[corpus]
        generator = random.Random(f"{self._seed} {epoch} {corpus} {number}")
        drawn = _first(signals, pair, _DRAWN_FIT, self._recipe.n_fit_negatives, generator)
        (kinds,) = generator.choices(list(_DRAWN_STYLE), list(_DRAWN_STYLE.values()))
        drawn += _first(signals, pair, kinds, 1, generator)
        return SampledResponse(pair, tuple(drawn))


def _first(
    signals: CorpusSignals, pair: Pair, kinds: Sequence[str], number: int, generator: random.Random
) -> list[tuple[str, str]]:
    """Kinds and texts of the first `number` wrong texts that exist for a pair, in a random order of kinds."""
    order = generator.sample(kinds, len(kinds))
    return list(itertools.islice(signals.drawn(order, pair, generator), number))


class Labelled(NamedTuple):
    """Numbers of rows, or of fact sets, and of responses, with the label of each pair."""

    owners: list[int]
    responses: list[int]
    labels: list[float]

    def add(self, owner: int, response: int, label: float) -> None:
        """Add one pair."""
        self.owners.append(owner)
        self.responses.append(response)
        self.labels.append(label)


class Step(NamedTuple):
    """Token ids of a step's distinct texts, and the comparisons between them."""

    contexts: list[list[int]]
    responses: list[list[int]]
    facts: list[list[int]]
    own: list[int]
    """Response of each row."""
    ranked: list[int]
    """Responses that are ranked for each context, its own one among them."""
    masked: Tensor
    """(rows, ranked): candidates that are, or may be, another right response to the row."""
    labelled: dict[str, Labelled]
    """Labelled pairs by head; owners are rows, or fact sets for knowledge."""

    def features(self, model: GeneralModel, head: str) -> Tensor:
        """Features of a head's word classifier for its labelled pairs."""
        owners, places, _ = self.labelled[head]
        texts = self.facts if head == "knowledge" else self.contexts
        return model.features(head, texts, owners, [self.responses[place] for place in places])


def make_step(model: GeneralModel, rows: Sequence[SampledResponse]) -> Step:
    """Encode the distinct texts of a step's rows."""
    responses: dict[str, int] = {}
    facts: dict[tuple[str, ...], int] = {}
    for row in rows:
        for text in (row.pair.response, *(text for _, text in row.negatives)):
            responses.setdefault(text, len(responses))
        if row.pair.facts:
            facts.setdefault(row.pair.facts, len(facts))
    own = [responses[row.pair.response] for row in rows]
    said = [words(row.pair.response) for row in rows]
    labelled = {head: Labelled([], [], []) for head in HEADS}
    ranked = dict.fromkeys(own)
    for number, row in enumerate(rows):
        wrong = {
            head: [responses[text] for kind, text in row.negatives if kind in NEGATIVES[head]] for head in ("fit", *STYLE_HEADS)
        }
        ranked |= dict.fromkeys(wrong["fit"])
        for head, wrong_responses in wrong.items():
            # The right response is added once to each head that has a wrong one in this row.
            if wrong_responses or head == "fit":
                labelled[head].add(number, own[number], 1.0)
            for response in wrong_responses:
                labelled[head].add(number, response, 0.0)
        others = list(_others(rows, number))
        # Two dialogues may have the same response, such as "Yes.".
        if (other := next((other for other in others if said[other] != said[number]), None)) is not None:
            labelled["fit"].add(number, own[other], 0.0)
        known = (rows[place].pair.facts for place in others)
        strange = next((other for other in known if other and other != row.pair.facts), None)
        if row.pair.facts and strange is not None:
            labelled["knowledge"].add(facts[row.pair.facts], own[number], 1.0)
            labelled["knowledge"].add(facts[strange], own[number], 0.0)
    return Step(
        [text.ids for text in model.texts.contexts([row.pair.context for row in rows])],
        model.texts.responses(list(responses)),
        [text.ids for text in model.texts.contexts(list(facts))],
        own,
        list(ranked),
        _masked(rows, own, list(ranked)),
        labelled,
    )


def _others(rows: Sequence[SampledResponse], number: int) -> Iterator[int]:
    """Indices of the rows of other dialogues, beginning after row `number` and wrapping round."""
    key = rows[number].pair.conversation.key
    following = (place % len(rows) for place in range(number + 1, number + len(rows)))
    return (place for place in following if rows[place].pair.conversation.key != key)


def _masked(rows: Sequence[SampledResponse], own: Sequence[int], ranked: Sequence[int]) -> Tensor:
    """Mask of the right responses to other rows of the same dialogue, which may be right here too."""
    of_dialogue: dict[str, set[int]] = {}
    for row, response in zip(rows, own, strict=True):
        of_dialogue.setdefault(row.pair.conversation.key, set()).add(response)
    return torch.tensor(
        [
            [candidate != response and candidate in of_dialogue[row.pair.conversation.key] for candidate in ranked]
            for row, response in zip(rows, own, strict=True)
        ]
    )


def loss_terms(model: GeneralModel, step: Step, *, bfloat16: bool) -> dict[str, Tensor]:
    """Return the terms of the loss by name; the heads stay in float32.

    - `rank`: cross-entropy of each context's own response among all right and wrong ones of the batch, by the scaled cosine of
      context and robust part (InfoNCE, van den Oord et al. 2018; the scale is learnt).
    - `fit`, `fluency`, `specificity`, `knowledge`: cross-entropy of right and wrong responses, each with half of the weight.
      Fit and knowledge compare the robust part with the context or the facts, the other two read the non-robust part.
    - `words`: the same for the word classifiers, summed over the heads; its gradient reaches nothing else.
    - `separate`: squared hinge of the cosine distance between the two parts of a response (SLIDE's equation 2).
    """
    head = model.head
    with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=bfloat16):
        texts = [*step.contexts, *step.responses, *step.facts]
        vectors = embed(model.encoder, texts, kept_tokens=KEPT_TOKENS)
    vectors = vectors.float()
    contexts, responses, facts = torch.split(vectors, [len(step.contexts), len(step.responses), len(step.facts)])
    contexts, robust, non_robust = head.context(contexts), head.robust(responses), head.non_robust(responses)
    terms = {"rank": _rank(head.scale, contexts, robust[step.ranked], step)}
    words = []
    for name, labelled in step.labelled.items():
        if not labelled.labels:
            continue
        labels = torch.tensor(labelled.labels, device=vectors.device)
        if name in STYLE_HEADS:
            logits = head.vector_logits(name, non_robust[labelled.responses])
        else:
            against = contexts if name == "fit" else head.facts(facts)
            logits = head.vector_logits(name, robust[labelled.responses], against[labelled.owners])
        terms[name] = _balanced(logits, labels)
        words.append(_balanced(head.word_logits(name, step.features(model, name)), labels))
    terms["words"] = torch.stack(words).sum()
    distance = 1 - functional.cosine_similarity(robust[step.own], non_robust[step.own], dim=-1)
    terms["separate"] = (functional.relu(MARGIN - distance) ** 2).mean()
    return terms


def _rank(scale: Tensor, contexts: Tensor, candidates: Tensor, step: Step) -> Tensor:
    similarities = functional.normalize(contexts, dim=-1) @ functional.normalize(candidates, dim=-1).T
    logits = (scale * similarities).masked_fill(step.masked.to(similarities.device), -torch.inf)
    place = {response: number for number, response in enumerate(step.ranked)}
    return functional.cross_entropy(logits, torch.tensor([place[response] for response in step.own], device=logits.device))


def _balanced(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with half of the weight on right responses and half on wrong ones."""
    losses = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    right = labels == 1
    return torch.stack([losses[side].mean() for side in (right, ~right) if side.any()]).mean()


def learn_tables(model: GeneralModel, plan: SamplingPlan, corpora: Mapping[str, Sequence[Pair]], *, progress: bool) -> None:
    """Count token rarity in the responses, and fit mean and deviation of the features on the first steps."""
    pairs = [pair for corpus in corpora.values() for pair in corpus]
    pairs = pairs[:: max(1, len(pairs) // _TABLE_RESPONSES)]
    starts = Progress(range(0, len(pairs), _WINDOW), desc="token rarity", disable=not progress)
    special, head = model.texts.special, model.head

    def token_ids() -> Iterator[list[int]]:
        for start in starts:
            for row in model.texts.responses([pair.response for pair in pairs[start : start + _WINDOW]]):
                yield [token for token in row if token not in special]

    head.context_words.learn_rarity(token_ids())
    head.fact_words.rarity.copy_(head.context_words.rarity)
    features = defaultdict(list)
    for number in range(min(_TABLE_STEPS, plan.n_steps)):
        step = make_step(model, plan.rows(number))
        for name, labelled in step.labelled.items():
            if labelled.labels:
                features[head.words_of(name)].append(step.features(model, name))
    for table, of_table in features.items():
        table.learn_scale(torch.cat(of_table))
