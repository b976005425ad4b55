"""How likely a model finds the turns of rated dialogues, joined to dialogues and compared with people: `convai_opinion`.

The host gives the log probability of a whole turn and hides those of its tokens. So the mean of equation 5.4 (Nedelchev 2022)
is taken as the geometric mean over the turn's words, whose number is the same for every model; the product, equation 5.10, is
exact.

A scorer gives each turn its score, of which sum and mean are taken. The product is taken of the score as a share of the
scorer's range, as if it were the probability of each word; where that range has no two ends there is none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dialeval_plugin.methods.likelihood.aggregation import dialogue_log_scores, reported
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate

from .corpus_metrics import CorpusMetrics, Undefined, undefined
from .ratings import scored_correlations

AGGREGATIONS: Mapping[str, str] = {
    "": "sum_of_means",
    "mean_of_means": "mean_of_means",
    "product": "product_of_products",
    "length": "length",
}
"""A variant of the task to how it joins turns. That without a name is equation 5.4's; `length` is the number of scored turns,
the baseline that a sum has to beat."""


class Opinion(NamedTuple):
    """What a model says of one turn, and what it is part of."""

    dialogue: str
    turn: int
    n_turns: int
    """Scored turns of the dialogue."""
    log_probability: float | None
    """Of the whole turn; None where the model gives none."""
    n_words: int
    rating: float
    score: float | None = None
    """A scorer's, where it judged the turn."""
    is_share: bool = True
    """Whether the log probability is a model's, or of a score that has a range with two ends."""
    unscored: str | None = None


class DialogueOpinion(NamedTuple):
    """A dialogue's rating and its scores by aggregation; no score where a turn has none."""

    dialogue: str
    rating: float
    scores: dict[str, float | None] | None
    """None in place of a product where the turns' scores are no shares."""
    n_turns: int


def dialogue_opinions(opinions: Sequence[Opinion]) -> list[DialogueOpinion]:
    """Join the turns of each dialogue, dialogues in the order of their ids.

    A dialogue that is not whole is left out: the host was told to run a part of the documents only.
    """
    turns: dict[str, list[Opinion]] = defaultdict(list)
    for opinion in opinions:
        turns[opinion.dialogue].append(opinion)
    return [
        DialogueOpinion(id, found[0].rating, _scores(sorted(found, key=lambda turn: turn.turn)), found[0].n_turns)
        for id, found in sorted(turns.items())
        if len(found) == found[0].n_turns
    ]


def _scores(turns: Sequence[Opinion]) -> dict[str, float | None] | None:
    logs = [turn.log_probability for turn in turns]
    known = [log for log in logs if log is not None]
    if len(known) < len(logs):
        return None
    # One "word" a turn: its geometric mean. A product wants the whole turn.
    means = [np.array([log / turn.n_words]) for log, turn in zip(known, turns, strict=True)]
    wholes = [np.array([log]) for log in known]
    scores: dict[str, float | None] = {
        name: reported(dialogue_log_scores(wholes if name.startswith("product") else means, (name,))[name], name)
        for name in AGGREGATIONS.values()
        if name != "length"
    }
    of_scorer = [turn.score for turn in turns if turn.score is not None]
    if of_scorer:
        scores |= {"sum_of_means": math.fsum(of_scorer), "mean_of_means": math.fsum(of_scorer) / len(of_scorer)}
    if not all(turn.is_share for turn in turns):
        scores["product_of_products"] = None
    return {**scores, "length": float(len(turns))}


def _correlations(opinions: Sequence[Opinion], bootstrap: Bootstrap) -> dict[str, Estimate | Undefined]:
    dialogues = dialogue_opinions(opinions)
    ratings, ids = [one.rating for one in dialogues], [one.dialogue for one in dialogues]
    found: dict[str, Estimate | Undefined] = {}
    for variant, aggregation in AGGREGATIONS.items():
        scores = [None if one.scores is None else one.scores[aggregation] for one in dialogues]
        for name, correlation in scored_correlations(scores, ratings, ids, bootstrap).items():
            is_no_product = aggregation == "product_of_products" and not all(opinion.is_share for opinion in opinions)
            value = undefined("product: the scores are no probabilities.") if is_no_product else correlation
            found[f"{variant}_{name}".removeprefix("_")] = value
    return found


def _count(opinions: Sequence[Opinion]) -> tuple[int, int]:
    dialogues = dialogue_opinions(opinions)
    return len(dialogues), sum(one.scores is not None for one in dialogues)


OPINIONS = CorpusMetrics(Opinion, _correlations, score="log_probability", count=_count)

spearman, spearman_ci_low, spearman_ci_high, n_scored = OPINIONS.printed("spearman")
