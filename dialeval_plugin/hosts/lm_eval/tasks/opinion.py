"""The tasks `convai_opinion`: how likely the model under test finds the turns of dialogues that people rated.

EDiSON (Nedelchev 2022, chapter 8) asks a system for its opinion of a dialogue instead of a dialogue. A document is one turn
after the turns before it.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from dialeval_plugin.core.dialogue import Dialogue, Example, Turn, is_blank
from dialeval_plugin.core.errors import InputError
from dialeval_plugin.core.options import check_choice
from dialeval_plugin.corpora.items import mean_rating
from dialeval_plugin.corpora.readers import convai
from dialeval_plugin.judgement_tasks.documents import absent_item, data_sets, item_columns, rater_columns, verdict_of
from dialeval_plugin.judgement_tasks.kinds import printed
from dialeval_plugin.judgement_tasks.opinions import Opinion

from .task_data import n_processes, task_data, unless_absent

logger = logging.getLogger(__name__)

Challenge: TypeAlias = Literal["convai1", "convai2"]
Context: TypeAlias = Literal["full", "pair"]

GROUP = "convai_opinion"
_FETCH = "Type `dialeval data fetch convai2`, or name a folder that has them in DIALEVAL_DATA_DIR."
QUALITIES: Mapping[str, str] = {"convai1": "quality", "convai2": "eval_score"}
FEWEST_UTTERANCES = 3
"""The thesis leaves shorter dialogues out, blank utterances counted."""


@task_data()
def opinion_dataset(
    *,
    dataset: Challenge,
    context: str = "full",
    rated_quality: str | None = None,
    bot_ratings: str = "left_out",
    when_absent: str = "fail",
    group_sets: Sequence[str] = (),
) -> dict[str, Any]:
    """Build the data set of a task over one challenge.

    Args:
        dataset: "convai1" or "convai2".
        context: "full" for all turns before a turn, "pair" for the last one.
        rated_quality: the quality to compare with; by default the challenge's score of the dialogue.
        bot_ratings: see `convai.read_convai1`.
        when_absent: "fail", or "skip" for a task inside a group: one placeholder then stands for the challenge.
        group_sets: the group's challenges; one at least has to be there.
    """
    check_choice("--metadata", "context", context, get_args(Context))
    read = functools.partial(_read, bot_ratings=bot_ratings)
    dialogues = unless_absent(read, dataset, when_absent=when_absent, group_sets=group_sets, group=GROUP, advice=_FETCH)
    if dialogues is None:
        return data_sets(test=[_absent(dataset)] * n_processes())
    rows = []
    quality = rated_quality or QUALITIES[dataset]
    for dialogue, rating in _rated(dialogues, quality):
        raters = rater_columns(dialogue, quality)
        rows += [{**row, **raters} for row in _documents(dialogue, rating, context)]
    return data_sets(test=rows)


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
    return dict.fromkeys(printed("opinion"), opinion)


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
