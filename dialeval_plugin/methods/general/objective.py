"""A step of training: the responses that it reads with wrong texts in their place, and its loss.

What a step reads depends on seed, epoch and place alone. The loss has a ranking, a classification for each head, and
the parting of robust and non-robust.
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

from dialeval_plugin.models.encoders import embed
from dialeval_plugin.terminal.progress import Progress

from .conversations import Pair
from .model import GeneralModel, GeneralRecipe
from .signals import HEADS, NEGATIVES, STYLE_HEADS, CorpusSignals

MARGIN = 0.5
"""Cosine distance from which on robust and non-robust part cost nothing, as in SLIDE's equation 2."""

_DRAWN_FIT = tuple(kind for kind in NEGATIVES["fit"] if kind not in ("random", "insulting"))
_DRAWN_STYLE = {NEGATIVES["fluency"]: 3, NEGATIVES["specificity"]: 2, ("insulting",): 1}
"""What one wrong text of a response is drawn of, which says something else or says it badly, with how often in six."""
_TABLE_RESPONSES, _TABLE_STEPS = 100_000, 20
"""Responses that the tables of token rarity are counted on, and steps that the scale of the features is learnt on."""
_WINDOW = 1000
"""Responses that are tokenised at once: the tokenizer holds a kilobyte for each until all are read."""
KEPT_TOKENS = 8192
"""Tokens of a step for which the encoder keeps what the gradients need, nearly 200 kB each for the packaged one in float32. A
step has 6,000 to 13,000."""


class SampledResponse(NamedTuple):
    """A response with wrong texts in its place."""

    pair: Pair
    negatives: tuple[tuple[str, str], ...]
    """Kind and text of each; none is of a kind that the batch gives (random, other_facts)."""


def quotas(sizes: Mapping[str, int], *, max_pairs: int, exponent: float) -> dict[str, int]:
    """Return how many responses an epoch takes of each corpus: shares in proportion to size ** exponent, never more than all.

    What a small corpus cannot give, the others do.

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
    """The steps of a training run over the distinct pairs of some corpora."""

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
        (kinds,) = generator.choices(list(_DRAWN_STYLE), list(_DRAWN_STYLE.values()))
        drawn += _first(signals, pair, kinds, 1, generator)
        return SampledResponse(pair, tuple(drawn))


def _first(
    signals: CorpusSignals, pair: Pair, kinds: Sequence[str], number: int, generator: random.Random
) -> list[tuple[str, str]]:
    """The first kinds, in an order drawn for this pair, that it has a wrong text of."""
    order = generator.sample(kinds, len(kinds))
    return list(itertools.islice(signals.drawn(order, pair, generator), number))


class Labelled(NamedTuple):
    """Pairs of a row, or a fact set, and a response, by their numbers, with their labels."""

    owners: list[int]
    responses: list[int]
    labels: list[float]

    def add(self, owner: int, response: int, label: float) -> None:
        """Add one pair."""
        self.owners.append(owner)
        self.responses.append(response)
        self.labels.append(label)


class Step(NamedTuple):
    """Token ids of a step's distinct texts, and who is compared with whom."""

    contexts: list[list[int]]
    responses: list[list[int]]
    facts: list[list[int]]
    own: list[int]
    """For each row its response."""
    ranked: list[int]
    """Responses among which each context has to find its own."""
    masked: Tensor
    """(rows, ranked): candidates that are another right answer to the row, or may be."""
    labelled: dict[str, Labelled]
    """By head; owners are rows, for knowledge fact sets."""

    def features(self, model: GeneralModel, head: str) -> Tensor:
        """What the word classifier of a head reads of the pairs that are labelled for it."""
        owners, places, _ = self.labelled[head]
        texts = self.facts if head == "knowledge" else self.contexts
        return model.features(head, texts, owners, [self.responses[place] for place in places])


def make_step(model: GeneralModel, rows: Sequence[SampledResponse]) -> Step:
    """Encode the texts of a step's rows; each distinct text stands in it once."""
    responses: dict[str, int] = {}
    facts: dict[tuple[str, ...], int] = {}
    for row in rows:
        for text in (row.pair.response, *(text for _, text in row.negatives)):
            responses.setdefault(text, len(responses))
        if row.pair.facts:
            facts.setdefault(row.pair.facts, len(facts))
    own = [responses[row.pair.response] for row in rows]
    labelled = {head: Labelled([], [], []) for head in HEADS}
    ranked = dict.fromkeys(own)
    for number, row in enumerate(rows):
        wrong = {
            head: [responses[text] for kind, text in row.negatives if kind in NEGATIVES[head]] for head in ("fit", *STYLE_HEADS)
        }
        ranked |= dict.fromkeys(wrong["fit"])
        for head, wrong_responses in wrong.items():
            # The right response once to each head that has a wrong one in this row.
            if wrong_responses or head == "fit":
                labelled[head].add(number, own[number], 1.0)
            for response in wrong_responses:
                labelled[head].add(number, response, 0.0)
        others = list(_others(rows, number))
        if others:
            labelled["fit"].add(number, own[others[0]], 0.0)
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
    """The rows after one, round the end, that belong to other dialogues."""
    key = rows[number].pair.conversation.key
    following = (place % len(rows) for place in range(number + 1, number + len(rows)))
    return (place for place in following if rows[place].pair.conversation.key != key)


def _masked(rows: Sequence[SampledResponse], own: Sequence[int], ranked: Sequence[int]) -> Tensor:
    """Right responses to other rows of the same dialogue: they may fit here too."""
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

    - `rank`: cross-entropy of finding each context's own response among all right and wrong ones of the batch, by the scaled
      cosine of context and robust part (InfoNCE, van den Oord et al. 2018; the scale is learnt).
    - `fit`, `fluency`, `specificity`, `knowledge`: cross-entropy of right and wrong responses, half of the weight on each.
      Fit and knowledge compare the robust part with the context or the facts, the other two read the non-robust part.
    - `words`: the same for the classifiers of counted words, summed over the heads; it trains nothing else.
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
    """Cross-entropy with half of the weight on the right ones and half on the wrong ones."""
    losses = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    right = labels == 1
    return torch.stack([losses[side].mean() for side in (right, ~right) if side.any()]).mean()


def learn_tables(model: GeneralModel, plan: SamplingPlan, corpora: Mapping[str, Sequence[Pair]], *, progress: bool) -> None:
    """How rare tokens are in the responses, and mean and deviation of the features, from the first steps."""
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
