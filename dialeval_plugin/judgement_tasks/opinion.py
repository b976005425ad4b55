"""What the tasks `convai_opinion` name: how likely the model under test finds the turns of dialogues that people rated.

EDiSON (Nedelchev 2022, chapter 8) asks a system for its opinion of a dialogue instead of a dialogue. A document is one turn
after the turns before it; the aggregations join the turns of a dialogue again and compare it with its human score.

The host gives the log probability of a whole turn and hides those of its tokens. So the mean of equation 5.4 is taken as the
geometric mean over the turn's words, whose number is the same for every model; the product, equation 5.10, is exact.

A scorer gives each turn its score, of which sum and mean are taken. The product is taken of the score as a share of the
scorer's range, as if it were the probability of each word; where that range has no two ends there is none.
"""

from __future__ import annotations

import functools
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, is_blank
from dialeval_plugin.core.errors import InputError, MissingPrerequisite
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.methods.likelihood.aggregation import dialogue_log_score, reported
from dialeval_plugin.statistics.bootstrap import Bootstrap
from dialeval_plugin.statistics.correlation import Correlation, correlations

from .absent_sets import check_any_present
from .aggregation import ROUNDS, SEED, Undefined, undefined, why_unscored
from .documents import absent_item, item_columns, item_features, rater_columns, rater_features
from .responses import n_processes
from .scorer_answers import verdict_of
from .task_data import task_data

logger = logging.getLogger(__name__)

Challenge: TypeAlias = Literal["convai1", "convai2"]
Context: TypeAlias = Literal["full", "pair"]

GROUP = "convai_opinion"
_FETCH = "Type `dialeval data fetch convai2`, or name a folder that has them in DIALEVAL_DATA_DIR."
QUALITIES: Mapping[str, str] = {"convai1": "quality", "convai2": "eval_score"}
FEWEST_UTTERANCES = 3
"""The thesis leaves shorter dialogues out, blank utterances counted."""

AGGREGATIONS = {"": "sum_of_means", "mean_of_means_": "mean_of_means", "product_": "product_of_products", "length_": "length"}
_COEFFICIENTS = {"spearman": "spearman", "pearson": "pearson", "kendall": "kendall_b"}
_FIELDS = {"": "value", "_ci_low": "ci_low", "_ci_high": "ci_high"}
_PARTS: dict[str, tuple[str, str, str]] = {
    f"{prefix}{name}{suffix}": (aggregation, coefficient, field)
    for prefix, aggregation in AGGREGATIONS.items()
    for name, coefficient in _COEFFICIENTS.items()
    for suffix, field in _FIELDS.items()
}
METRICS = (*_PARTS, "n_scored", "n_unscored")
"""Names of the metrics, as in the task files: those without a prefix are equation 5.4's; `length_` is the number of scored
turns, the baseline that a sum has to beat; the last two count dialogues."""


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
    """Why there is no score, where the scorer says so: a value of `scoring.Reason`."""


@task_data()
def opinion_dataset(
    *,
    challenge: Challenge,
    context: str = "full",
    rated_quality: str | None = None,
    bot_ratings: str = "left_out",
    when_absent: str = "fail",
    group_sets: Sequence[str] = (),
) -> dict[str, Any]:
    """Build the data set of a task over one challenge.

    Args:
        challenge: "convai1" or "convai2".
        context: "full" for all turns before a turn, "pair" for the last one.
        rated_quality: the quality to compare with; by default the challenge's score of the dialogue.
        bot_ratings: see `convai.read_convai1`.
        when_absent: "fail", or "skip" for a task inside a group: one placeholder then stands for the challenge.
        group_sets: the group's challenges; one at least has to be there.

    Raises:
        InputError: an option is unknown, or no dialogue is rated.
        MissingPrerequisite: the files are not there, and may not be left out.
    """
    if context not in get_args(Context):
        raise InputError(f'context: expected full or pair, got {context!r}. Type --metadata \'{{"context": "pair"}}\'.')
    try:
        dialogues = _read(challenge, bot_ratings)
    except MissingPrerequisite as error:
        if when_absent != "skip":
            raise
        check_any_present(GROUP, group_sets, lambda name: _read(name, bot_ratings), advice=_FETCH, error=error)
        logger.warning("%s_opinion: left out of the group and of its mean: %s", challenge, error)
        return _dataset([_absent(challenge)] * n_processes())
    rows = []
    quality = rated_quality or QUALITIES[challenge]
    for dialogue, rating in _rated(dialogues, quality):
        raters = rater_columns(dialogue, quality)
        rows += [{**row, **raters} for row in _documents(dialogue, rating, context)]
    return _dataset(rows)


def prompt(doc: Mapping[str, Any]) -> str:
    """Return the turns before the one that is asked about, one a line."""
    return "\n".join(turn["text"] for turn in doc["context"])


def continuation(doc: Mapping[str, Any]) -> str:
    """Return the turn that is asked about, on a line of its own."""
    return f"\n{(doc['response'] or {}).get('text', '')}"


def process_opinion(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, Opinion]:
    """Return what the model says of one turn under the name of every metric; nothing for a placeholder."""
    if doc["is_absent"]:
        return {}
    ((log_probability, _),) = results
    found = log_probability if math.isfinite(log_probability) else None
    opinion = Opinion(doc["dialogue"], doc["turn"], doc["n_turns"], found, doc["n_words"], doc["rating"])
    if verdict := verdict_of(results):
        is_share = verdict.score is None or verdict.share is not None
        opinion = opinion._replace(score=verdict.score, is_share=is_share, unscored=verdict.unscored)
    return dict.fromkeys(METRICS, opinion)


class DialogueOpinion(NamedTuple):
    """A dialogue's rating and its scores by aggregation; no score where a turn has none."""

    dialogue: str
    rating: float
    scores: dict[str, float | None] | None
    """None in place of a product where the turns' scores are no shares."""
    n_turns: int


def dialogue_opinions(items: Sequence[Opinion]) -> list[DialogueOpinion]:
    """Join the turns of each dialogue, dialogues in the order of their ids.

    A dialogue that is not whole is left out: the host was told to run a part of the documents only.
    """
    turns: dict[str, list[Opinion]] = defaultdict(list)
    for item in items:
        # Items that went through the host's gathering may have become plain tuples.
        opinion = Opinion(*item)
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
        name: reported(dialogue_log_score(wholes if name.startswith("product") else means, name), name)
        for name in AGGREGATIONS.values()
        if name != "length"
    }
    of_scorer = [turn.score for turn in turns if turn.score is not None]
    if of_scorer:
        scores |= {"sum_of_means": math.fsum(of_scorer), "mean_of_means": math.fsum(of_scorer) / len(of_scorer)}
    if not all(turn.is_share for turn in turns):
        scores["product_of_products"] = None
    return {**scores, "length": float(len(turns))}


@functools.lru_cache(maxsize=8)
def _correlations(items: tuple[Opinion, ...]) -> dict[tuple[str, str], Correlation]:
    dialogues = dialogue_opinions(items)
    found = {}
    for aggregation in AGGREGATIONS.values():
        scores = [None if dialogue.scores is None else dialogue.scores[aggregation] for dialogue in dialogues]
        ratings = [dialogue.rating for dialogue in dialogues]
        ids = [dialogue.dialogue for dialogue in dialogues]
        by_name = correlations(
            scores, ratings, coefficients=tuple(_COEFFICIENTS.values()), clusters=ids, bootstrap=Bootstrap(ROUNDS, seed=SEED)
        )
        found.update({(aggregation, name): correlation for name, correlation in by_name.items()})
    return found


def _find(items: Sequence[Opinion], aggregation: str, coefficient: str) -> Correlation:
    return _correlations(tuple(Opinion(*item) for item in items))[aggregation, coefficient]


def n_scored(items: Sequence[Opinion]) -> int:
    """How many dialogues have a score: the number that every coefficient of the task rests on."""
    return sum(dialogue.scores is not None for dialogue in dialogue_opinions(items))


def n_unscored(items: Sequence[Opinion]) -> int:
    """How many dialogues have a turn that the model gives no probability."""
    return sum(dialogue.scores is None for dialogue in dialogue_opinions(items))


def __getattr__(name: str) -> Callable[[Sequence[Opinion]], float | Undefined]:
    """Make the aggregation of a metric, as `length_pearson`: the task files name each as a function of this module."""
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    aggregation, coefficient, field = _PARTS[name]

    def aggregate(items: Sequence[Opinion]) -> float | Undefined:
        found = _find(items, aggregation, coefficient)
        value: float | None = getattr(found, field)
        if value is not None:
            return value
        opinions = [Opinion(*item) for item in items]
        if aggregation == "product_of_products" and not all(opinion.is_share for opinion in opinions):
            return undefined("product: the scores are no probabilities.")
        return undefined(found.reason, why_unscored(opinions, "log_probability"))

    aggregate.__name__ = aggregate.__qualname__ = name
    return aggregate


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
    """The visible turns but the first, each on one line: a line break would look like the end of a turn."""
    turns = [Turn(" ".join(turn.text.split()), turn.speaker) for turn in dialogue.turns if not is_blank(turn.text)]
    n_turns = len(turns) - 1
    return [
        {
            **item_columns(
                Example(f"{dialogue.id}:{place}", tuple(turns[place - 1 if context == "pair" else 0 : place]), turns[place])
            ),
            "dialogue": dialogue.id,
            "turn": place,
            "n_turns": n_turns,
            "n_words": len(turns[place].text.split()),
            "rating": rating,
            "is_absent": False,
        }
        for place in range(1, n_turns + 1)
    ]


def _absent(challenge: str) -> dict[str, Any]:
    numbers = {"turn": 1, "n_turns": 1, "n_words": 1, "rating": 0.0}
    raters = rater_columns(absent_item(challenge), "")
    return {**item_columns(absent_item(challenge)), **raters, "dialogue": challenge, **numbers, "is_absent": True}


def _dataset(rows: list[dict[str, Any]]) -> dict[str, Any]:
    from datasets import Dataset, Features, Value

    numbers = dict.fromkeys(("turn", "n_turns", "n_words"), Value("int64"))
    columns = {
        **item_features(),
        **rater_features(),
        "dialogue": Value("string"),
        **numbers,
        "rating": Value("float64"),
        "is_absent": Value("bool"),
    }
    return {"test": Dataset.from_list(rows, features=Features(columns))}
