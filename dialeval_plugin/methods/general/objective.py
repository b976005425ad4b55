"""The loss of a step: ranking, a classification for each head, and the parting of robust and non-robust."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from tqdm.auto import tqdm

from dialeval_plugin.models.encoders import embed

from .conversations import Pair
from .model import GeneralModel
from .sampling import SAYING, SampledResponse, SamplingPlan
from .signals import HEADS, NEGATIVES

MARGIN = 0.5
"""Cosine distance from which on robust and non-robust part cost nothing, as in SLIDE's equation 2."""

_TABLE_RESPONSES, _TABLE_STEPS = 100_000, 20
"""Responses that the tables of token rarity are counted on, and steps that the scale of the features is learnt on."""
_WINDOW = 1000
"""Responses that are tokenised at once: the tokenizer holds a kilobyte for each until all are read."""


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
    n_tokens: int


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
        _label(labelled, number, row, own[number], responses)
        ranked |= {responses[text]: None for kind, text in row.negatives if kind in NEGATIVES["fit"]}
        if (other := _other_row(rows, number)) is not None:
            labelled["fit"].add(number, own[other], 0.0)
        if row.pair.facts and (strange := _other_facts(rows, number)) is not None:
            labelled["knowledge"].add(facts[row.pair.facts], own[number], 1.0)
            labelled["knowledge"].add(facts[strange], own[number], 0.0)
    contexts = [found.ids for found in model.texts.contexts([row.pair.context for row in rows])]
    response_ids = model.texts.responses(list(responses))
    fact_ids = [found.ids for found in model.texts.contexts(list(facts))]
    return Step(
        contexts,
        response_ids,
        fact_ids,
        own,
        list(ranked),
        _masked(rows, own, list(ranked)),
        labelled,
        sum(map(len, (*contexts, *response_ids, *fact_ids))),
    )


def _label(labelled: dict[str, Labelled], number: int, row: SampledResponse, own: int, responses: dict[str, int]) -> None:
    """Add the right response once to each head that has a wrong one in this row, and the wrong ones."""
    for head in ("fit", *SAYING):
        wrong = [responses[text] for kind, text in row.negatives if kind in NEGATIVES[head]]
        if wrong or head == "fit":
            labelled[head].add(number, own, 1.0)
        for response in wrong:
            labelled[head].add(number, response, 0.0)


def _other_row(rows: Sequence[SampledResponse], number: int) -> int | None:
    """The next row, round the end, that belongs to another dialogue."""
    key = rows[number].pair.conversation.key
    following = (place % len(rows) for place in range(number + 1, number + len(rows)))
    return next((place for place in following if rows[place].pair.conversation.key != key), None)


def _other_facts(rows: Sequence[SampledResponse], number: int) -> tuple[str, ...] | None:
    pair = rows[number].pair
    following = (rows[place % len(rows)].pair for place in range(number + 1, number + len(rows)))
    strange = (other for other in following if other.conversation.key != pair.conversation.key)
    return next((other.facts for other in strange if other.facts and other.facts != pair.facts), None)


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
    n_contexts, n_responses = len(step.contexts), len(step.responses)
    with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=bfloat16):
        vectors = embed(model.encoder, [*step.contexts, *step.responses, *step.facts])
    vectors = vectors.float()
    contexts, parts = head.context(vectors[:n_contexts]), head.parts(vectors[n_contexts : n_contexts + n_responses])
    terms = {"rank": _rank(head.scale, contexts, parts.robust[step.ranked], step)}
    words = []
    for name, labelled in step.labelled.items():
        if not labelled.labels:
            continue
        labels = torch.tensor(labelled.labels, device=vectors.device)
        if name in SAYING:
            logits = head.vector_logits(name, parts.non_robust[labelled.responses])
        else:
            against = contexts if name == "fit" else head.facts(vectors[n_contexts + n_responses :])
            logits = head.vector_logits(name, parts.robust[labelled.responses], against[labelled.owners])
        terms[name] = _balanced(logits, labels)
        texts = step.facts if name == "knowledge" else step.contexts
        features = model.features(name, texts, labelled.owners, [step.responses[place] for place in labelled.responses])
        words.append(_balanced(head.word_logits(name, features), labels))
    terms["words"] = torch.stack(words).sum()
    distance = 1 - functional.cosine_similarity(parts.robust[step.own], parts.non_robust[step.own], dim=-1)
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
    starts = tqdm(range(0, len(pairs), _WINDOW), desc="token rarity", disable=None if progress else True, leave=False)
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
                texts = step.facts if name == "knowledge" else step.contexts
                judged = [step.responses[response] for response in labelled.responses]
                features[head.words_of(name)].append(model.features(name, texts, labelled.owners, judged))
    for table, found in features.items():
        table.learn_scale(torch.cat(found))
