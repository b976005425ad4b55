"""The tasks `convai_opinion`: the likelihood of the turns of rated dialogues under the tested model.

EDiSON (Nedelchev 2022, chapter 8) uses a system's opinion of a dialogue to judge the system. A document is one turn after the
turns before it; the metrics join the turns to dialogues.

The host gives the log probability of a whole turn and not of its tokens. So the mean of equation 5.4 is the geometric mean over
the turn's words, whose number is the same for every model; the product, equation 5.10, is exact.

A scorer gives each turn its score, for the sum and the mean. The product uses the score as a share of the scorer's range, as if
it were the probability of each word; for an unbounded range there is no product.
"""

from __future__ import annotations

import functools
import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, is_blank, mean_rating
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.registry import check_choice
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.hosts.lm_eval.run import read_set, task_data
from dialeval_plugin.statistics.bootstrap import Bootstrap, Estimate

from .corpus_metrics import CorpusMetrics, Undefined, undefined
from .documents import data_sets, item_columns, rater_columns, verdict_of
from .ratings import scored_correlations

logger = logging.getLogger(__name__)

Challenge: TypeAlias = Literal["convai1", "convai2"]
Context: TypeAlias = Literal["full", "pair"]

_FETCH = "Type `dialeval data fetch convai2`, or name a folder that has them in DIALEVAL_DATA_DIR."
QUALITIES: Mapping[str, str] = {"convai1": "quality", "convai2": "eval_score"}
FEWEST_UTTERANCES = 3
"""Minimum number of utterances, blank ones counted; the thesis leaves shorter dialogues out."""
AGGREGATIONS: Mapping[str, str] = {
    "": "sum_of_means",
    "mean_of_means": "mean_of_means",
    "product": "product_of_products",
    "length": "length",
}
"""Aggregation of turns in each variant of the task. The variant without a name is equation 5.4; `length` is the number of
scored turns, a baseline for the sum.
"""


class Opinion(NamedTuple):
    """A model's opinion of one turn, and the turn's dialogue."""

    dialogue: str
    turn: int
    n_turns: int
    """Number of scored turns of the dialogue."""
    log_probability: float | None
    """Log probability of the whole turn; None if the model gives none."""
    n_words: int
    rating: float
    score: float | None = None
    """A scorer's score of the turn, if a scorer judged it."""
    is_share: bool = True
    """Whether the log probability is a language model's, or comes from a score with a bounded range."""
    unscored: str | None = None


class DialogueOpinion(NamedTuple):
    """A dialogue's rating and its scores by aggregation; no scores if a turn has none."""

    dialogue: str
    rating: float
    scores: dict[str, float | None] | None
    """Scores by aggregation; None in place of a product if the turns' scores are not shares."""
    n_turns: int


def dialogue_opinions(opinions: Sequence[Opinion]) -> list[DialogueOpinion]:
    """Join the turns of each dialogue; dialogues are in the order of their ids.

    Incomplete dialogues are left out: they occur if the host runs only part of the documents.
    """
    dialogues: dict[str, list[Opinion]] = defaultdict(list)
    for opinion in opinions:
        dialogues[opinion.dialogue].append(opinion)
    return [
        DialogueOpinion(id, turns[0].rating, _scores(sorted(turns, key=lambda turn: turn.turn)), turns[0].n_turns)
        for id, turns in sorted(dialogues.items())
        if len(turns) == turns[0].n_turns
    ]


def _scores(turns: Sequence[Opinion]) -> dict[str, float | None] | None:
    logs = [turn.log_probability for turn in turns if turn.log_probability is not None]
    if len(logs) < len(turns):
        return None
    means = [math.exp(log / turn.n_words) for log, turn in zip(logs, turns, strict=True)]
    # A product is so small that its log is reported.
    scores: dict[str, float | None] = {
        "sum_of_means": math.fsum(means),
        "mean_of_means": math.fsum(means) / len(means),
        "product_of_products": math.fsum(logs),
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
    has_products = all(opinion.is_share for opinion in opinions)
    figures: dict[str, Estimate | Undefined] = {}
    for variant, aggregation in AGGREGATIONS.items():
        scores = [None if one.scores is None else one.scores[aggregation] for one in dialogues]
        for name, correlation in scored_correlations(scores, ratings, ids, bootstrap).items():
            is_no_product = aggregation == "product_of_products" and not has_products
            value = undefined("product: the scores are no probabilities.") if is_no_product else correlation
            figures[f"{variant}_{name}".removeprefix("_")] = value
    return figures


def _count(opinions: Sequence[Opinion]) -> tuple[int, int]:
    dialogues = dialogue_opinions(opinions)
    return len(dialogues), sum(one.scores is not None for one in dialogues)


OPINIONS = CorpusMetrics(Opinion, _correlations, "spearman", score="log_probability", count=_count)
spearman, spearman_ci_low, spearman_ci_high, n_scored = OPINIONS.aggregations()


@task_data()
def opinion_dataset(
    *,
    dataset: Challenge,
    context: str = "full",
    rated_quality: str | None = None,
    bot_ratings: str = "left_out",
) -> dict[str, Any]:
    """Build the data set of a task over one challenge.

    Args:
        dataset: "convai1" or "convai2".
        context: "full" for all turns before a turn, "pair" for the last one.
        rated_quality: the quality to compare with; by default the challenge's score of the dialogue.
        bot_ratings: see `convai.read_convai1`.
    """
    check_choice("--metadata", "context", context, get_args(Context))
    read = functools.partial(_read, bot_ratings=bot_ratings)
    dialogues = read_set(read, dataset, group="convai_opinion", advice=_FETCH)
    quality = rated_quality or QUALITIES[dataset]
    rows = []
    for dialogue, rating in _rated(dialogues, quality):
        raters = rater_columns(dialogue, quality)
        rows += [{**row, **raters} for row in _documents(dialogue, rating, context)]
    return data_sets(test=rows)


def prompt(doc: Mapping[str, Any]) -> str:
    """Return the turns before the judged one, one per line."""
    return "\n".join(turn["text"] for turn in doc["context"])


def continuation(doc: Mapping[str, Any]) -> str:
    """Return the judged turn, on a separate line."""
    return f"\n{doc['response']['text']}"


def process_opinion(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Opinion]:
    """Return the model's opinion of one turn under the name of every metric; nothing for a placeholder."""
    if doc["is_absent"]:
        return {}
    ((log_probability, _),) = results
    finite = log_probability if math.isfinite(log_probability) else None
    opinion = Opinion(doc["dialogue"], doc["turn"], doc["n_turns"], finite, doc["n_words"], doc["rating"])
    if verdict := verdict_of(results):
        is_share = verdict.score is None or verdict.share is not None
        opinion = opinion._replace(score=verdict.score, is_share=is_share, unscored=verdict.unscored)
    return OPINIONS.of_document(opinion)


def _read(challenge: str, bot_ratings: str) -> list[Dialogue]:
    if challenge == "convai2":
        return convai.read_convai2()
    return convai.read_convai1(bot_ratings=bot_ratings)  # type: ignore[arg-type]  # the reader checks what a user typed


def _rated(dialogues: Sequence[Dialogue], quality: str) -> list[tuple[Dialogue, float]]:
    long = [dialogue for dialogue in dialogues if len(dialogue.turns) >= FEWEST_UTTERANCES]
    rated = [(dialogue, rating) for dialogue in long if (rating := mean_rating(dialogue, quality)) is not None]
    if not rated:
        raise InputError(f"{quality}: none of the {len(long)} dialogues is rated. Use files with ratings.")
    if left_out := len(dialogues) - len(rated):
        logger.info("%s: %d of %d dialogues are short or not rated and are left out", quality, left_out, len(dialogues))
    return rated


def _documents(dialogue: Dialogue, rating: float, context: str) -> list[dict[str, Any]]:
    """Return rows of the visible turns except the first, each on one line: a line break would look like the end of a turn."""
    turns = [Turn(" ".join(turn.text.split()), turn.speaker) for turn in dialogue.turns if not is_blank(turn.text)]
    return [
        {
            **item_columns(
                Example(f"{dialogue.id}:{place}", tuple(turns[place - 1 if context == "pair" else 0 : place]), turns[place])
            ),
            "dialogue": dialogue.id,
            "turn": place,
            "n_turns": len(turns) - 1,
            "n_words": len(turns[place].text.split()),
            "rating": rating,
            "is_absent": False,
        }
        for place in range(1, len(turns))
    ]
